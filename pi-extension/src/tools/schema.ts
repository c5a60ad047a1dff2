/**
 * The parameters of a tool as JSON Schema, and the few shapes that they are made of. What a model
 * reads about each parameter stands with the texts of its tool.
 */

/** A parameter of a tool. One of several types has `anyOf` in place of `type`. */
export interface ParameterSchema {
  type?: "string" | "integer" | "number" | "boolean" | "object";
  anyOf?: readonly object[];
  description: string;
  enum?: readonly string[];
  additionalProperties?: object;
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
