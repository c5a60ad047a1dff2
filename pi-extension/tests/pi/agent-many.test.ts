/**
 * agent_execute with the real pi: many runs at once, each with an agent directory of its own; and
 * what such a directory and the file of a long prompt are to pi and to the model.
 *
 * 64 pis take 16 GB of memory and all CPUs, so no other test runs beside this file.
 * AGENT_MANY says how many runs start at once, AGENT_MANY_ROUNDS how often.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { textOfMessage } from "../../scripts/model-server.ts";
import type { Answer, Asked } from "../../scripts/model-server.ts";
import { assertTotals, bash, PIS, Stage } from "./lib/agent.ts";
import type { AgentResult, Pi } from "./lib/agent.ts";
import { waitProcess } from "./lib/processes.ts";

const MANY = Number(process.env["AGENT_MANY"] ?? 64);
const ROUNDS = Number(process.env["AGENT_MANY_ROUNDS"] ?? 1);
/** What a pi has in memory, roughly: with less of it there is no room for all. */
const PI_BYTES = 250 * 1024 * 1024;
/** How long a round may take on a machine that is slow or busy. */
const ROUND_MS = 200_000;

const [newest] = PIS as [Pi, ...Pi[]];

/** The n-th run asks for the n-th echo, whatever the order in which they come. */
function answerByPrompt(asked: Asked): Answer {
  const prompt = asked.messages.map(textOfMessage).find((text) => /^Run \d+$/.test(text)) ?? "";
  const number = Number(prompt.slice(4));
  return asked.messages.some((message) => message.role === "tool")
    ? { text: `Got ${number}.`, usage: { prompt: 200 + number, completion: 20 } }
    : { calls: [bash(`echo ${number}`)], usage: { prompt: 100 + number, completion: 10 } };
}

// rule: agent.md, Isolation: 64 runs at once each have one
test(`pi ${newest.version}: ${MANY} at once`, {
  timeout: ROUNDS * ROUND_MS,
  skip: totalmem() < MANY * PI_BYTES ? "not enough memory" : false,
}, async (t) => {
  const stage = await Stage.set(t, newest, answerByPrompt);
  const { execd } = stage;
  for (let round = 1; round <= ROUNDS; round++) {
    const started = Date.now();
    const ids = Array.from({ length: MANY }, (_, number) =>
      stage.start({ prompt: `Run ${number}`, isolation: "run", stream: false }));
    const results = await Promise.all(ids.map((id) => execd.result(id, ROUND_MS)));
    const told = results as unknown as (AgentResult & {
      cpu_seconds?: number;
      max_rss_kib?: number;
    })[];
    const failed = told.filter((one) => !one.success).map((one) => one.error);
    assert.deepEqual(failed, [], `${failed.length} of ${MANY} failed`);
    for (const [number, result] of told.entries()) {
      assert.equal(result.output, `Got ${number}.`);
      assertTotals(newest, result, [
        { prompt: 100 + number, completion: 10 }, { prompt: 200 + number, completion: 20 },
      ]);
    }
    const cpu = told.reduce((sum, one) => sum + (one.cpu_seconds ?? 0), 0);
    const rss = Math.max(...told.map((one) => one.max_rss_kib ?? 0));
    t.diagnostic(`round ${round}: ${MANY} of ${MANY} in ${(Date.now() - started) / 1e3} s, ` +
      `${cpu.toFixed(1)} s of CPU, ${Math.round(rss / 1024)} MiB the largest`);
  }
  assert.ok(!existsSync(join(stage.place.agentDir, "sessions")), "nothing is in the shared one");
});

for (const pi of PIS) {
  // rule: agent.md, Keys: A key of a provider that pi has no variable for stands in an auth.json
  //   of the run's own, over what models.json says; all else is the shared directory's
  test(`pi ${pi.version}: a key of the run is used, whatever models.json says`, async (t) => {
    const stage = await Stage.set(t, pi, () => ({ text: "Well." }));
    const api_key = "sk-of-the-run-and-of-nobody-else";
    for (const isolation of ["shared", "run"]) {
      const { result } = await stage.run({ api_key, isolation });
      assert.equal(result.success, true, result.error);
      assert.equal(stage.model.asked.at(-1)?.authorization, `Bearer ${api_key}`, isolation);
    }
    const { result } = await stage.run({});
    assert.equal(result.success, true, result.error);
    assert.equal(stage.model.asked.at(-1)?.authorization, "Bearer not-a-secret");
    const auth = join(stage.place.agentDir, "auth.json");
    assert.ok(!existsSync(auth) || !readFileSync(auth, "utf8").includes(api_key));
  });

  // rule: agent.md, Isolation: run gives pi an agent directory of its own: copied auth and
  //   settings, no sessions, no extensions but those named; removed afterwards; HOME untouched
  test(`pi ${pi.version}: a run of its own leaves nothing in the shared directory`, async (t) => {
    const stage = await Stage.set(t, pi, () => ({ text: "Well." }));
    const { agentDir } = stage.place;
    writeFileSync(join(agentDir, "AGENTS.md"), "Speak like a pirate.");
    const [before, home] = [readdirSync(agentDir), readdirSync(stage.place.home)];
    const loud = stage.program("loud.ts", "export default () => { throw new Error('loud'); }");
    const settings = JSON.parse(readFileSync(join(agentDir, "settings.json"), "utf8")) as object;
    writeFileSync(join(agentDir, "settings.json"),
      JSON.stringify({ ...settings, extensions: [loud] }));
    const { result } = await stage.run({ isolation: "run", keep_agent_dir: true });
    assert.equal(result.success, true, result.error);
    assert.deepEqual(readdirSync(agentDir), before);
    const kept = (result as AgentResult & { agent_dir?: string }).agent_dir ?? "";
    assert.ok(existsSync(join(kept, "models.json")), kept);
    const asked = JSON.stringify(stage.model.asked.at(-1)?.messages);
    assert.match(asked, /Speak like a pirate/, "what is written for every model is there");
    assert.deepEqual(readdirSync(stage.place.home), home);
  });

  // rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600,
  //   removed: named by the text
  test(`pi ${pi.version}: two runs with the same long prompt ask the same`, async (t) => {
    const stage = await Stage.set(t, pi, () => ({ text: "Read." }));
    const prompt = `${"ä line of it\n".repeat(16_000)}last`;
    const bodies = [];
    for (const _ of [1, 2]) {
      const { result } = await stage.run({ prompt });
      assert.equal(result.success, true, result.error);
      bodies.push(stage.model.asked.at(-1)?.body["messages"]);
    }
    assert.deepEqual(bodies[0], bodies[1]);
    assert.match(JSON.stringify(bodies[0]), /prompt-[0-9a-f]{8}\.md/);
  });

  // rule: agent.md, Ends: pi is sent SIGTERM first, and what it has started when it is gone
  test(`pi ${pi.version}: nobody asks the model again when a tool is cancelled`, async (t) => {
    const again: Answer = { text: "I was asked again." };
    const stage = await Stage.set(t, pi, (asked) =>
      asked.messages.some((one) => one.role === "tool") ? again
        : { calls: [bash("sleep 7790 & exec sleep 7791")] });
    const id = stage.start();
    await waitProcess(stage.place.tag, /^sleep 7790$/);
    await stage.execd.call("cancel", { id });
    const { result } = await stage.end(id);
    assert.equal(result.finish_reason, "cancelled");
    assert.equal(stage.model.asked.length, 1, "the answer with the tool is all that is paid");
  });
}
