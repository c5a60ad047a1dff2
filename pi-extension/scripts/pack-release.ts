/**
 * Makes the npm packages of a release in dist/ (`npm run pack-release`):
 *
 * - `pi-execd-linux-x64-X.tgz` and `pi-execd-linux-arm64-X.tgz`, the platform packages: the binary
 *   and nothing to run it with;
 * - `pi-execd-X.tgz`, the extension and `npx pi-execd`, with the platform packages bundled. So one
 *   `pi install "npm:pi-execd@file:/…/pi-execd-X.tgz"` works without Rust and without a network, on
 *   each of these machines.
 *
 * `--bin PATH`, which may stand several times, packs that binary instead of building any, with a
 * warning where it is not fit for a release; with `--strict` that is an error, as it is for what
 * this script has built. `--out DIR` is where the tarballs go. A platform for which this machine cannot build is left out, and
 * named. Everything is put together in a temporary directory: the checkout's package.json names no
 * platform package, because `npm ci` would look for it in a registry.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { filesBelow, machineTexts, tracesBelow } from "./machine-traces.ts";
import {
  binaryProblems,
  binaryVersion,
  buildBinary,
  isProgram,
  PLATFORMS,
  whyNotBuilt,
} from "./release-binary.ts";
import type { Platform } from "./release-binary.ts";

const EXTENSION = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const REPO = dirname(EXTENSION);

/** What a checkout needs and an installed package does not. */
const CHECKOUT_FIELDS = ["scripts", "devDependencies", "private", "overrides"];
/** What src may hold; anything else is more likely forgotten there than meant. */
const SOURCE_EXTENSIONS = [".ts", ".json"];
/** What is packed with the right to be run. */
const PROGRAM = /\/bin\/[\w.-]+$/;

/** A binary, and what it is for. */
interface Binary {
  path: string;
  platform: Platform;
  /** Whether it must be fit for a release. */
  strict: boolean;
}

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  [field: string]: unknown;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      bin: { type: "string", multiple: true },
      out: { type: "string" },
      strict: { type: "boolean", default: false },
    },
  });
  const out = resolve(values.out ?? join(EXTENSION, "dist"));
  const manifest = readManifest();
  const binaries = values.bin?.map((path) => givenBinary(path, values.strict)) ?? builtBinaries();
  const texts = machineTexts(REPO, npm(EXTENSION, ["config", "get", "registry"]).trim());
  for (const binary of binaries) checkBinary(binary, manifest.version, texts);

  const stage = mkdtempSync(join(tmpdir(), "pi-execd-pack-"));
  try {
    const extension = join(stage, "extension");
    for (const binary of binaries) {
      stagePlatform(join(stage, binary.platform.name), manifest, binary);
    }
    stageExtension(extension, manifest, stage, binaries.map(({ platform }) => platform));
    normalizeModes(stage);
    const programs = binaries.flatMap(({ platform }) => [
      `${platform.name}/bin/execd`,
      `extension/node_modules/${packageOf(platform)}/bin/execd`,
    ]);
    const traces = tracesBelow(stage, texts, programs);
    if (traces.length > 0) fail(`a release must not tell on this machine:\n${traces.join("\n")}`);
    mkdirSync(out, { recursive: true });
    for (const { platform } of binaries) {
      pack(join(stage, platform.name), out, `pi-execd-${platform.name}-${manifest.version}.tgz`);
    }
    pack(extension, out, `pi-execd-${manifest.version}.tgz`);
  } finally {
    rmSync(stage, { recursive: true });
  }
}

function packageOf(platform: Platform): string {
  return `@pi-execd/${platform.name}`;
}

/** What it is for stands in the file itself. */
function givenBinary(path: string, strict: boolean): Binary {
  const bytes = readFileSync(path);
  const platform = PLATFORMS.find(({ elf }) => isProgram(bytes, elf)) ?? PLATFORMS[0];
  if (platform === undefined) fail("there is no platform");
  return { path: resolve(path), platform, strict };
}

/** One for each platform for which this machine can build. */
function builtBinaries(): Binary[] {
  return PLATFORMS.flatMap((platform) => {
    const why = whyNotBuilt(platform);
    if (why === undefined) return [{ path: buildBinary(REPO, platform), platform, strict: true }];
    console.error(`${platform.name} is left out: ${why}`);
    return [];
  });
}

