/**
 * What a call waits for, what ended its wait, and what a session is doing, in words (waits.md).
 * Conditions are what a model wrote and outcomes what an execd sent, in the spelling of either
 * family: what does not have the shape says nothing.
 */
import { formatSeconds } from "./figures.ts";
import { isObject } from "./values.ts";
import { oneLine } from "./width.ts";

/** The cells of one pattern, and of the line that it matched. */
const PATTERN_CELLS = 40;
const LINE_CELLS = 160;
const WHY_CELLS = 300;
const NAME_CELLS = 40;
/** The most patterns and ports that are named. */
const MAX_NAMED = 3;

/** Takes `until` or `stop` of a call and gives it in words; undefined where nothing is asked for. */
export function conditionWords(condition: unknown): string | undefined {
  if (!isObject(condition)) return undefined;
  const { text, regex, count, port, http, input, idle_ms, idleMs, tree_exit, treeExit } = condition;
  const times = Number(count) > 1 ? ` × ${oneLine(String(count), NAME_CELLS)}` : "";
  const idle = idle_ms ?? idleMs;
  const words = [
    ...named(listOf(text).map((one) => `${textWords(one)}${times}`)),
    ...named(listOf(regex).map((one) => `${regexWords(one)}${times}`)),
    ...(port === undefined ? [] : [portWords(port)]),
    ...(http === undefined ? [] : [httpWords(http)]),
    ...(input === undefined || input === false ? [] : [inputWords(input)]),
    ...(idle === undefined ? [] : [`quiet for ${formatSeconds(Number(idle))}`]),
    ...(tree_exit === true || treeExit === true ? ["the end of all"] : []),
  ];
  return words.length === 0 ? undefined : words.join(" or ");
}

function named(words: string[]): string[] {
  const rest = words.length - MAX_NAMED;
  return rest > 0 ? [...words.slice(0, MAX_NAMED), `${rest} more`] : words;
}

function listOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

function textWords(pattern: unknown): string {
  return `"${oneLine(String(pattern), PATTERN_CELLS)}"`;
}

function regexWords(pattern: unknown): string {
  return `/${oneLine(String(pattern), PATTERN_CELLS)}/`;
}

function portWords(port: unknown): string {
  if (port === 0 || port === "any") return "any port";
  return `port ${oneLine(String(port), NAME_CELLS)}`;
}

function httpWords(http: unknown): string {
  const { port, path } = isObject(http) ? http : {};
  const host = port === undefined || port === 0 || port === "any" ? "" : `:${String(port)}`;
  return `http ${oneLine(`${host}${String(path ?? "")}`, PATTERN_CELLS)}`;
}

function inputWords(input: unknown): string {
  return typeof input === "string" ? `input (${oneLine(input, NAME_CELLS)})` : "input";
}

/** How a wait ended that said what it waits for, or that nothing but input could end. */
export interface Ended {
  /** Whether it came to what was wanted, to what was feared, or to neither. */
  how: "matched" | "stopped" | "impossible" | "deadline" | "exited";
  words: string;
}

/** What a call asked for. */
export interface Asked {
  until?: unknown;
  stop?: unknown;
}

/**
 * Takes a reply's `wait`, what its call asked for, and the ports that the reply lists, and gives how
 * the wait ended; undefined where there is nothing to say of it.
 */
export function endedWords(
  wait: unknown,
  { until, stop }: Asked,
  listening?: unknown,
): Ended | undefined {
  if (!isObject(wait)) return undefined;
  const { outcome: how, why } = wait;
  const reason = typeof why === "string" ? `: ${oneLine(why, WHY_CELLS)}` : "";
  switch (how) {
    case "matched":
      return { how, words: `matched ${matchWords(wait, until, listening)}` };
    case "stopped":
      return { how, words: `stopped by ${matchWords(wait, stop, listening)}` };
    case "impossible":
      return { how, words: `impossible${reason}` };
    case "deadline": {
      const ms = Number(wait.effective_timeout_ms ?? wait.effectiveTimeoutMs);
      const after = Number.isFinite(ms) ? ` within ${formatSeconds(ms)}` : " in time";
      return { how, words: `not${after}${reason}` };
    }
    case "exited": {
      const missed = conditionWords(until);
      return { how, words: `ended${missed === undefined ? "" : ` without ${missed}`}${reason}` };
    }
    default:
      return undefined;
  }
}

