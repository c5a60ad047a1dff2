/**
 * agent_execute among others: a pi with our own extension inside, ten runs at once beside an
 * ordinary session, the sudden end of the execd outside.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { textOfMessage } from "../../scripts/model-server.ts";
import type { Answer, Asked } from "../../scripts/model-server.ts";
import { assertTotals, bash, LEFT_BY_SETSID, PIS, Stage } from "./lib/agent.ts";
import type { Pi } from "./lib/agent.ts";
import { execdBinary, EXTENSION_DIR } from "./lib/paths.ts";
import { processesLike, waitNone, waitProcess } from "./lib/processes.ts";
import { until } from "./lib/waiting.ts";

const EXECD = /^\S*\/execd( |$)/;

/** A background job, and one that has left its session, both in the execd inside. */
const JOBS: Answer = {
  text: "Jobs.",
  calls: [
    {
      name: "exec_command",
      args: { cmd: "echo one; exec sleep 7700", until: { text: "one" }, yield_time_ms: 30_000 },
    },
    {
      name: "exec_command",
      args: { cmd: "setsid sleep 7701 & trap '' TERM; sleep 7702; sleep 7703", yield_time_ms: 250 },
    },
  ],
};

/** The extension asks for pi 0.87. */
const INNER = PIS.filter((pi) => pi.version !== "0.73.1");

for (const pi of INNER) {
  describe(`pi ${pi.version} with the extension inside`, { concurrency: 3 }, () => {
    const jobsRun = async (stage: Stage): Promise<void> => {
      for (const seconds of [7700, 7701, 7702]) {
        await waitProcess(stage.place.tag, new RegExp(`^sleep ${seconds}$`));
      }
      const execds = processesLike(stage.place.tag, EXECD);
      assert.ok(execds.length >= 2, "an execd outside and one inside");
    };
    const start = (stage: Stage): number => {
      const more = { extensions: [EXTENSION_DIR], env: { EXECD_BIN: execdBinary() } };
      return stage.start({ ...more, allowed_tools: ["exec_command", "write_stdin"] });
    };
    const inside = (stage: Stage) =>
      processesLike(stage.place.tag, EXECD).filter((one) => one.pid !== stage.execd.pid);

    // rule: agent.md, Ends: What an execd inside the run, that of our extension, has started is
    //   ended with it
    test(`pi ${pi.version}: its sessions work and end with a normal end`, { skip: LEFT_BY_SETSID }, async (t) => {
      const stage = await Stage.set(t, pi, [JOBS, { text: "That was it." }]);
      const { result, events } = await stage.end(start(stage));
      assert.equal(result.success, true, result.error);
      assert.deepEqual(stage.model.asked[0]?.tools, ["exec_command", "write_stdin"]);
      // The calls run side by side: their results come in any order.
      const results = events.filter((one) => one.event === "tool_result");
      const told = results.map((one) => one.output ?? "");
      assert.ok(told.some((text) => /session_id: \d[^]*\none\n?/.test(text)), told.join("\n"));
      assert.deepEqual(result.tool_calls, { exec_command: 2 });
      await stage.execd.quit();
      await waitNone(stage.place.tag, 10_000);
    });

    // rule: agent.md, Ends: What an execd inside the run, that of our extension, has started is
    //   ended with it
    test(`pi ${pi.version}: both layers end at cancel`, async (t) => {
      const stage = await Stage.set(t, pi, [JOBS, { text: "Well", stall: "after-text" }]);
      const id = start(stage);
      await jobsRun(stage);
      await stage.waitEvent(id, (one) => one.event === "text" && /Well/.test(one.delta ?? ""));
      await stage.execd.call("cancel", { id });
      const { result } = await stage.end(id);
      assert.equal(result.finish_reason, "cancelled");
      assert.deepEqual(inside(stage).filter((one) => one.command.includes("--")), []);
    });

    // rule: agent.md, Ends: What an execd inside the run, that of our extension, has started is
    //   ended with it
    test(`pi ${pi.version}: both layers end when the execd outside is killed`, async (t) => {
      const stage = await Stage.set(t, pi, [JOBS, { text: "Well", stall: "after-text" }]);
      const id = start(stage);
      await jobsRun(stage);
      await stage.waitEvent(id, (one) => one.event === "text" && /Well/.test(one.delta ?? ""));
      process.kill(stage.execd.pid, "SIGKILL");
      t.diagnostic(`all gone ${await waitNone(stage.place.tag, 10_000)} ms after execd`);
    });
  });
}

