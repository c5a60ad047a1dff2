/**
 * agent_execute with the real pi: each way in which a run ends early, or does not begin. What is
 * reported are the totals so far, and no process is left (`Stage.end` looks).
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { modelsJson } from "../../scripts/model-server.ts";
import type { Answer, Asked } from "../../scripts/model-server.ts";
import { assertTotals, bash, EVERY_PI, LEFT_BY_SETSID, outline, PIS, Stage } from "./lib/agent.ts";
import type { AgentResult, Pi } from "./lib/agent.ts";
import { startedBy } from "./lib/execd.ts";
import { plainPath } from "./lib/paths.ts";
import { waitProcess } from "./lib/processes.ts";
import { until } from "./lib/waiting.ts";

/** What a first turn uses whose totals have to be there when the second one is cut. */
const FIRST = { prompt: 1_000, cacheWrite: 500, completion: 100, reasoning: 20 };

/** How long we ask for pi's version, again and again, on a machine that is busy otherwise. */
const SLOWEST_VERSION_MS = 180_000;

/** A turn with a command that nobody waits for: pi's bash gives it a process group of its own. */
const sleeping = (seconds: number): Answer => ({
  text: "Sleeping.",
  calls: [bash(`setsid sleep ${seconds + 1} & echo >sleeping; exec sleep ${seconds}`)],
  usage: FIRST,
});

/**
 * A turn that does not end. A run is ended with all that it started, and where a tool is gone before
 * pi is, pi may still ask the model once more: what that would use is in no total.
 */
const SILENT: Answer = { text: "Well", stall: "after-text" };

function assertEnd(result: AgentResult, finishReason: string, error: RegExp): void {
  assert.equal(result.finish_reason, finishReason, result.error);
  assert.equal(result.success, false);
  assert.match(result.error ?? "", error);
}

