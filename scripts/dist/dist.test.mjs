/**
 * What `make dist` has made, as those find it who get it: every package is installed into an empty
 * place, without a network, and run. `make test-dist` runs this; EXECD_DIST is the directory.
 *
 * Programs for aarch64 run by qemu-user (arm64.sh); EXECD_NODE_ARM64 is a Node for that machine, by
 * which `npx pi-execd` is tried there, and that one test is skipped without it. A machine for which
 * nothing was made, or whose programs do not run here, fails; DIST_PARTIAL=1 leaves it out instead.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const REPO = resolve(HERE, "../..");
const DIST = resolve(process.env.EXECD_DIST ?? join(REPO, "dist"));
const MANIFEST = JSON.parse(readFileSync(join(REPO, "pi-extension/package.json"), "utf8"));
const VERSION = MANIFEST.version;
/** Nothing listens on the discard port: whoever asks the network is refused at once. */
const OFFLINE = {
  npm_config_registry: "http://127.0.0.1:9/",
  npm_config_fetch_retries: "0",
  CARGO_NET_OFFLINE: "true",
};
/** Long enough for a build of all crates on a busy machine. */
const PATIENCE_MS = 900_000;
/** Whether a release, or a trial of it, without some machine is enough. */
const PARTIAL = Boolean(process.env.DIST_PARTIAL);

const MACHINES = [
  { name: "x86_64-linux", deb: "amd64", npm: "linux-x64", words: [] },
  { name: "aarch64-linux", deb: "arm64", npm: "linux-arm64", words: [join(HERE, "arm64.sh")] },
];

