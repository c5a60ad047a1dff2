/**
 * Models are loose with types (`"5"` for 5) and invent parameters. execd's wire is strict, so the
 * arguments are brought into the tool's schema here; a value that does not fit is left for execd to
 * refuse.
 */
import { isObject, parseObject } from "../text/values.ts";
import { type ParameterSchema, REPAIR, type ToolSchema } from "./schema.ts";

/** `args` with the schema's parameters only, in the schema's types; null counts as absent. */
export function coerce(schema: ToolSchema, args: unknown): Record<string, unknown> {
  const given = isObject(args) ? args : {};
  const taken: Record<string, unknown> = {};
  for (const [name, parameter] of Object.entries(schema.properties)) {
    const value = given[name];
    if (value === undefined || value === null) continue;
    // An empty string is how some models leave a parameter out.
    if (value === "" && !schema.required?.includes(name)) continue;
    const mended = (parameter[REPAIR] ?? ((as) => coerceValue(parameter.type, as)))(value);
    if (mended !== undefined) taken[name] = mended;
  }
  return taken;
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
function coerceVariables(value: unknown): unknown {
  const object = typeof value === "string" ? parseObject(value) : value;
  if (!isObject(object)) return value;
  const entries = Object.entries(object).map(([name, setting]) => [
    name,
    typeof setting === "number" || typeof setting === "boolean" ? String(setting) : setting,
  ]);
  return Object.fromEntries(entries);
}
