/**
 * agent_execute with the real pi: what a run has cost by the server's own books, which model has
 * answered, and why a run ended.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { modelsJson, PRICES, QUIET_SETTINGS } from "../../scripts/model-server.ts";
import type { Answer, ModelEntry, Script } from "../../scripts/model-server.ts";
import {
  COMPACTING,
  OVERFLOW,
  RATE_LIMIT,
  SMALL_CONTEXT,
  SUMMARY,
  summarizing,
} from "../../scripts/stream-scenarios.ts";
import { TOOL_USAGE } from "./fixtures/paid-tool.ts";
import { assertTotals, bash, EVERY_PI, Stage } from "./lib/agent.ts";
import type { Pi } from "./lib/agent.ts";

/** Two prompts in one run: all versions compact between them, if the first answer was long. */
const TWO_PROMPTS = { extra_args: ["Look around first"], prompt: "Now tell" };
const FULL: Answer = {
  text: "I have looked around.",
  usage: { prompt: 11_000, cached: 2_000, completion: 60 },
};
const TOLD: Answer = { text: "It is told.", usage: { prompt: 900, completion: 15 } };
/** Another model is no reason to end the run. */
const ANY_MODEL = { strict_model: false };

/** A stage whose pi compacts soon. */
async function compactingStage(t: TestContext, pi: Pi, script: Script): Promise<Stage> {
  const stage = await stageOf(t, pi, script, SMALL_CONTEXT);
  const settings = JSON.stringify({ ...QUIET_SETTINGS, ...COMPACTING });
  writeFileSync(join(stage.place.agentDir, "settings.json"), settings);
  return stage;
}

async function stageOf(
  t: TestContext,
  pi: Pi,
  script: Script,
  model: ModelEntry,
): Promise<Stage> {
  const stage = await Stage.set(t, pi, script);
  stage.models(modelsJson(stage.model.url, undefined, undefined, model));
  return stage;
}

