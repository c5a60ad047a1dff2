/**
 * The parameters of a tool as JSON Schema. Those of execd's tools come from its table of methods
 * (execd/models.ts); what is mended in a value that a model gave stands here.
 */

/** The name under which a parameter has a repair of its own; no JSON has it. */
export const REPAIR = Symbol("repair");

/** The name under which a schema has other names of its parameters; no JSON has it. */
export const SYNONYMS = Symbol("synonyms");

/** A parameter of a tool. One of several types has `anyOf` in place of `type`. */
export interface ParameterSchema {
  type?: "string" | "integer" | "number" | "boolean" | "object" | "array";
  anyOf?: readonly object[];
  description?: string;
  enum?: readonly string[];
  items?: object;
  /** Brings a value into the schema; undefined stands for a parameter that was not given. */
  [REPAIR]?: (value: unknown) => unknown;
}

/** A tool's parameters. */
export interface ToolSchema {
  type: "object";
  properties: Record<string, ParameterSchema>;
  required?: readonly string[];
  /** Names that other agents' tools have for parameters, with the names that they have here. */
  [SYNONYMS]?: Readonly<Record<string, string>>;
}

/** What execd's table says of a tool, in which `{{name}}` stands for a value. */
export interface ModelTool {
  title: string;
  description: string;
  /** What is said of logs, behind the description, where a model can read them as files. */
  logs?: string;
  /** Names that other agents' tools have for parameters, with the names that they have here. */
  synonyms?: Readonly<Record<string, string>>;
  inputSchema: {
    type: "object";
    required?: readonly string[];
    properties: Readonly<Record<string, Readonly<ParameterSchema>>>;
  };
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; openWorldHint: boolean };
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
