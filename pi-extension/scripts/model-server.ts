/**
 * A scripted model on loopback: what pi needs of an OpenAI-compatible server (openai-completions)
 * and of one like Anthropic's (anthropic-messages), and ways to stall and to fail.
 *
 * It is used to capture fixture streams (capture-streams.ts) and by the tests of `agent_execute`.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { COMPLETIONS, endsEarly, MESSAGES, PLAIN_USAGE } from "./model-wires.ts";
import type { Wire } from "./model-wires.ts";

export { PLAIN_USAGE } from "./model-wires.ts";

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
  /** What the answer says that it used; null: it says nothing of it. */
  usage?: ScriptedUsage | null;
  /** The provider's finish_reason (stop_reason); by default that of calls, or of a plain end. */
  finish?: string;
  /** The model's name in the answer, where it is another one than was asked. */
  model?: string;
  /** Characters in one delta; UTF-16 units where `cut` is "units", so that pairs are cut. */
  chunk?: number;
  cut?: "characters" | "units";
  /** Milliseconds between two deltas. */
  pace?: number;
  /** An HTTP error in place of an answer. */
  status?: number;
  /** With `status`: the `error` of its body, as providers spell them. */
  error?: { message: string; type?: string; code?: string };
  /** With `status`: the seconds of a Retry-After header. */
  retryAfter?: number;
  /** Where the model falls silent until the client hangs up. */
  stall?: "before-headers" | "before-first-delta" | "after-text";
  /** The connection is cut after the text, or before there is any answer. */
  hangUp?: boolean | "before-headers";
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
  /** Whether the answer is to be the summary of a compaction. */
  isSummary: boolean;
  /** How many requests for other answers came before it. */
  turn: number;
  /** The whole body, for fields that only one test looks at. */
  body: Record<string, unknown>;
  /** Whether the client hung up before the answer was complete. */
  hungUp: boolean;
}

/** What is answered: one after the other, or as a function finds. */
export type Script = Answer[] | ((asked: Asked) => Answer);

/** What stands in the first message of a request for a compaction's summary, in every version. */
const SUMMARY_PROMPT = /context summarization assistant/;

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
  /** The server's own books: what each answer used that was sent to its end. */
  readonly billed: ScriptedUsage[] = [];
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
    return `${this.origin}/v1`;
  }

  /** The base URL of a provider whose API is anthropic-messages. */
  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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
      isSummary: SUMMARY_PROMPT.test(JSON.stringify(body["system"] ?? body["messages"])),
      turn: this.asked.filter((one) => !one.isSummary).length,
      body,
      hungUp: false,
    };
    this.asked.push(asked);
    response.once("close", () => (asked.hungUp = !response.writableFinished));
    const answer = this.#answerTo(asked);
    const { pathname } = new URL(request.url ?? "/", this.origin);
    const wire = pathname.endsWith("/messages") ? MESSAGES : COMPLETIONS;
    const isWhole = await reply(asked, answer, wire, response);
    if (isWhole && answer.usage !== null) this.billed.push(answer.usage ?? PLAIN_USAGE);
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
  const list = (tools ?? []) as { name?: string; function?: { name?: string } }[];
  return list.map((tool) => tool.function?.name ?? tool.name ?? "").sort();
}

/** Answers; says whether the answer was sent to its end. */
async function reply(
  asked: Asked,
  answer: Answer,
  wire: Wire,
  response: ServerResponse,
): Promise<boolean> {
  if (answer.hangUp === "before-headers") {
    response.destroy();
    return false;
  }
  if (answer.status !== undefined) {
    const { message = `scripted error ${answer.status}`, ...more } = answer.error ?? {};
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (answer.retryAfter !== undefined) headers["retry-after"] = String(answer.retryAfter);
    response.writeHead(answer.status, headers);
    response.end(JSON.stringify({ error: { message, ...more } }));
    return false;
  }
  if (answer.stall === "before-headers") return false;
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (answer.stall === "before-first-delta") {
    response.flushHeaders();
    return false;
  }
  for (const line of wire.lines(asked, answer)) {
    if (response.destroyed) return false;
    response.write(line);
    if (answer.pace !== undefined) await delay(answer.pace);
  }
  // An orderly end of the connection in the middle of the body: what was written arrives.
  if (answer.hangUp === true) response.socket?.end();
  else if (answer.stall === undefined) response.end(wire.last);
  return !endsEarly(answer);
}

/** Dollars per million tokens, all different so that a mixed-up kind shows in the sum. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** The provider and the model under which pi knows this server. */
export const PROVIDER = "fake";
export const MODEL_ID = "scripted";

/** What a test may change of the model in models.json. */
export interface ModelEntry {
  id?: string;
  contextWindow?: number;
  /** How long a prompt stays in the provider's cache, in seconds. */
  promptCache?: { short: number };
}

/** A models.json with this server as the provider; `apiKey` is what pi would send by itself. */
export function modelsJson(
  url: string,
  provider = PROVIDER,
  apiKey = "not-a-secret",
  { api = "openai-completions", ...more }: ModelEntry & { api?: string } = {},
): string {
  const model = {
    id: MODEL_ID,
    name: "Scripted",
    reasoning: true,
    input: ["text"],
    contextWindow: 1_000_000,
    maxTokens: 4096,
    cost: PRICES,
    ...more,
  };
  const compat = { supportsDeveloperRole: false, supportsReasoningEffort: true };
  const entry = { baseUrl: url, api, apiKey, compat, models: [model] };
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
