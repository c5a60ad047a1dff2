/**
 * The names of parameters: which one a name means, and which one a model may have meant by a name
 * that means none (docs: pi.md, The tools; protocol.md, Names of params).
 */
import { nearest } from "../text/nearest.ts";
import { oneLine } from "../text/width.ts";
import { SYNONYMS, type ToolSchema } from "./schema.ts";

/**
 * What a tool takes that its schema does not have, by a parameter that such a tool has. Each is
 * documented; all else that the wire has is for the extension itself.
 */
const BESIDES: readonly (readonly [has: string, also: readonly string[]])[] = [
  ["until", ["on_impossible"]],
  ["yield_time_ms", ["raw_output"]],
  ["stdinMode", ["shell"]],
  ["offset", ["raw", "encoding"]],
  ["timeoutAction", ["pollInterval", "pollLines", "until", "stop", "onImpossible"]],
  ["action", ["pollInterval", "pollLines", "all"]],
];

/** Words that other tools have for one thing: a tool that has one of a line is told that one. */
const WORDS: readonly (readonly string[])[] = [
  ["cmd", "command", "script"],
  ["chars", "data", "input", "text", "stdin"],
  ["yield_time_ms", "yield_ms", "wait_ms", "timeout_ms", "timeout", "yield_time"],
  ["workdir", "cwd", "directory", "working_directory", "dir"],
  ["session_id", "session", "id", "pid", "process_id", "job_id"],
];

const NAME_CELLS = 64;

/** `yieldMs` as `yield_ms`: both cases of a name are one name. */
function snake(name: string): string {
  return name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

/** Takes a name as a model wrote it and gives that of the tool; undefined where it has none. */
export function ownName(schema: ToolSchema, name: string): string | undefined {
  if (Object.hasOwn(schema.properties, name)) return name;
  if (/^[A-Z]/.test(name)) return undefined;
  const given = snake(name);
  const own = Object.keys(schema.properties).find((one) => snake(one) === given);
  return own ?? Object.entries(schema[SYNONYMS] ?? {}).find(([other]) => snake(other) === given)?.[1];
}

/** Refuses, in execd's words, the first name that means nothing; `tool` is what the model calls. */
export function refuseUnknown(tool: string, schema: ToolSchema, args: object): void {
  const also = BESIDES.flatMap(([has, names]) => Object.hasOwn(schema.properties, has) ? names : [])
    .map(snake);
  const isKnown = (name: string) =>
    ownName(schema, name) !== undefined || also.includes(snake(name));
  const unknown = Object.keys(args).find((name) => !isKnown(name));
  if (unknown === undefined) return;
  const all = Object.keys(schema.properties);
  const meant = meantBy(schema, unknown);
  const what = meant !== undefined ? `did you mean ${meant}?`
    : all.length === 0 ? "it takes none" : `it takes ${all.join(", ")}`;
  throw new Error(`${oneLine(unknown, NAME_CELLS)}: unknown param of ${tool}; ${what}`);
}

function meantBy(schema: ToolSchema, name: string): string | undefined {
  const given = snake(name);
  const all = Object.keys(schema.properties);
  const words = WORDS.find((line) => line.includes(given));
  const same = all.find((own) => words?.includes(snake(own)));
  if (same !== undefined) return same;
  const near = nearest(given, [...all, ...Object.keys(schema[SYNONYMS] ?? {})].map(snake));
  return near === undefined ? undefined : ownName(schema, near);
}