for (const pi of PIS) {
  describe(`pi ${pi.version} ends`, { concurrency: 3 }, () => {
    // rule: agent.md, agent_execute, params: first_event_timeout_ms: until an assistant
    //   message_start or message_update
    test(`pi ${pi.version}: a model that never answers: first_event_timeout_ms`, async (t) => {
      const stage = await Stage.set(t, pi, () => ({ stall: "before-headers" }));
      const { result, events, limitMs } = await stage.runWithin(4_000,
        (first_event_timeout_ms) => ({ first_event_timeout_ms }),
        () => stage.model.asked.length > 0);
      assertEnd(result, "timeout", new RegExp(`${limitMs} ms.*first_event_timeout_ms`));
      assertTook(result, limitMs);
      assert.equal(result.first_event_ms, undefined);
      assertTotals(pi, result, []);
      assert.deepEqual(outline(events), ["turn_start 1"]);
    });

    for (const stall of ["before-first-delta", "after-text"] as const) {
      // rule: agent.md, agent_execute, params: idle_timeout_ms: no event for so long after the
      //   first
      // rule: agent.md, agent_execute, params: The clock of idle_timeout_ms stands still while a
      //   tool runs
      test(`pi ${pi.version}: a model silent ${stall}: idle_timeout_ms`, async (t) => {
        const first = { calls: [bash("sleep 4; echo one")], usage: FIRST };
        const stage = await Stage.set(t, pi, [first, { text: "And", stall }]);
        // The tool is silent for longer than that, which is its right.
        const { result, events } = await stage.run({ idle_timeout_ms: 2_500 });
        assertEnd(result, "timeout", /2500 ms.*idle_timeout_ms/);
        assert.ok(result.duration_ms >= 6_500, `${result.duration_ms}`);
        assert.equal(result.output, stall === "after-text" ? "And" : "");
        assertTotals(pi, result, [FIRST]);
        assert.deepEqual([result.num_turns, result.tool_calls], [2, { bash: 1 }]);
        assert.ok(outline(events).includes("tool_result bash: one\n"));
      });
    }

    // rule: agent.md, agent_execute, params: timeout_ms: the hard one
    test(`pi ${pi.version}: a tool that runs too long: timeout_ms, and it is gone`, async (t) => {
      const again = (asked: Asked) => asked.messages.some((one) => one.role === "tool");
      const stage = await Stage.set(t, pi, (asked) => again(asked) ? SILENT : sleeping(7500));
      const { result, limitMs } = await stage.runWithin(5_000,
        (timeout_ms) => ({ timeout_ms }),
        () => existsSync(join(stage.place.cwd, "sleeping")));
      assertEnd(result, "timeout", new RegExp(`${limitMs} ms.*\\btimeout_ms`));
      assertTook(result, limitMs);
      assertTotals(pi, result, [FIRST]);
      assert.equal(result.output, "Sleeping.");
    });

    // rule: agent.md, agent_execute, params: timeout_ms: the hard one
    test(`pi ${pi.version}: a model that does not stop talking: timeout_ms`, async (t) => {
      const talk: Answer = { text: "more ", pace: 50, repeat: 10_000 };
      const stage = await Stage.set(t, pi, () => talk);
      const { result, events, limitMs } = await stage.runWithin(6_000,
        (timeout_ms) => ({ timeout_ms, idle_timeout_ms: 3_000 }),
        (run) => run.result.output !== "");
      assertEnd(result, "timeout", new RegExp(`${limitMs} ms.*\\btimeout_ms`));
      assertTook(result, limitMs);
      assert.match(result.output, /^(more )+$/);
      const told = events.filter((one) => one.event === "text").map((one) => one.delta).join("");
      assert.equal(told, result.output);
      assertTotals(pi, result, []);
    });

    // rule: agent.md, Ends: Over max_cost_usd: checked at each message_end, ended, totals so far
    test(`pi ${pi.version}: over cost: ended at the message that passes the limit`, async (t) => {
      // A first turn costs 0.0048750 dollars.
      const stage = await Stage.set(t, pi, [
        { calls: [bash("echo one")], usage: FIRST },
        // A child of the tool that setsid takes away in the moment of the end would outlive the run.
        { ...sleeping(7510), calls: [bash("exec sleep 7510")] },
        SILENT,
      ]);
      const { result, events } = await stage.run({ max_cost_usd: 0.009 });
      assertEnd(result, "cost_exhausted", /0\.009\b/);
      assertTotals(pi, result, [FIRST, FIRST]);
      assert.ok(outline(events).includes("tool_result bash: one\n"));
    });

    // rule: agent.md, Ends: Over max_tokens: input, cache writes and output count
    test(`pi ${pi.version}: over tokens: cache reads do not count, cache writes do`, async (t) => {
      const cheap = { prompt: 90_000, cached: 89_900, completion: 10 };
      const stage = await Stage.set(t, pi, [
        { calls: [bash("echo one")], usage: cheap }, sleeping(7520), SILENT,
      ]);
      const { result } = await stage.run({ max_tokens: 1_209 });
      assertEnd(result, "token_exhausted", /1209/);
      assertTotals(pi, result, [cheap, FIRST]);
    });

    // rule: agent.md, Ends: Exactly the limit is not over it
    test(`pi ${pi.version}: budgets that are just enough`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "Enough.", usage: FIRST }]);
      const { result } = await stage.run({ max_tokens: 1_100, max_cost_usd: 0.005 });
      assert.equal(result.success, true, result.error);
    });

    for (const [how, when] of [["cancel", "a tool"], ["kill_session", "a tool"],
      ["cancel", "a model that is silent"]] as const) {
      // rule: agent.md, Ends: cancel ends the run and its process tree
      test(`pi ${pi.version}: ${how} during ${when}`, async (t) => {
        const tool = when === "a tool" ? [sleeping(7530)] : [];
        const stage = await Stage.set(t, pi, [...tool, SILENT]);
        const id = stage.start();
        await stage.waitEvent(id, (one) => one.event === "text");
        if (when === "a tool") await waitProcess(stage.place.tag, /^sleep 7531$/);
        if (how === "cancel") {
          assert.deepEqual(await stage.execd.call("cancel", { id }), { cancelled: true });
        } else {
          const [session] = await stage.sessions();
          assert.match(session?.command ?? "", /pi --mode json --model fake\/scripted/);
          const { session_id } = session ?? {};
          const killed = await stage.execd.call("kill_session", { session_id });
          assert.equal(killed["killed"], true);
        }
        const { result } = await stage.end(id);
        assertEnd(result, "cancelled", /cancelled|ended/);
        assertTotals(pi, result, when === "a tool" ? [FIRST] : []);
        assert.deepEqual((await stage.sessions()).filter((one) => one.running), []);
      });
    }

    // rule: agent.md, Ends: The process tree is ended at a normal end too, before the result is
    //   sent
    const skip = LEFT_BY_SETSID;
    test(`pi ${pi.version}: a normal end takes along what a tool left running`, { skip }, async (t) => {
      const stubborn = 'trap "" TERM; sleep 7540; sleep 7541';
      const stage = await Stage.set(t, pi, [
        { calls: [bash(`setsid sh -c '${stubborn}' >/dev/null 2>&1 &`)] },
        { text: "Left one." },
      ]);
      const { result } = await stage.run();
      assert.deepEqual([result.success, result.output], [true, "Left one."]);
      assert.deepEqual(startedBy(stage.place), []);
    });

    // rule: agent.md, The result: success: exit 0 with stop, length or tool_calls
    test(`pi ${pi.version}: a model that fails: exit code 0, and no success`, async (t) => {
      const stage = await Stage.set(t, pi, (asked) => ({ status: asked.number === 0 ? 400 : 500 }));
      const once = await stage.run();
      assertEnd(once.result, "error", /scripted error 400/);
      assert.equal(once.result.exit_code, 0);
      assert.ok(once.events.some((one) => /scripted error 400/.test(one.message ?? "")));
      const often = await stage.run();
      assertEnd(often.result, "error", /scripted error 500/);
      const retries = { count: 2, max_attempts: 2, exhausted: true };
      assert.deepEqual(often.result.provider_data.retries, retries);
      assertTotals(pi, often.result, []);
    });

    // rule: agent.md, The result: Exit ≠ 0: no success, error has the last 4 KiB of stderr
    test(`pi ${pi.version}: a pi that exits 1 says why`, async (t) => {
      const stage = await Stage.set(t, pi, []);
      for (const [params, reason] of [
        [{ model: "nosuch/model" }, /nosuch\/model/],
        [{ extensions: ["/nowhere/extension.ts"] }, /\/nowhere\/extension\.ts/],
        [{ session: "nosuch" }, /No session found/],
      ] as const) {
        const { result, events } = await stage.run(params);
        assertEnd(result, "error", reason);
        assert.equal(result.exit_code, 1);
        assert.deepEqual(events.filter((one) => one.event !== "error"), []);
      }
      // One that tells no version is not even started.
      const { result } = await stage.run({ pi_path: "/bin/false" });
      assertEnd(result, "error", /exit code 1/);
      assert.equal(result.exit_code, undefined);
      assert.equal(stage.model.asked.length, 0);
    });

    test(`pi ${pi.version}: a pi killed from outside`, { skip }, async (t) => {
      const stage = await Stage.set(t, pi, [sleeping(7550), SILENT]);
      const id = stage.start();
      await waitProcess(stage.place.tag, /^sleep 7551$/);
      const [session] = await stage.sessions();
      process.kill(session?.pid ?? Number.NaN, "SIGKILL");
      const { result } = await stage.end(id);
      assert.equal(result.success, false);
      assert.match(result.error ?? "", /SIGKILL/);
      assertTotals(pi, result, [FIRST]);
    });

    // rule: agent.md, agent_execute, params: api_key goes into the provider's variable where that
    //   is known, else to `--api-key`
    test(`pi ${pi.version}: api_key is seen by the model's server, and nowhere else`, async (t) => {
      const turns: Answer[] = [
        { calls: [bash("echo key=$OPENAI_API_KEY")] }, { text: "Well", stall: "after-text" },
      ];
      const stage = await Stage.set(t, pi, [...turns, ...turns]);
      stage.withEnvironment({ EXECD_LOG: "debug" });
      for (const provider of ["fake", "openai"]) {
        const key = `sk-${randomUUID()}`;
        stage.models(modelsJson(stage.model.url, provider, "$OPENAI_API_KEY"));
        const model = `${provider}/scripted`;
        const id = stage.start({ model, api_key: key, keep_events: true });
        await stage.waitEvent(id, (one) => one.event === "text");
        assert.equal(stage.model.asked.at(-1)?.authorization, `Bearer ${key}`);
        if (provider === "openai") {
          const commands = startedBy(stage.place).map((one) => one.command);
          assert.ok(!commands.join("\n").includes(key), "no process shows it");
        }
        for (const method of ["list_sessions", "list_processes", "server_info"]) {
          await stage.execd.call(method, method === "list_sessions" ? { peek: true } : {});
        }
        await stage.execd.call("cancel", { id });
        const { result, events } = await stage.end(id);
        const printed = events.find((one) => one.event === "tool_result")?.output ?? "";
        assert.match(printed, provider === "openai" ? /^key=\*+\n$/ : /^key=\n$/);
        const told = JSON.stringify(stage.execd.journal.records) + stage.execd.stderr;
        assert.ok(!told.includes(key), "execd tells it nobody");
        assert.ok(!readFileSync(result.log_path ?? "", "utf8").includes(key), "it is in no log");
      }
    });
  });
}

