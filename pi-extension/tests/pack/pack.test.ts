/**
 * The tarballs of a release: what is in them, and that pi installs the extension from one of them
 * with neither Rust nor a network, and runs it.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { constants as system, tmpdir } from "node:os";
import { delimiter, dirname, join, relative, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { filesBelow, machineTexts, tracesBelow } from "../../scripts/machine-traces.ts";
import { binaryProblems, PLATFORMS } from "../../scripts/release-binary.ts";
import { runJson } from "../pi/lib/json.ts";
import { exec, turn } from "../pi/lib/model.ts";
import { execdBinary, EXTENSION_DIR, piCommand } from "../pi/lib/paths.ts";
import { placedOutput } from "../pi/lib/results.ts";
import { scratch } from "../pi/lib/scratch.ts";
import type { Scratch } from "../pi/lib/scratch.ts";

/** Runs a program to its end, which comes long before this deadline. */
const run = (program: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv }) =>
  promisify(execFile)(program, args, { ...options, timeout: 100_000, killSignal: "SIGKILL" });

const REPO = resolve(EXTENSION_DIR, "..");
const PLATFORM = "@pi-execd/linux-x64";
/** Nothing listens on the discard port: whoever asks the network is refused at once. */
const NOBODY = "http://127.0.0.1:9/";
/** What pi, npm and bash need of a machine. */
const PROGRAMS = ["sh", "bash", "env", "npm", "npx", "readlink"];

interface Manifest {
  version: string;
  [field: string]: unknown;
}

const dir = realpathSync(mkdtempSync(join(tmpdir(), "execd-pack-")));
const { version } = readManifest(EXTENSION_DIR);
const platformTarball = `pi-execd-linux-x64-${version}.tgz`;
const extensionTarball = `pi-execd-${version}.tgz`;

before(async () => {
  await packRelease("out");
  for (const name of [platformTarball, extensionTarball]) {
    mkdirSync(unpacked(name), { recursive: true });
    await run("tar", ["-xzf", join(dir, "out", name)], { cwd: unpacked(name) });
  }
});

after(() => rmSync(dir, { recursive: true, force: true }));

test("the platform package holds the binary, its licence and a word on it", () => {
  const root = join(unpacked(platformTarball), "package");
  assert.deepEqual(filesBelow(root), ["LICENSE", "README.md", "bin/execd", "package.json"]);
  assertSameProgram(join(root, "bin/execd"));
  const { name, os, cpu, license, ...rest } = readManifest(root);
  assert.deepEqual({ name, os, cpu }, { name: PLATFORM, os: ["linux"], cpu: ["x64"] });
  assert.deepEqual([license, rest.version], ["MIT", version]);
  assert.ok(!("scripts" in rest) && !("exports" in rest), "its package.json must be resolvable");
});

// rule: pi.md, The extension: pack-release: two tarballs that install offline without Rust
test("the extension package holds src and the bundled platform package, and no tests", () => {
  const root = join(unpacked(extensionTarball), "package");
  const src = filesBelow(join(EXTENSION_DIR, "src")).map((file) => join("src", file));
  const bundled = ["LICENSE", "README.md", "bin/execd", "package.json"];
  const expected = [
    ...["LICENSE", "README.md", "bin/pi-execd.mjs", "package.json"],
    ...src,
    ...bundled.map((file) => join("node_modules", PLATFORM, file)),
  ];
  assert.deepEqual(filesBelow(root), expected.sort());
  assertSameProgram(join(root, "node_modules", PLATFORM, "bin/execd"));
  for (const file of ["src/index.ts", "README.md", "bin/pi-execd.mjs"]) {
    assert.deepEqual(readFileSync(join(root, file)), readFileSync(join(EXTENSION_DIR, file)));
  }
  assert.deepEqual(readFileSync(join(root, "LICENSE")), readFileSync(join(REPO, "LICENSE")));
});

