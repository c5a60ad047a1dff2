/**
 * Makes the two tarballs of a release in dist/ (`npm run pack-release`):
 *
 * - `pi-execd-linux-x64-X.tgz`, the platform package: the binary and nothing to run it with;
 * - `pi-execd-X.tgz`, the extension, with the platform package bundled. So one
 *   `pi install "npm:pi-execd@file:/…/pi-execd-X.tgz"` works without Rust and without a network.
 *
 * `--bin PATH` packs that binary instead of building one, `--out DIR` is where the tarballs go.
 * Everything is put together in a temporary directory: the checkout's package.json names no
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
import { binaryProblems, binaryVersion, buildBinary } from "./release-binary.ts";

const EXTENSION = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const REPO = dirname(EXTENSION);

const PLATFORM = "@pi-execd/linux-x64";
/** What a checkout needs and an installed package does not. */
const CHECKOUT_FIELDS = ["scripts", "devDependencies", "private", "overrides"];
/** What src may hold; anything else is more likely forgotten there than meant. */
const SOURCE_EXTENSIONS = [".ts", ".json"];

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  [field: string]: unknown;
}

function main(): void {
  const { values } = parseArgs({ options: { bin: { type: "string" }, out: { type: "string" } } });
  const out = resolve(values.out ?? join(EXTENSION, "dist"));
  const manifest = readManifest();
  const binary = values.bin === undefined ? buildBinary(REPO) : resolve(values.bin);
  const texts = machineTexts(REPO, npm(EXTENSION, ["config", "get", "registry"]).trim());
  checkBinary(binary, manifest.version, texts, values.bin !== undefined);

  const stage = mkdtempSync(join(tmpdir(), "pi-execd-pack-"));
  try {
    const platform = join(stage, "platform");
    const extension = join(stage, "extension");
    stagePlatform(platform, manifest, binary);
    stageExtension(extension, manifest, platform);
    normalizeModes(stage);
    const traces = tracesBelow(stage, texts, [
      "platform/bin/execd",
      `extension/node_modules/${PLATFORM}/bin/execd`,
    ]);
    if (traces.length > 0) fail(`a release must not tell on this machine:\n${traces.join("\n")}`);
    mkdirSync(out, { recursive: true });
    pack(platform, out, `pi-execd-linux-x64-${manifest.version}.tgz`);
    pack(extension, out, `pi-execd-${manifest.version}.tgz`);
  } finally {
    rmSync(stage, { recursive: true });
  }
}

/** The extension's package.json, when a release can be made of it. */
function readManifest(): Manifest {
  const manifest = JSON.parse(readFileSync(join(EXTENSION, "package.json"), "utf8")) as Manifest;
  const cargo = readFileSync(join(REPO, "Cargo.toml"), "utf8");
  const version = /^\[workspace\.package\]$[^[]*?^version = "([^"]+)"$/m.exec(cargo)?.[1];
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

function checkBinary(path: string, version: string, texts: string[], given: boolean): void {
  const problems = binaryProblems(readFileSync(path), texts);
  const told = binaryVersion(path);
  if (told !== version) fail(`${path} is execd ${told}, package.json has ${version}`);
  if (problems.length === 0) return;
  const message = `${path} is not fit for a release:\n  ${problems.join("\n  ")}`;
  // A binary that somebody hands in is packed all the same: to try the package out.
  if (!given) fail(message);
  console.error(`warning: ${message}`);
}

function stagePlatform(dir: string, extension: Manifest, binary: string): void {
  mkdirSync(join(dir, "bin"), { recursive: true });
  cpSync(binary, join(dir, "bin/execd"));
  cpSync(join(REPO, "LICENSE"), join(dir, "LICENSE"));
  writeFileSync(
    join(dir, "README.md"),
    `# ${PLATFORM}\n\nThe program \`execd\` for Linux on x64 (5.4 or newer), as \`bin/execd\`: ` +
      "what the package `pi-execd`\nruns. It is linked statically, with the GNU C Library " +
      "(LGPL 2.1 or later) in it; execd's source is\nthere to link it with another one.\n",
  );
  writeManifest(dir, {
    name: PLATFORM,
    version: extension.version,
    description: "execd for Linux on x64, the program behind pi-execd",
    license: extension["license"],
    os: ["linux"],
    cpu: ["x64"],
    files: ["bin/execd", "README.md", "LICENSE"],
  });
}

function stageExtension(dir: string, manifest: Manifest, platform: string): void {
  const source = join(EXTENSION, "src");
  const strange = filesBelow(source).filter((file) => !SOURCE_EXTENSIONS.includes(extname(file)));
  if (strange.length > 0) fail(`src holds what is not packed: ${strange.join(", ")}`);
  cpSync(source, join(dir, "src"), { recursive: true });
  cpSync(join(EXTENSION, "README.md"), join(dir, "README.md"));
  cpSync(join(REPO, "LICENSE"), join(dir, "LICENSE"));
  cpSync(platform, join(dir, "node_modules", PLATFORM), { recursive: true });
  const kept = Object.entries(manifest).filter(([field]) => !CHECKOUT_FIELDS.includes(field));
  writeManifest(dir, {
    ...(Object.fromEntries(kept) as Manifest),
    optionalDependencies: { [PLATFORM]: manifest.version },
    bundleDependencies: [PLATFORM],
  });
}

/** The tarballs must not depend on the umask of whoever made the checkout. */
function normalizeModes(stage: string): void {
  for (const file of filesBelow(stage)) {
    chmodSync(join(stage, file), file.endsWith("/bin/execd") ? 0o755 : 0o644);
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
