/** until, stop and wait_for with the real execd: what is sent, what the model reads, wakes. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { outputOf, Pi, type Result, textOf, until } from "./lib.ts";

const LONG_MS = 600_000;
const ARMED = { yield_time_ms: 250, on_exit: "wake" };

/** A pi of a test's own, and what it was told: Esc in one call holds all wakes of its pi back. */
async function ownPi(t: TestContext) {
  const sent: { content: string }[] = [];
  const pi = new Pi({ sendMessage: (message: { content: string }) => sent.push(message) });
  await pi.start();
  t.after(() => pi.shutdown());
  /** Starts a command that runs on and gives its session. */
  const started = async (cmd: string, how: object = ARMED): Promise<number> => {
    const { details } = await pi.call("exec_command", { cmd, ...how });
    assert.ok(details.session_id !== undefined, cmd);
    return details.session_id;
  };
  return { pi, sent, started };
}

describe("calls that say what they wait for", { concurrency: 4 }, () => {

  // rule: waits.md, until and stop: What comes true in `until` ends the wait
  it("exec_command and write_stdin end with a line of the output", async (t) => {
    const { pi } = await ownPi(t);
    const cmd = "echo up; read line; echo down; exec sleep 460";
    const ups = { cmd, until: { text: "up" }, yield_time_ms: String(LONG_MS) };
    const up = await pi.call("exec_command", ups);
    assert.match(textOf(up), /^wait: matched "up" → up$/m);
    assert.equal(up.details.wait.outcome, "matched");
    assert.equal(up.details.yield_time_ms, LONG_MS);
    const { session_id } = up.details;
    const asked = { session_id, chars: "x\\n", until: "{}", stop: { regex: "^d" } };
    const down = await pi.call("write_stdin", { ...asked, yield_time_ms: LONG_MS });
    assert.match(textOf(down), /^wait: stopped by \/\^d\/ → down$/m);
    assert.equal(outputOf(down), "down\n");
    await pi.call("kill_session", { session_id });
  });

  // rule: waits.md, Limits: A field that `until` does not know is refused by its path
  it("what is wrong in a condition is refused by its path", async (t) => {
    const { pi } = await ownPi(t);
    await assert.rejects(pi.call("exec_command", { cmd: "true", until: { foo: 1 } }), /until\.foo/);
    await assert.rejects(pi.call("exec_command", { cmd: "true", stop: { regex: "a(" } }),
      /stop\.regex/);
  });

  // rule: waits.md, wait_for: waits for several sessions of any family at once
  it("wait_for: ends that it tells are told by no wake, and by one where pi loses it", async (t) => {
    const { pi, sent, started } = await ownPi(t);
    const both = await Promise.all(["one", "two"].map((name) =>
      started(`sleep 0.8; echo mark-${name}`)));
    const params = { session_ids: both, mode: "all", timeout_ms: LONG_MS };
    const told = await pi.call("wait_for", params, { id: "both" });
    assert.match(textOf(told), /mark-one[^]*mark-two|mark-two[^]*mark-one/);
    const { sessions } = told.details as unknown as { sessions: { session_id: number }[] };
    assert.deepEqual(sessions.map(({ session_id }) => session_id), both);
    assert.ok(sessions.every((row) => !("output" in row) && !("footer" in row)));
    assert.ok(!("text" in told.details), "the text stands in the content");
    await pi.emit("tool_execution_end", { toolCallId: "both", isError: true });
    await until(() => sent.length > 0, "the wake of what pi has lost");
    for (const id of both) {
      assert.match(sent.at(-1)?.content ?? "", new RegExp(`session_id=${id} · exit_code=0`));
    }
    assert.equal(sent.length, 1);
  });

  it("wait_for: without ids all that run; Esc ends the wait and no session", async (t) => {
    const { pi, started } = await ownPi(t);
    const id = await started("exec sleep 461", { yield_time_ms: 250 });
    const controller = new AbortController();
    const { signal } = controller;
    const call = pi.call("wait_for", { mode: "all", timeout_ms: LONG_MS }, { signal });
    const listed = await pi.call("list_sessions");
    controller.abort();
    const result: Result = await call;
    assert.equal(result.details.wait.outcome, "cancelled");
    assert.match(textOf(listed), /sleep 461/);
    assert.match(textOf(result), new RegExp(`^session ${id}: .*pending`, "m"));
    await pi.call("kill_session", { session_id: id });
  });

  it("wait_for: output that is left unread is there for the next call, and no wake repeats the end", async (t) => {
    const { pi, sent, started } = await ownPi(t);
    const id = await started("sleep 0.6; echo kept");
    const params = { session_ids: String(id), take: "false", timeout_ms: LONG_MS };
    const result = await pi.call("wait_for", params);
    assert.doesNotMatch(textOf(result).replace(/^session .*$/m, ""), /kept/);
    assert.match(textOf(result), new RegExp(`^session ${id}: .*exited`, "m"));
    assert.equal(outputOf(await pi.call("write_stdin", { session_id: id })), "kept\n");
    assert.equal(sent.length, 0);
  });
});

/** The extension clamped by itself, and nobody said so. */
// rule: pi.md, The extension: PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS is read at each call
it("no wait is longer than the longest poll, and a clamped one says what it was clamped to", async () => {
  const pi = new Pi();
  await pi.start();
  process.env.PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS = "6000";
  try {
    // It goes on behind what is waited for: a wait for no session at all has nothing to clamp.
    const cmd = "echo x; sleep 0.1; echo y; exec sleep 600";
    const params = { cmd, until: { text: "x" }, yield_time_ms: LONG_MS };
    const { details } = await pi.call("exec_command", params);
    assert.equal(details.yield_time_ms, 6_000);
    const said = (name: string) => `${name} was ${LONG_MS}, the most is 6000`;
    assert.equal(details.note, said("yield_time_ms"));
    const none = await pi.call("exec_command", { cmd: "true", yield_time_ms: LONG_MS });
    assert.equal(none.details.note, `yield_time_ms was ${LONG_MS}, the most is 30000`);
    const waited = await pi.call("wait_for", { until: { text: "y" }, timeout_ms: LONG_MS });
    assert.match(textOf(waited), new RegExp(`^note: ${said("timeout_ms")}$`, "m"));
  } finally {
    delete process.env.PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS;
    await pi.shutdown();
  }
});
