/**
 * Where execd may be, in the order in which it is looked for (docs: pi.md, Which
 * execd). Nothing is started here.
 */
import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** One way to start execd. */
export interface Candidate {
  /** Where it comes from, for people: `EXECD_BIN`, `PATH`, … */
  source: string;
  /** The program and the arguments that stand before execd's own flags. */
  command: string;
  args: string[];
  /** Chosen by the user: when it fails, nothing else is tried in its place. */
  explicit: boolean;
  /** Commands run on another machine, or may do: nothing of this one is sent along. */
  remote: boolean;
  /** The user's command line, where it is one. */
  line?: string;
}

/** A command line that starts execd, and for people which setting says it. */
export interface SettledCommand {
  line: string;
  where: string;
}

/** What was found, and what was looked for in vain (a line each, for the error message). */
export interface Located {
  candidates: Candidate[];
  missing: string[];
}

/** The platform package that holds the binary: there is one for Linux on x64, and one on arm64. */
export const PLATFORM_PACKAGE = `@pi-execd/${process.platform}-${process.arch}`;

/** The directory of the extension's sources. */
const SRC = dirname(dirname(fileURLToPath(import.meta.url)));

/** The command line that the user has chosen: the variable's, or `settled`, which both beat. */
export function chosenCommand(
  env: NodeJS.ProcessEnv,
  settled: SettledCommand | undefined,
): SettledCommand | undefined {
  const line = env.EXECD_COMMAND?.trim();
  if (line) return { line, where: "EXECD_COMMAND" };
  return env.EXECD_BIN?.trim() ? undefined : settled;
}

/**
 * Looks for execd as `env` and the files of settings say.
 *
 * `EXECD_COMMAND` (a command line for /bin/sh), `EXECD_BIN` (a path) and `settled` are the user's own
 * choice and exclude everything else. Without them: the platform package beside the extension, `execd` on
 * PATH, and the release build of the checkout that the extension lies in.
 */
export function locate(
  env: NodeJS.ProcessEnv,
  here: string = SRC,
  settled: SettledCommand | undefined = undefined,
): Located {
  const chosen = chosenCommand(env, settled);
  if (chosen) return { candidates: [commandLine(chosen)], missing: [] };
  const bin = env.EXECD_BIN?.trim();
  if (bin) return { candidates: [binary("EXECD_BIN", resolve(bin), true)], missing: [] };

  const located: Located = { candidates: [], missing: [] };
  const add = (source: string, path: string | undefined, wanted: string) => {
    if (path !== undefined && isProgram(path)) {
      located.candidates.push(binary(source, path, false));
    } else {
      located.missing.push(wanted);
    }
  };
  add(PLATFORM_PACKAGE, packaged(here), `the package ${PLATFORM_PACKAGE}`);
  add("PATH", onPath(env.PATH ?? ""), "execd on PATH");
  const built = resolve(here, "..", "..", "target", "release", "execd");
  add("the checkout", built, built);
  return located;
}

/**
 * The user's command line through the shell, so that quotes and variables mean what they mean
 * there. What the extension appends comes last, as arguments of the line's last command.
 */
function commandLine({ line, where }: SettledCommand): Candidate {
  return {
    source: `${where} (${line})`,
    command: "/bin/sh",
    args: ["-c", `${line} "$@"`, "execd"],
    explicit: true,
    remote: true,
    line,
  };
}

function binary(source: string, path: string, explicit: boolean): Candidate {
  return { source: `${source} (${path})`, command: path, args: [], explicit, remote: false };
}

function packaged(here: string): string | undefined {
  try {
    const require = createRequire(join(here, "index.ts"));
    return join(dirname(require.resolve(`${PLATFORM_PACKAGE}/package.json`)), "bin", "execd");
  } catch {
    return undefined;
  }
}

/** Relative entries of PATH are passed over: they would depend on where pi was started. */
function onPath(path: string): string | undefined {
  return path
    .split(delimiter)
    .filter(isAbsolute)
    .map((dir) => join(dir, "execd"))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
