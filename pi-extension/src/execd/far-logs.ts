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
/** What stands before the path of a session in a text that names several, and what it becomes. */
const HEAD_LABELS: readonly [string, string][] = [
  ["\nlog_path: ", "\nlog_path on that machine: "],
  ["\n    log: ", "\n    log on that machine: "],
];
/** What stands in such a text between the lines of a session and its output. */
const RULE = "\n---\n";
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
  const { sessions } = value;
  const entries = Object.entries(value).map(([name, field]) => {
    // One text for all the sessions of list_sessions or wait_for.
    if (name === "text" && typeof field === "string" && Array.isArray(sessions)) {
      return [name, farRows(field, sessions)];
    }
    const isText = typeof field === "string" && typeof path === "string" && !isPage;
    if (isText && TEXTS.includes(name)) return [name, farText(field, path)];
    return [name, markedAny(field, depth + 1)];
  });
  return { ...Object.fromEntries(entries), ...(typeof path === "string" && { far: true }) };
}

/** A text that names each of these sessions in their order, its output below its lines. */
function farRows(text: string, sessions: unknown[]): string {
  let told = "";
  let rest = text;
  for (const row of sessions.filter(isObject)) {
    const path = typeof row.log_path === "string" ? row.log_path : undefined;
    const output = typeof row.output === "string" ? row.output.replace(/\n+$/, "") : "";
    const at = output === "" ? -1 : rest.indexOf(`${RULE}${output}`);
    if (at < 0) {
      rest = farHead(rest, path);
      continue;
    }
    // The output stays as it is, whatever path it names.
    const end = at + RULE.length + output.length;
    told += farHead(rest.slice(0, at), path) + rest.slice(at, end);
    rest = path === undefined ? rest.slice(end) : farFirst(rest.slice(end), path, LABELS);
  }
  return told + rest;
}

function farHead(text: string, path: string | undefined): string {
  return path === undefined ? text : farFirst(text, path, HEAD_LABELS);
}

/** The first place of each kind that names the path. */
function farFirst(text: string, path: string, labels: readonly [string, string][]): string {
  return labels.reduce(
    (told, [label, far]) => told.replace(`${label}${path}`, () => `${far}${path}`), text,
  );
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
