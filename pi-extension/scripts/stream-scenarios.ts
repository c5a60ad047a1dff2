/**
 * What the scripted model says in each fixture stream. Small, with every kind of token and price.
 */
import type { Answer, ScriptedCall } from "./model-server.ts";

/** One captured run. */
export interface Scenario {
  /** A line for the table of fixtures. */
  what: string;
  prompt: string;
  answers: Answer[];
}

const bash = (command: string): ScriptedCall => ({ name: "bash", args: { command } });
const HELLO = "Hello from the scripted model. Nothing to run here.";
const SERVER_ERROR: Answer = { status: 500 };

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
};