for (const pi of PIS) {
  // rule: agent.md, Ends: Many run at once, and ordinary sessions beside them go on
  test(`pi ${pi.version}: ten runs at once, an ordinary session beside them`, async (t) => {
    const stage = await Stage.set(t, pi, answerByPrompt);
    const { execd } = stage;
    const { session_id } = await execd.call("exec_command", { cmd: "cat", yield_time_ms: 250 });
    const ids = Array.from({ length: 10 }, (_, number) => stage.start({ prompt: `Run ${number}` }));
    let left = ids.length;
    const results = ids.map((id) => execd.result(id).finally(() => left--));
    const slowest = { ms: 0 };
    for (let round = 0; left > 0; round++) {
      const started = Date.now();
      const chars = `line ${round}\n`;
      const said = await execd.call("write_stdin", { session_id, chars, yield_time_ms: 250 });
      assert.match(String(said["output"]), new RegExp(`line ${round}\\b`));
      const beside = await execd.call("ping");
      assert.ok(beside !== undefined);
      slowest.ms = Math.max(slowest.ms, Date.now() - started - 250);
    }
    t.diagnostic(`an echo and a ping took ${slowest.ms} ms at most beyond their yield`);
    assert.ok(slowest.ms < 5_000, `${slowest.ms} ms`);
    for (const [number, result] of (await Promise.all(results)).entries()) {
      assert.equal(result["output"], `Asking ${number}.\n\nGot ${number}.`);
      assertTotals(pi, result as never, [
        { prompt: 100 + number, completion: 10 }, { prompt: 200 + number, completion: 20 },
      ]);
      const told = stage.events(ids[number] ?? 0);
      const text = told.filter((one) => one.event === "text").map((one) => one.delta).join("");
      assert.equal(text, result["output"]);
      assert.equal(told.find((one) => one.event === "tool_result")?.output, `${number}\n`);
    }
    const end = await execd.call("write_stdin", { session_id, chars: "", eof: true });
    assert.equal(end["exit_code"], 0);
  });
}

/** The n-th run asks for the n-th echo, whatever the order in which they come. */
function answerByPrompt(asked: Asked): Answer {
  const prompt = asked.messages.map(textOfMessage).find((text) => /^Run \d$/.test(text)) ?? "";
  const number = Number(prompt.slice(4));
  return asked.messages.some((message) => message.role === "tool")
    ? { text: `Got ${number}.`, usage: { prompt: 200 + number, completion: 20 } }
    : {
        text: `Asking ${number}.`,
        calls: [bash(`sleep 0.3; echo ${number}`)],
        usage: { prompt: 100 + number, completion: 10 },
      };
}

const [newest] = PIS as [Pi, ...Pi[]];
const sleepers = (): Answer => ({
  text: "Sleeping.",
  calls: [bash("setsid sleep 7711 & trap '' TERM HUP; sleep 7710; sleep 7712")],
});

// rule: agent.md, Ends: The end of execd by a signal ends a run; the end of stdin lets a run end
test("SIGTERM ends every run, and each has its result", async (t) => {
  const stage = await Stage.set(t, newest, sleepers);
  const ids = [stage.start(), stage.start()];
  await until("both commands", () => processesLike(stage.place.tag, /^sleep 7711$/).length === 2);
  process.kill(stage.execd.pid, "SIGTERM");
  for (const id of ids) {
    const { success, finish_reason } = await stage.execd.result(id);
    assert.deepEqual([success, finish_reason], [false, "cancelled"]);
  }
  assert.equal(await stage.execd.ended, 128 + 15);
  await waitNone(stage.place.tag, 10_000);
});

// rule: agent.md, Ends: The process tree is ended when execd is killed
test("execd killed: pi and what its own tool runs end too", async (t) => {
  const stage = await Stage.set(t, newest, sleepers);
  stage.start();
  await waitProcess(stage.place.tag, /^sleep 7711$/);
  process.kill(stage.execd.pid, "SIGKILL");
  t.diagnostic(`all gone ${await waitNone(stage.place.tag, 5_000)} ms after execd`);
});

// rule: agent.md, Ends: The end of execd by a signal ends a run; the end of stdin lets a run end
test("the end of stdin lets a run come to its end", { skip: LEFT_BY_SETSID }, async (t) => {
  const stage = await Stage.set(t, newest, [
    { calls: [bash("sleep 1; setsid sleep 7713 >/dev/null 2>&1 &")] }, { text: "All of it." },
  ]);
  const id = stage.start();
  assert.equal(await stage.execd.quit(), 0);
  assert.equal((await stage.execd.result(id))["output"], "All of it.");
  assert.equal(stage.events(id).at(-1)?.event, "turn_end");
  await waitNone(stage.place.tag, 10_000);
});
