/**
 * How a run of pi fails: what providers answer, and what goes wrong around pi. capture-errors.ts
 * runs each and keeps what pi wrote. The bodies are those that providers send, with other names in
 * the place of accounts.
 */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export type Api = "openai-completions" | "anthropic-messages" | "google-generative-ai";

/** What the server does with a request. */
export interface Reply {
  /** 200 unless told. */
  status?: number;
  headers?: Record<string, string>;
  /** JSON unless it is a text. */
  body?: object | string;
  /** When the connection is cut: before anything is said, or behind the body. */
  cut?: "first" | "last";
  /** Nothing is answered: pi is sent this signal. */
  signal?: NodeJS.Signals;
}

/** Where a case is set up. */
export interface Place {
  home: string;
  agentDir: string;
  cli: string;
  port: number;
  closedPort: number;
}

/** What is changed of a run. */
export interface Changes {
  env?: Record<string, string>;
  args?: string[];
  nodeArgs?: string[];
  /** Another program in the place of pi's. */
  cli?: string;
  /** The user that pi runs as. */
  uid?: number;
}

export interface ErrorCase {
  what: string;
  /**
   * The error_kind that is expected: of all versions, or by the beginning of a version. `none`
   * where pi tells of no failure.
   */
  kind: string | Record<string, string>;
  api?: Api;
  reply?: Reply;
  /** Another address than the server's: PORT is the server's, CLOSED one where nobody listens. */
  url?: string;
  /** Of --model, unless it is the scripted one. */
  model?: string;
  /** Whether pi has no models.json. */
  noModels?: boolean;
  change?: (place: Place) => Changes;
}

const openai = (status: number, error: object, headers = {}): Reply =>
  ({ status, headers, body: { error } });
const anthropic = (status: number, type: string, message: string, headers = {}): Reply => ({
  status,
  headers: { "request-id": "req_011CSHoEeqs5C35K2UUqR7Fy", ...headers },
  body: { type: "error", error: { type, message }, request_id: "req_011CSHoEeqs5C35K2UUqR7Fy" },
});
const google = (code: number, status: string, message: string, details: object[] = []): Reply =>
  ({ status: code, body: { error: { code, message, status, details } } });
const page = (status: number, title: string): Reply => ({
  status,
  headers: { "content-type": "text/html" },
  body: `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1>` +
    "</center>\r\n<hr><center>nginx/1.27.0</center>\r\n</body>\r\n</html>\r\n",
});
const events = (...data: (object | string)[]): Reply => ({
  headers: { "content-type": "text/event-stream" },
  body: data.map((one) => {
    const name = typeof one === "object" && "type" in one ? `event: ${String(one.type)}\n` : "";
    return `${name}data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`;
  }).join(""),
});

const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 0,
  model: "scripted",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const ANTHROPIC_START = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "scripted",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  },
};
const anthropicStop = (reason: string) =>
  ({ type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 5 } });

const WELL = events(chunk({ role: "assistant", content: "Hello" }), chunk({}, "stop"), "[DONE]");

const RATE_LIMITED = {
  message: "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit " +
    "30000, Used 29512, Requested 1429. Please try again in 1.882s. Visit " +
    "https://platform.openai.com/account/rate-limits to learn more.",
  type: "tokens",
  param: null,
  code: "rate_limit_exceeded",
};
const ANTHROPIC_LIMIT = "This request would exceed your organization's rate limit of 50 requests " +
  "per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits.";
const GOOGLE_QUOTA = "You exceeded your current quota, please check your plan and billing " +
  "details. For more information on this error, head to: " +
  "https://ai.google.dev/gemini-api/docs/rate-limits.";

