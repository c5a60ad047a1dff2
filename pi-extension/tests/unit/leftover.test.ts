/** What a conversation was not told, in its own file. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { SessionEvent } from "../../src/execd/wire-results.ts";
import type { HostContext } from "../../src/pi/host.ts";
import { keepUntold, keptUntold, withoutDoubles } from "../../src/pi/leftover.ts";

const exited = (session_id: number, at_ms = 7): SessionEvent =>
  ({ what: "exited", session_id, at_ms, command: "npm test", exit_code: 1 });

/** A conversation with these entries. */
function conversation(...entries: unknown[]): HostContext {
  return { sessionManager: { getEntries: () => entries } } as unknown as HostContext;
}

const left = (...events: unknown[]) =>
  ({ type: "custom", customType: "execd-untold", data: { events } });

/** A result that tells these events. */
const result = (isError: boolean, ...events: unknown[]) =>
  ({ type: "message", message: { role: "toolResult", isError, details: { events }, content: [] } });

const ids = (ctx: HostContext) => keptUntold(ctx).map(({ session_id }) => session_id);

// rule: pi.md, What the model learns of ends: what was not told when pi ended is told to a later
//   `pi --continue`
it("what a later result told is told, an error's is not, and the last entry counts", () => {
  assert.deepEqual(ids({}), []);
  assert.deepEqual(ids(conversation(left(exited(1), exited(2)))), [1, 2]);
  assert.deepEqual(ids(conversation(left(exited(1)), left(exited(3)))), [3]);
  assert.deepEqual(ids(conversation(left(exited(1), exited(2)), result(false, exited(1)))), [2]);
  assert.deepEqual(ids(conversation(left(exited(1)), result(true, exited(1)))), [1]);
  const before = conversation(result(false, exited(1)), left(exited(1, 8)));
  assert.deepEqual(ids(before), [1], "an id may be another execd's");
});

it("what no execd has written is left out", () => {
  const odd = [null, 3, {}, { session_id: "1" }, { ...exited(1), at_ms: "now" }, exited(4)];
  assert.deepEqual(ids(conversation(left(...odd))), [4]);
  for (const data of [undefined, null, "x", [], { events: 3 }]) {
    assert.deepEqual(ids(conversation({ type: "custom", customType: "execd-untold", data })), []);
  }
});

it("nothing is written where there is nothing to tell, or no place for it", () => {
  const written: unknown[] = [];
  const host = { appendEntry: (...entry: unknown[]) => written.push(entry) };
  keepUntold(host as never, {}, []);
  keepUntold({} as never, {}, [exited(1)]);
  assert.deepEqual(written, []);
  keepUntold(host as never, conversation(left(exited(1))), [exited(1)]);
  assert.deepEqual(written, [], "it stands there");
  keepUntold(host as never, conversation(left(exited(1))), [exited(1), exited(2)]);
  assert.deepEqual(written, [["execd-untold", { events: [exited(1), exited(2)] }]]);
});

it("an event from two places is told once", () => {
  assert.deepEqual(withoutDoubles([exited(1), exited(1), exited(1, 8)]), [exited(1), exited(1, 8)]);
});
