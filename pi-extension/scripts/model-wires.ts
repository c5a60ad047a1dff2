/**
 * How the scripted model's answers are streamed by the two APIs that it speaks.
 */
import type { Answer, Asked, ScriptedUsage } from "./model-server.ts";

/** What is counted where an answer says nothing about it. */
export const PLAIN_USAGE: ScriptedUsage = { prompt: 100, completion: 10 };

/** How an API streams its answers. */
export interface Wire {
  /** The answer as lines of an event stream. */
  lines: (asked: Asked, answer: Answer) => Iterable<string>;
  /** What ends a whole answer. */
  last: string;
}

/** openai-completions. */
export const COMPLETIONS: Wire = {
  *lines(asked, answer) {
    for (const chunk of chunksOf(asked, answer)) yield `data: ${JSON.stringify(chunk)}\n\n`;
  },
  last: "data: [DONE]\n\n",
};

/** anthropic-messages. */
export const MESSAGES: Wire = {
  *lines(asked, answer) {
    for (const event of messagesEvents(asked, answer)) {
      yield `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
    }
  },
  last: "",
};

/** Whether nothing comes after the text. */
export function endsEarly(answer: Answer): boolean {
  return answer.stall === "after-text" || answer.hangUp === true;
}

/** The answer as the provider would stream it. */
function* chunksOf(asked: Asked, answer: Answer): Generator<object> {
  const base = { id: `chatcmpl-${asked.number + 1}`, object: "chat.completion.chunk", created: 0 };
  const model = answer.model ?? asked.model;
  const piece = (delta: object, finish: string | null = null) => ({
    ...base,
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  yield piece({ role: "assistant", content: "" });
  for (const part of slices(answer.thinking, answer)) yield piece({ reasoning_content: part });
  for (const part of said(answer)) yield piece({ content: part });
  if (endsEarly(answer)) return;
  const calls = answer.calls ?? [];
  for (const [index, call] of calls.entries()) {
    const id = call.id ?? `call_${asked.number + 1}_${index}`;
    const head = { name: call.name, arguments: "" };
    yield piece({ tool_calls: [{ index, id, type: "function", function: head }] });
    for (const part of slices(JSON.stringify(call.args), answer)) {
      yield piece({ tool_calls: [{ index, function: { arguments: part } }] });
    }
  }
  yield piece({}, answer.finish ?? (calls.length > 0 ? "tool_calls" : "stop"));
  if (answer.usage === null) return;
  yield { ...base, model, choices: [], usage: completionsUsage(answer.usage ?? PLAIN_USAGE) };
}

/** The deltas of the text, as often as it is repeated. */
function* said(answer: Answer): Generator<string> {
  for (let times = 0; times < (answer.repeat ?? 1); times++) yield* slices(answer.text, answer);
}

function completionsUsage(usage: ScriptedUsage): object {
  return {
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    total_tokens: usage.prompt + usage.completion,
    prompt_tokens_details: {
      cached_tokens: usage.cached ?? 0,
      ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  };
}

/** `JSON.stringify` writes half a pair as an escape, so a cut pair reaches pi as it is. */
function slices(text: string | undefined, { chunk = 24, cut }: Answer): string[] {
  const units = cut === "units" ? (text ?? "").split("") : Array.from(text ?? "");
  const count = Math.ceil(units.length / chunk);
  return Array.from({ length: count }, (_, at) =>
    units.slice(at * chunk, (at + 1) * chunk).join(""));
}

/** An event of the stream; its type is told in the line above it too. */
interface MessagesEvent {
  type: string;
  [field: string]: unknown;
}

/** The events of one answer. */
function* messagesEvents(asked: Asked, answer: Answer): Generator<MessagesEvent> {
  const usage = answer.usage === null ? {} : messagesUsage(answer.usage ?? PLAIN_USAGE);
  yield {
    type: "message_start",
    message: {
      id: `msg_${asked.number + 1}`,
      type: "message",
      role: "assistant",
      model: answer.model ?? asked.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 0 },
    },
  };
  let index = 0;
  if (answer.thinking !== undefined) {
    yield* block(index++, { type: "thinking", thinking: "", signature: "" }, [
      ...slices(answer.thinking, answer).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: "c2lnbmVk" },
    ]);
  }
  if (answer.text !== undefined) {
    const deltas = [...said(answer)].map((text) => ({ type: "text_delta", text }));
    yield* block(index++, { type: "text", text: "" }, deltas);
  }
  if (endsEarly(answer)) return;
  const calls = answer.calls ?? [];
  for (const call of calls) {
    const id = call.id ?? `toolu_${asked.number + 1}_${index}`;
    const deltas = slices(JSON.stringify(call.args), answer).map((part) => ({
      type: "input_json_delta",
      partial_json: part,
    }));
    yield* block(index++, { type: "tool_use", id, name: call.name, input: {} }, deltas);
  }
  const stop = answer.finish ?? (calls.length > 0 ? "tool_use" : "end_turn");
  yield { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage };
  yield { type: "message_stop" };
}

function* block(index: number, begin: object, deltas: object[]): Generator<MessagesEvent> {
  yield { type: "content_block_start", index, content_block: begin };
  for (const delta of deltas) yield { type: "content_block_delta", index, delta };
  yield { type: "content_block_stop", index };
}

/** Input that came from no cache is counted apart here. */
function messagesUsage(usage: ScriptedUsage): object {
  const { prompt, cached = 0, cacheWrite = 0, completion, reasoning } = usage;
  return {
    input_tokens: prompt - cached - cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: completion,
    ...(reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
  };
}