const OPENAI: Record<string, ErrorCase> = {
  "openai-401": {
    what: "a wrong key",
    kind: "auth",
    reply: openai(401, {
      message: "Incorrect API key provided: sk-abc***xyz. You can find your API key at " +
        "https://platform.openai.com/account/api-keys.",
      type: "invalid_request_error",
      param: null,
      code: "invalid_api_key",
    }),
  },
  "openai-403": {
    what: "a country that is not served",
    kind: "auth",
    reply: openai(403, {
      code: "unsupported_country_region_territory",
      message: "Country, region, or territory not supported",
      param: null,
      type: "request_forbidden",
    }),
  },
  "openai-404": {
    what: "a model that is not there",
    kind: "model_not_found",
    reply: openai(404, {
      message: "The model `gpt-5-nope` does not exist or you do not have access to it.",
      type: "invalid_request_error",
      param: null,
      code: "model_not_found",
    }),
  },
  "openai-429": { what: "too many tokens in a minute", kind: "rate_limit", reply: openai(429, RATE_LIMITED) },
  "openai-429-retry-after": {
    what: "the same with a time to wait",
    kind: "rate_limit",
    reply: openai(429, RATE_LIMITED, { "retry-after": "1" }),
  },
  "openai-429-retry-after-long": {
    what: "the same with an hour to wait",
    kind: "rate_limit",
    reply: openai(429, RATE_LIMITED, { "retry-after": "3600" }),
  },
  "openai-429-quota": {
    what: "an account without credit",
    kind: "auth",
    reply: openai(429, {
      message: "You exceeded your current quota, please check your plan and billing details. For " +
        "more information on this error, read the docs: " +
        "https://platform.openai.com/docs/guides/error-codes/api-errors.",
      type: "insufficient_quota",
      param: null,
      code: "insufficient_quota",
    }),
  },
  "openai-429-too-large": {
    what: "one request over the limit of a minute",
    kind: "context_overflow",
    reply: openai(429, {
      message: "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit " +
        "30000, Requested 60012. The input or output tokens must be reduced in order to run " +
        "successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
      type: "tokens",
      param: null,
      code: "rate_limit_exceeded",
    }),
  },
  "openai-500": {
    what: "an error of the server",
    kind: "overloaded",
    reply: openai(500, {
      message: "The server had an error while processing your request. Sorry about that!",
      type: "server_error",
      param: null,
      code: null,
    }),
  },
  "openai-503": {
    what: "an overloaded server",
    kind: "overloaded",
    reply: openai(503, {
      message: "The engine is currently overloaded, please try again later",
      type: "server_error",
      param: null,
      code: null,
    }),
  },
  "openai-400-context": {
    what: "a conversation that is too long",
    kind: "context_overflow",
    reply: openai(400, {
      message: "This model's maximum context length is 128000 tokens. However, your messages " +
        "resulted in 140429 tokens. Please reduce the length of the messages.",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    }),
  },
  "openai-400": {
    what: "a request that is wrong",
    kind: "other",
    reply: openai(400, {
      message: "Unsupported parameter: 'max_tokens' is not allowed with this value.",
      type: "invalid_request_error",
      param: "max_tokens",
      code: "unsupported_parameter",
    }),
  },
  "openai-content-filter": {
    what: "an answer that ends by finish_reason content_filter",
    kind: "refusal",
    reply: events(chunk({ role: "assistant", content: "I" }), chunk({}, "content_filter"), "[DONE]"),
  },
  "azure-400-content-filter": {
    what: "a prompt that a filter has refused",
    kind: "refusal",
    reply: openai(400, {
      message: "The response was filtered due to the prompt triggering Azure OpenAI's content " +
        "management policy. Please modify your prompt and retry.",
      type: null,
      param: "prompt",
      code: "content_filter",
      status: 400,
      innererror: { code: "ResponsibleAIPolicyViolation" },
    }),
  },
};