test("the packed package.json names the platform package and nothing of the checkout", () => {
  const own = readManifest(EXTENSION_DIR);
  const packed = readManifest(join(unpacked(extensionTarball), "package"));
  assert.deepEqual(packed["optionalDependencies"], { [PLATFORM]: version });
  assert.deepEqual(packed["bundleDependencies"], [PLATFORM]);
  const kept = ["pi", "bin", "peerDependencies", "peerDependenciesMeta", "engines", "license"];
  for (const field of kept) {
    assert.deepEqual(packed[field], own[field], field);
  }
  for (const field of ["scripts", "devDependencies", "dependencies"]) {
    assert.ok(!(field in packed), field);
  }
  // npm ci would look for it in a registry, which does not have it yet.
  assert.ok(!JSON.stringify(own).includes(PLATFORM), "the checkout does not name it");
});

test("nothing packed tells on this machine", () => {
  // How the binary of a test was built is not this test's affair; pack-release judges its own.
  const texts = machineTexts(REPO, "https://a-registry.example/npm/");
  assert.ok(texts.includes("a-registry.example"), String(texts));
  const binaries = ["package/bin/execd", `package/node_modules/${PLATFORM}/bin/execd`];
  for (const name of [platformTarball, extensionTarball]) {
    assert.deepEqual(tracesBelow(unpacked(name), texts, binaries), []);
  }
});

test("a binary is fit for a release only if it runs on every Linux on x64", () => {
  const script = binaryProblems(Buffer.from("#!/bin/sh\n"), []);
  assert.deepEqual(script, ["it is no program for linux-x64"]);
  const dynamic = binaryProblems(readFileSync(process.execPath), ["/lib64/ld-linux"]);
  assert.deepEqual(dynamic, [
    'it holds "/lib64/ld-linux"',
    "it is linked dynamically, to the libc of this machine",
  ]);
});

test("each machine has its own package, by what its programs say they are for", () => {
  assert.deepEqual(PLATFORMS.map(({ name }) => name), ["linux-x64", "linux-arm64"]);
  for (const platform of PLATFORMS) {
    const problems = binaryProblems(readFileSync(execdBinary()), [], platform);
    const foreign = `it is no program for ${platform.name}`;
    assert.equal(problems.includes(foreign), platform.cpu !== process.arch, problems.join("\n"));
  }
});

