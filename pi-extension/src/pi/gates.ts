/**
 * Extensions that look at each call of bash (a gate that asks, or refuses) and know nothing of the tools
 * that stand in its place. pi tells nobody which handlers an extension has, so that its file has to say
 * it. pi tells the files of those that have a tool or a command, and finds the others where its settings
 * and its command line say. What has been given to pi otherwise cannot be seen.
 */
import { closeSync, openSync, readSync, realpathSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { DefaultPackageManager, SettingsManager, getAgentDir } from "@earendil-works/pi-coding-agent";
import { expandHome } from "../text/home.ts";
import type { Host, HostContext } from "./host.ts";
import { isTrusted } from "./trust.ts";

/** The most of an extension's file that is read, and the most files. */
const FILE_BYTES = 256 * 1024;
const FILES_MAX = 64;

/** In the place of npm: no program has an empty name, so that none is started. */
const NO_PROGRAM = [""];

const HANDLER = /\.on\(\s*["'`]tool_call["'`]/;
const OF_BASH = /["'`]bash["'`]/;

/** The files that were told of: a gate is told of once, and again after /reload. */
const told = new Set<string>();

/** Takes the tools in place of bash and gives what is to be said of gates that do not see them. */
export async function gateNotices(
  host: Host,
  ctx: HostContext,
  instead: readonly string[],
): Promise<string[]> {
  const [tool] = instead;
  if (tool === undefined) return [];
  const all = [...files(host), ...fromCommandLine(ctx), ...await fromSettings(ctx)];
  const those = [...new Set(all.map(realPath))].filter((file) => /\.[cm]?[jt]s$/.test(file));
  const news = those.slice(0, FILES_MAX)
    .filter((file) => !told.has(file) && isBlind(textOf(file), instead));
  return news.map((file) => {
    told.add(file);
    return `${nameOf(file)} looks at calls of bash and has no word of ${tool}: it may not see what `
      + `${tool} runs; --exec-tools bash keeps the name bash`;
  });
}

/** The files of the extensions that pi tells of. */
function files(host: Host): string[] {
  const known = [...(host.getAllTools?.() ?? []), ...(host.getCommands?.() ?? [])];
  return known.map(({ sourceInfo }) => sourceInfo?.path).filter((path) => typeof path === "string");
}

/** The files that pi was started with: `pi -e gate.ts`. */
function fromCommandLine({ cwd }: HostContext, argv: readonly string[] = process.argv): string[] {
  return argv.flatMap((word, at) => {
    const path = ["-e", "--extension"].includes(argv[at - 1] ?? "") ? word : undefined;
    return path === undefined ? [] : [resolve(cwd ?? process.cwd(), expandHome(path))];
  });
}

/**
 * The files of the extensions that pi loads by itself, as pi finds them; nothing is installed for that.
 * Nor is npm asked where it keeps packages of the whole machine, one of which pi may name: that takes
 * up to a second, in which the user interface would stand still. Such a package is not looked at.
 */
async function fromSettings(ctx: HostContext): Promise<string[]> {
  const { cwd } = ctx;
  const isOff = process.argv.some((word) => word === "--no-extensions" || word === "-ne");
  if (cwd === undefined || isOff) return [];
  try {
    const agentDir = getAgentDir();
    const projectTrusted = isTrusted(ctx, cwd);
    const settingsManager = SettingsManager.create(cwd, agentDir, { projectTrusted });
    settingsManager.applyOverrides({ npmCommand: NO_PROGRAM });
    const found = await new DefaultPackageManager({ cwd, agentDir, settingsManager })
      .resolve(() => Promise.resolve("skip"));
    return found.extensions.filter(({ enabled }) => enabled).map(({ path }) => path);
  } catch {
    // An older pi finds them otherwise, and what it cannot find it has said itself.
    return [];
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isBlind(text: string, instead: readonly string[]): boolean {
  return HANDLER.test(text) && OF_BASH.test(text) && !instead.some((name) => text.includes(name));
}

/** The beginning of a file; nothing of one that cannot be read. */
function textOf(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const bytes = Buffer.alloc(FILE_BYTES);
      return bytes.toString("utf8", 0, readSync(file, bytes, 0, FILE_BYTES, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}

/** `gate.ts`, or `gate/index.ts`. */
function nameOf(path: string): string {
  const name = basename(path);
  return name.startsWith("index.") ? `${basename(dirname(path))}/${name}` : name;
}
