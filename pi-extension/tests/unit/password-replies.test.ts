/** What models read of waits that stopped for a password. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { WaitForResult, WaitReport, WaitResult } from "../../src/execd/wire-results.ts";
import {
  joined, restOf, withTimeOf, withoutOurs, withoutOursOfAll,
} from "../../src/pi/password-replies.ts";

const asked: WaitReport = {
  outcome: "matched", by: "input", session_id: 1, state: "waiting_for_password",
  effective_timeout_ms: 60_000,
};
const first: WaitResult = {
  session_id: 1, yield_time_ms: 8_000, effective_wait_ms: 1_500, wait: asked,
  wait_status: "condition_met", output: "Password: ",
  header: "[still running]\nsession_id: 1\nwait: matched input: a password (sudo)\nstate: x",
};

/** `wait: matched input: a password` stood there, of an `until` that the model never gave. */
it("what the model did not ask for has not come true", () => {
  const told = withoutOurs(first, { until: { text: "done" } });
  assert.equal(told.header, "[still running]\nsession_id: 1\nstate: x");
  assert.deepEqual([told.wait, told.wait_status], [undefined, undefined]);
  for (const until of [{ input: true }, { input: "password" }]) {
    assert.equal(withoutOurs(first, { until }), first);
    assert.equal(withoutOurs(first, { stop: until }), first);
  }
  const all = {
    wait: asked, sessions: [{ session_id: 1, command: "sudo x", state: "s", outcome: "matched", wait: asked }],
    text: "wait: matched input: a password (sudo) (session 1)\n\nsession 1: sudo x — matched\n"
      + "state: s\nwait: matched input: a password (sudo)\nlog_path: /l",
  } as WaitForResult;
  const { wait, sessions: [row], text } = withoutOursOfAll(all, { until: { port: 1 } });
  assert.deepEqual([wait.outcome, wait.session_id, row?.outcome, row?.wait],
    ["cancelled", 1, "pending", undefined]);
  assert.equal(text, "wait: cancelled (a password is asked for) (session 1)\n\n"
    + "session 1: sudo x — pending\nstate: s\nlog_path: /l");
});

/** `note: yield_time_ms was 2939, the least is 5000` was told, and the call waited so long. */
it("a wait behind a password lasts as long as was asked for, and tells that time", () => {
  assert.deepEqual(restOf({}, first, 6_500),
    { params: { session_id: 1, yield_time_ms: 6_500 } });
  assert.deepEqual(restOf({}, first, 2_939),
    { params: { session_id: 1, yield_time_ms: 5_000 }, endsAfterMs: 2_939 });
  assert.equal(restOf({}, first, -5).endsAfterMs, 50);
  const after: WaitResult = {
    session_id: 1, yield_time_ms: 5_000, effective_wait_ms: 2_940, output: "ok\n",
    wait: { outcome: "deadline", effective_timeout_ms: 6_500 }, note: "one; yield_time_ms was 9, the least is 10",
    header: "[still running]\nsession_id: 1\nnote: one; yield_time_ms was 9, the least is 10\n"
      + "wait: deadline after 6500 ms\nlog_path: /l",
  };
  const until = { text: "done" };
  const told = joined(first, after, { params: { until }, isTimedOut: false });
  assert.equal(told.header, "[still running]\nsession_id: 1\nnote: one\nwait: deadline after 8000 ms\nlog_path: /l");
  assert.deepEqual([told.note, told.yield_time_ms, told.effective_wait_ms, told.output],
    ["one", 8_000, 4_440, "Password: ok\n"]);
  assert.equal(told.wait?.effective_timeout_ms, 8_000);
  const cut = { ...after, wait_status: "cancelled", wait: { outcome: "cancelled" as const, why: "y" } };
  const header = "[still running]\nsession_id: 1\nwait_status: cancelled (y)\nlog_path: /l";
  const clamped = { ...first, note: "yield_time_ms was 3, the least is 8000" };
  const { note: _, ...bare } = cut;
  const over = joined(clamped, { ...bare, header }, { params: { until }, isTimedOut: true });
  assert.equal(over.header, "[still running]\nsession_id: 1\nnote: yield_time_ms was 3, the least is 8000\n"
    + "wait: deadline after 8000 ms\nlog_path: /l");
  assert.deepEqual([over.wait_status, over.wait], ["relative_deadline_reached", { outcome: "deadline" }]);
});

/** `deadline after 8243 ms` was told of a wait of 9000. */
it("wait_for tells the time that it was asked for with", () => {
  const reply = (ms: number) => ({
    wait: { outcome: "deadline", effective_timeout_ms: ms }, sessions: [],
    text: `wait: deadline after ${ms} ms\nno session`,
  }) as WaitForResult;
  const told = withTimeOf(reply(9_000), reply(8_243));
  assert.equal(told.text, "wait: deadline after 9000 ms\nno session");
  assert.equal(told.wait.effective_timeout_ms, 9_000);
});
