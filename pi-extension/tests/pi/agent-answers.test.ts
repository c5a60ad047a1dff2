/**
 * agent_execute with the real pi: what it answers, and what pi and the model were given.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { textOfMessage } from "../../scripts/model-server.ts";
import type { Answer } from "../../scripts/model-server.ts";
import { assertTotals, bash, MODEL, outline, PIS, Stage } from "./lib/agent.ts";
import { until } from "./lib/waiting.ts";

for (const pi of PIS) {
  describe(`pi ${pi.version} answers`, { concurrency: 2 }, () => {
    // rule: agent.md, The result: Every field, in the document's order
    test(`pi ${pi.version}: a plain answer, whole`, async (t) => {
      const usage = { prompt: 1_200, cached: 1_000, completion: 40 };
      const stage = await Stage.set(t, pi, [{ text: "Hello from the model.", chunk: 5, usage }]);
      const { result, events } = await stage.run({ prompt: "Say hello" });
      assert.deepEqual(outline(events), [
        "turn_start 1",
        "text Hello from the model.",
        "turn_end 1",
      ]);
      const deltas = events.filter((one) => one.event === "text").map((one) => one.delta);
      assert.deepEqual(deltas, ["Hello", " from", " the ", "model", "."]);
      const { session_id, duration_ms, first_event_ms = NaN, first_text_ms = NaN } = result;
      assert.deepEqual(pick(result, "success", "error", "output", "finish_reason", "num_turns",
        "tool_call_count", "tool_calls", "executor", "executor_version", "exit_code"), {
        success: true, error: undefined, output: "Hello from the model.", finish_reason: "stop",
        num_turns: 1, tool_call_count: 0, tool_calls: {}, executor: "pi",
        executor_version: pi.version, exit_code: 0,
      });
      assertTotals(pi, result, [usage]);
      assert.match(session_id ?? "", /^[0-9a-f-]{36}$/);
      assert.ok(first_event_ms > 0 && first_event_ms <= first_text_ms, `${first_event_ms}`);
      assert.ok(first_text_ms <= duration_ms, `${first_text_ms}, ${duration_ms}`);
      const drift = pick(result.provider_data, "unknown_events", "unknown_fields");
      assert.deepEqual(Object.values(drift).map((one) => one ?? {}), [{}, {}], "nothing unknown");
      assert.equal(result.provider_data.unparsed_lines ?? 0, 0);
      assert.match(readFileSync(result.log_path ?? "", "utf8"), /"event":"turn_end"/);
      assert.equal(textOfMessage(stage.model.asked[0]?.messages.at(-1)), "Say hello");
    });

    // rule: agent.md, agent_event: The events and their fields, each with the request's id
    // rule: agent.md, agent_event: tool_result: id, name, output, is_error; long ones are cut
    // rule: agent.md, agent_event: turn_end has the turn's usage and cost
    test(`pi ${pi.version}: thinking, two tools, three turns`, async (t) => {
      const usages = [
        { prompt: 400, cacheWrite: 300, completion: 60, reasoning: 25 },
        { prompt: 500, cached: 300, completion: 30, reasoning: 5 },
        { prompt: 600, cached: 500, completion: 10 },
      ] as const;
      const stage = await Stage.set(t, pi, [
        {
          thinking: "Two at once, I think.",
          text: "Both.",
          calls: [bash("until [ -e b ]; do sleep 0.02; done; echo a"), bash("echo b; touch b")],
          usage: usages[0],
        },
        { calls: [{ name: "read", args: { path: "missing.txt" } }], usage: usages[1] },
        { text: "Done 😀.", chunk: 1, cut: "units", usage: usages[2] },
      ]);
      const { result, events } = await stage.run();
      const lines = outline(events);
      assert.deepEqual(lines.slice(0, 5), [
        "turn_start 1",
        "thinking Two at once, I think.",
        "text Both.",
        'tool_use bash {"command":"until [ -e b ]; do sleep 0.02; done; echo a"}',
        'tool_use bash {"command":"echo b; touch b"}',
      ]);
      const results = ["tool_result bash: a\n", "tool_result bash: b\n"];
      assert.deepEqual(lines.slice(5, 7).sort(), results);
      assert.deepEqual(lines.slice(7, 10), [
        "turn_end 1", "turn_start 2", 'tool_use read {"path":"missing.txt"}',
      ]);
      assert.match(lines[10] ?? "", /^tool_result read failed: ENOENT/);
      const rest = ["turn_end 2", "turn_start 3", "text \n\nDone 😀.", "turn_end 3"];
      assert.deepEqual(lines.slice(11), rest);
      const ids = new Set(events.filter((one) => one.event === "tool_use").map((one) => one.id));
      assert.equal(ids.size, 3);
      for (const one of events.filter((event) => event.event === "tool_result")) {
        assert.ok(ids.has(one.id), one.id);
      }
      assert.deepEqual(pick(result, "success", "output", "num_turns", "tool_calls"), {
        success: true, output: "Both.\n\nDone 😀.", num_turns: 3,
        tool_calls: { bash: 2, read: 1 },
      });
      assert.deepEqual([result.tool_call_count, result.finish_reason], [3, "stop"]);
      assertTotals(pi, result, [...usages]);
      const ends = events.filter((one) => one.event === "turn_end");
      const cost = ends.reduce((sum, one) => sum + (one.cost_usd ?? 0), 0);
      assert.ok(Math.abs(cost - result.cost_usd) < 1e-9, `${cost}`);
    });

    // rule: agent.md, agent_execute, params: stream (true), keep_events (false)
    test(`pi ${pi.version}: stream false tells nothing, keep_events keeps all`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "Quiet." }]);
      const { result, events } = await stage.run({ stream: false, keep_events: true });
      assert.deepEqual(events, []);
      assert.equal(result.output, "Quiet.");
      const kept = result.provider_data.events?.map((one) => one["type"]) ?? [];
      assert.equal(kept[0], "session");
      assert.ok(kept.includes("message_update") && kept.includes("agent_end"), `${kept}`);
    });

    // rule: agent.md, Invocation: A prompt that starts with `-` or `@` is no flag and no file to pi
    test(`pi ${pi.version}: prompts that look like flags and files, and a long one`, async (t) => {
      const stage = await Stage.set(t, pi, () => ({ text: "Read." }));
      const prompts = ["--help me", "@notes.md and more", "a 'quote' \"and\" $HOME\n\\"];
      for (const prompt of prompts) {
        const { result } = await stage.run({ prompt });
        assert.equal(result.output, "Read.", `${prompt}: ${result.error}`);
        const got = textOfMessage(stage.model.asked.at(-1)?.messages.at(-1));
        assert.equal(got, /^[-@]/.test(prompt) ? ` ${prompt}` : prompt);
      }
    });

    // rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600,
    //   removed: named by the text
    test(`pi ${pi.version}: a prompt of 200 KiB goes through a private file`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "Read." }]);
      // It is asked for its version too.
      const look = 'for last; do :; done; [ $# -lt 2 ] || stat -Lc %a "${last#@}" >"$HOME/mode"';
      const looking = stage.program("looking-pi", `${look}; exec '${stage.wrapper}' "$@"`);
      const prompt = `-first\n${"ä line of it\n".repeat(16_000)}last`;
      assert.ok(Buffer.byteLength(prompt) > 200 * 1024);
      const { result } = await stage.run({ prompt, pi_path: looking });
      assert.equal(result.output, "Read.", result.error);
      assert.equal(readFileSync(join(stage.place.home, "mode"), "utf8"), "600\n");
      const got = textOfMessage(stage.model.asked[0]?.messages.at(-1));
      assert.ok(got.includes(prompt), `${got.length} characters arrived, ${got.slice(0, 200)}`);
      const file = /<file name="([^"]+)"/.exec(got)?.[1];
      assert.ok(file !== undefined, got.slice(0, 200));
      await until("the file is gone", () => !existsSync(file));
    });

    // rule: agent.md, agent_execute, params: system_prompt is put before the prompt with a blank
    //   line, or handed to pi's flag
    // rule: agent.md, agent_execute, params: allowed_tools: absent, `[]`, a list
    test(`pi ${pi.version}: tools, thinking level, system prompts reach the model`, async (t) => {
      const stage = await Stage.set(t, pi, () => ({ text: "Well." }));
      const asked = async (params: object) => {
        const { result } = await stage.run(params);
        assert.equal(result.success, true, result.error);
        const request = stage.model.asked.at(-1);
        assert.ok(request !== undefined);
        return request;
      };
      const plain = await asked({ thinking: "high" });
      assert.deepEqual(plain.tools, ["bash", "edit", "read", "write"]);
      assert.equal(plain.body["reasoning_effort"], "high");
      const none = await asked({ allowed_tools: [], thinking: "off", system_prompt: "Be brief." });
      assert.deepEqual(none.tools, []);
      assert.notEqual(none.body["reasoning_effort"], "high");
      assert.equal(textOfMessage(none.messages.at(-1)), "Be brief.\n\nGo");
      const some = await asked({
        allowed_tools: ["read", "grep"],
        system_prompt: "Be as brief as you can.",
        append_system_prompt: true,
      });
      assert.deepEqual(some.tools, ["grep", "read"]);
      assert.equal(textOfMessage(some.messages.at(-1)), "Go");
      assert.match(textOfMessage(some.messages[0]), /Be as brief as you can\./);
      assert.doesNotMatch(textOfMessage(none.messages[0]), /Be brief/);
    });

    // rule: agent.md, agent_execute, params: workspace, env, pi_path (PATH, EXECD_PI), extra_args,
    //   extensions
    test(`pi ${pi.version}: workspace, env, extra_args, EXECD_PI`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { calls: [bash("pwd; echo $GIVEN; echo ${TO_GO:-gone}")] },
        { text: "Done." },
      ]);
      stage.withEnvironment({ EXECD_PI: stage.wrapper, TO_GO: "still here" });
      const { result, events } = await stage.run({
        pi_path: undefined,
        workspace: stage.place.tmp,
        env: { GIVEN: "by the caller", TO_GO: null },
        extra_args: ["--append-system-prompt", "From an extra argument."],
      });
      assert.equal(result.success, true, result.error);
      const told = events.find((one) => one.event === "tool_result");
      assert.equal(told?.output, `${stage.place.tmp}\nby the caller\ngone\n`);
      const system = textOfMessage(stage.model.asked[0]?.messages[0]);
      assert.match(system, /From an extra argument\./);
    });

    // rule: agent.md, agent_execute, params: thinking and session become `--thinking`, `--session`,
    //   without a session `--no-session`
    test(`pi ${pi.version}: a session goes on where it was`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { text: "The word is plum." }, { text: "Plum." }, { text: "Still plum." },
      ]);
      const file = join(stage.place.dir, "kept", "session.jsonl");
      const first = await stage.run({ prompt: "Choose a word", session: file });
      assert.equal(first.result.success, true, first.result.error);
      const id = first.result.session_id;
      const second = await stage.run({ prompt: "Which?", session: file });
      assert.equal(second.result.session_id, id);
      const told = stage.model.asked[1]?.messages.map(textOfMessage) ?? [];
      assert.deepEqual(told.slice(-3), ["Choose a word", "The word is plum.", "Which?"]);
      const third = await stage.run({
        session: id,
        prompt: "And now?",
        env: { PI_CODING_AGENT_SESSION_DIR: join(stage.place.dir, "kept") },
      });
      assert.equal(third.result.output, "Still plum.", third.result.error);
      assert.equal(third.result.session_id, id);
      assert.equal(stage.model.asked[2]?.messages.length, 2 + told.length);
    });

    // rule: agent.md, agent_event: retry and error
    test(`pi ${pi.version}: retries are told and counted`, async (t) => {
      const usage = { prompt: 90, completion: 8 };
      const answers: Answer[] = [
        { status: 500 }, { text: "Broken", hangUp: true }, { text: "Lucky.", usage },
      ];
      const stage = await Stage.set(t, pi, answers);
      const { result, events } = await stage.run();
      const lines = outline(events).filter((line) => !line.startsWith("turn_"));
      assert.deepEqual(lines, [
        "error", "retry 1 of 2", "text Broken", "error", "retry 2 of 2", "text \n\nLucky.",
      ]);
      assert.deepEqual(pick(result, "success", "finish_reason", "output", "error"), {
        success: true, finish_reason: "stop", output: "Broken\n\nLucky.", error: undefined,
      });
      const retries = { count: 2, max_attempts: 2, exhausted: false };
      assert.deepEqual(result.provider_data.retries, retries);
      assertTotals(pi, result, [usage]);
    });

    // rule: agent.md, The result: success: exit 0 with stop, length or tool_calls
    test(`pi ${pi.version}: an answer cut by the limit of tokens is a success`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "On and", finish: "length" }]);
      const { result } = await stage.run();
      assert.deepEqual(pick(result, "success", "finish_reason", "output"), {
        success: true, finish_reason: "length", output: "On and",
      });
    });
  });
}

// rule: agent.md, agent_execute, params: A missing model is −32602, `model is required: pi's own
//   default is google, name one`
test("agent_execute without a model, or with one that has no provider, is refused", async (t) => {
  const [pi] = PIS;
  assert.ok(pi !== undefined);
  const stage = await Stage.set(t, pi, []);
  for (const [model, message] of [
    [undefined, /^model is required: pi's own default is google, name one$/],
    ["scripted", /^model must be provider\/id/],
  ] as const) {
    const { error } = await stage.execd.answer(stage.start({ model }));
    assert.equal(error?.code, -32602);
    assert.match(error?.message ?? "", message);
  }
  const { error } = await stage.execd.answer(stage.execd.send("agent_execute", { model: MODEL }));
  assert.equal(error?.code, -32602);
  assert.equal(stage.model.asked.length, 0);
});

function pick<T extends object>(from: T, ...keys: (keyof T)[]): Partial<T> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Partial<T>;
}
