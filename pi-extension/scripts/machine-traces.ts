/**
 * What must not get into a release: paths of the machine that built it, and hosts of registries.
 */
import { readFileSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Where crates and packages come from by default. */
const REGISTRY_HOSTS = ["npmjs.org", "crates.io"];

/**
 * Whether a path tells on a machine: a short one, such as `/src` or a home directory that is `/`,
 * stands in many texts. Root's stands nowhere else.
 */
function isTelling(path: string): boolean {
  return path === "/root" || path.split("/").filter((part) => part !== "").length >= 2;
}

/** Texts that tell on this machine. `registry` is the address npm uses here. */
export function machineTexts(repo: string, registry: string): string[] {
  const { CARGO_HOME = "", RUSTUP_HOME = "" } = process.env;
  const paths = [repo, homedir(), CARGO_HOME, RUSTUP_HOME];
  return [
    // The slash keeps `/root` from being found in `/rootfs`.
    ...paths.filter(isTelling).map((path) => `${path}/`),
    ...REGISTRY_HOSTS,
    ...(URL.canParse(registry) ? [new URL(registry).host] : []),
  ].filter((text, index, all) => all.indexOf(text) === index);
}

/** Which of these texts a file's bytes hold. */
export function tracesIn(bytes: Buffer, texts: readonly string[]): string[] {
  return texts.filter((text) => bytes.includes(text));
}

/** Every file below `dir` (paths from there, sorted). */
export function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .sort();
}

/** A line for each file below `dir` that tells on this machine; `except` is passed over. */
export function tracesBelow(dir: string, texts: readonly string[], except: string[]): string[] {
  return filesBelow(dir)
    .filter((file) => !except.includes(file))
    .flatMap((file) =>
      tracesIn(readFileSync(join(dir, file)), texts).map((text) => `${file} holds "${text}"`),
    );
}