/** What came true: the pattern and its line, the port and who listens, the kind of input. */
function matchWords(wait: Record<string, unknown>, asked: unknown, listening: unknown): string {
  const { by, index, text, captures, port, status, state } = wait;
  const condition = isObject(asked) ? asked : {};
  switch (by) {
    case "text":
      return `${textWords(listOf(condition.text)[Number(index ?? 0)] ?? "text")}${arrow(text)}`;
    case "regex": {
      const pattern = listOf(condition.regex)[Number(index ?? 0)] ?? "regex";
      const first = Array.isArray(captures) ? captures.find((one) => one !== null) : undefined;
      return `${regexWords(pattern)}${arrow(first ?? text)}`;
    }
    case "port":
      return `${portWords(port)}${whose(listenerOf(port, listening)?.command)}`;
    case "http":
      return `${httpWords(condition.http)}${status === undefined ? "" : ` (${String(status)})`}`;
    case "input":
      return `input${kindOf(state) === undefined ? "" : `: ${kindOf(state)}`}`;
    case "idle_ms": {
      const ms = Number(condition.idle_ms ?? condition.idleMs);
      return Number.isFinite(ms) ? `quiet for ${formatSeconds(ms)}` : "quiet";
    }
    case "tree_exit":
      return "the end of all";
    default:
      return oneLine(String(by ?? "something"), NAME_CELLS);
  }
}

function listenerOf(port: unknown, listening: unknown): Record<string, unknown> | undefined {
  return listOf(listening).filter(isObject).find((one) => one.port === port);
}

function arrow(text: unknown): string {
  return typeof text === "string" && text.trim() !== "" ? ` → ${oneLine(text, LINE_CELLS)}` : "";
}

function whose(command: unknown): string {
  return typeof command === "string" && command !== "" ? ` (${oneLine(command, NAME_CELLS)})` : "";
}

const KINDS: ReadonlyMap<unknown, string> = new Map([
  ["waiting_for_line", "a line"],
  ["waiting_for_password", "a password"],
  ["waiting_for_key", "a key"],
]);

function kindOf(state: unknown): string | undefined {
  return KINDS.get(state);
}

/**
 * Takes the fields of a session, in either spelling, and gives what it is doing, where that is told:
 * `waits for a line (python3)`, `stopped`, `full screen`, `listens on 5173 (node)`.
 */
export function doingWords(session: Record<string, unknown>): string[] {
  return [stateWords(session), fullScreenWords(session), listeningWords(session.listening)]
    .filter((words) => words !== undefined);
}

/** `waits for a line (python3)`; undefined for a session that just runs. */
export function stateWords(session: Record<string, unknown>): string | undefined {
  const { state, state_detail, stateDetail } = session;
  const kind = kindOf(state);
  if (kind === undefined) return state === "stopped" ? "stopped" : undefined;
  const detail = state_detail ?? stateDetail;
  return `waits for ${kind}${whose(isObject(detail) ? detail.command : undefined)}`;
}

function fullScreenWords(session: Record<string, unknown>): string | undefined {
  return (session.full_screen ?? session.fullScreen) === true ? "full screen" : undefined;
}

/** `listens on 5173 (node), 9229 (node)` */
export function listeningWords(listening: unknown): string | undefined {
  const ports = listOf(listening).filter(isObject)
    .map(({ port, command }) => `${oneLine(String(port), NAME_CELLS)}${whose(command)}`);
  return ports.length === 0 ? undefined : `listens on ${named(ports).join(", ")}`;
}