const ROUTERS: Record<string, ErrorCase> = {
  "openrouter-401": {
    what: "a router's wrong key",
    kind: "auth",
    reply: openai(401, { message: "No auth credentials found", code: 401 }),
  },
  "openrouter-402": {
    what: "a router's account without credit",
    kind: "auth",
    reply: openai(402, {
      message: "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
      code: 402,
    }),
  },
  "openrouter-400-model": {
    what: "a name that is no model's",
    kind: "model_not_found",
    reply: openai(400, { message: "vendor/nope is not a valid model ID", code: 400 }),
  },
  "openrouter-404": {
    what: "a model that nobody serves",
    kind: "model_not_found",
    reply: openai(404, { message: "No endpoints found for vendor/nope.", code: 404 }),
  },
  "openrouter-403-moderation": {
    what: "a prompt that a moderation has flagged",
    kind: "refusal",
    reply: openai(403, {
      message: "vendor/model requires moderation on Vendor. Your input was flagged for \"violence\"",
      code: 403,
      metadata: { reasons: ["violence"], flagged_input: "…", provider_name: "Vendor" },
    }),
  },
  "openrouter-429-upstream": {
    what: "a limit behind a router",
    kind: "rate_limit",
    reply: openai(429, {
      message: "Provider returned error",
      code: 429,
      metadata: {
        raw: "vendor/model:free is temporarily rate-limited upstream. Please retry shortly.",
        provider_name: "Vendor",
      },
    }),
  },
  "openrouter-midway": {
    what: "an error in the middle of a router's stream; its code is lost on the way",
    kind: "network",
    reply: events(chunk({ role: "assistant", content: "I" }), {
      ...chunk({ content: "" }, "error"),
      error: { code: 502, message: "Provider disconnected unexpectedly" },
    }),
  },
  "kimi-429-overloaded": {
    what: "an overloaded engine, told by 429",
    kind: "overloaded",
    reply: openai(429, {
      message: "The engine is currently overloaded, please try again later",
      type: "engine_overloaded_error",
    }),
  },
  "llama-400-context": {
    what: "a conversation that is too long for a local server",
    kind: "context_overflow",
    reply: openai(400, {
      code: 400,
      message: "the request exceeds the available context size, try increasing it",
      type: "exceed_context_size_error",
      n_prompt_tokens: 9429,
      n_ctx: 8192,
    }),
  },
  "groq-413": {
    what: "a request that is over the limit of a minute, told by 413",
    kind: "context_overflow",
    reply: openai(413, {
      message: "Request too large for model `m` in organization `org-1` service tier `on_demand` " +
        "on tokens per minute (TPM): Limit 6000, Requested 7429, please reduce your message size " +
        "and try again.",
      type: "tokens",
      code: "rate_limit_exceeded",
    }),
  },
  "proxy-502": { what: "a proxy's page", kind: "overloaded", reply: page(502, "502 Bad Gateway") },
  "proxy-504": { what: "a proxy's page", kind: "overloaded", reply: page(504, "504 Gateway Time-out") },
  "no-body-413": { what: "413 without a body", kind: "context_overflow", reply: { status: 413 } },
  "no-body-429": { what: "429 without a body", kind: "rate_limit", reply: { status: 429 } },
};

const ANTHROPIC: Record<string, ErrorCase> = {
  "anthropic-401": {
    what: "a wrong key",
    kind: "auth",
    reply: anthropic(401, "authentication_error", "invalid x-api-key"),
  },
  "anthropic-403": {
    what: "a key that may not do this",
    kind: "auth",
    reply: anthropic(403, "permission_error", "Your API key does not have permission to use the specified resource."),
  },
  "anthropic-404": {
    what: "a model that is not there",
    kind: "model_not_found",
    reply: anthropic(404, "not_found_error", "model: claude-nope"),
  },
  "anthropic-413": {
    what: "a request of too many bytes",
    kind: "context_overflow",
    reply: anthropic(413, "request_too_large", "Request exceeds the maximum size"),
  },
  "anthropic-429": {
    what: "too many requests in a minute",
    kind: "rate_limit",
    reply: anthropic(429, "rate_limit_error", ANTHROPIC_LIMIT),
  },
  "anthropic-429-retry-after": {
    what: "the same with a time to wait",
    kind: "rate_limit",
    reply: anthropic(429, "rate_limit_error", ANTHROPIC_LIMIT, { "retry-after": "1" }),
  },
  "anthropic-500": {
    what: "an error of the server",
    kind: "overloaded",
    reply: anthropic(500, "api_error", "Internal server error"),
  },
  "anthropic-529": {
    what: "an overloaded server",
    kind: "overloaded",
    reply: anthropic(529, "overloaded_error", "Overloaded"),
  },
  "anthropic-400-context": {
    what: "a conversation that is too long",
    kind: "context_overflow",
    reply: anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
  },
  "anthropic-400-credit": {
    what: "an account without credit",
    kind: "auth",
    reply: anthropic(400, "invalid_request_error", "Your credit balance is too low to access the " +
      "Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
  },
  "anthropic-400": {
    what: "a request that is wrong",
    kind: "other",
    reply: anthropic(400, "invalid_request_error", "messages.1.content.0: unexpected `tool_use_id`"),
  },
  "anthropic-refusal": {
    what: "an answer that ends by stop_reason refusal",
    kind: { "0.73": "other", "": "refusal" },
    reply: events(ANTHROPIC_START, anthropicStop("refusal"), { type: "message_stop" }),
  },
  "anthropic-midway": {
    what: "an error in the middle of a stream",
    kind: "overloaded",
    reply: events(ANTHROPIC_START, {
      type: "error",
      error: { details: null, type: "overloaded_error", message: "Overloaded" },
    }),
  },
  "anthropic-ends": {
    what: "a stream that ends in its middle",
    kind: "network",
    reply: events(ANTHROPIC_START),
  },
};

const GOOGLE: Record<string, ErrorCase> = {
  "google-429": {
    what: "the limit of a minute",
    kind: "rate_limit",
    reply: google(429, "RESOURCE_EXHAUSTED", GOOGLE_QUOTA, [
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "39s" },
    ]),
  },
  "google-400-key": {
    what: "a wrong key",
    kind: "auth",
    reply: google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" },
    ]),
  },
  "google-400-context": {
    what: "a conversation that is too long",
    kind: "context_overflow",
    reply: google(400, "INVALID_ARGUMENT", "The input token count (1196265) exceeds the maximum " +
      "number of tokens allowed (1048575)."),
  },
  "google-404": {
    what: "a model that is not there",
    kind: "model_not_found",
    reply: google(404, "NOT_FOUND", "models/gemini-nope is not found for API version v1beta, or is " +
      "not supported for generateContent."),
  },
  "google-503": {
    what: "an overloaded server",
    kind: "overloaded",
    reply: google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
  },
  "google-safety": {
    what: "an answer that ends by finishReason SAFETY",
    kind: { "0.73": "other", "": "refusal" },
    reply: events({ candidates: [{ content: { parts: [], role: "model" }, finishReason: "SAFETY" }] }),
  },
};

