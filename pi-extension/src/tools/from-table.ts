/**
 * The texts and parameters of a tool as execd's table of methods has them (execd/models.ts), with
 * the values of this session of pi in their places.
 */
import { fill } from "../text/fill.ts";
import { type Spelling, mendCondition, mendId, mendIds, mendSize } from "./conditions.ts";
import { coerceVariables } from "./coerce.ts";
import { type ModelTool, type ParameterSchema, REPAIR, SYNONYMS, type ToolSchema } from "./schema.ts";
import type { ToolText } from "./tool.ts";

/** Values for the variables of the texts. */
export type Values = Readonly<Record<string, unknown>>;

/** What pi alone says of a tool, in the system prompt. */
export type Prompt = Pick<ToolText, "promptSnippet" | "promptGuidelines">;

/** Takes a tool of the table and gives its texts; `logs` stands behind the description. */
export function textOf(
  tool: ModelTool,
  values: Values,
  logs: string | undefined,
  prompt: Prompt,
): ToolText {
  return {
    label: tool.title,
    description: [fill(tool.description, values), logs].filter(Boolean).join(" "),
    ...prompt,
    parameters: parametersOf(tool, values),
  };
}

/** The parameters of a tool, each with its words and with the repair of its values. */
export function parametersOf(
  { inputSchema, synonyms }: ModelTool,
  values: Values,
): ToolSchema {
  const { type, required, properties } = inputSchema;
  const spelling = Object.keys(properties).some((name) => /[A-Z]/.test(name)) ? "camel" : "snake";
  const own = Object.entries(properties).map(([name, parameter]) => {
    const { description = "", ...shape } = parameter;
    const words = fill(description, values);
    const repair = REPAIRS[name];
    return [name, {
      ...shape,
      ...(words && { description: words }),
      ...(repair && { [REPAIR]: (value: unknown) => repair(value, spelling) }),
    }];
  });
  return {
    type,
    ...(required && { required }),
    properties: Object.fromEntries(own) as Record<string, ParameterSchema>,
    ...(synonyms && { [SYNONYMS]: synonyms }),
  };
}

/** What is mended besides the types of values, by the name of the parameter. */
const REPAIRS: Readonly<Record<string, (value: unknown, spelling: Spelling) => unknown>> = {
  session_id: mendId,
  sessionId: mendId,
  session_ids: mendIds,
  until: mendCondition,
  stop: mendCondition,
  env: coerceVariables,
  resize: mendSize,
};
