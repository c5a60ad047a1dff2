/**
 * The parameters of a tool as JSON Schema, and the few shapes that they are made of. What a model
 * reads about each parameter stands with the texts of its tool.
 */

/** The name under which a parameter has a repair of its own; no JSON has it. */
export const REPAIR = Symbol("repair");

/** A parameter of a tool. One of several types has `anyOf` in place of `type`. */
export interface ParameterSchema {
  type?: "string" | "integer" | "number" | "boolean" | "object" | "array";
  anyOf?: readonly object[];
  description: string;
  enum?: readonly string[];
  additionalProperties?: object;
  items?: object;
  /** Brings a value into the schema; undefined stands for a parameter that was not given. */
  [REPAIR]?: (value: unknown) => unknown;
}

/** A tool's parameters. */
export interface ToolSchema {
  type: "object";
  properties: Record<string, ParameterSchema>;
  required?: string[];
}

/** The schema of these parameters; `required` are those that a call must have. */
export function schema(
  properties: Record<string, ParameterSchema>,
  required: string[] = [],
): ToolSchema {
  return { type: "object", ...(required.length > 0 && { required }), properties };
}

export function text(description: string): ParameterSchema {
  return { type: "string", description };
}

export function integer(description: string): ParameterSchema {
  return { type: "integer", description };
}

export function number(description: string): ParameterSchema {
  return { type: "number", description };
}

export function flag(description: string): ParameterSchema {
  return { type: "boolean", description };
}

export function oneOf(words: readonly string[], description: string): ParameterSchema {
  return { type: "string", enum: words, description };
}

/** Variables of an environment: a text sets one, null unsets it. */
export function variables(description: string): ParameterSchema {
  const additionalProperties = { type: ["string", "null"] };
  return { type: "object", additionalProperties, description };
}