const [newest] = PIS as [Pi, ...Pi[]];

// rule: agent.md, Invocation: A pi that cannot be started is a result that says what to do
test("a pi that is not there: a result with the install command", async (t) => {
  const stage = await Stage.set(t, newest, []);
  stage.withEnvironment({ PATH: "/nowhere" });
  const nowhere = await stage.run({ pi_path: "/nowhere/pi" });
  assertEnd(nowhere.result, "error", /^\/nowhere\/pi was not found/);
  assertEnd(nowhere.result, "error", /npm install -g @earendil-works\/pi-coding-agent/);
  const { result, events } = await stage.run({ pi_path: undefined });
  assertEnd(result, "error", /^pi was not found.*npm install -g @earendil-works\/pi-coding-agent/);
  assert.deepEqual(events, []);
  assert.equal(result.num_turns, 0);
  assertTotals(newest, result, []);
});

// rule: agent.md, agent_health, agent_capabilities: agent_health runs `pi --version`: ok, version,
//   path, or error with the install command
test("agent_health: the version, nowhere, broken, hanging; agent_capabilities", async (t) => {
  const stage = await Stage.set(t, newest, []);
  stage.withEnvironment({ PATH: `${stage.place.path("programs")}:${plainPath()}` });
  const health = (pi_path?: string) => stage.execd.call("agent_health", { pi_path });
  for (const pi of EVERY_PI) {
    const path = stage.program(`pi-${pi.version}`, `exec '${process.execPath}' '${pi.cli}' "$@"`);
    // A busy machine may need more than the limit of 5 s at first.
    const healthy = await until("health", async () => {
      const found = await health(path);
      return found["ok"] === true && found;
    }, SLOWEST_VERSION_MS);
    assert.deepEqual(healthy, { ok: true, version: pi.version, path });
  }
  const quick = { ok: true, version: newest.version, path: stage.plainWrapper };
  stage.program("pi", `exec '${stage.wrapper}' "$@"`);
  assert.deepEqual(await health(), quick);
  const missing = await health("/nowhere/pi");
  assert.equal(missing["ok"], false);
  assert.match(String(missing["error"]), /npm install -g @earendil-works\/pi-coding-agent/);
  const broken = await health(stage.program("broken", "echo no good >&2; exit 3"));
  assert.equal(broken["ok"], false);
  assert.match(String(broken["error"]), /exit code 3.*no good/);
  const started = Date.now();
  const hanging = await health(stage.program("hanging", "setsid sleep 7561 & exec sleep 7560"));
  const took = Date.now() - started;
  assert.equal(hanging["ok"], false);
  assert.match(String(hanging["error"]), /5000 ms/);
  assert.ok(took >= 5_000 && took < 10_000, `${took} ms`);
  assert.deepEqual(startedBy(stage.place), []);
  assert.deepEqual(await stage.execd.call("agent_capabilities"), {
    name: "pi",
    capabilities: ["streaming", "tool_control", "local_workspace", "session_resume", "budgets"],
    cost_model: { provider: "pi", source: "reported" },
  });
});

test("a long prompt leaves no file behind", async (t) => {
  const stage = await Stage.set(t, newest, () => ({ text: "Read." }));
  const files = () => readdirSync(stage.place.tmp, { recursive: true }).map(String)
    .filter((name) => !/^(jiti|node-compile-cache)\/|execd-\d+-\w+\.(log|meta)$/.test(name));
  await stage.run();
  const before = files();
  await stage.run({ prompt: "x".repeat(150 * 1024) });
  assert.deepEqual(files(), before);
});

/** Killing may take 2 s more than the limit, and a busy machine some. */
function assertTook(result: AgentResult, limitMs: number): void {
  const took = result.duration_ms;
  assert.ok(took >= limitMs && took < limitMs + 10_000, `${took} ms, limit ${limitMs}`);
}
