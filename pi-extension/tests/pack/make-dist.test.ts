/**
 * What `make dist` leaves out, and what it does not: scripts/dist/make.sh and what it asks, with
 * programs in place of the compilers that say what a machine has.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync,
} from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { execdBinary, EXTENSION_DIR } from "../pi/lib/paths.ts";
import { scratch } from "../pi/lib/scratch.ts";
import type { Scratch } from "../pi/lib/scratch.ts";

const REPO = resolve(EXTENSION_DIR, "..");
/** Long after each of these ends. */
const PATIENCE_MS = 60_000;
/** What release-binary.ts ends with where a machine cannot build for a platform. */
const CANNOT_BUILD_HERE = 3;

/** Runs a program to its end. These variables of whoever runs the tests decide what is tried. */
function ran(program: string, args: string[], cwd: string, env: Record<string, string>) {
  const { DIST_PARTIAL: _, DIST_DIRTY: __, EXECD_STD_SOURCE: ___, ...own } = process.env;
  const options = { cwd, env: { ...own, ...env }, encoding: "utf8", timeout: PATIENCE_MS } as const;
  const { status, stdout, stderr } = spawnSync(program, args, options);
  return { status, stdout, stderr };
}

/** A directory of programs, each a line for sh, before those of this machine. */
function pathWith(dir: string, programs: Record<string, string>): string {
  mkdirSync(dir, { recursive: true });
  for (const [name, line] of Object.entries(programs)) {
    writeFileSync(join(dir, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  }
  return `${dir}${delimiter}${process.env["PATH"] ?? ""}`;
}

test("a machine that cannot build for aarch64 ends otherwise than a build that fails", (t) => {
  const place = scratch(t);
  const built = (library: string) => {
    const PATH = pathWith(place.path("bin"), {
      rustc: `case "$*" in *print=target-libdir*) echo ${library};; *) echo /;; esac`,
      "aarch64-linux-gnu-gcc": "echo /dev/null",
      cargo: `[ "$1" = build ] && exit 101; echo '{"packages":[],"workspace_root":"/"}'`,
    });
    const script = join(EXTENSION_DIR, "scripts/release-binary.ts");
    return ran(process.execPath, [script, "linux-arm64"], place.cwd, { PATH });
  };
  const without = built("/there-is-no-library");
  assert.equal(without.status, CANNOT_BUILD_HERE, without.stderr);
  assert.match(without.stderr, /cannot be built here: rustup target add aarch64/);
  const failed = built("/");
  assert.equal(failed.status, 1, failed.stderr);
  assert.match(failed.stderr, /cargo/);
});

/** A checkout of little but these scripts of scripts/dist, and what the test has in place of others. */
function checkout(place: Scratch, scripts: string[], own: Record<string, string>): string {
  const repo = place.path("repo");
  const dir = join(repo, "scripts/dist");
  mkdirSync(dir, { recursive: true });
  for (const script of scripts) copyFileSync(join(REPO, "scripts/dist", script), join(dir, script));
  for (const [name, text] of Object.entries(own)) writeFileSync(join(dir, name), text, { mode: 0o755 });
  writeFileSync(join(repo, "Cargo.toml"), '[package]\nversion = "0.1.0"\n');
  const who = ["-c", "user.name=a test", "-c", "user.email=a-test@example.org"];
  for (const args of [["init", "-q"], ["add", "."], [...who, "commit", "-qm", "A release"]]) {
    execFileSync("git", args, { cwd: repo });
  }
  return repo;
}

/** Programs by which a machine can make a release, and its licences. */
const ABLE = {
  "cargo-deb": "exit 9", "cargo-cyclonedx": "exit 9", rustc: "echo /", cc: "echo /dev/null",
};
const LICENSED = { "licences.py": "" };

/** Whether a release can be made, and why not, with another program, and after something was done. */
function can(t: TestContext, program: Record<string, string>, done: (repo: string) => void = () => {}) {
  const place = scratch(t);
  const repo = checkout(place, ["can.sh"], LICENSED);
  done(repo);
  const PATH = pathWith(place.path("bin"), { ...ABLE, ...program });
  const { status, stderr } = ran("scripts/dist/can.sh", [], repo, { PATH });
  return [status, stderr.trim()];
}

test("what is no fault of a release is told before one is begun", (t) => {
  const add = (file: string, text: string) => (repo: string) => writeFileSync(join(repo, file), text);
  assert.deepEqual(can(t, {}), [0, ""]);
  const [dirty, why] = can(t, {}, add("new", ""));
  assert.deepEqual([dirty, why], [1, "a release is made of a commit, and this is not committed: ?? new"]);
  const noGit = can(t, {}, (repo) => rmSync(join(repo, ".git"), { recursive: true }));
  assert.equal(noGit[0], 1);
  assert.match(String(noGit[1]), /^git knows no commit of this checkout: fatal: not a git repository/);
  assert.deepEqual(can(t, { cc: "echo libc.a" }), [1, "the C compiler knows no libc.a"]);
  const [noLibrary, brings] = can(t, { rustc: "echo /there-is-no-library" });
  assert.deepEqual([noLibrary, /^rustup target add x86_64/.test(String(brings))], [1, true]);
});

test("a machine without the licences of what is linked in makes no release", (t) => {
  const place = scratch(t);
  const PATH = pathWith(place.path("bin"), { rustc: "echo /there-is-no-compiler" });
  const script = join(REPO, "scripts/dist/licences.py");
  const { status, stderr } = ran("python3", [script, "--check"], place.cwd, { PATH });
  assert.equal(status, 1);
  assert.match(stderr, /^licences: there is no \/there-is-no-compiler\/.*COPYRIGHT-library\.html/);
});

/** What make.sh makes of a build for aarch64 that ends so, and what it then asks to be packed. */
function release(t: TestContext, arm64: string, env: Record<string, string>) {
  const place = scratch(t);
  const repo = checkout(place, ["make.sh", "can.sh"], LICENSED);
  const packed = place.path("packed");
  const PATH = pathWith(place.path("bin"), {
    ...ABLE,
    node: `case "$*" in *linux-x64) echo /x64;; *linux-arm64) ${arm64};; `
      + `*) echo "$*" > ${packed}; exit 9;; esac`,
  });
  const made = ran("scripts/dist/make.sh", [place.path("out")], repo, { PATH, ...env });
  const asked = existsSync(packed) ? readFileSync(packed, "utf8") : "";
  return { ...made, asked };
}

test("make dist leaves aarch64 out only where it is told to, and no build that failed", (t) => {
  const cannot = `exit ${CANNOT_BUILD_HERE}`;
  const whole = release(t, "echo /arm64", {});
  assert.match(whole.asked, /--strict --bin \/x64 --bin \/arm64 --out/, whole.stderr);
  const refused = release(t, cannot, {});
  assert.deepEqual([refused.status, refused.asked], [1, ""]);
  assert.match(refused.stderr, /DIST_PARTIAL=1 leaves that out/);
  const partial = release(t, cannot, { DIST_PARTIAL: "1" });
  assert.match(partial.asked, /--strict --bin \/x64 --out/, partial.stderr);
  assert.match(partial.stderr, /nothing is made for aarch64/);
  const failed = release(t, "exit 1", { DIST_PARTIAL: "1" });
  assert.deepEqual([failed.status, failed.asked], [1, ""]);
  assert.match(failed.stderr, /the build for aarch64 failed/);
});

/** What same.sh says of two releases of which each file holds what that line prints. */
function compared(t: TestContext, line: string) {
  const place = scratch(t);
  const makeSh = `#!/bin/sh\nset -e\ncd "$(dirname "$0")/../.."\nmkdir -p "$1"\n`
    + `{ ${line}; } > "$1/a"\ncd "$1"\nsha256sum a > SHA256SUMS\n`;
  const repo = checkout(place, ["same.sh"], { "make.sh": makeSh });
  const TMPDIR = place.path("second");
  mkdirSync(TMPDIR);
  const env = { TMPDIR };
  assert.equal(ran("scripts/dist/make.sh", [join(repo, "dist")], repo, env).status, 0);
  const same = ran("scripts/dist/same.sh", [], repo, env);
  assert.deepEqual(readdirSync(TMPDIR), [], "nothing of the second one is left");
  return same;
}

test("two releases are compared, of which the second is made in another place", (t) => {
  const same = compared(t, "git rev-parse HEAD");
  assert.equal(same.status, 0, same.stderr);
  assert.match(same.stdout, /are the same bytes/);
  for (const line of ["pwd", "umask", 'echo "$CARGO_TARGET_DIR"']) {
    const other = compared(t, line);
    assert.equal(other.status, 1, line);
    assert.match(other.stderr, /is not what [0-9a-f]{40} makes elsewhere/);
  }
});

test("the tests on aarch64 fail without a binary for it, unless it is left out", (t) => {
  const missing = scratch(t).path("execd");
  const tried = (env: Record<string, string>) =>
    ran("scripts/dist/test-arm64.sh", [missing], REPO, env);
  assert.equal(tried({}).status, 1);
  assert.match(tried({}).stderr, /there is no .*execd; DIST_PARTIAL=1/);
  assert.equal(tried({ DIST_PARTIAL: "1" }).status, 0);
});

test("--strict packs no binary that is not fit for a release", (t) => {
  const place = scratch(t);
  const script = join(EXTENSION_DIR, "scripts/pack-release.ts");
  // Its program is whole, and tells on the machine that built it.
  const CARGO_HOME = "/home/builder/cargo";
  const binary = place.path("execd");
  const bytes = Buffer.concat([readFileSync(execdBinary()), Buffer.from(`${CARGO_HOME}/`)]);
  writeFileSync(binary, bytes, { mode: 0o755 });
  const args = [script, "--bin", binary, "--out"];
  const env = { npm_config_registry: "http://127.0.0.1:9/", CARGO_HOME };
  const packed = ran(process.execPath, [...args, place.path("out")], place.cwd, env);
  assert.deepEqual([packed.status, /warning: .*is not fit/.test(packed.stderr)], [0, true]);
  const strictly = [...args, place.path("none"), "--strict"];
  const refused = ran(process.execPath, strictly, place.cwd, env);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /^pack-release: .*is not fit for a release/m);
  assert.ok(!existsSync(place.path("none")), "nothing was packed");
});
