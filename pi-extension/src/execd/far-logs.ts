/**
 * Logs on another machine: a path of one must not be taken for a path of this machine, neither by the
 * model, whose `read` opens files here, nor by people.
 */
import { isObject } from "../text/values.ts";

/** What replies and notifications with a log on another machine have besides. */
export interface Far {
  far?: true;
}

/** What stands before a path in execd's texts, and what it becomes. */
const LABELS: readonly [string, string][] = [
  ["Full output: ", "Full output on that machine: "],
  ["log_path: ", "log_path on that machine: "],
];
/** Fields of replies and notifications that are texts of execd's own; output stands in others. */
const TEXTS: readonly string[] = ["header", "footer", "text", "summary"];
/** Replies are no deeper. */
const DEPTH_MAX = 4;

/**
 * Takes a reply or a notification of an execd on another machine. Whatever in it has a log gets
 * `far: true`, by which rows say so, and its texts say where the log is.
 */
export function withFarLogs(message: Record<string, unknown>): Record<string, unknown> {
  return marked(message, 0);
}

function markedAny(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((one) => markedAny(one, depth + 1));
  return isObject(value) ? marked(value, depth) : value;
}

function marked(value: Record<string, unknown>, depth: number): Record<string, unknown> {
  const path = value.log_path ?? value.logPath;
  // The text of a page is output.
  const isPage = "next_offset" in value || "nextOffset" in value;
  const entries = Object.entries(value).map(([name, field]) => {
    const isText = typeof field === "string" && typeof path === "string" && !isPage;
    if (isText && TEXTS.includes(name)) return [name, farText(field, path)];
    return [name, markedAny(field, depth + 1)];
  });
  return { ...Object.fromEntries(entries), ...(typeof path === "string" && { far: true }) };
}

/** The last place of each kind that names the path: output may name it too, and stands before. */
function farText(text: string, path: string): string {
  let told = text;
  for (const [label, far] of LABELS) {
    const at = told.lastIndexOf(`${label}${path}`);
    if (at >= 0) told = `${told.slice(0, at)}${far}${told.slice(at + label.length)}`;
  }
  return told;
}
