// Installs pi 1.5.2 from npm into a directory of its own and prints the path of its cli.js.
//
//   node scripts/install-pi-1.mjs DIR
//
// The package ships as one bundle. What the bundle loads at run time is installed beside it: jiti,
// which loads extensions, and two packages of WebAssembly. The other dependencies that its
// package.json names are in the bundle; not each npm registry has all of them, so they are not
// asked for.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const SPEC = "@earendil-works/pi-coding-agent@1.5.2";
const BESIDE = ["jiti@2.7.0", "quickjs-wasi@3.6.2", "@silvia-odwyer/photon-node@0.3.4"];

const [target] = process.argv.slice(2);
if (target === undefined) {
  console.error("usage: install-pi-1.mjs DIR");
  process.exit(2);
}
const dir = resolve(target);
const root = join(dir, "node_modules/@earendil-works/pi-coding-agent");
const cli = join(root, "dist/bundle/cli.js");

function run(program, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (status === 0) return stdout.trim();
  const why = stderr || error?.message || `exit status ${status}`;
  console.error(`pi 1.5.2 is not installed: ${program} ${args.join(" ")}\n${why}`);
  process.exit(1);
}

if (!existsSync(cli)) {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "package.json"), JSON.stringify({ private: true }));
  run("npm", ["install", "--no-audit", "--no-fund", "--silent", ...BESIDE], dir);
  const archive = run("npm", ["pack", "--silent", SPEC], dir);
  mkdirSync(root, { recursive: true });
  run("tar", ["-xzf", join(dir, archive), "-C", root, "--strip-components=1"], dir);
  rmSync(join(dir, archive));
}
// Whether it starts is asked in a home of its own, so that it reads and writes no other.
const home = join(dir, "home");
mkdirSync(home, { recursive: true });
const env = { ...process.env, HOME: home, PI_CODING_AGENT_DIR: home, PI_OFFLINE: "1" };
const version = [cli, "--version"];
const { status, stderr } = spawnSync(process.execPath, version, { env, encoding: "utf8" });
if (status !== 0) {
  console.error(`pi 1.5.2 does not start: ${stderr}`);
  process.exit(1);
}
console.log(cli);
