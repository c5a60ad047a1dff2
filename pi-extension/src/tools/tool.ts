/** What the tools of all surfaces are made of. */
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import { type ToolSchema, coerce } from "../coerce.ts";
import type { Call, HostContext, ToolResult } from "../host.ts";
import type { Instance } from "../instance.ts";
import type { ToolRenderers } from "../render/row.ts";
import type { SurfaceWords } from "./words.ts";

/** A call's arguments, brought into the tool's schema. */
export type Params = Record<string, unknown>;

/** Everything about a tool that is text. */
export interface ToolText {
  label: string;
  description: string;
  /** Without one the tool is declared, but not named in the system prompt. */
  promptSnippet?: string;
  promptGuidelines: string[];
  parameters: ToolSchema;
}

/** A tool: what the model reads of it, how it is drawn, what it does. */
export interface Tool {
  name: string;
  text: ToolText;
  renderers: ToolRenderers;
  execute: (instance: Instance, params: Params, call: Call) => Promise<ToolResult>;
}

/** Takes a tool and gives its definition for pi; `words` are those of its surface. */
export function definition(instance: Instance, words: SurfaceWords, tool: Tool): ToolDefinition {
  const { name, text, renderers, execute } = tool;
  return {
    name,
    ...text,
    ...renderers,
    // pi checks the arguments against the schema before execute: loose types are mended first.
    prepareArguments: (args) => coerce(text.parameters, args),
    execute: (toolCallId, args, signal, onUpdate, ctx) => {
      const call = { toolCallId, signal, onUpdate, ctx: (ctx ?? {}) as HostContext };
      const params = coerce(text.parameters, args);
      return instance.run(words, () => execute(instance, params, call));
    },
  };
}

/** Takes the text for the model and the fields for all others, and gives the result for pi. */
export function answer(text: string, details: object): ToolResult {
  return { content: [{ type: "text", text }], details };
}

/** A text for the model in three parts: facts, the output of a command, what else is said. */
export interface Told {
  head: string;
  output: string;
  foot: string;
}

/**
 * Takes a text with output in it and the other fields. pi's session file keeps both, so that the
 * output stands in the text alone, and `output_at` tells renderers where: `[from, to]`.
 */
export function outputAnswer({ head, output, foot }: Told, details: object): ToolResult {
  const output_at = [head.length, head.length + output.length];
  return answer(`${head}${output}${foot}`, { ...details, output_at });
}

/** Puts words before the text of a result. */
export function prefixed(result: ToolResult, words: string): ToolResult {
  const [first, ...others] = result.content;
  const { output_at: at, ...details } = result.details as { output_at?: number[] };
  return {
    content: [{ type: "text", text: `${words}${first?.text ?? ""}` }, ...others],
    details: { ...details, ...(at && { output_at: at.map((place) => place + words.length) }) },
  };
}

/** The fields of `fields` that are there: absent ones are left out, never undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}
