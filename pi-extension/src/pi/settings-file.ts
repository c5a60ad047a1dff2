/**
 * Reading execd.jsonc: which keys there are, what each may hold, and what is to be said about a
 * file. Which of several files holds is said in settings.ts.
 */
import { readFileSync } from "node:fs";
import { parseJsonc } from "../text/jsonc.ts";
import {
  type Held, type Kind, between, filledText, flag, isString, oneOf, shownValue,
} from "../text/kinds.ts";
import { nearest } from "../text/nearest.ts";
import { isObject, messageOf } from "../text/values.ts";

/** The name of the file, in a project's directory for pi and in pi's agent directory. */
export const SETTINGS_FILE = "execd.jsonc";

/** The longest time that `pi -p` is held: a day. */
export const MAX_HOLD_SECONDS = 86_400;
/** The longest that bash_stream waits, as execd clamps it, and the shortest. */
const YIELD_MS = { least: 1_000, most: 120_000 };
/** The most updates a second of a row: execd tells no more. */
const MAX_UPDATES_PER_SECOND = 4;

const families: Kind<string | readonly string[]> = {
  expected: '"unified", "stream" or "bash", or an array of them',
  fits: (value): value is string | readonly string[] =>
    filledText.fits(value) || (Array.isArray(value) && value.length > 0 && value.every(isString)),
};

/** The keys of execd.jsonc. */
export const SETTINGS_KEYS = {
  tools: families,
  keepBash: flag,
  command: filledText,
  header: oneOf("compact", "full"),
  holdSeconds: between("seconds", 0, MAX_HOLD_SECONDS),
  bashYieldMs: between("milliseconds", YIELD_MS.least, YIELD_MS.most),
  pollUpdates: between("updates a second", 0, MAX_UPDATES_PER_SECOND),
  secrets: flag,
};

/** What people may write for a key: the names of flags and variables that say the same. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ["exec-tools", "tools"], ["PI_EXECD_TOOLS", "tools"],
  ["keep-builtin-bash", "keepBash"], ["keepBuiltinBash", "keepBash"],
  ["EXECD_COMMAND", "command"],
  ["exec-hold-seconds", "holdSeconds"], ["execHoldSeconds", "holdSeconds"],
  ["bash-yield-ms", "bashYieldMs"], ["yieldMs", "bashYieldMs"],
]);

/** The values of a file that fit; a key that is not there, or has a bad value, is left out. */
export type SettingsValues = {
  readonly [K in keyof typeof SETTINGS_KEYS]?: Held<(typeof SETTINGS_KEYS)[K]>;
};

/** One execd.jsonc. */
export interface SettingsFile {
  path: string;
  values: SettingsValues;
  /** What is wrong with the file, a sentence each. */
  complaints: string[];
}

/** Reads the file at `path`; undefined where there is none. */
export function readSettingsFile(path: string): SettingsFile | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined
      : broken(path, `cannot be read: ${messageOf(error)}`);
  }
  try {
    const value = text.trim() === "" ? {} : parseJsonc(text);
    return isObject(value) ? checked(path, value) : broken(path, "expected an object of settings");
  } catch (error) {
    return broken(path, `is not valid JSON with comments: ${messageOf(error)}`);
  }
}

function broken(path: string, why: string): SettingsFile {
  return { path, values: {}, complaints: [`${path}: ${why}; nothing of it holds`] };
}

function checked(path: string, given: Record<string, unknown>): SettingsFile {
  const kinds = new Map<string, Kind<unknown>>(Object.entries(SETTINGS_KEYS));
  const complaints: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const kind = kinds.get(key);
    if (kind?.fits(value)) values[key] = value;
    else if (kind) {
      complaints.push(`${key} in ${path}: expected ${kind.expected}, not ${shownValue(value)}; `
        + "it counts as left out");
    } else if (key !== "$schema") complaints.push(unknownKey(key, path));
  }
  return { path, values, complaints };
}

function unknownKey(key: string, path: string): string {
  const names = Object.keys(SETTINGS_KEYS);
  const meant = MEANT.get(key) ?? nearest(key, names);
  const hint = meant === undefined ? `there are: ${names.join(", ")}` : `did you mean ${meant}?`;
  return `unknown key ${key} in ${path}; ${hint}`;
}
