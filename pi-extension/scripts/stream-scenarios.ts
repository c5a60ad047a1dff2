/**
 * What the scripted model says in each fixture stream. Small, with every kind of token and price.
 */
import { resolve } from "node:path";
import { USED_UP } from "./model-server.ts";
import type { Answer, ModelEntry, ScriptedCall, Script } from "./model-server.ts";

/** One captured run. */
export interface Scenario {
  /** A line for the table of fixtures. */
  what: string;
  prompt: string;
  /** A prompt that goes before it in the same run, with an answer of its own. */
  first?: string;
  answers: Script;
  /** What pi's --model says, where that is not the scripted model. */
  asked?: string;
  /** The API that the server is to speak. */
  api?: "openai-completions" | "anthropic-messages";
  /** What models.json says otherwise of the model. */
  model?: ModelEntry;
  /** An extension that is loaded. */
  extension?: string;
  /** Whether pi compacts, by COMPACTING. */
  compacts?: boolean;
}

/** Settings by which pi compacts a model of SMALL_CONTEXT when an answer has used 10,000 tokens. */
export const COMPACTING = {
  compaction: { enabled: true, reserveTokens: 10_000, keepRecentTokens: 1 },
};

/** The entry of such a model. */
export const SMALL_CONTEXT: ModelEntry = { contextWindow: 20_000 };

/** A summary with a price that differs from all answers. */
export const SUMMARY: Answer = {
  text: "## Goal\nLook.",
  usage: { prompt: 5_000, cached: 800, completion: 300, reasoning: 40 },
};

/** What providers say when a prompt is too long. */
export const OVERFLOW: Answer = {
  status: 400,
  error: {
    message: "This model's maximum context length is 20000 tokens. However, you requested 21000.",
    type: "invalid_request_error",
    code: "context_length_exceeded",
  },
};

/** What providers say when there were too many requests; to be tried again at once. */
export const RATE_LIMIT: Answer = {
  status: 429,
  retryAfter: 0,
  error: {
    message: "Rate limit reached for requests per min. Please try again in 20ms.",
    type: "requests",
    code: "rate_limit_exceeded",
  },
};

/** Answers one after the other, and this to each request for a summary. */
export function summarizing(answers: Answer[], summary: Answer = SUMMARY): Script {
  return ({ isSummary, turn }) => isSummary ? summary : answers[turn] ?? USED_UP;
}

const ANTHROPIC_OVERLOADED: Answer = {
  status: 529,
  error: { type: "overloaded_error", message: "Overloaded" },
};

const bash = (command: string): ScriptedCall => ({ name: "bash", args: { command } });
const HELLO = "Hello from the scripted model. Nothing to run here.";
const SERVER_ERROR: Answer = { status: 500 };
/** A model and settings by which pi compacts. */
const COMPACTED = { model: SMALL_CONTEXT, compacts: true };
/** A second prompt, so that a version which compacts between two prompts does. */
const TWO_PROMPTS = { first: "Look around first", prompt: "Now tell" };
const FULL: Answer = {
  text: "I have looked around.",
  usage: { prompt: 11_000, cached: 2_000, completion: 60 },
};
const TOLD: Answer = { text: "It is told.", usage: { prompt: 900, completion: 15 } };

