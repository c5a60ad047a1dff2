/** What the tools of all families are made of. */
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Call, HostContext, ToolResult } from "../pi/host.ts";
import type { ToolRenderers } from "../render/row.ts";
import { given, isObject } from "../text/values.ts";
import { checked, coerce, ownNames, prepared } from "./coerce.ts";
import type { ToolContext } from "./context.ts";
import { CommandFailed, failureText, isUnanswered, tellsOfLoss } from "./failures.ts";
import type { ToolSchema } from "./schema.ts";
import { stateOf } from "./state.ts";
import type { FamilyWords } from "./words.ts";

/** A call's arguments, brought into the tool's schema. */
export type Params = Record<string, unknown>;

/** Everything about a tool that is text. */
export interface ToolText {
  label: string;
  description: string;
  /** Without a snippet the tool is declared, but not named in the system prompt. */
  promptSnippet?: string;
  promptGuidelines: string[];
  parameters: ToolSchema;
}

/** A tool: what the model reads of it, how it is drawn, what it does. */
export interface Tool {
  name: string;
  text: ToolText;
  renderers: ToolRenderers;
  execute: (context: ToolContext, params: Params, call: Call) => Promise<ToolResult>;
}

/** Takes a tool and gives its definition for pi; `words` are those of its family. */
export function definition(context: ToolContext, words: FamilyWords, tool: Tool): ToolDefinition {
  const { name, text, renderers, execute } = tool;
  return {
    name,
    ...text,
    ...inOwnNames(text.parameters, renderers),
    // pi checks the arguments against the schema before execute: loose types are mended first.
    prepareArguments: (args) => prepared(text.parameters, args),
    execute: (toolCallId, args, signal, onUpdate, ctx) => {
      const call = { toolCallId, signal, onUpdate, ctx: (ctx ?? {}) as HostContext };
      const onFailure = (error: unknown) => {
        const about = sessionOf(context, coerce(text.parameters, args));
        const details = failedDetails(error, about);
        context.failures.note(toolCallId, { ...details, ...stateOf(name, details) });
      };
      return answered(context, words, onFailure, async () => {
        const params = checked(name, text.parameters, args);
        const { content, details } = await execute(context, params, call);
        return { content, details: { ...details, ...stateOf(name, details) } };
      });
    },
  };
}

/** The renderers of a tool, which are given a call's arguments by the names of this tool. */
function inOwnNames(schema: ToolSchema, renderers: ToolRenderers): ToolRenderers {
  const { renderCall, renderResult } = renderers;
  const named = (args: unknown) => (isObject(args) ? ownNames(schema, args) : args);
  return {
    ...renderers,
    renderCall: (args, theme, context) => renderCall(named(args), theme, context),
    renderResult: (result, options, theme, context) =>
      renderResult(result, options, theme, { ...context, args: named(context.args) }),
  };
}

/** What the details of a failed call say of the session that it was about; nothing where it was none. */
function sessionOf({ sessions }: ToolContext, { session_id, sessionId }: Params): object {
  const id = session_id ?? sessionId;
  const running = Number.isSafeInteger(id) && sessions.get(Number(id)) !== undefined;
  return { ...given({ session_id, sessionId }), running };
}

/** What a call whose cancel nobody has answered has started may run. */
function failedDetails(error: unknown, about: object): object {
  if (error instanceof CommandFailed) return error.details;
  return { status: "error", ...about, ...(isUnanswered(error) && { running: true }) };
}

/**
 * Runs one call. A failure becomes one clear error for the model; the first answer after a restart
 * of execd says that earlier sessions are gone.
 */
async function answered(
  { execd }: Pick<ToolContext, "execd">,
  words: FamilyWords,
  onFailure: (error: unknown) => void,
  call: () => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    const result = await call();
    const note = execd.takeRestartNote();
    return note === undefined ? result : withNote(result, note);
  } catch (error) {
    onFailure(error);
    // Who is told that execd is gone is told no more by that.
    const note = tellsOfLoss(error) ? undefined : execd.takeRestartNote();
    const message = failureText(error, words);
    throw new Error(note === undefined ? message : `${message} (${note})`, { cause: error });
  }
}

function withNote(result: ToolResult, note: string): ToolResult {
  const { content, details } = prefixed(result, `[${note}]\n`);
  return { content, details: { ...details, restart_note: note } };
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