const CONNECTIONS: Record<string, ErrorCase> = {
  refused: { what: "nobody listens", kind: "network", url: "http://127.0.0.1:CLOSED/v1" },
  "refused-anthropic": {
    what: "nobody listens",
    kind: "network",
    api: "anthropic-messages",
    url: "http://127.0.0.1:CLOSED",
  },
  "no-host": { what: "a host without an address", kind: "network", url: "http://models.invalid/v1" },
  "no-tls": { what: "a server that speaks no TLS", kind: "network", url: "https://127.0.0.1:PORT/v1" },
  "hang-up": { what: "a connection that is cut at once", kind: "network", reply: { cut: "first" } },
  "hang-up-anthropic": {
    what: "a connection that is cut at once",
    kind: "network",
    api: "anthropic-messages",
    reply: { cut: "first" },
  },
  "hang-up-midway": {
    what: "a connection that is cut in the middle of an answer",
    kind: "network",
    reply: { ...events(chunk({ role: "assistant", content: "I" })), cut: "last" },
  },
  "ends-midway": {
    what: "a stream that ends in its middle",
    kind: { "0.73": "none", "": "network" },
    reply: events(chunk({ role: "assistant", content: "I" })),
  },
  "no-json": {
    what: "an answer with 200 that is a page",
    kind: { "0.73": "none", "": "network" },
    reply: { ...page(200, "Welcome"), status: 200 },
  },
  "broken-json": {
    what: "an event that is no JSON",
    kind: "network",
    api: "anthropic-messages",
    reply: events(ANTHROPIC_START, "{\"type\":\"content_block_delta\",\"delta\":{\"te"),
  },
};

/** Extensions that fail, each as a file of a home. */
const extension = (source: string) => ({ home }: Place): Changes => {
  const path = join(home, "extension.ts");
  writeFileSync(path, source);
  return { args: ["-e", path] };
};

/** A file of pi's that is cut in its middle; of a bundle it is one of a few long lines. */
function cutProgram({ home, cli }: Place): Changes {
  const dir = dirname(cli);
  const sources = readdirSync(dir).filter((name) => /\.m?js$/.test(name));
  const size = (name: string) => statSync(join(dir, name)).size;
  const largest = sources.sort((one, other) => size(other) - size(one))[0] ?? "";
  const path = join(home, "cut.mjs");
  const source = readFileSync(join(dir, largest), "utf8");
  writeFileSync(path, `${source.slice(0, source.length / 2)} =>=> `);
  return { cli: path };
}