// Tools of the Model Context Protocol for who has no Rust.
test("npm installs it into an empty directory without a network, and npx runs it", async (t) => {
  const place = scratch(t);
  const env = { ...place.plainEnvironment(), ...bareMachine(place) };
  await assertNoNetwork(place, env);
  const tarball = join(dir, "out", extensionTarball);
  await run("npm", ["install", tarball], { cwd: place.cwd, env });
  // Of pi, which it also extends, nothing is installed for it.
  assert.deepEqual(readdirSync(join(place.cwd, "node_modules")).sort(), [
    ".bin", ".package-lock.json", "pi-execd",
  ]);
  const npx = (...args: string[]) => run("npx", ["pi-execd", ...args], { cwd: place.cwd, env });
  assert.equal((await npx("--version")).stdout, `execd ${version}\n`);
  // Node has become execd: the status is its own, and so is what the command runs below.
  const ran = npx("run", "-c", "readlink /proc/$PPID/exe; exit 7");
  await assert.rejects(ran, (error: { code?: number; stdout?: string }) => {
    assert.equal(error.code, 7);
    const packed = join("node_modules/pi-execd/node_modules", PLATFORM, "bin/execd");
    assert.equal(error.stdout, `${realpathSync(join(place.cwd, packed))}\n`);
    return true;
  });
  assert.match(initialized(place.cwd, env), /"serverInfo":\{"name":"execd"/);
});

test("without its platform's package npx says what is missing", async (t) => {
  const place = scratch(t);
  const env = { ...place.plainEnvironment(), ...bareMachine(place) };
  const launcher = place.path("pi-execd.mjs");
  copyFileSync(join(EXTENSION_DIR, "bin/pi-execd.mjs"), launcher);
  const started = run("node", [launcher, "mcp"], { cwd: place.cwd, env });
  await assert.rejects(started, (error: { code?: number; stderr?: string }) => {
    assert.equal(error.code, 125);
    assert.match(error.stderr ?? "", new RegExp(`there is no package ${PLATFORM}: `));
    return true;
  });
});

/** The launcher beside a platform package that has this program; gives what starts it. */
function launcherWith(place: Scratch, directory: string): { launcher: string; program: string } {
  const manifest = place.path(`${directory}/node_modules/${PLATFORM}/package.json`);
  mkdirSync(join(dirname(manifest), "bin"), { recursive: true });
  writeFileSync(manifest, "{}");
  const launcher = place.path(`${directory}/pi-execd.mjs`);
  copyFileSync(join(EXTENSION_DIR, "bin/pi-execd.mjs"), launcher);
  return { launcher, program: join(dirname(manifest), "bin/execd") };
}

// Node ignores SIGPIPE, and what it executes went on with that: `yes | head` ended with an error.
test("commands of npx have their signals as of execd itself", async (t) => {
  const place = scratch(t);
  const env = { ...place.plainEnvironment(), ...bareMachine(place) };
  const ignored = "while read name mask; do case $name in SigIgn:) echo $mask; esac; done < /proc/$$/status";
  // A path with = is a variable to env: it runs all the same.
  const bit = (signal: "SIGPIPE" | "SIGXFSZ") => 1 << (system.signals[signal] - 1);
  const [pipe, fileSize] = [bit("SIGPIPE"), bit("SIGXFSZ")];
  for (const [directory, left] of [["plain", 0], ["a=b", pipe | fileSize]] as const) {
    const { launcher, program } = launcherWith(place, directory);
    copyFileSync(execdBinary(), program);
    const args = [launcher, "run", "-c", ignored];
    const { stdout } = await run("node", args, { cwd: place.cwd, env });
    assert.match(stdout, /^[0-9a-f]{16}\n$/);
    assert.equal(Number.parseInt(stdout, 16) & (pipe | fileSize), left, directory);
  }
});

// Node aborts where execve fails, with its own stack and status 134.
test("a program that cannot be run is named", async (t) => {
  const place = scratch(t);
  const env = { ...place.plainEnvironment(), ...bareMachine(place) };
  const { launcher, program } = launcherWith(place, "bad");
  const why = async () => {
    const started = run("node", [launcher, "--version"], { cwd: place.cwd, env });
    const error: { code?: number; stderr?: string } = await started.then(() => ({}), (error) => error);
    assert.equal(error.code, 125, error.stderr);
    return error.stderr;
  };
  assert.equal(await why(), `pi-execd: ${program} cannot be run (ENOENT)\n`);
  writeFileSync(program, "");
  assert.equal(await why(), `pi-execd: ${program} cannot be run (EACCES)\n`);
  rmSync(program);
  mkdirSync(program);
  assert.equal(await why(), `pi-execd: ${program} is no program\n`);
});

test("a binary of another version is not packed", async () => {
  const other = join(dir, "other");
  writeFileSync(other, "#!/bin/sh\necho execd 0.0.0\n", { mode: 0o755 });
  const packed = packRelease("other-out", other);
  await assert.rejects(packed, /other is execd 0\.0\.0, package\.json has /);
  assert.ok(!existsSync(join(dir, "other-out")));
});

test("the same files make the same tarballs", async () => {
  await packRelease("again");
  for (const name of [platformTarball, extensionTarball]) {
    // assert would spend minutes and all memory on the difference of two unlike megabytes.
    const [first, second] = ["out", "again"].map((out) => readFileSync(join(dir, out, name)));
    assert.ok(first && second?.equals(first), name);
  }
});

// rule: pi.md, The extension: pack-release: two tarballs that install offline without Rust
test("pi installs the extension without Rust or network, runs it, removes it", async (t) => {
  const place = scratch(t);
  const env = { ...place.plainEnvironment(), ...bareMachine(place) };
  await assertNoNetwork(place, env);

  const tarball = place.path(extensionTarball);
  copyFileSync(join(dir, "out", extensionTarball), tarball);
  const started = Date.now();
  await pi(place, env, "install", `npm:pi-execd@file:${tarball}`);
  t.diagnostic(`pi install took ${Date.now() - started} ms`);
  // What is installed does not need the tarball again.
  rmSync(tarball);
  assert.match(await pi(place, env, "list"), /npm:pi-execd/);
  assert.deepEqual(
    filesBelow(join(place.agentDir, "npm/node_modules/pi-execd")),
    filesBelow(join(unpacked(extensionTarball), "package")),
  );
  const binary = installedBinary(place);
  accessSync(binary, constants.X_OK);
  assert.equal((await run(binary, ["--version"], {})).stdout.trim(), `execd ${version}`);

  const played = await runJson(place, {
    script: [turn("", exec("readlink /proc/$PPID/exe; echo packed")), turn("done")],
    env: bareMachine(place),
    extensions: [],
  });
  const end = played.toolEnd("exec_command");
  assert.equal(end.isError, false, end.text);
  assert.equal(end.details["exit_code"], 0, end.text);
  assert.equal(placedOutput(end), `${realpathSync(binary)}\npacked\n`);
  assert.deepEqual([played.code, played.said().at(-1)], [0, "done"], played.stderr);

  await pi(place, env, "remove", "npm:pi-execd");
  assert.doesNotMatch(await pi(place, env, "list"), /pi-execd/);
  assert.ok(!existsSync(binary), "the program went with the package");
});

test("packing leaves the checkout as it was", () => {
  assert.ok(!existsSync(join(EXTENSION_DIR, "node_modules/@pi-execd")));
  assert.ok(!existsSync(join(EXTENSION_DIR, "LICENSE")), "the repository's is packed");
});

function unpacked(tarball: string): string {
  return join(dir, "unpacked", tarball);
}

function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
}