/** The extension's package.json, when a release can be made of it. */
function readManifest(): Manifest {
  const manifest = JSON.parse(readFileSync(join(EXTENSION, "package.json"), "utf8")) as Manifest;
  const cargo = readFileSync(join(REPO, "Cargo.toml"), "utf8");
  const version = /^\[package\]$[^[]*?^version = "([^"]+)"$/m.exec(cargo)?.[1];
  if (manifest.version !== version) {
    fail(`package.json has version ${manifest.version}, Cargo.toml ${version}`);
  }
  const dependencies = Object.keys(manifest.dependencies ?? {});
  if (dependencies.length > 0) {
    // They would have to be bundled too: an offline install has no other place to get them.
    fail(`the extension has dependencies, which are not bundled yet: ${dependencies.join(", ")}`);
  }
  return manifest;
}

function checkBinary({ path, platform, strict }: Binary, version: string, texts: string[]): void {
  const bytes = readFileSync(path);
  // Without its machine, or an emulator that the kernel knows, it cannot be asked.
  if (platform.cpu === process.arch) {
    const told = binaryVersion(path);
    if (told !== version) fail(`${path} is execd ${told}, package.json has ${version}`);
  } else if (!bytes.includes(version)) {
    fail(`${path} does not name version ${version}, which package.json has`);
  }
  const problems = binaryProblems(bytes, texts, platform);
  if (problems.length === 0) return;
  const message = `${path} is not fit for a release:\n  ${problems.join("\n  ")}`;
  // A binary that somebody hands in may be packed all the same: to try the package out.
  if (strict) fail(message);
  console.error(`warning: ${message}`);
}

function stagePlatform(dir: string, extension: Manifest, { path, platform }: Binary): void {
  const { cpu } = platform;
  mkdirSync(join(dir, "bin"), { recursive: true });
  cpSync(path, join(dir, "bin/execd"));
  cpSync(join(REPO, "LICENSE"), join(dir, "LICENSE"));
  writeFileSync(
    join(dir, "README.md"),
    `# ${packageOf(platform)}\n\nThe program \`execd\` for Linux on ${cpu} (5.4 or newer), as ` +
      "`bin/execd`: what the package `pi-execd`\nruns. It is linked statically, with the GNU C " +
      "Library (LGPL 2.1 or later) in it; execd's source is\nthere to link it with another one.\n",
  );
  writeManifest(dir, {
    name: packageOf(platform),
    version: extension.version,
    description: `execd for Linux on ${cpu}, the program behind pi-execd`,
    license: extension["license"],
    os: ["linux"],
    cpu: [cpu],
    files: ["bin/execd", "README.md", "LICENSE"],
  });
}

/** `packed` are the platforms whose packages lie beside `dir` in `stage`. */
function stageExtension(
  dir: string,
  manifest: Manifest,
  stage: string,
  packed: readonly Platform[],
): void {
  const source = join(EXTENSION, "src");
  const strange = filesBelow(source).filter((file) => !SOURCE_EXTENSIONS.includes(extname(file)));
  if (strange.length > 0) fail(`src holds what is not packed: ${strange.join(", ")}`);
  cpSync(source, join(dir, "src"), { recursive: true });
  cpSync(join(EXTENSION, "bin"), join(dir, "bin"), { recursive: true });
  cpSync(join(EXTENSION, "README.md"), join(dir, "README.md"));
  cpSync(join(REPO, "LICENSE"), join(dir, "LICENSE"));
  for (const platform of packed) {
    const place = join(dir, "node_modules", packageOf(platform));
    cpSync(join(stage, platform.name), place, { recursive: true });
  }
  const names = packed.map(packageOf);
  const kept = Object.entries(manifest).filter(([field]) => !CHECKOUT_FIELDS.includes(field));
  writeManifest(dir, {
    ...(Object.fromEntries(kept) as Manifest),
    optionalDependencies: Object.fromEntries(names.map((name) => [name, manifest.version])),
    bundleDependencies: names,
  });
}

/** The tarballs must not depend on the umask of whoever made the checkout. */
function normalizeModes(stage: string): void {
  for (const file of filesBelow(stage)) {
    chmodSync(join(stage, file), PROGRAM.test(file) ? 0o755 : 0o644);
  }
}

function writeManifest(dir: string, manifest: Manifest): void {
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** npm gives every file the same time, so the same files make the same tarball. */
function pack(dir: string, out: string, name: string): void {
  npm(dir, ["pack", "--ignore-scripts", "--pack-destination", out]);
  const path = join(out, name);
  const bytes = readFileSync(path);
  const digest = createHash("sha256").update(bytes).digest("hex");
  console.log(`${path}  ${bytes.length} bytes  sha256 ${digest}`);
}

function npm(cwd: string, args: string[]): string {
  const quiet = ["--loglevel=error", "--no-update-notifier"];
  return execFileSync("npm", [...args, ...quiet], { cwd, encoding: "utf8" });
}

function fail(message: string): never {
  throw new Error(message);
}

try {
  main();
} catch (error) {
  console.error(`pack-release: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
