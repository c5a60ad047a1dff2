/**
 * How loose values of ids, of `until` and of `stop` are mended (docs: pi.md, The tools; waits.md).
 */
import { isObject, parseObject } from "../text/values.ts";
import { coerceBoolean, coerceNumber } from "./coerce.ts";

/** How a family spells the fields of more than one word. */
export type Spelling = "snake" | "camel";

const NAMES: Record<Spelling, Record<string, string>> = {
  snake: { idleMs: "idle_ms", idleCpu: "idle_cpu", treeExit: "tree_exit" },
  camel: { idle_ms: "idleMs", idle_cpu: "idleCpu", tree_exit: "treeExit" },
};

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

/** Takes the id of a session as a model wrote it (`3`, `"3"`, `"#3"`, `"@3"`) and gives a number. */
export function mendId(value: unknown): unknown {
  const digits = typeof value === "string" ? /^\s*[#@]?(\d+)\s*$/.exec(value)?.[1] : undefined;
  return coerceNumber(digits ?? value, Math.trunc);
}

/** Takes the size of a terminal: an object of numbers, or `120x30`. */
export function mendSize(value: unknown): unknown {
  const words = typeof value === "string" ? /^\s*(\d+)\s*[x×]\s*(\d+)\s*$/i.exec(value) : null;
  const size = words ? { cols: words[1], rows: words[2] }
    : typeof value === "string" ? parseObject(value) ?? value : value;
  if (!isObject(size)) return size;
  return Object.fromEntries(Object.entries(size).map(([name, one]) =>
    [name, coerceNumber(one, Math.trunc)]));
}

/** Takes the ids as a model wrote them (`2`, `"1, 2"`, `"[1]"`, `"all"`) and gives a list. */
export function mendIds(value: unknown): unknown {
  if (Array.isArray(value) && value.join() !== "all") {
    return value.length === 0 ? undefined : value.map(mendId);
  }
  if (Array.isArray(value)) return undefined;
  if (typeof value === "number") return [value];
  if (typeof value !== "string") return value;
  const words = value.replace(/^\s*\[|\]\s*$/g, "").split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0 || words.join() === "all") return undefined;
  return words.every((word) => /^[#@]?\d+$/.test(word)) ? words.map(mendId) : value;
}
