#!/usr/bin/env node
/**
 * `npx pi-execd …`: execd from npm. This process becomes execd, with the arguments as they are: the
 * terminal and the exit status are execd's own, and no Node stays beside it. What Node has changed
 * of itself would go on to execd and to all that it runs: signals are set back where env(1) does
 * that, and the soft limit of open files stays as high as Node has set it.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
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

/** Says what hinders it, since Node aborts where execve fails. */
function checkProgram(path) {
  try {
    accessSync(path, constants.X_OK);
  } catch (error) {
    fail(`${path} cannot be run (${error.code})`);
  }
  if (!statSync(path).isFile()) fail(`${path} is no program`);
}

const ENV = "/usr/bin/env";
/** Node ignores these two. Of coreutils from 8.31 on; without a command it shows that it knows it. */
const AS_BEFORE = "--default-signal=PIPE,XFSZ";

/** What is executed: the program, by env(1) where that can set the signals back. */
function commandFor(path, args) {
  // To env a word with = is a variable.
  const isVariable = path.includes("=");
  const knows = () => spawnSync(ENV, [AS_BEFORE], { stdio: "ignore" }).status === 0;
  return !isVariable && knows()
    ? [ENV, ["env", AS_BEFORE, path, ...args]]
    : [path, ["execd", ...args]];
}

const path = program();
if (typeof process.execve !== "function") fail("it needs Node 22.19 or newer");
checkProgram(path);
process.execve(...commandFor(path, process.argv.slice(2)), process.env);
