#!/usr/bin/env node
/**
 * `npx pi-execd …`: execd from npm. This process becomes execd, with the arguments as they are:
 * signals, the terminal and the exit status are execd's own, and no Node stays beside it.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const platform = `@pi-execd/${process.platform}-${process.arch}`;

function fail(message) {
  console.error(`pi-execd: ${message}`);
  // As execd itself says that it cannot start.
  process.exit(125);
}

/** The program of this machine's package, which npm has installed beside this one. */
function program() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${platform}/package.json`);
    return join(dirname(manifest), "bin", "execd");
  } catch {
    return fail(`there is no package ${platform}: execd runs on Linux, on x64 and on arm64, `
      + "and npm leaves its program out with --omit=optional");
  }
}

const path = program();
if (typeof process.execve !== "function") fail("it needs Node 22.19 or newer");
process.execve(path, ["execd", ...process.argv.slice(2)], process.env);
