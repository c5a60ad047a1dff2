/** /kill, by a person: what the model is told of it, in each family. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { wakeText } from "../../src/pi/wakes.ts";
import { eventWords } from "../../src/text/events.ts";
import { forPeople } from "../../src/text/session.ts";
import { withBash } from "./bash-lib.ts";
import { Pi, textOf, until } from "./lib.ts";

const kill = (pi: Pi, id: unknown) => pi.commands.get("kill")?.(String(id), pi.ctx);

/** The next call on the session failed: `unknown session_id`. */
// rule: pi.md, What the model learns of ends: A session that a person has ended with /kill answers with
//   how, by whom, its last output and its log
it("exec_command: the next call is answered with how, by whom and its last output", async () => {
  const pi = new Pi();
  await pi.start();
  const { details } = await pi.call("exec_command", { cmd: "echo up; exec sleep 7313", yield_time_ms: 300 });
  await kill(pi, details.session_id);
  assert.match(pi.notices.at(-1) ?? "", /^execd: ended #1 echo up; exec sleep 7313$/);
  const told = textOf(await pi.call("write_stdin", { session_id: details.session_id }));
  assert.match(told, /^killed_by: the user$/m);
  assert.match(told, /^note: session 1 \(echo up; exec sleep 7313\) was ended by the user \d+ s ago$/m);
  assert.match(told, /\n---\nup\n/);
  assert.doesNotMatch(told, /^event: /m, "once");
  await pi.shutdown();
});

// rule: pi.md, What the model learns of ends: A session that a person has ended with /kill answers with
//   how, by whom, its last output and its log
it("bash_stream: the next poll says who has ended it", async () => {
  const pi = new Pi();
  pi.flags["exec-tools"] = "stream";
  await pi.start();
  const { details } = await pi.call("bash_stream", { command: "echo up; exec sleep 7314", yieldMs: 1_000 });
  const { sessionId } = details as unknown as { sessionId: number };
  await kill(pi, sessionId);
  const polled = await pi.call("poll_process", { sessionId });
  assert.equal((polled.details as unknown as { killedBy: string }).killedBy, "the user");
  await pi.shutdown();
});

// rule: pi.md, What the model learns of ends: A session that a person has ended with /kill answers with
//   how, by whom, its last output and its log
it("bash: the message of the window's end says who has ended it", async () => {
  await withBash({}, async (pi) => {
    await pi.call("bash", { command: "echo up; exec sleep 7315", background: true, name: "nap" });
    await kill(pi, "@1");
    await until(() => pi.sent.length > 0, "the message");
    assert.match(pi.sent[0]?.content ?? "", /^Background command finished with exit code 143\n/);
    assert.match(pi.sent[0]?.content ?? "", /^window: nap @1\n\$ echo up; .*\nended by the user\n/m);
  });
});

// They left the windows out, which /kill and /tail take as well.
it("/kill and /tail complete the ids of bash's windows too", async () => {
  await withBash({}, async (pi) => {
    await pi.call("bash", { command: "exec sleep 7316", background: true, name: "nap" });
    for (const name of ["kill", "tail"]) {
      const [first] = pi.completions.get(name)?.("") ?? [];
      assert.equal(first?.value, "1", name);
      assert.match(first?.description ?? "", /nap: exec sleep 7316/, name);
    }
  });
});

it("a wake says by whom a session was ended, a row too, also what a later poll is told", () => {
  const ended = { session_id: 2, command: "make" };
  const said = wakeText([{ ...ended, exit_code: 143, killed_by: "execd kill" }]);
  assert.match(said, / · ended by somebody else \(execd kill\) · /);
  const killed_by = "the user: /reload";
  const row = { session_id: 2, what: "exited", command: "make", at_ms: 0, killed_by };
  assert.equal(eventWords(row), "#2 make · ended by you (/reload)");
  assert.equal(
    forPeople("session 3 (sleep 300) was ended by the user 4 s ago"), "#3 sleep 300 was ended by you 4 s ago",
  );
});
