/**
 * `until` and `stop`: what a model reads of them, and how loose values of them are mended (docs:
 * waits.md). The fields are told in words and not as a schema of their own, which
 * every request would pay for several times.
 */
import { isObject, parseObject } from "../text/values.ts";
import { coerceBoolean, coerceNumber } from "./coerce.ts";
import { type ParameterSchema, REPAIR, oneOf } from "./schema.ts";

/** How a family spells the fields of more than one word. */
export type Spelling = "snake" | "camel";

const NAMES: Record<Spelling, Record<string, string>> = {
  snake: { idleMs: "idle_ms", idleCpu: "idle_cpu", treeExit: "tree_exit" },
  camel: { idle_ms: "idleMs", idle_cpu: "idleCpu", tree_exit: "treeExit" },
};

/** What a tool says of `until` and `stop`. */
export interface ConditionTexts {
  until: string;
  stop: string;
}

/** The words of the tool that tells them in full; others point at it. */
export function fullTexts(spelling: Spelling): ConditionTexts {
  const [idle, all] = spelling === "snake" ? ["idle_ms", "tree_exit"] : ["idleMs", "treeExit"];
  return {
    until: "Ends this call once one comes true: text or regex (in a line of output; one or a list; "
      + "count: the N-th match), port (it listens; 0: any), http ({port, path, status}), input "
      + `(true: it waits for input), ${idle} (quiet so long), ${all} (true: all its processes are `
      + "gone).",
    stop: "The same fields, for signs of failure.",
  };
}

/** The words of a tool that has the parameters of another one. */
export function sameAs(tool: string, otherwise = ""): ConditionTexts {
  return { until: `As in ${tool}.${otherwise}`, stop: `As in ${tool}.` };
}

/** `until` and `stop`. */
export function conditions(
  spelling: Spelling,
  { until, stop }: ConditionTexts,
): Record<string, ParameterSchema> {
  return { until: condition(until, spelling), stop: condition(stop, spelling) };
}

/** `on_impossible` of the unified tools. */
export function onImpossible(description: string): ParameterSchema {
  return oneOf(["answer", "wait"], description);
}

function condition(description: string, spelling: Spelling): ParameterSchema {
  return { type: "object", description, [REPAIR]: (value) => mendCondition(value, spelling) };
}

/**
 * Takes a condition as a model wrote it and gives it in the wire's types; undefined where nothing is
 * asked for, which is how some models leave it out. What the wire does not know stays, to be
 * refused by its name.
 */
export function mendCondition(value: unknown, spelling: Spelling): unknown {
  const given = typeof value === "string" ? parseObject(value) : value;
  if (!isObject(given)) return value;
  const entries = Object.entries(given).flatMap(([name, field]) => {
    const own = NAMES[spelling][name] ?? name;
    const mended = mendField(own, field);
    return mended === undefined ? [] : [[own, mended] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function mendField(name: string, value: unknown): unknown {
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) {
    return undefined;
  }
  switch (name) {
    case "text":
    case "regex":
      return Array.isArray(value) ? value.map(patternOf) : patternOf(value);
    case "count":
    case "idle_ms":
    case "idleMs":
      return coerceNumber(value, Math.trunc);
    case "port":
      return portOf(value);
    case "http":
      return httpOf(value);
    case "input":
      return value === "any" ? true : flagOf(value);
    case "idle_cpu":
    case "idleCpu":
    case "tree_exit":
    case "treeExit":
      return flagOf(value);
    default:
      return value;
  }
}

function patternOf(value: unknown): unknown {
  return typeof value === "number" ? String(value) : value;
}

/** What is false is not asked for. */
function flagOf(value: unknown): unknown {
  const flag = coerceBoolean(value);
  return flag === false ? undefined : flag;
}

/** A number, also as a text or behind a host (`localhost:5173`); true for any. */
function portOf(value: unknown): unknown {
  if (value === true) return "any";
  if (value === false) return undefined;
  const digits = typeof value === "string" ? /^\s*(?:[\w.-]*:)?(\d+)\s*$/.exec(value)?.[1] : value;
  return coerceNumber(digits ?? value, Math.trunc);
}

const LOCAL_URL = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d+))?(\/.*)?$/;

/** A path, or the address of a server on this machine, stands for the object. */
function httpOf(value: unknown): unknown {
  const given = typeof value === "string" ? parseObject(value) ?? addressOf(value) : value;
  if (!isObject(given)) return value;
  const { port, status, ...others } = given;
  const fields = {
    ...others,
    port: port === null || port === "" ? undefined : portOf(port),
    status: Array.isArray(status)
      ? status.map((one: unknown) => coerceNumber(one, Math.trunc))
      : coerceNumber(status ?? undefined, Math.trunc),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined));
}

function addressOf(value: string): Record<string, unknown> | undefined {
  if (value.startsWith("/")) return { path: value };
  const found = LOCAL_URL.exec(value);
  return found ? { path: found[2] ?? "/", port: found[1] ?? "80" } : undefined;
}

/** The sessions of wait_for: a list of ids; all that run where none is given. */
export function sessionIds(description: string): ParameterSchema {
  return { type: "array", items: { type: "integer" }, description, [REPAIR]: mendIds };
}

/** Takes the ids as a model wrote them (`2`, `"1, 2"`, `"[1]"`, `"all"`) and gives a list. */
export function mendIds(value: unknown): unknown {
  if (Array.isArray(value) && value.join() !== "all") {
    return value.length === 0 ? undefined : value.map((id) => coerceNumber(id, Math.trunc));
  }
  if (Array.isArray(value)) return undefined;
  if (typeof value === "number") return [value];
  if (typeof value !== "string") return value;
  const words = value.replace(/^\s*\[|\]\s*$/g, "").split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0 || words.join() === "all") return undefined;
  return words.every((word) => /^\d+$/.test(word)) ? words.map(Number) : value;
}
