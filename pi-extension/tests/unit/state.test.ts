/** What the details of every result say of its session. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { stateOf } from "../../src/tools/state.ts";
import { withBash } from "./bash-lib.ts";
import { Pi, type Result } from "./lib.ts";

// rule: pi.md, The tools: `details` of every result have `operation`, `status` and `running`
it("what replies say is one of a few words", () => {
  const cases: [object, string, boolean][] = [
    [{ session_id: 1 }, "running", true],
    [{ exit_code: 0 }, "exited", false],
    [{ signal: "SIGTERM" }, "exited", false],
    [{ signal: "SIGKILL", killed_by: "execd kill" }, "killed", false],
    [{ session_id: 1, exit_code: 1 }, "exited", false],
    [{ exit_code: -1, failure_message: "nosuchshell: ENOENT" }, "failed", false],
    [{ exit_code: 0, failure_message: "log write failed" }, "exited", false],
    [{ status: "completed", exitCode: 0 }, "completed", false],
    [{ status: "running", sessionId: 1 }, "running", true],
    [{ status: "killed", running: false, session_id: 1 }, "killed", false],
    [{ sessions: [] }, "ok", false],
    [{ sessions: [{ session_id: 1, exit_code: 1 }, { session_id: 2 }] }, "running", true],
    [{ sessions: [{ session_id: 1, exit_code: 1 }] }, "ok", false],
    [{ processes: [{ status: "failed" }, { status: "running" }] }, "running", true],
  ];
  for (const [details, status, running] of cases) {
    assert.deepEqual(stateOf("t", details), { operation: "t", status, running },
      JSON.stringify(details));
  }
});

function stateIn({ details }: Result): [unknown, unknown, unknown] {
  const { operation, status, running } = details as unknown as Record<string, unknown>;
  return [operation, status, running];
}

// rule: pi.md, The tools: `details` of every result have `operation`, `status` and `running`
it("each unified tool says it", async () => {
  const pi = new Pi();
  pi.flags["exec-tools"] = "unified,more";
  await pi.start();
  const call = async (name: string, params: object = {}) => stateIn(await pi.call(name, params));
  assert.deepEqual(await call("exec_command", { cmd: "true" }), ["exec_command", "exited", false]);
  const updates: Result[] = [];
  const started = await pi.call("exec_command", { cmd: "echo up; exec sleep 7311", yield_time_ms: 600 },
    { onUpdate: (update) => updates.push(update) });
  const { session_id } = started.details;
  assert.deepEqual(stateIn(started), ["exec_command", "running", true]);
  assert.ok(updates.length > 0);
  for (const { details } of updates) assert.equal(details.session_id, session_id);
  const armed = await pi.call("set_on_exit", { session_id: `#${session_id}`, on_exit: "wake" });
  assert.deepEqual(stateIn(armed), ["set_on_exit", "armed", true]);
  assert.equal((armed.details as { wake_armed?: boolean }).wake_armed, true);
  const off = await pi.call("set_on_exit", { session_id, on_exit: "none" });
  assert.equal((off.details as { wake_armed?: boolean }).wake_armed, false);
  assert.deepEqual(await call("list_sessions"), ["list_sessions", "running", true]);
  assert.deepEqual(await call("wait_for", { timeout_ms: 0 }), ["wait_for", "running", true]);
  assert.deepEqual(await call("kill_session", { session_id: `@${session_id}` }),
    ["kill_session", "killed", false]);
  assert.deepEqual(await call("kill_session", { session_id: 999 }),
    ["kill_session", "unknown", false]);
  assert.deepEqual(await call("list_sessions"), ["list_sessions", "ok", false]);
  await pi.shutdown();
});

// rule: pi.md, The tools: `details` of every result have `operation`, `status` and `running`
it("each bash tool says it", async () => {
  await withBash({}, async (pi) => {
    const call = async (name: string, params: object) => stateIn(await pi.call(name, params));
    assert.deepEqual(await call("bash", { command: "true" }), ["bash", "completed", false]);
    // The first update came before the session was known.
    const updates: Result[] = [];
    const command = "sleep 0.4; echo up; sleep 0.4";
    await pi.call("bash", { command }, { onUpdate: (update) => updates.push(update) });
    assert.ok(updates.length >= 2, `${updates.length} updates`);
    for (const { details } of updates) assert.equal(details.session_id, 2);
    assert.deepEqual(await call("bash", { command: "exec sleep 7312", background: true }),
      ["bash", "background", true]);
    assert.deepEqual(await call("tmux", { action: "list" }), ["tmux", "running", true]);
    assert.deepEqual(await call("tmux", { action: "peek", window: "#3" }), ["tmux", "running", true]);
    assert.deepEqual(await call("tmux", { action: "kill", window: "3" }), ["tmux", "ok", false]);
  });
});