const SETUPS: Record<string, ErrorCase> = {
  "no-key": { what: "no key for the provider", kind: "auth", model: "anthropic/claude-haiku-4-5", noModels: true },
  "no-key-openai": { what: "no key for the provider", kind: "auth", model: "openai/gpt-4o", noModels: true },
  "unknown-model": {
    what: "a model that is not in models.json, and that the server does not know either",
    kind: "model_not_found",
    model: "fake/nope",
    reply: openai(404, { message: "The model `nope` does not exist", code: "model_not_found" }),
  },
  "unknown-provider": { what: "a provider that pi does not know", kind: "model_not_found", model: "nope/nope" },
  "unknown-provider-no-models": {
    what: "the same without any key",
    kind: "model_not_found",
    model: "nope/nope",
    noModels: true,
  },
  "bad-models-json": {
    what: "a models.json that is no JSON",
    kind: "model_not_found",
    change: ({ agentDir }) => {
      writeFileSync(join(agentDir, "models.json"), "{\"providers\": nope");
      return {};
    },
  },
  "extension-throws": {
    what: "an extension that throws when it is loaded",
    kind: "not_started",
    change: extension("export default () => { throw new Error('no luck'); };\n"),
  },
  "extension-syntax": {
    what: "an extension that is no program",
    kind: "not_started",
    change: extension("export default (pi => {\n"),
  },
  "extension-missing": {
    what: "an extension that is not there",
    kind: "not_started",
    change: ({ home }) => ({ args: ["-e", join(home, "nope.ts")] }),
  },
  "wrong-session": {
    what: "a session that is not there",
    kind: "not_started",
    change: () => ({ args: ["--session", "01a1fd1b-0000-7593-9746-70e3fc570efb"] }),
  },
  "unknown-flag": { what: "a flag that pi does not know", kind: "not_started", change: () => ({ args: ["--nope=1"] }) },
  "missing-file": {
    what: "a file of the prompt that is not there",
    kind: "not_started",
    change: ({ home }) => ({ args: [`@${join(home, "nope.txt")}`] }),
  },
  "lock-auth": {
    what: "auth.json is held by another pi",
    kind: { "0.73": "none", "": "not_started" },
    reply: WELL,
    change: ({ agentDir }) => hold(agentDir, "auth.json"),
  },
  "lock-settings": {
    what: "settings.json is held by another pi",
    kind: "none",
    reply: WELL,
    change: ({ agentDir }) => hold(agentDir, "settings.json"),
  },
  "agent-dir-closed": {
    what: "an agent directory that may not be read",
    kind: { "1.": "crash", "": "model_not_found" },
    change: ({ home, agentDir }) => {
      chmodSync(home, 0o755);
      chmodSync(agentDir, 0o000);
      // Root may read everything.
      return process.getuid?.() === 0 ? { uid: 65_534 } : {};
    },
  },
  "agent-dir-file": {
    what: "an agent directory that is a file",
    kind: { "1.": "crash", "": "model_not_found" },
    change: ({ home }) => {
      writeFileSync(join(home, "plain"), "");
      return { env: { PI_CODING_AGENT_DIR: join(home, "plain") } };
    },
  },
};

const CRASHES: Record<string, ErrorCase> = {
  uncaught: {
    what: "an exception of an extension that nobody catches",
    kind: "crash",
    change: extension("export default () => { setTimeout(() => { throw new Error('late'); }, 0); };\n"),
    reply: { signal: "SIGCONT" },
  },
  rejected: {
    what: "a promise of an extension that is rejected, and nobody looks",
    kind: "crash",
    change: extension("export default (pi) => { pi.on('agent_start', () => { void " +
      "fetch('http://models.invalid/'); }); };\n"),
    reply: { signal: "SIGCONT" },
  },
  "syntax-error": { what: "a program that is cut: node shows its source", kind: "crash", change: cutProgram },
  "no-module": {
    what: "a program whose parts are not there",
    kind: "crash",
    change: ({ home }) => {
      const path = join(home, "alone.mjs");
      writeFileSync(path, "import './nope.js';\n");
      return { cli: path };
    },
  },
  "out-of-memory": {
    what: "a heap that is too small",
    kind: "crash",
    change: () => ({ nodeArgs: ["--max-old-space-size=12"] }),
  },
  sigkill: { what: "SIGKILL while the model is asked", kind: "crash", reply: { signal: "SIGKILL" } },
  sigsegv: { what: "SIGSEGV while the model is asked", kind: "crash", reply: { signal: "SIGSEGV" } },
  sigterm: { what: "SIGTERM while the model is asked", kind: "crash", reply: { signal: "SIGTERM" } },
};

/** As proper-lockfile holds a file: by a directory beside it, whose time is young. */
function hold(agentDir: string, name: string): Changes {
  const path = join(agentDir, name);
  if (name === "auth.json") writeFileSync(path, "{}", { mode: 0o600 });
  const lock = `${path}.lock`;
  mkdirSync(lock);
  const later = Date.now() / 1000 + 3600;
  utimesSync(lock, later, later);
  return {};
}

const withApi = (api: Api, cases: Record<string, ErrorCase>) =>
  Object.fromEntries(Object.entries(cases).map(([name, one]) => [name, { api, ...one }]));

/** All of them by their names. */
export const CASES: Record<string, ErrorCase> = {
  ...OPENAI,
  ...ROUTERS,
  ...withApi("anthropic-messages", ANTHROPIC),
  ...withApi("google-generative-ai", GOOGLE),
  ...CONNECTIONS,
  ...SETUPS,
  ...CRASHES,
};
