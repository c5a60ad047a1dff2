/**
 * `pi -p` that stays for what it has started. It did so for 600 s without a word, and in pi 1.5
 * SIGTERM and SIGHUP did nothing meanwhile: that pi aborts its run and waits for its extensions
 * before it tells them to shut down. The stub does the same.
 */
import assert from "node:assert/strict";
import { type TestContext, it } from "node:test";
import { hold, holdText } from "../../src/pi/hold.ts";
import { Inbox } from "../../src/pi/inbox.ts";
import { BashPi } from "./bash-lib.ts";
import { Pi } from "./lib.ts";

const ANSWER = {
  messages: [{
    role: "assistant", stopReason: "stop",
    content: [{ type: "text", text: "It \x1b[31mbuilds." }],
  }],
};

/** What the extension writes to stderr during a test. */
function stderrOf(t: TestContext): string[] {
  const lines: string[] = [];
  t.mock.method(console, "error", (text: string) => lines.push(text));
  return lines;
}

/** Ends pi as pi 1.5 does at SIGTERM: the run is aborted, and has to end before the shutdown. */
async function terminated(pi: Pi, run: AbortController, held: Promise<void>): Promise<void> {
  run.abort();
  await held;
  await pi.shutdown();
}

// rule: pi.md, The extension: What holds agent_end says so on stderr, and ends with the run that a
//   signal aborts
it("a held pi says what it waits for, and ends when its run is aborted", async (t) => {
  const said = stderrOf(t);
  const sent: object[] = [];
  const run = new AbortController();
  const sendMessage = (message: object) => sent.push(message);
  const pi = new Pi({ sendMessage }, { mode: "print", signal: run.signal });
  await pi.start();
  const cmd = "exec sleep 7161";
  const started = await pi.call("exec_command", { cmd, yield_time_ms: 250, on_exit: "wake" });
  const { session_id } = started.details;
  const held = pi.emit("agent_end", ANSWER);
  assert.deepEqual(said, [
    "execd: the answer so far:\nIt builds.\n"
    + `execd: waiting for #${session_id} ${cmd}, at most 600 s; Ctrl-C ends`,
  ]);
  await terminated(pi, run, held);
  assert.deepEqual([said.length, sent], [1, []], "nothing is told to a run that was ended");
});

// rule: pi.md, The extension: What holds agent_end says so on stderr, and ends with the run that a
//   signal aborts
it("so does one that is held for a command that has gone to the background", async (t) => {
  const said = stderrOf(t);
  const run = new AbortController();
  const pi = new BashPi({}, {}, { mode: "json", signal: run.signal });
  await pi.start();
  // One that was asked for in the background is not waited for, as a server would not be.
  await pi.call("bash", { command: "exec sleep 7163", background: true });
  await pi.emit("agent_end", ANSWER);
  assert.deepEqual(said, []);
  await pi.call("bash", { command: "exec sleep 7162", timeout: 0.2, timeoutAction: "background" });
  const held = pi.emit("agent_end", ANSWER);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^execd: waiting for #\d+ exec sleep 7162, at most 600 s; Ctrl-C ends$/);
  await terminated(pi, run, held);
  assert.deepEqual(pi.sent, []);
});

it("the first that is done ends a hold, for the others too", async () => {
  const sent: string[] = [];
  const inbox = new Inbox({ sendMessage: ({ customType }) => sent.push(customType) });
  const source = { types: [], isPending: true, hasNews: false, take: assert.fail };
  let hasNews = false;
  inbox.add(source);
  inbox.add({
    types: [], isPending: true,
    get hasNews() { return hasNews; },
    take: () => {
      hasNews = false;
      return {
        customType: "done", content: "", details: {}, putBack: assert.fail, refused: assert.fail,
      };
    },
  });
  inbox.onAgentStart();
  const held = hold(inbox, 60_000, undefined);
  hasNews = true;
  inbox.hasCome();
  assert.equal(await held, "done");
  assert.deepEqual(sent, ["done"]);
  assert.equal(await hold(inbox, 5, undefined), "late");
  assert.equal(await hold(inbox, 60_000, AbortSignal.abort()), "stopped");
  // One of two that cannot come any more ends no hold: the other one may still come.
  const over = hold(inbox, 60_000, undefined);
  inbox.changed();
  assert.equal(await Promise.race([over, new Promise((done) => setTimeout(done, 20))]), undefined);
  inbox.close();
  assert.equal(await over, "done");
});

it("long answers and many commands are cut", () => {
  const content = [{ type: "text", text: "x".repeat(20_000) }];
  const event = { messages: [{ role: "assistant", content }] };
  const awaited = Array.from({ length: 7 }, (_, i) => ({ id: i, command: "a\nb" }));
  const text = holdText(event, { mode: "print" }, awaited, "5 s");
  assert.match(text, /x\n… 3616 more characters\nexecd: waiting for #0 a b, #1 /);
  assert.match(text, /, #4 a b, 2 more, at most 5 s; Ctrl-C ends$/);
});
