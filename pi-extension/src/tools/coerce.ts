/**
 * Models are loose with types (`"5"` for 5) and with names. execd's wire is strict, so the arguments
 * are brought into the tool's schema here. A value that does not fit is left for execd to refuse; a
 * parameter that the tool does not have is refused here, by its name.
 */
import { isObject, parseObject } from "../text/values.ts";
import { ownName, refuseUnknown } from "./names.ts";
import { type ParameterSchema, REPAIR, type ToolSchema } from "./schema.ts";

/** `args` in the schema's names and types; null counts as absent. */
export function coerce(schema: ToolSchema, args: unknown): Record<string, unknown> {
  const given = isObject(args) ? ownNames(schema, args) : {};
  const taken: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const parameter = schema.properties[name];
    // An empty string is how some models leave a parameter out.
    if (value === "" && parameter && !schema.required?.includes(name)) continue;
    const mended = parameter ? mend(parameter, value) : value;
    if (mended !== undefined) taken[name] = mended;
  }
  return taken;
}

function mend(parameter: ParameterSchema, value: unknown): unknown {
  return (parameter[REPAIR] ?? ((as) => coerceValue(parameter.type, as)))(value);
}

/**
 * Takes the arguments with the names of other agents' tools, or in the other case, and gives them
 * with this tool's; where two mean the same, the second one stays, for execd to refuse.
 */
export function ownNames(schema: ToolSchema, args: Record<string, unknown>): Record<string, unknown> {
  const there = Object.entries(args).filter(([, value]) => (value ?? null) !== null);
  const taken = new Set(there.map(([name]) => name));
  const entries = there.map(([name, value]) => {
    const own = ownName(schema, name);
    if (own === undefined || own === name || taken.has(own)) return [name, value] as const;
    taken.add(own);
    return [own, value] as const;
  });
  return Object.fromEntries(entries);
}

/** Stands for a required parameter that a call does not have, until the names are checked. */
const STAND_INS: Readonly<Record<string, unknown>> = { string: "", integer: -1, number: -1 };

/**
 * Arguments for pi's own check, which refuses a call that has not all that is required, and says
 * nothing of what has a wrong name: then the missing ones get a stand-in, so that the call comes to
 * `checked`, which names the wrong one and the right one.
 */
export function prepared(schema: ToolSchema, args: unknown): Record<string, unknown> {
  const taken = coerce(schema, args);
  if (Object.keys(taken).every((name) => name in schema.properties)) return taken;
  const missing = (schema.required ?? []).filter((name) => !(name in taken));
  const standIns = missing.map((name) =>
    [name, STAND_INS[schema.properties[name]?.type ?? "string"]] as const);
  return { ...Object.fromEntries(standIns), ...taken };
}

/**
 * Takes arguments that pi has checked and gives them for execd, without stand-ins. Throws where one
 * has a name that `tool` does not have: execd's wire has more params than a model is to give.
 */
export function checked(
  tool: string,
  schema: ToolSchema,
  args: unknown,
): Record<string, unknown> {
  const taken = coerce(schema, args);
  refuseUnknown(tool, schema, taken);
  if (Object.keys(taken).every((name) => name in schema.properties)) return taken;
  const own = Object.entries(taken).filter(([name, value]) => !schema.required?.includes(name)
    || value !== STAND_INS[schema.properties[name]?.type ?? "string"]);
  return Object.fromEntries(own);
}

function coerceValue(type: ParameterSchema["type"], value: unknown): unknown {
  switch (type) {
    case "integer":
      return coerceNumber(value, Math.trunc);
    case "number":
      return coerceNumber(value, (number) => number);
    case "boolean":
      return coerceBoolean(value);
    case "string":
    case undefined:
      return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
    case "array":
      return value;
    case "object":
      return coerceVariables(value);
  }
}

/** A number that is written as a text becomes one, as `made` has it. */
export function coerceNumber(value: unknown, made: (number: number) => number): unknown {
  const number = typeof value === "string" ? Number(value.trim() || Number.NaN) : value;
  return typeof number === "number" && Number.isFinite(number) ? made(number) : value;
}

/** The words for yes and no become booleans. */
export function coerceBoolean(value: unknown): unknown {
  const text = String(value).trim().toLowerCase();
  if (["true", "1", "yes"].includes(text)) return true;
  if (["false", "0", "no"].includes(text)) return false;
  return value;
}

/** An object of environment variables: JSON text is parsed, numbers and booleans become text. */
export function coerceVariables(value: unknown): unknown {
  const object = typeof value === "string" ? parseObject(value) : value;
  if (!isObject(object)) return value;
  const entries = Object.entries(object).map(([name, setting]) => [
    name,
    typeof setting === "number" || typeof setting === "boolean" ? String(setting) : setting,
  ]);
  return Object.fromEntries(entries);
}
