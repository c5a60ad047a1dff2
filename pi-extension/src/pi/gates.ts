/**
 * Extensions that look at each call of bash (a gate that asks, or refuses) and know nothing of the tools
 * that stand in its place. pi tells nobody which handlers an extension has; of those that have a tool or
 * a command it tells the file, which says it. Others cannot be seen.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Host } from "./host.ts";

/** The most of an extension's file that is read, and the most files. */
const FILE_BYTES = 256 * 1024;
const FILES_MAX = 64;

const HANDLER = /\.on\(\s*["'`]tool_call["'`]/;
const OF_BASH = /["'`]bash["'`]/;

/** The files that were told of: a gate is told of once, and again after /reload. */
const told = new Set<string>();

/** Takes the tools in place of bash and gives what is to be said of gates that do not see them. */
export function gateNotices(host: Host, instead: readonly string[]): string[] {
  const [tool] = instead;
  if (tool === undefined) return [];
  const news = files(host).filter((file) => !told.has(file) && isBlind(textOf(file), instead));
  return news.map((file) => {
    told.add(file);
    return `${nameOf(file)} looks at calls of bash and has no word of ${tool}: it may not see what `
      + `${tool} runs; --exec-tools bash keeps the name bash`;
  });
}

/** The files of the extensions that pi tells of. */
function files(host: Host): string[] {
  const known = [...(host.getAllTools?.() ?? []), ...(host.getCommands?.() ?? [])];
  const paths = known.map(({ sourceInfo }) => sourceInfo?.path);
  const ofFiles = paths.filter((path) => typeof path === "string" && /\.[cm]?[jt]s$/.test(path));
  return [...new Set(ofFiles as string[])].slice(0, FILES_MAX);
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