/** By the name that the fixture's file has. */
export const SCENARIOS: Record<string, Scenario> = {
  "text": {
    what: "one plain answer, most of the prompt from the cache",
    prompt: "Say hello",
    answers: [{ text: HELLO, usage: { prompt: 1_200, cached: 1_000, completion: 40 } }],
  },
  "thinking": {
    what: "thinking, then text; reasoning tokens are part of the output",
    prompt: "Think first",
    answers: [{
      thinking: "The user wants a thought. I have one.",
      text: "I thought about it: yes.",
      usage: { prompt: 300, completion: 75, reasoning: 50 },
    }],
  },
  "tool-bash": {
    what: "one call of bash, then an answer",
    prompt: "Look",
    answers: [
      {
        text: "Let me look.",
        calls: [bash("printf 'alpha\\nbeta\\n'")],
        usage: { prompt: 500, completion: 30 },
      },
      {
        text: "The command printed alpha and beta.",
        usage: { prompt: 560, cached: 500, completion: 20 },
      },
    ],
  },
  "tools-parallel": {
    what: "two calls in one message that run side by side; the second ends first",
    prompt: "Do both",
    answers: [
      {
        calls: [
          bash("until [ -e second ]; do sleep 0.02; done; sleep 0.5; echo first"),
          bash("echo second; touch second"),
        ],
        usage: { prompt: 400, cacheWrite: 300, completion: 60, reasoning: 7 },
        chunk: 40,
      },
      { text: "Both ran.", usage: { prompt: 480, cached: 300, completion: 9 } },
    ],
  },
  "tool-fails": {
    what: "bash exits 3, read finds no file: two results that are errors",
    prompt: "Fail",
    answers: [
      { text: "First.", calls: [bash("echo bad >&2; exit 3")] },
      { text: "Second.", calls: [{ name: "read", args: { path: "missing.txt" } }] },
      { text: "Both failed.", usage: { prompt: 300, completion: 11 } },
    ],
  },
  "turns": {
    what: "four turns, cache writes and reads, texts between the calls",
    prompt: "Take your time",
    answers: [1, 2, 3].map((step): Answer => ({
      thinking: `Step ${step}.`,
      text: `Doing ${step}.`,
      calls: [step === 2
        ? { name: "write", args: { path: "two.txt", content: "2" } }
        : bash(`echo step ${step}`)],
      usage: {
        prompt: 1_000 + 100 * step,
        cached: 1_000 * (step - 1) / 2,
        cacheWrite: 90 + step,
        completion: 40 + step,
        reasoning: 4 * step,
      },
      chunk: 40,
    })).concat({
      text: "All three are done.",
      usage: { prompt: 1_400, cached: 1_300, completion: 12 },
      chunk: 40,
    }),
  },
  "unicode": {
    what: "text beyond ASCII in deltas of one UTF-16 unit: pairs and joined emoji are cut",
    prompt: "Grüße 👋",
    answers: [{
      thinking: "👍ü",
      text: "é😀\u2028👩‍👧\t字\u0007\"\\",
      chunk: 1,
      cut: "units",
    }],
  },
  "retry": {
    what: "HTTP 500, then an answer: one retry",
    prompt: "Try",
    answers: [SERVER_ERROR, { text: "Second time lucky.", usage: { prompt: 90, completion: 8 } }],
  },
  "retry-midway": {
    what: "the connection is cut after some text, then a whole answer: one retry, both texts told",
    prompt: "Try",
    answers: [
      { text: "It breaks off", hangUp: true },
      { text: "It is whole now.", usage: { prompt: 90, completion: 8 } },
    ],
  },
  "retry-exhausted": {
    what: "HTTP 500 every time: pi gives up after two retries",
    prompt: "Try",
    answers: [SERVER_ERROR, SERVER_ERROR, SERVER_ERROR],
  },
  "model-error": {
    what: "HTTP 400, which is not tried again",
    prompt: "Ask wrongly",
    answers: [{ status: 400 }],
  },
  "length": {
    what: "an answer cut by the model's limit of tokens",
    prompt: "Go on and on",
    answers: [{ text: "On and on and", finish: "length", usage: { prompt: 50, completion: 4096 } }],
  },
  "compaction": {
    what: "two prompts; the first answer fills the context: a compaction, whose summary is paid",
    ...COMPACTED,
    ...TWO_PROMPTS,
    answers: summarizing([FULL, TOLD]),
  },
  "compaction-at-end": {
    what: "the only answer fills the context: a compaction for which 0.73.1 does not wait",
    ...COMPACTED,
    prompt: "Look around",
    answers: summarizing([FULL]),
  },
  "compaction-in-turn": {
    what: "a tool's turn fills the context: since 0.87.1 a compaction before the next turn",
    ...COMPACTED,
    prompt: "Look",
    answers: summarizing([
      { ...FULL, calls: [bash("printf 'alpha\\nbeta\\n'")], chunk: 40 },
      TOLD,
    ]),
  },
  "compaction-overflow": {
    what: "HTTP 400 for a context too long, a compaction by two summaries, then an answer",
    ...COMPACTED,
    ...TWO_PROMPTS,
    answers: summarizing([{ text: "I have looked around." }, OVERFLOW, TOLD]),
  },
  "compaction-fails": {
    what: "the compaction's summary fails with HTTP 400: pi goes on without one",
    ...COMPACTED,
    ...TWO_PROMPTS,
    answers: summarizing([FULL, TOLD], { status: 400 }),
  },
  "overflow-for-good": {
    what: "HTTP 400 for a context too long, also after a compaction",
    ...COMPACTED,
    ...TWO_PROMPTS,
    answers: summarizing([{ text: "I have looked around." }, OVERFLOW, OVERFLOW]),
  },
  "tool-usage": {
    what: "an extension's tool that has asked a model of its own, and says what that has used",
    prompt: "Ask the expert",
    extension: resolve(import.meta.dirname, "../tests/pi/fixtures/paid-tool.ts"),
    answers: [
      { calls: [{ name: "ask_expert", args: { question: "Is it?" } }] },
      { text: "It is.", usage: { prompt: 150, completion: 5 } },
    ],
  },
  "cache-warming": {
    what: "a tool outlives the prompt's cache: since 0.87.1 pi pays to keep it warm",
    prompt: "Take your time",
    model: { promptCache: { short: 12 } },
    answers: ({ body, messages }) => {
      const limit = body["max_tokens"] ?? body["max_completion_tokens"];
      const usage = { prompt: 100_000, cached: 90_000, completion: 20 };
      if (limit === 1) return { text: ".", usage: { ...usage, cached: 99_900, completion: 1 } };
      return messages.at(-1)?.role === "tool"
        ? { text: "It took its time.", usage }
        : { calls: [bash("sleep 3; echo slow")], usage };
    },
  },
  "refusal": {
    what: "the answer is filtered (finish_reason content_filter)",
    prompt: "Say what you must not",
    answers: [{
      text: "I can",
      finish: "content_filter",
      usage: { prompt: 60, completion: 3 },
    }],
  },
  "anthropic-refusal": {
    what: "the model refuses (anthropic-messages, stop_reason refusal)",
    prompt: "Say what you must not",
    api: "anthropic-messages",
    answers: [{ text: "I can", finish: "refusal", usage: { prompt: 60, completion: 3 } }],
  },
  "anthropic-tool": {
    what: "anthropic-messages: thinking, a call of bash, then an answer cut by the limit of tokens",
    prompt: "Look",
    api: "anthropic-messages",
    answers: [
      {
        thinking: "I look.",
        text: "Let me look.",
        calls: [bash("printf 'alpha\\nbeta\\n'")],
        usage: { prompt: 700, cached: 100, cacheWrite: 500, completion: 45, reasoning: 9 },
      },
      {
        text: "The command printed",
        finish: "max_tokens",
        usage: { prompt: 760, cached: 600, completion: 4096 },
      },
    ],
  },
  "other-model": {
    what: "the server says that another model has answered",
    prompt: "Say hello",
    answers: [{ text: HELLO, model: "cheaper-model", usage: { prompt: 210, completion: 40 } }],
  },
  "unknown-model": {
    what: "a model that pi does not know, of a provider that it knows",
    prompt: "Say hello",
    asked: "fake/unheard-of",
    answers: [{ text: HELLO }],
  },
  "unknown-provider": {
    what: "a provider that pi does not know",
    prompt: "Say hello",
    asked: "nobody/unheard-of",
    answers: [{ text: HELLO }],
  },
  "rate-limit": {
    what: "HTTP 429, then an answer: one retry",
    prompt: "Try",
    answers: [RATE_LIMIT, { text: "Second time lucky.", usage: { prompt: 90, completion: 8 } }],
  },
  "rate-limit-for-good": {
    what: "HTTP 429 every time: pi gives up after two retries",
    prompt: "Try",
    answers: [RATE_LIMIT, RATE_LIMIT, RATE_LIMIT],
  },
  "overloaded": {
    what: "HTTP 529 every time (anthropic-messages)",
    prompt: "Try",
    api: "anthropic-messages",
    answers: [ANTHROPIC_OVERLOADED, ANTHROPIC_OVERLOADED, ANTHROPIC_OVERLOADED],
  },
  "no-usage": {
    what: "an answer that does not say what it has used",
    prompt: "Say hello",
    answers: [{ text: HELLO, usage: null }],
  },
};
