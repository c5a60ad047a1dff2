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

/** The lease that a command line gives by a flag or a variable. */
function leaseOf(line: string): string | undefined {
  const flag = /(?:--(?:lease|exit-after-silence)(?:=|\s+)|\bEXECD_LEASE=)["']?([\w.]+)/;
  return flag.exec(line)?.[1];
}

/** How often something is to be sent within this lease; undefined where there is none. */
function beatMsOf(lease: string | undefined): number | undefined {
  const ms = lease === undefined ? undefined : durationMs(lease);
  return ms === undefined ? undefined : ms / BEATS_PER_LEASE;
}

const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A time as execd's flags take it: `0.5`, `500ms`, `5m`, `1h30m`; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return positive(Number(text) * 1_000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, number, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g)) {
    ms += Number(number) * (UNITS_MS[unit ?? ""] ?? 0);
  }
  return positive(ms);
}

function positive(ms: number): number | undefined {
  return ms > 0 ? ms : undefined;
}
