/**
 * The execd of a release: how it is built for each machine, and what is demanded of it.
 *
 *   node scripts/release-binary.ts [PLATFORM]     # builds it, and prints its path
 *
 * It ends with 3 where this machine has not what that takes, with 1 where the build failed.
 *
 * For another machine than this one Rust's standard library is needed: that of `rustup target add`,
 * or the source of the same version, in EXECD_STD_SOURCE (the directory `library` of the package
 * rust-src, unpacked anywhere), of which it is then built along.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tracesIn } from "./machine-traces.ts";

/** A machine for which there is a package. */
export interface Platform {
  /** Of the package: `@pi-execd/NAME`. */
  name: string;
  /** What npm calls the processor. */
  cpu: string;
  /** For rustc. With an explicit target, cargo builds beside `target/release`, not in it. */
  target: string;
  /** e_machine of its ELF files. */
  elf: number;
  /** The C compiler that knows where the static C library is; this machine's own one is found. */
  linker?: string;
}

export const PLATFORMS: readonly Platform[] = [
  { name: "linux-x64", cpu: "x64", target: "x86_64-unknown-linux-gnu", elf: 62 },
  {
    name: "linux-arm64",
    cpu: "arm64",
    target: "aarch64-unknown-linux-gnu",
    elf: 183,
    linker: "aarch64-linux-gnu-gcc",
  },
];

/** What this script ends with where it cannot build at all: no other failure ends so. */
const CANNOT_BUILD_HERE = 3;

/** The part of `cargo metadata` that is used here. */
interface Metadata {
  /** `source` is null for the packages of the workspace. */
  packages: { manifest_path: string; source: string | null }[];
  target_directory: string;
  workspace_root: string;
}

/** The platform of that name. */
export function platformOf(name: string): Platform {
  const found = PLATFORMS.find((one) => one.name === name);
  if (found) return found;
  const known = PLATFORMS.map((one) => one.name).join(", ");
  throw new Error(`there is no platform ${name}: ${known}`);
}

/** Why this machine cannot build for a platform; undefined where it can. */
export function whyNotBuilt({ target, linker }: Platform): string | undefined {
  if (!hasStd(target) && !process.env["EXECD_STD_SOURCE"]) {
    return `rustup target add ${target}, or EXECD_STD_SOURCE, would bring its standard library`;
  }
  if (linker === undefined) return undefined;
  try {
    const libc = run("/", linker, ["-print-file-name=libc.a"]).trim();
    return existsSync(libc) ? undefined : `${linker} knows no libc.a`;
  } catch {
    return `there is no ${linker}`;
  }
}

function hasStd(target: string): boolean {
  return existsSync(run("/", "rustc", ["--print=target-libdir", "--target", target]).trim());
}

/**
 * Builds execd and returns the binary's path.
 *
 * It is linked statically, to be loaded at one address: it runs whatever libc a machine has, in
 * whatever version, and needs no other library. (execd asks no name service, which is what a static
 * glibc cannot do.) The paths that panics name are those of crates, not of this machine's
 * directories.
 */
export function buildBinary(repo: string, platform: Platform): string {
  const { target, linker } = platform;
  const asked = ["--format-version=1", "--locked", `--filter-platform=${target}`];
  const metadata = JSON.parse(run(repo, "cargo", ["metadata", ...asked])) as Metadata;
  const sysroot = run(repo, "rustc", ["--print=sysroot"]).trim();
  const crates = metadata.packages.filter((one) => one.source !== null);
  const sources = new Set(crates.map((one) => dirname(dirname(one.manifest_path))));
  const std = hasStd(target) ? undefined : process.env["EXECD_STD_SOURCE"];
  // Of several prefixes that match, rustc takes the last.
  const prefixes = [
    ...[...sources].map((dir) => `${dir}=crates`),
    `${metadata.workspace_root}=execd`,
    `${sysroot}=rust`,
    ...(std === undefined ? [] : [`${std}=rust/library`]),
  ];
  const flags = [
    "-Ctarget-feature=+crt-static",
    ...(linker === undefined ? [] : crossLinking(linker, sysroot)),
    ...prefixes.map((prefix) => `--remap-path-prefix=${prefix}`),
  ];
  // Beside flags that a config file of cargo may have, whose place those of the environment would take.
  const config = `build.rustflags=${JSON.stringify(flags)}`;
  const args = ["build", "--release", "--locked", `--target=${target}`, "--config", config];
  const { RUSTFLAGS: _, CARGO_ENCODED_RUSTFLAGS: __, ...env } = process.env;
  if (std !== undefined) {
    // A released compiler builds its own library; that is no library of ours to be stable.
    args.push("-Zbuild-std=std,panic_abort");
    Object.assign(env, { RUSTC_BOOTSTRAP: "1", __CARGO_TESTS_ONLY_SRC_ROOT: std });
  }
  execFileSync("cargo", args, { cwd: repo, stdio: ["ignore", 2, 2], env });
  return join(metadata.target_directory, target, "release", "execd");
}

/** The compiler of the other machine finds libc.a; rustc's own linker links for every machine. */
function crossLinking(linker: string, sysroot: string): string[] {
  const host = /^host: (.*)$/m.exec(run("/", "rustc", ["-vV"]))?.[1] ?? "";
  const lld = join(sysroot, "lib/rustlib", host, "bin/gcc-ld");
  return [`-Clinker=${linker}`, `-Clink-arg=-B${lld}`, "-Clink-arg=-fuse-ld=lld"];
}

/** The version a binary tells, by running it. */
export function binaryVersion(path: string): string {
  return run("/", path, ["--version"]).trim().split(" ").at(-1) ?? "";
}

/** What makes a binary unfit for a release, a line each. */
export function binaryProblems(
  bytes: Buffer,
  machineTexts: readonly string[],
  { name, elf } = platformOf("linux-x64"),
): string[] {
  const problems = tracesIn(bytes, machineTexts).map((text) => `it holds "${text}"`);
  if (!isProgram(bytes, elf)) return [`it is no program for ${name}`];
  if (needsLoader(bytes)) problems.push("it is linked dynamically, to the libc of this machine");
  return problems;
}

/** Whether this is an ELF file of 64 bits, little-endian, for that machine. */
export function isProgram(file: Buffer, machine: number): boolean {
  return (
    file.length >= 64 &&
    file.readUInt32BE(0) === 0x7f454c46 &&
    file[4] === 2 &&
    file[5] === 1 &&
    file.readUInt16LE(18) === machine
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const platform = platformOf(process.argv[2] ?? "linux-x64");
  const why = whyNotBuilt(platform);
  if (why === undefined) {
    console.log(buildBinary(join(dirname(process.argv[1]), "../.."), platform));
  } else {
    console.error(`${platform.name} cannot be built here: ${why}`);
    process.exitCode = CANNOT_BUILD_HERE;
  }
}
