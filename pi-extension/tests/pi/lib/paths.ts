/**
 * Where things are: the extension under test, the pi that runs it, the execd it starts.
 */
import { accessSync, constants } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** The package directory of the extension under test. */
export const EXTENSION_DIR = resolve(here, "../../..");

/** The fixtures beside these tests. */
export const FIXTURES_DIR = resolve(here, "../fixtures");

/** The extension that plays a script as pi's model. */
export const SCRIPTED_MODEL = join(FIXTURES_DIR, "scripted-model.ts");

/** How that model is named on pi's command line. */
export const MODEL = "faux/scripted";

/** Where what pi compiles is kept from one test to the next; `npm run test:pi` begins anew. */
export const CACHE_DIR = join(EXTENSION_DIR, "node_modules/.cache/pi-tests");

const DEFAULT_CLI = join(
  EXTENSION_DIR,
  "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
);

/** The command that starts pi: `PI_CLI` (an executable or a cli.js), else the devDependency's. */
export function piCommand(): [string, ...string[]] {
  const cli = process.env["PI_CLI"] ?? DEFAULT_CLI;
  return /\.[cm]?js$/.test(cli) ? [process.execPath, cli] : [cli];
}

/** The execd that the extension starts; says what to do when it was not built. */
export function execdBinary(): string {
  const target = process.env["CARGO_TARGET_DIR"] ?? resolve(EXTENSION_DIR, "../target");
  const binary = process.env["EXECD_TEST_BIN"] ?? join(target, "release/execd");
  try {
    accessSync(binary, constants.X_OK);
  } catch {
    throw new Error(
      `no execd at ${binary}: build it with "cargo build --release", or set EXECD_TEST_BIN`,
    );
  }
  return binary;
}

/** A PATH with the Node that runs the tests and the system's programs, and nothing else. */
export function plainPath(): string {
  return [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
}
