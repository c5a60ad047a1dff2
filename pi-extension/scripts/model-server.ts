/**
 * A scripted model on loopback: what pi needs of an OpenAI-compatible server, and ways to stall.
 *
 * It is used to capture fixture streams (capture-streams.ts) and by the tests of `agent_execute`.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** One tool call of the model. */
export interface ScriptedCall {
  name: string;
  args: Record<string, unknown>;
  id?: string;
}

/** What an answer cost, as the provider counts: `completion` includes `reasoning`. */
export interface ScriptedUsage {
  prompt: number;
  cached?: number;
  cacheWrite?: number;
  completion: number;
  reasoning?: number;
}

/** One answer of the model. All of it is optional: an empty one is an empty message. */
export interface Answer {
  thinking?: string;
  text?: string;
  calls?: ScriptedCall[];
  usage?: ScriptedUsage;
  /** The provider's finish_reason; by default "tool_calls" with calls, else "stop". */
  finish?: string;
  /** Characters in one delta; UTF-16 units where `cut` is "units", so that pairs are cut. */
  chunk?: number;
  cut?: "characters" | "units";
  /** Milliseconds between two deltas. */
  pace?: number;
  /** An HTTP error in place of an answer. */
  status?: number;
  /** Where the model falls silent until the client hangs up. */
  stall?: "before-headers" | "before-first-delta" | "after-text";
  /** The connection is cut after the text. */
  hangUp?: boolean;
  /** How often the text is said: a model that does not come to an end. */
  repeat?: number;
}

/** A message of a request. */
export interface AskedMessage {
  role: string;
  content: string | { type: string; text?: string }[] | null;
}

/** What the server was asked. */
export interface Asked {
  /** From 0, over the life of the server. */
  number: number;
  authorization: string | undefined;
  model: string;
  /** Names of the tools that were offered, sorted. */
  tools: string[];
  messages: AskedMessage[];
  /** The whole body, for fields that only one test looks at. */
  body: Record<string, unknown>;
  /** Whether the client hung up before the answer was complete. */
  hungUp: boolean;
}

/** What is answered: one after the other, or as a function finds. */
export type Script = Answer[] | ((asked: Asked) => Answer);

/** What is counted where an answer says nothing about it. */
export const PLAIN_USAGE: ScriptedUsage = { prompt: 100, completion: 10 };

/** What a script that is used up says. */
export const USED_UP: Answer = { text: "(script exhausted)" };

/** The text of a message. */
export function textOfMessage(message: AskedMessage | undefined): string {
  const content = message?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? "").join("");
}

/** The server. `start` it, give pi its `url`, `close` it. */
export class ModelServer {
  readonly asked: Asked[] = [];
  readonly #script: Script;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  });

  constructor(script: Script) {
    this.#script = script;
  }

  /** Listens on a free port of loopback. */
  static async start(script: Script): Promise<ModelServer> {
    const server = new ModelServer(script);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  /** The base URL for pi's models.json. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Stops listening and cuts what is still connected. */
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const asked: Asked = {
      number: this.asked.length,
      authorization: request.headers.authorization,
      model: String(body["model"]),
      tools: toolNames(body["tools"]),
      messages: body["messages"] as AskedMessage[],
      body,
      hungUp: false,
    };
    this.asked.push(asked);
    response.once("close", () => (asked.hungUp = !response.writableFinished));
    await reply(asked, this.#answerTo(asked), response);
  }

  #answerTo(asked: Asked): Answer {
    if (typeof this.#script === "function") return this.#script(asked);
    return this.#script[asked.number] ?? USED_UP;
  }
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString() || "{}") as Record<string, unknown>;
}

function toolNames(tools: unknown): string[] {
  const list = (tools ?? []) as { function?: { name?: string } }[];
  return list.map((tool) => tool.function?.name ?? "").sort();
}

async function reply(asked: Asked, answer: Answer, response: ServerResponse): Promise<void> {
  if (answer.status !== undefined) {
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: `scripted error ${answer.status}` } }));
    return;
  }
  if (answer.stall === "before-headers") return;
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (answer.stall === "before-first-delta") {
    response.flushHeaders();
    return;
  }
  for (const chunk of chunksOf(asked, answer)) {
    if (response.destroyed) return;
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (answer.pace !== undefined) await delay(answer.pace);
  }
  // An orderly end of the connection in the middle of the body: what was written arrives.
  if (answer.hangUp === true) response.socket?.end();
  else if (answer.stall === undefined) response.end("data: [DONE]\n\n");
}

/** The answer as the provider would stream it. */
function* chunksOf(asked: Asked, answer: Answer): Generator<object> {
  const base = { id: `chatcmpl-${asked.number + 1}`, object: "chat.completion.chunk", created: 0 };
  const piece = (delta: object, finish: string | null = null) => ({
    ...base,
    model: asked.model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  yield piece({ role: "assistant", content: "" });
  for (const part of slices(answer.thinking, answer)) yield piece({ reasoning_content: part });
  for (let said = 0; said < (answer.repeat ?? 1); said++) {
    for (const part of slices(answer.text, answer)) yield piece({ content: part });
  }
  if (answer.stall === "after-text" || answer.hangUp === true) return;
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
  yield { ...base, model: asked.model, choices: [], usage: wireUsage(answer.usage ?? PLAIN_USAGE) };
}

function wireUsage(usage: ScriptedUsage): object {
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

/** Dollars per million tokens, all different so that a mixed-up kind shows in the sum. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** The provider and the model under which pi knows this server. */
export const PROVIDER = "fake";
export const MODEL_ID = "scripted";

/** A models.json with this server as the provider; `apiKey` is what pi would send by itself. */
export function modelsJson(url: string, provider = PROVIDER, apiKey = "not-a-secret"): string {
  const model = {
    id: MODEL_ID,
    name: "Scripted",
    reasoning: true,
    input: ["text"],
    contextWindow: 1_000_000,
    maxTokens: 4096,
    cost: PRICES,
  };
  const compat = { supportsDeveloperRole: false, supportsReasoningEffort: true };
  const entry = { baseUrl: url, api: "openai-completions", apiKey, compat, models: [model] };
  return JSON.stringify({ providers: { [provider]: entry } });
}

/** Settings of pi that keep it off the network and make its retries quick. */
export const QUIET_SETTINGS = {
  quietStartup: true,
  theme: "dark",
  // Without provider.maxRetries pi 0.73 tries twice more before it tells of a failure.
  retry: { enabled: true, maxRetries: 2, baseDelayMs: 20, provider: { maxRetries: 0 } },
  defaultProjectTrust: "always",
  enableInstallTelemetry: false,
};

/** pi would download these, and warns when it may not: empty ones take their place. */
export const STUBBED_PROGRAMS = ["fd", "rg"];
