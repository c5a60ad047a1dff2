/** What each request pays for the tools of a set: the JSON that pi sends, and its prompt's lines. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { Pi } from "./lib.ts";

/** Characters of a token, as the budgets count. */
const TOKEN_CHARS = 4;
/** The most tokens of each set. */
const BUDGETS = { unified: 1_150, stream: 1_100, bash: 450 };

/** The tokens of all tools: as OpenAI's API has them, and as lines of the system prompt. */
function tokensOf({ tools }: Pick<Pi, "tools">): number {
  const texts = [...tools.values()].map(({ name, description, parameters, ...prompt }) => {
    const tool = { type: "function", function: { name, description, parameters, strict: false } };
    const { promptSnippet, promptGuidelines = [] } = prompt;
    const lines = [...(promptSnippet ? [`${name}: ${promptSnippet}`] : []), ...promptGuidelines];
    return JSON.stringify(tool) + lines.map((line) => `- ${line}\n`).join("");
  });
  return Math.ceil(texts.join(",").length / TOKEN_CHARS);
}

for (const [set, most] of Object.entries(BUDGETS)) {
  // rule: pi.md, One source: each set has a budget
  it(`the tools of ${set} keep within their budget`, () => {
    process.env.PI_EXECD_TOOLS = set;
    process.env.PI_EXTENSION_CONFIG_DIR = "/no/such/directory";
    const tokens = tokensOf(new Pi());
    assert.ok(tokens > most / 2 && tokens <= most, `${tokens} tokens`);
  });
}