async function packRelease(out: string, binary = execdBinary()): Promise<void> {
  const script = join(EXTENSION_DIR, "scripts/pack-release.ts");
  const args = [script, "--bin", binary, "--out", join(dir, out)];
  // From anywhere: the script knows where it lies. What it does needs no network.
  const env = { ...process.env, npm_config_registry: NOBODY };
  await run(process.execPath, args, { cwd: dir, env });
}

function assertSameProgram(path: string): void {
  assert.deepEqual(readFileSync(path), readFileSync(execdBinary()));
  assert.equal(statSync(path).mode & 0o777, 0o755, "executable by all");
}

/** The environment of a machine that has Node and npm, and no cargo, no execd and no network. */
function bareMachine(place: Scratch): Record<string, string> {
  const bin = place.path("bin");
  if (!existsSync(bin)) {
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, "node"));
    for (const name of PROGRAMS) symlinkSync(program(name), join(bin, name));
  }
  return {
    PATH: bin,
    npm_config_registry: NOBODY,
    npm_config_proxy: NOBODY,
    npm_config_https_proxy: NOBODY,
    npm_config_fetch_retries: "0",
  };
}

/** What `npx pi-execd mcp` answers to the first request of a client. */
function initialized(cwd: string, env: Record<string, string>): string {
  const clientInfo = { name: "t", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const request = { jsonrpc: "2.0", id: 1, method: "initialize", params };
  const input = `${JSON.stringify(request)}\n`;
  const asked = { cwd, env, input, encoding: "utf8", timeout: 100_000 } as const;
  return execFileSync("npx", ["pi-execd", "mcp"], asked);
}

/** Where a program of the system is, past the links by which it is found. */
function program(name: string): string {
  const dirs = (process.env["PATH"] ?? "").split(delimiter);
  const found = dirs.map((one) => join(one, name)).find((path) => existsSync(path));
  assert.ok(found, `${name} is not on PATH`);
  return realpathSync(found);
}

/** What the registry is asked for must fail, or an install proves nothing. */
async function assertNoNetwork(place: Scratch, env: Record<string, string>): Promise<void> {
  const asked = run("npm", ["view", "semver", "version"], { cwd: place.cwd, env });
  await assert.rejects(asked, /ECONNREFUSED/);
  for (const name of ["cargo", "execd"]) {
    const looked = run("sh", ["-c", `command -v ${name}`], { cwd: place.cwd, env });
    await assert.rejects(looked, `${name} is not there`);
  }
}

async function pi(place: Scratch, env: Record<string, string>, ...args: string[]): Promise<string> {
  const [command, ...first] = piCommand();
  const { stdout } = await run(command, [...first, ...args], { cwd: place.cwd, env });
  return stdout;
}

/** Found as the extension finds it: from its own directory, as Node resolves packages. */
function installedBinary(place: Scratch): string {
  const root = join(place.agentDir, "npm/node_modules/pi-execd");
  const binary = join(root, "node_modules", PLATFORM, "bin/execd");
  assert.ok(!relative(place.agentDir, realpathSync(binary)).startsWith(".."), "it is a copy");
  return binary;
}
