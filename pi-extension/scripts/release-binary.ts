/**
 * The execd of a release: how it is built, and what is demanded of it.
 */
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { tracesIn } from "./machine-traces.ts";

/** What is packaged. With an explicit target, cargo builds beside `target/release`, not in it. */
const TARGET = "x86_64-unknown-linux-gnu";

/** The part of `cargo metadata` that is used here. */
interface Metadata {
  /** `source` is null for the packages of the workspace. */
  packages: { manifest_path: string; source: string | null }[];
  target_directory: string;
  workspace_root: string;
}

/**
 * Builds execd and returns the binary's path.
 *
 * It is linked statically: it runs whatever libc a machine has, in whatever version, and needs no
 * other library. (execd asks no name service, which is what a static glibc cannot do.) The paths
 * that panics name are those of crates, not of this machine's directories.
 */
export function buildBinary(repo: string): string {
  const asked = ["--format-version=1", "--locked", `--filter-platform=${TARGET}`];
  const metadata = JSON.parse(run(repo, "cargo", ["metadata", ...asked])) as Metadata;
  const sysroot = run(repo, "rustc", ["--print=sysroot"]).trim();
  const crates = metadata.packages.filter((one) => one.source !== null);
  const sources = new Set(crates.map((one) => dirname(dirname(one.manifest_path))));
  // Of several prefixes that match, rustc takes the last.
  const prefixes = [
    ...[...sources].map((dir) => `${dir}=crates`),
    `${metadata.workspace_root}=execd`,
    `${sysroot}=rust`,
  ];
  const flags = [
    "-Ctarget-feature=+crt-static",
    ...prefixes.map((prefix) => `--remap-path-prefix=${prefix}`),
  ];
  execFileSync("cargo", ["build", "--release", "--locked", `--target=${TARGET}`], {
    cwd: repo,
    stdio: "inherit",
    env: { ...process.env, CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") },
  });
  return join(metadata.target_directory, TARGET, "release", "execd");
}

/** The version a binary tells, by running it. */
export function binaryVersion(path: string): string {
  return run("/", path, ["--version"]).trim().split(" ").at(-1) ?? "";
}

/** What makes a binary unfit for a release, a line each. */
export function binaryProblems(bytes: Buffer, machineTexts: readonly string[]): string[] {
  const problems = tracesIn(bytes, machineTexts).map((text) => `it holds "${text}"`);
  if (!isLinuxX64(bytes)) return ["it is no program for Linux on x64"];
  if (needsLoader(bytes)) problems.push("it is linked dynamically, to the libc of this machine");
  return problems;
}

/** Whether this is an ELF file of 64 bits, little-endian, for x86-64. */
function isLinuxX64(elf: Buffer): boolean {
  const X86_64 = 62;
  return (
    elf.length >= 64 &&
    elf.readUInt32BE(0) === 0x7f454c46 &&
    elf[4] === 2 &&
    elf[5] === 1 &&
    elf.readUInt16LE(18) === X86_64
  );
}

/** Whether an ELF file asks for a dynamic loader (a program header PT_INTERP). */
function needsLoader(elf: Buffer): boolean {
  const PT_INTERP = 3;
  const start = Number(elf.readBigUInt64LE(32));
  const size = elf.readUInt16LE(54);
  const headers = Array.from({ length: elf.readUInt16LE(56) }, (_, index) => start + index * size);
  return headers.some((at) => elf.readUInt32LE(at) === PT_INTERP);
}

function run(cwd: string, program: string, args: string[]): string {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  // cargo metadata tells about every feature of every crate.
  return execFileSync(program, args, { cwd, stdio: [...stdio], maxBuffer: 1 << 26 }).toString();
}