const scratch = mkdtempSync(join(tmpdir(), "execd-dist-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

function run(words, options = {}) {
  const [program, ...args] = words;
  const env = { ...process.env, ...OFFLINE, ...options.env };
  return execFileSync(program, args, {
    encoding: "utf8", timeout: PATIENCE_MS, maxBuffer: 1 << 26, ...options, env,
  });
}

function place(name) {
  const dir = join(scratch, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** Why programs of this machine cannot be run here; false where they can. */
function cannot({ name, words }) {
  if (!readdirSync(DIST).some((file) => file.includes(name))) return `nothing was made for ${name}`;
  if (words.length === 0) return false;
  const tried = spawnSync(words[0], ["true"], { encoding: "utf8" });
  return tried.status === 0 ? false : `${name} is not emulated here: ${tried.stderr.trim()}`;
}

/** It tells its version, runs a command to its end, ends what that leaves, and keeps whole logs. */
function works(words, binary) {
  const execd = (args, options) => {
    const [program, ...rest] = [...words, binary, ...args];
    return spawnSync(program, rest, { encoding: "utf8", timeout: PATIENCE_MS, ...options });
  };
  assert.equal(execd(["--version"]).stdout, `execd ${VERSION}\n`);
  const ran = execd(["run", "-q", "-c", "seq 3; sleep 300 & exit 7"]);
  assert.deepEqual([ran.status, ran.stdout], [7, "1\n2\n3\n"], ran.stderr);
  const params = { cmd: "seq 1000", tty: true, yield_time_ms: 20_000 };
  const input = `${JSON.stringify({ id: 1, method: "exec_command", params })}\n`;
  const answered = execd([], { input });
  const answers = answered.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const { result } = answers.find(({ id }) => id === 1);
  assert.deepEqual([answered.status, result.exit_code], [0, 0], answered.stdout);
  const log = readFileSync(result.log_path, "utf8");
  rmSync(result.log_path);
  assert.equal(log.split("\r\n").length, 1_001);
}

test("SHA256SUMS has every file", () => {
  const listed = readFileSync(join(DIST, "SHA256SUMS"), "utf8").trim().split("\n")
    .map((line) => line.split("  ")[1]);
  const there = readdirSync(DIST).filter((file) => file !== "SHA256SUMS");
  assert.deepEqual(listed.sort(), there.sort());
  run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], { cwd: DIST });
});

for (const machine of MACHINES) {
  const skip = cannot(machine);
  const tarball = `execd-${VERSION}-${machine.name}`;

  test(`${machine.name}: there is what is tried here`, { skip: PARTIAL && skip }, () => {
    assert.equal(skip, false);
  });

  test(`${machine.name}: the tarball is unpacked and runs`, { skip }, () => {
    const dir = place(`tarball-${machine.name}`);
    run(["tar", "-xzf", join(DIST, `${tarball}.tar.gz`), "--strip-components=1"], { cwd: dir });
    works(machine.words, join(dir, "bin/execd"));
    const doc = readdirSync(join(dir, "share/doc/execd")).sort();
    assert.deepEqual(doc, ["CHANGELOG.md", "LICENSE", "README.md", "execd.cdx.json", "licences"]);
    assert.match(readFileSync(join(dir, "share/man/man1/execd-run.1"), "utf8"), /^\.TH /m);
    for (const file of ["bash-completion/completions/execd", "zsh/site-functions/_execd",
      "fish/vendor_completions.d/execd.fish"]) {
      assert.ok(readFileSync(join(dir, "share", file), "utf8").includes("execd"), file);
    }
  });

  test(`${machine.name}: the .deb has the same, for Debian's ${machine.deb}`, { skip }, () => {
    const deb = join(DIST, `execd_${VERSION}-1_${machine.deb}.deb`);
    const field = (name) => run(["dpkg-deb", "--field", deb, name]).trim();
    assert.deepEqual([field("Package"), field("Architecture"), field("Version"), field("Depends")],
      ["execd", machine.deb, `${VERSION}-1`, ""]);
    const dir = place(`deb-${machine.name}`);
    run(["dpkg-deb", "--extract", deb, dir]);
    works(machine.words, join(dir, "usr/bin/execd"));
    const same = ["share/man/man1/execd.1.gz", "share/doc/execd/copyright",
      "share/doc/execd/licences/crates.txt", "share/bash-completion/completions/execd",
      "share/zsh/vendor-completions/_execd", "share/fish/vendor_completions.d/execd.fish"];
    for (const file of same) assert.ok(readFileSync(join(dir, "usr", file)).length > 0, file);
  });

  test(`${machine.name}: npm installs it without a network`, { skip }, () => {
    const dir = place(`npm-${machine.name}`);
    const cpu = machine.npm.replace("linux-", "");
    run(["npm", "install", `--cpu=${cpu}`, join(DIST, `pi-execd-${VERSION}.tgz`)], { cwd: dir });
    const modules = join(dir, "node_modules/pi-execd/node_modules");
    works(machine.words, join(modules, `@pi-execd/${machine.npm}/bin/execd`));
  });
}

const otherNode = process.env.EXECD_NODE_ARM64;
const skipNode = cannot(MACHINES[1])
  || (otherNode ? false : "there is no EXECD_NODE_ARM64");
test("aarch64-linux: Node for aarch64 becomes execd", { skip: skipNode }, () => {
  const dir = place("npx-aarch64-linux");
  run(["npm", "install", "--cpu=arm64", join(DIST, `pi-execd-${VERSION}.tgz`)], { cwd: dir });
  const launcher = join(dir, "node_modules/.bin/pi-execd");
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const input = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`;
  const said = run([...MACHINES[1].words, otherNode, launcher, "mcp"], { cwd: dir, input });
  assert.match(said, /"serverInfo":\{"name":"execd"/);
});

test("the crate builds from its tarball, which has no tests' fixtures", () => {
  const dir = place("crates");
  run(["tar", "-xzf", join(DIST, `execd-${VERSION}.crate`)], { cwd: dir });
  const files = run(["find", ".", "-type", "f"], { cwd: dir }).split("\n");
  assert.deepEqual(files.filter((file) => /fixtures|pi-extension/.test(file)), []);
  const env = { CARGO_TARGET_DIR: join(dir, "target") };
  run(["cargo", "build", "--locked"], {
    cwd: join(dir, `execd-${VERSION}`), env, stdio: ["ignore", "ignore", "inherit"],
  });
  works([], join(dir, "target/debug/execd"));
});

test("the bill of materials names every crate, and what else is linked in", () => {
  const bom = JSON.parse(readFileSync(join(DIST, `execd-${VERSION}.cdx.json`), "utf8"));
  assert.deepEqual([bom.bomFormat, bom.metadata.component.version], ["CycloneDX", VERSION]);
  const named = new Set(bom.components.map(({ name, version }) => `${name} ${version}`));
  const tree = run(["cargo", "tree", "--locked", "--edges=normal", "--prefix=none",
    "--target=x86_64-unknown-linux-gnu", "--format={p}"], { cwd: REPO });
  const crates = tree.split("\n").filter(Boolean).map((line) => line.replace(/ v(\S+).*/, " $1"));
  const missing = crates.filter((one) => !one.startsWith("execd ") && !named.has(one));
  assert.deepEqual(missing, []);
  assert.ok(["rust-std", "glibc"].every((one) => [...named].some((it) => it.startsWith(one))));
});

test("nothing in it tells on the machine that made it", () => {
  const dir = place("all");
  for (const file of readdirSync(DIST)) {
    const to = join(dir, file);
    mkdirSync(to);
    if (file.endsWith(".deb")) run(["dpkg-deb", "--raw-extract", join(DIST, file), to]);
    else if (/\.(tgz|crate|tar\.gz)$/.test(file)) run(["tar", "-xzf", join(DIST, file), "-C", to]);
    else symlinkSync(join(DIST, file), join(to, file));
  }
  // A short path, such as `/src` or a home directory that is `/`, stands in many texts and tells
  // on nobody; root's stands nowhere else.
  const isTelling = (path) => path === "/root" || path.split("/").filter(Boolean).length >= 2;
  for (const text of [REPO, homedir()].filter(isTelling).map((path) => `${path}/`)) {
    const found = spawnSync("grep", ["-RlF", "--", text, dir], { encoding: "utf8" });
    assert.deepEqual([found.status, found.stdout], [1, ""], text);
  }
});