for (const pi of EVERY_PI) {
  // 0.73 says neither what a compaction has cost nor what the provider called the end.
  const isOld = pi.version === "0.73.1";

  describe(`pi ${pi.version}: the record`, { concurrency: 2 }, () => {
    // rule: agent.md, The result: A compaction's tokens and cost are in the sums, as the server
    //   has billed them
    test(`pi ${pi.version}: a compaction is paid and told`, async (t) => {
      const stage = await compactingStage(t, pi, summarizing([FULL, TOLD]));
      const { result } = await stage.run(TWO_PROMPTS);
      assert.equal(result.success, true, result.error);
      const { billed } = stage.model;
      if (!isOld) assert.deepEqual(billed, [FULL.usage, SUMMARY.usage, TOLD.usage]);
      assertTotals(pi, result, isOld ? billed.filter((one) => one !== SUMMARY.usage) : billed);
      const without_usage = isOld ? 1 : 0;
      assert.deepEqual(result.provider_data.compactions, { count: 1, without_usage });
      assert.equal(result.final_output, TOLD.text);
      assert.equal(result.output, `${FULL.text}\n\n${TOLD.text}`);
    });

    // rule: agent.md, The result: A compaction's tokens and cost are in the sums, as the server
    //   has billed them
    test(`pi ${pi.version}: a context that is too long is compacted, or told`, async (t) => {
      const stage = await compactingStage(t, pi, summarizing([{ text: "Hm." }, OVERFLOW, TOLD]));
      const { result } = await stage.run(TWO_PROMPTS);
      if (isOld) {
        // It exits before the compaction that it has begun.
        assert.deepEqual([result.success, result.error_kind], [false, "context_overflow"]);
        return;
      }
      assert.equal(result.success, true, result.error);
      assert.equal(stage.model.billed.length, 4, "two answers, a summary in two parts");
      assert.deepEqual(result.provider_data.compactions, { count: 1, without_usage: 0 });
      assertTotals(pi, result, stage.model.billed);
    });

    // rule: agent.md, Ends: A compaction counts for the budgets
    test(`pi ${pi.version}: a compaction goes over the budget`, { skip: isOld }, async (t) => {
      // The last answer never comes: pi may ask for it before it is ended.
      const never: Answer = { ...TOLD, stall: "before-headers" };
      const stage = await compactingStage(t, pi, summarizing([FULL, never]));
      // 0.0285 for the first answer, 0.01734 for the summary.
      const { result } = await stage.run({ ...TWO_PROMPTS, max_cost_usd: 0.04 });
      assert.deepEqual([result.finish_reason, result.error_kind], ["cost_exhausted", "budget"]);
      assert.equal(result.provider_data.compactions?.count, 1);
      assertTotals(pi, result, stage.model.billed.slice(0, 2));
    });

    // rule: agent.md, The result: Usage on a tool's result is in the sums
    test(`pi ${pi.version}: a tool's own tokens count where pi tells them`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { calls: [{ name: "ask_expert", args: { question: "Is it?" } }] },
        { text: "It is." },
      ]);
      const extension = join(import.meta.dirname, "fixtures/paid-tool.ts");
      const { result } = await stage.run({ extensions: [extension] });
      assert.equal(result.success, true, result.error);
      assert.deepEqual(result.tool_calls, { ask_expert: 1 });
      const { input, output } = TOOL_USAGE;
      const ofTool = isOld ? [] : [{ prompt: input, completion: output }];
      assertTotals(pi, result, [...stage.model.billed, ...ofTool]);
    });

    // rule: agent.md, The result: What pi pays to keep a prompt in the provider's cache is in the
    //   sums
    test(`pi ${pi.version}: keeping a cache warm is paid and told`, { skip: isOld }, async (t) => {
      const usage = { prompt: 100_000, cached: 90_000, completion: 20 };
      const stage: Stage = await stageOf(t, pi, ({ body, messages }) => {
        if ((body["max_tokens"] ?? body["max_completion_tokens"]) === 1) {
          // The tool goes on until pi has this.
          writeFileSync(join(stage.place.tmp, "warm"), "");
          return { text: ".", usage: { ...usage, cached: 99_900, completion: 1 } };
        }
        return messages.at(-1)?.role === "tool"
          ? { text: "Warm.", usage }
          : { calls: [bash("until [ -e warm ]; do sleep 0.1; done; sleep 0.5")], usage };
      }, { promptCache: { short: 12 } });
      const { result } = await stage.run({ workspace: stage.place.tmp });
      assert.equal(result.success, true, result.error);
      assert.equal(stage.model.billed.length, 3);
      assertTotals(pi, result, stage.model.billed);
      assert.ok(result.cost_usd > 100_000 * PRICES.cacheRead / 1e6);
    });

    // rule: agent.md, The result: A refusal is content_filter and error_kind refusal
    test(`pi ${pi.version}: a refusal is told as one`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "I can", finish: "content_filter" }]);
      const { result } = await stage.run();
      assert.equal(result.success, false);
      assert.equal(result.error_kind, "refusal", result.error);
      assert.equal(result.finish_reason, isOld ? "error" : "content_filter");
      assert.equal(result.raw_stop_reason, isOld ? undefined : "content_filter");
      assert.equal(result.final_output, "I can");
      assertTotals(pi, result, stage.model.billed);
    });

    // rule: agent.md, The result: strict_model ends a run that another model answers, at the first
    //   event that shows it
    test(`pi ${pi.version}: another model than asked ends the run`, async (t) => {
      const again = { calls: [bash("true")], model: "cheaper-model" };
      const stage = await Stage.set(t, pi, () => again);
      const { result, events } = await stage.run();
      assert.deepEqual([result.success, result.finish_reason], [false, "model_mismatch"]);
      assert.deepEqual([result.model_mismatch, result.error_kind], [true, "model_not_found"]);
      assert.deepEqual([result.provider, result.model], ["fake", "scripted"]);
      assert.deepEqual(
        [result.response_provider, result.response_model],
        ["fake", "cheaper-model"],
      );
      assert.match(result.error ?? "", /cheaper-model/);
      assert.equal(events[0]?.event, "turn_start");
    });

    // rule: agent.md, The result: With strict_model false another model is told, and no failure
    test(`pi ${pi.version}: another model than asked is told`, async (t) => {
      const stage = await Stage.set(t, pi, () => ({ text: "Hello.", model: "cheaper-model" }));
      const { result } = await stage.run(ANY_MODEL);
      assert.equal(result.success, true, result.error);
      assert.deepEqual([result.model_mismatch, result.finish_reason], [true, "stop"]);
      assert.equal(result.response_model, "cheaper-model");
      assertTotals(pi, result, stage.model.billed);
    });

    // rule: agent.md, The result: The asked model with a date is the asked model
    test(`pi ${pi.version}: the model with a date is the model that was asked`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "Hello.", model: "scripted-2026-01-01" }]);
      const { result } = await stage.run();
      assert.equal(result.success, true, result.error);
      assert.equal(result.model_mismatch, undefined);
      assert.equal(result.response_model, "scripted-2026-01-01");
    });

    // rule: agent.md, The result: error_kind rate_limit, when pi has given up trying again
    test(`pi ${pi.version}: a rate limit is waited for, or told`, async (t) => {
      const usage = { prompt: 90, completion: 8 };
      const stage = await Stage.set(t, pi, ({ number }) =>
        number === 1 ? { text: "Lucky.", usage } : RATE_LIMIT);
      const { result } = await stage.run();
      assert.equal(result.success, true, result.error);
      assert.equal(result.provider_data.retries?.count, 1);
      assertTotals(pi, result, [usage]);
      const { result: never } = await stage.run();
      assert.deepEqual([never.success, never.error_kind], [false, "rate_limit"]);
      assert.equal(never.provider_data.retries?.exhausted, true);
      assert.match(never.error ?? "", /Rate limit reached/);
    });

    // rule: agent.md, The result: A success with 0 tokens does not exist
    test(`pi ${pi.version}: an answer without usage is no success`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "Hello.", usage: null }]);
      const { result } = await stage.run();
      assert.deepEqual([result.success, result.finish_reason], [false, "wire_drift"]);
      assert.equal(result.error_kind, "drift");
      assert.equal(result.final_output, "Hello.");
    });

    // rule: agent.md, The result: error_kind model_not_found
    test(`pi ${pi.version}: names that pi does not know`, async (t) => {
      const stage = await Stage.set(t, pi, ({ model }) =>
        model === "scripted" ? { text: "Hello." } : {
          status: 404,
          error: { message: `The model \`${model}\` does not exist`, code: "model_not_found" },
        });
      for (const model of ["fake/unheard-of", "nobody/unheard-of"]) {
        const { result } = await stage.run({ model });
        assert.equal(result.success, false, `${model}: ${JSON.stringify(result)}`);
        assert.equal(result.error_kind, "model_not_found", `${model}: ${result.error}`);
        assert.equal(`${result.provider}/${result.model}`, model);
      }
    });
  });
}
