/**
 * What an execd on another machine is started with beside its own flags: a marker, behind which its
 * output begins whatever a login prints before, and a lease, within which it ends with all that it
 * runs where nothing tells it that pi is gone.
 */
import { randomUUID } from "node:crypto";
import { isObject } from "../text/values.ts";

/** The most that may be printed before the marker. */
export const NOISE_MAX_BYTES = 1024 * 1024;
/** The beginning of that which is kept for an error message. */
export const NOISE_KEPT_CHARS = 500;
/**
 * The lease where the command line has none: longer than pi is stopped (Ctrl-Z) or a lid closed for
 * a moment, short enough that nothing goes on for a night because a connection broke.
 */
export const LEASE = "10m";
/** So many times in a lease something is sent. */
export const BEATS_PER_LEASE = 3;
/** How often where the lease of the command line cannot be read: leases are longer than that. */
export const UNKNOWN_BEAT_MS = 5_000;
/** The longest that a timer of Node takes; one of more goes off at once, again and again. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

/** See above: the flags, the line that is waited for, and how often something is to be sent. */
export interface FarStart {
  flags: string[];
  marker: string | undefined;
  beatMs: number | undefined;
}

/** For the user's command line. */
export function farStart(line: string): FarStart {
  const word = randomUUID();
  const own = leaseOf(line);
  return {
    flags: [`--marker=${word}`, ...(own === undefined ? [`--lease=${LEASE}`] : [])],
    marker: `=== execd ${word} ===`,
    beatMs: beatMsOf(own ?? LEASE),
  };
}

/**
 * For the same line, where its execd is of a version that knows neither flag: what the line itself
 * says of a lease (`--exit-after-silence`) is kept all the same.
 */
export function farStartOfOlder(line: string): FarStart {
  return { flags: [], marker: undefined, beatMs: beatMsOf(leaseOf(line)) };
}

/** Whether an execd did not start because it is of a version that does not know these flags. */
export function refusesFlags(why: string): boolean {
  return /unknown flag --(marker|lease)\b/.test(why);
}

/**
 * Whether a line before the marker is an answer all the same: of a command line that does not hand
 * flags on, or of something that is no execd and says so.
 */
export function isFirstAnswer(message: Record<string, unknown>): boolean {
  if (typeof message.id !== "number") return false;
  return isObject(message.error) || (isObject(message.result) && message.result.name === "execd");
}

/**
 * How often something is to be sent within this lease; undefined where there is none. One that
 * cannot be read is known to a shell on the way only (`--lease $TIME`), or refused by execd.
 */
function beatMsOf(lease: string | undefined): number | undefined {
  if (lease === undefined) return undefined;
  const ms = durationMs(lease);
  return ms ? Math.min(ms / BEATS_PER_LEASE, TIMER_MAX_MS) : UNKNOWN_BEAT_MS;
}

/** A quote in a shell's words, of a shell within a shell too. */
const QUOTE = String.raw`(?:\\?["'])?`;
const VALUE = String.raw`${QUOTE}([^\s"'\\;|&()<>]*)`;
const NAME = String.raw`(?<![\w-])--(?:lease|exit-after-silence)${QUOTE}`;
const FLAG = new RegExp(String.raw`${NAME}(?:=|\s+)${VALUE}`, "g");
/** Those of the variables that execd looks at later come later. */
const VARIABLES = ["EXECD_LEASE", "EXECD_EXIT_AFTER_SILENCE"]
  .map((name) => new RegExp(String.raw`(?<![\w$])${name}=${VALUE}`, "g"));

/**
 * The lease that a command line gives, as execd takes it: the last flag, or else the last variable,
 * of which one that is empty is as unset.
 */
function leaseOf(line: string): string | undefined {
  const lastOf = (pattern: RegExp) => [...line.matchAll(pattern)].at(-1)?.[1];
  const [first, later] = VARIABLES.map(lastOf);
  return lastOf(FLAG) ?? (later || first || undefined);
}

/** The units, in the order in which a time has them; a number of each. */
const NUMBER = String.raw`(\d+\.?\d*|\.\d+)`;
const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const WITH_UNITS = new RegExp(
  `^${Object.keys(UNITS_MS).map((unit) => `(?:${NUMBER}${unit})?`).join("")}$`,
);
const PLAIN = new RegExp(`^${NUMBER}$`);
/** What execd takes at most: ten years. */
const DURATION_MAX_MS = 3_650 * UNITS_MS.d;
/** Of a millisecond; below that a sum of decimals is not exact. */
const EXACT_DIGITS = 6;

/**
 * A time as execd's flags take it: `0.5`, `500ms`, `5m`, `1h30m`; undefined for anything else. What
 * is more than nothing is a millisecond at least.
 */
export function durationMs(text: string): number | undefined {
  const seconds = PLAIN.exec(text)?.[1];
  const numbers = seconds === undefined ? WITH_UNITS.exec(text)?.slice(1) : [];
  if (text === "" || numbers === undefined) return undefined;
  const units = Object.values(UNITS_MS);
  const parts = numbers.map((number, at) => Number(number ?? 0) * (units[at] ?? 0));
  const sum = parts.reduce((ms, part) => ms + part, Number(seconds ?? 0) * UNITS_MS.s);
  const ms = Math.ceil(Number(sum.toFixed(EXACT_DIGITS)));
  return ms > DURATION_MAX_MS ? undefined : ms;
}
