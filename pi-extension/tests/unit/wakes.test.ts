/** Wakes, holding, and steering: the logic alone, and with the real execd. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { holdsIn } from "../../src/pi/hold.ts";
import { GATHER_MS, Inbox } from "../../src/pi/inbox.ts";
import { STEER_CHECK_MS, Steering } from "../../src/pi/steering.ts";
import { BY_USER, type WakeDetails, Wakes, wakeText } from "../../src/pi/wakes.ts";
import { kill, parentOf, outputOf, Pi, runs, textOf, until } from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-ext-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

interface Sent {
  message: { customType: string; content: string; display: boolean; details: WakeDetails };
  options: object;
}

/** A pi that takes messages. */
function wakingPi(ctx: object = {}): { pi: Pi; sent: Sent[]; refusals: { left: number } } {
  const sent: Sent[] = [];
  const refusals = { left: 0 };
  const sendMessage = (message: Sent["message"], options: object) => {
    if (refusals.left-- > 0) throw new Error("not now");
    sent.push({ message, options });
  };
  const pi = new Pi({ sendMessage }, ctx);
  return { pi, sent, refusals };
}

const WAKE = { yield_time_ms: 250, on_exit: "wake" };

describe("wakes with execd", { concurrency: 4 }, () => {
  // rule: pi.md, The extension: A wake is exactly one message without output
  it("an exit that no call told becomes exactly one message, without output", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    const cmd = "sleep 0.6; echo secret output";
    const started = await pi.call("exec_command", { cmd, ...WAKE });
    assert.equal(started.details.completion_notification, "armed");
    await until(() => sent.length > 0, "the wake");
    await pi.emit("agent_settled");
    const { message, options } = sent[0] as Sent;
    const { session_id, log_path } = started.details;
    assert.deepEqual(options, { triggerTurn: true, deliverAs: "followUp" });
    assert.equal(message.customType, "unified-exec-completed");
    assert.equal(message.display, true);
    assert.match(message.content, new RegExp(`session_id=${session_id} · exit_code=0 · elapsed=0`));
    assert.ok(message.content.includes(`command: ${cmd} · cwd: ${process.cwd()} · log_path: ${log_path}`));
    assert.doesNotMatch(message.content.replace(cmd, ""), /secret/);
    assert.equal(message.details.sessions[0]?.session_id, session_id);
    const told = await pi.call("write_stdin", { session_id });
    assert.deepEqual([told.details.exit_code, outputOf(told)], [0, "secret output\n"]);
    await pi.shutdown();
    assert.equal(sent.length, 1);
  });

  // rule: pi.md, The extension: Simultaneous wakes are one message
  it("simultaneous exits are one message", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    const go = join(scratch, "go");
    const cmd = `until [ -e ${go} ]; do sleep 0.02; done`;
    await Promise.all([1, 2, 3].map(() => pi.call("exec_command", { cmd, ...WAKE })));
    writeFileSync(go, "");
    await until(() => sent.length > 0, "the wake");
    await new Promise((done) => setTimeout(done, 400));
    assert.equal(sent.length, 1);
    assert.equal(sent[0]?.message.details.sessions.length, 3);
    assert.match(sent[0]?.message.content ?? "", /^execd: 3 background sessions ended \(a notice, no message of the user\):\n/);
    await pi.shutdown();
  });

  // rule: pi.md, The extension: A result that pi makes an error gives the wake back
  it("a poll that tells the exit uses the wake up, unless pi makes the result an error", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    for (const isError of [false, true]) {
      const params = { cmd: "sleep 0.5; exit 7", ...WAKE };
      const { details: { session_id } } = await pi.call("exec_command", params);
      const poll = { session_id, yield_time_ms: 20_000 };
      const polled = await pi.call("write_stdin", poll, { id: "same" });
      assert.deepEqual([polled.details.exit_code, polled.details.on_exit_wake], [7, "consumed"]);
      await pi.emit("tool_execution_end", { toolCallId: "same", isError });
    }
    await until(() => sent.length > 0, "the wake given back");
    assert.match(sent[0]?.message.content ?? "", /session_id=\d+ · exit_code=7/);
    await pi.shutdown();
    assert.equal(sent.length, 1);
  });

  // rule: pi.md, What the model learns of ends: What pi refuses is kept, and tried again when a call
  //   has ended and whenever pi has settled
  it("a message that pi refuses is sent once more when it has settled", async () => {
    const { pi, sent, refusals } = wakingPi();
    await pi.start();
    refusals.left = 1;
    await pi.call("exec_command", { cmd: "sleep 0.5", ...WAKE });
    await until(() => refusals.left === 0, "the refusal");
    assert.equal(sent.length, 0);
    await pi.emit("agent_settled");
    assert.equal(sent.length, 1);
    await pi.shutdown();
  });

  // Given to pi during a run, the message waited in a queue that Esc clears, and was lost.
  // rule: pi.md, The extension: Wakes during a run: told at its end, after Esc with the next
  //   prompt, never lost; not what a call has told
  it("during a run none is sent: at its end, or to be read with the next prompt after Esc", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    const ended = (stopReason: string) => ({ messages: [{ role: "assistant", stopReason }] });
    const start = () => pi.call("exec_command", { cmd: "sleep 0.4; exit 3", ...WAKE });
    const bothOver = () =>
      until(() => pi.statuses.length > 0 && pi.statuses.at(-1) === undefined, "their ends");

    await pi.emit("agent_start");
    const [one, other] = await Promise.all([start(), start()]);
    await bothOver();
    await new Promise((done) => setTimeout(done, 2 * GATHER_MS));
    assert.equal(sent.length, 0);
    // What a call of this run tells is not told again, neither its own session nor the other.
    const read = await pi.call("write_stdin", { session_id: one.details.session_id }, { id: "r" });
    assert.equal(read.details.exit_code, 3);
    const line = `\nevent: session ${other.details.session_id} (sleep 0.4; exit 3) exited 3, `;
    assert.equal(textOf(read).split(line).length, 2, textOf(read));
    await pi.emit("tool_execution_end", { toolCallId: "r", isError: false });
    await pi.emit("agent_end", ended("stop"));
    assert.equal(sent.length, 0);

    await pi.emit("agent_start");
    const second = await start();
    await bothOver();
    await pi.emit("agent_end", ended("stop"));
    assert.deepEqual(sent.map(({ options }) => options), [{ triggerTurn: true, deliverAs: "followUp" }]);
    const ids = () => sent.at(-1)?.message.details.sessions.map(({ session_id }) => session_id);
    assert.deepEqual(ids(), [second.details.session_id]);

    await pi.emit("agent_start");
    const third = await start();
    await bothOver();
    await pi.emit("agent_end", ended("aborted"));
    assert.equal(sent.length, 1);
    await pi.emit("agent_settled");
    assert.deepEqual(sent.slice(1).map(({ options }) => options), [{ triggerTurn: false }]);
    assert.deepEqual(ids(), [third.details.session_id]);
    await pi.emit("agent_settled");
    await pi.shutdown();
    assert.equal(sent.length, 2);
  });

  // rule: pi.md, The extension: No wake reaches a session that is ending
  it("kill_session and shutdown send none", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    const first = await pi.call("exec_command", { cmd: "sleep 330", ...WAKE });
    await pi.call("exec_command", { cmd: "sleep 331", ...WAKE });
    await pi.call("kill_session", { session_id: first.details.session_id });
    await pi.shutdown();
    await new Promise((done) => setTimeout(done, 400));
    assert.deepEqual(sent, []);
  });

  // rule: pi.md, The extension: No wake reaches a session that is ending
  it("none is sent once shutdown has begun, though a session ends meanwhile", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    // The first takes the whole second of shutdown; the second ends at once in it.
    const stubborn = "trap '' TERM; while :; do sleep 0.1; done";
    await pi.call("exec_command", { cmd: stubborn, ...WAKE });
    const quick = `until [ -e ${join(scratch, "end")} ]; do sleep 0.01; done`;
    await pi.call("exec_command", { cmd: quick, ...WAKE });
    const shutdown = pi.shutdown();
    writeFileSync(join(scratch, "end"), "");
    await shutdown;
    await new Promise((done) => setTimeout(done, 400));
    assert.deepEqual(sent, []);
  });

  it("execd lost: who wanted to be woken is told", async () => {
    const { pi, sent } = wakingPi();
    await pi.start();
    const cmd = `sleep 334; : ${scratch}`;
    const { details } = await pi.call("exec_command", { cmd, ...WAKE });
    kill(parentOf(await runs(cmd)));
    await until(() => sent.length > 0, "the wake");
    const { content } = sent[0]?.message ?? { content: "" };
    assert.match(content, new RegExp(`session_id=${details.session_id} · lost: execd was killed`));
    assert.match(content, /\nIts output is in the log\.\nGo on with the task\.$/);
    await pi.shutdown();
  });

  // rule: pi.md, The extension: Runs under a minimal stub of pi
  it("a host that takes no messages: a person is told when a wake is armed", async () => {
    const pi = new Pi();
    await pi.start();
    const { details } = await pi.call("exec_command", { cmd: "sleep 335", ...WAKE });
    assert.equal(details.completion_notification, "armed");
    assert.match(pi.notices[0] ?? "", /no wake can be sent: this host takes no messages/);
    await pi.shutdown();
  });

  it("in json mode agent_end waits for the wake, and no longer than the flag says", async () => {
    const { pi, sent } = wakingPi({ mode: "json" });
    await pi.start();
    await pi.emit("agent_end", { messages: [] });
    await pi.call("exec_command", { cmd: "sleep 1", ...WAKE });
    await pi.emit("agent_end", { messages: [] });
    assert.equal(sent.length, 1);

    pi.flags["exec-hold-seconds"] = "0.2";
    await pi.call("exec_command", { cmd: "sleep 332", ...WAKE });
    const before = Date.now();
    await pi.emit("agent_end", { messages: [] });
    assert.ok(Date.now() - before < 20_000);
    await pi.shutdown();
    assert.equal(sent.length, 1);
  });

  // rule: pi.md, The extension: A user message ends an attached wait
  // rule: pi.md, The tools: A wait that Esc, a message of yours or pi's end has ended says so
  it("a message that the user sends ends a wait, and the process lives", async () => {
    let pending = false;
    const { pi } = wakingPi({ hasPendingMessages: () => pending });
    await pi.start();
    const wait = pi.call("exec_command", { cmd: "sleep 333", yield_time_ms: 30_000 });
    await new Promise((done) => setTimeout(done, 2 * STEER_CHECK_MS));
    pending = true;
    const stopped = await wait;
    assert.equal(stopped.details.wait_status, "cancelled");
    assert.match(textOf(stopped), /^wait_status: cancelled \(a message from the user came\)$/m);
    assert.match(textOf(await pi.call("list_sessions")), /sleep 333/);
    await pi.shutdown();
  });
});

describe("steering", () => {
  /** A pi whose queue a test fills, with a watch on it. */
  function watched() {
    const queue = { pending: false };
    const ctx = { hasPendingMessages: () => queue.pending };
    const steering = new Steering();
    return { queue, ctx, steering };
  }
  const STEER = { source: "interactive", streamingBehavior: "steer" };
  const FOLLOW_UP = { source: "interactive", streamingBehavior: "followUp" };
  const aWhile = () => new Promise((done) => setTimeout(done, 3 * STEER_CHECK_MS));

  // rule: pi.md, The extension: A user message ends an attached wait
  it("a follow-up ends the wait it comes in and no later one; other extensions' end none", async () => {
    const { queue, ctx, steering } = watched();
    steering.onInput({ source: "interactive" });
    steering.onMessageStart("user", ctx);
    steering.onMessageStart("assistant", ctx);
    const first = steering.watch(ctx);
    queue.pending = true;
    steering.onInput({ source: "extension" });
    await aWhile();
    assert.equal(first.signal.aborted, false);
    steering.onInput(FOLLOW_UP);
    await until(() => first.signal.aborted, "the wait ends");
    first.stop();
    const second = steering.watch(ctx);
    await aWhile();
    assert.equal(second.signal.aborted, false);
    steering.onInput(STEER);
    await until(() => second.signal.aborted, "the next wait ends");
    second.stop();
  });

  // rule: pi.md, The extension: A user message ends an attached wait
  it("of two messages pi delivers one at a time: the second ends the next wait", async () => {
    const { queue, ctx, steering } = watched();
    steering.onMessageStart("assistant", ctx);
    queue.pending = true;
    steering.onInput(STEER);
    steering.onInput(STEER);
    steering.onMessageStart("user", ctx);
    steering.onMessageStart("assistant", ctx);
    const second = steering.watch(ctx);
    await until(() => second.signal.aborted, "the next wait ends");
    second.stop();
    // Both were delivered; a follow-up is what is left.
    steering.onMessageStart("user", ctx);
    steering.onMessageStart("assistant", ctx);
    const third = steering.watch(ctx);
    await aWhile();
    assert.equal(third.signal.aborted, false);
    third.stop();
  });

  // A wait of 20 s looked 133 times; pi's events tell when there is something to look at.
  // rule: pi.md, The extension: pi's events tell of a user message: a wait does not look for it all
  //   the time
  it("a wait looks once, and then when the user has sent something", async () => {
    const { queue, ctx, steering } = watched();
    let looks = 0;
    const counted = { hasPendingMessages: () => { looks += 1; return queue.pending; } };
    steering.onInput({ source: "interactive" });
    steering.onMessageStart("user", ctx);
    const watch = steering.watch(counted);
    await until(() => looks > 0, "the first look");
    await new Promise((done) => setTimeout(done, 6 * STEER_CHECK_MS));
    assert.equal(looks, 1);
    // pi queues a message when every extension has seen it, which may take its time.
    steering.onInput(STEER);
    await until(() => looks > 4, "looks after the event");
    queue.pending = true;
    await until(() => watch.signal.aborted, "the wait ends");
    watch.stop();
    // What never comes is not waited for without end, nor often.
    queue.pending = false;
    looks = 0;
    const second = steering.watch(counted);
    steering.onInput(STEER);
    await new Promise((done) => setTimeout(done, 6 * STEER_CHECK_MS));
    assert.ok(looks <= 8, `${looks} looks`);
    second.stop();
  });

  it("messages that went back to the editor are forgotten", async () => {
    const { queue, ctx, steering } = watched();
    steering.onInput(STEER);
    steering.onMessageStart("assistant", ctx);
    queue.pending = true;
    const watch = steering.watch(ctx);
    await aWhile();
    assert.equal(watch.signal.aborted, false);
    watch.stop();
  });

  it("a host that tells of no input: what is queued during the answer ends a wait", async () => {
    const { queue, ctx, steering } = watched();
    steering.onMessageStart("assistant", ctx);
    queue.pending = true;
    const watch = steering.watch(ctx);
    await until(() => watch.signal.aborted, "the wait ends");
    watch.stop();
    steering.onMessageStart("assistant", ctx);
    const later = steering.watch(ctx);
    await aWhile();
    assert.equal(later.signal.aborted, false);
    later.stop();
  });

  it("a host that cannot tell never ends a wait; a stale context neither", async () => {
    const stale = { hasPendingMessages: (): boolean => { throw new Error("stale"); } };
    const watches = [new Steering().watch({}), new Steering().watch(stale)];
    await new Promise((done) => setTimeout(done, 2 * STEER_CHECK_MS));
    for (const watch of watches) {
      assert.equal(watch.signal.aborted, false);
      watch.stop();
    }
  });
});

describe("the wake's message and its rules", () => {
  it("is bounded, whatever the commands are", () => {
    const command = `printf '\u001b]52;c;x\u0007' ${"x".repeat(1_000_000)}\nsecond line`;
    const many = Array.from({ length: 64 }, (_, id) => ({ session_id: id + 1, command }));
    const text = wakeText(many);
    assert.ok(text.length < 6_000, String(text.length));
    assert.match(text, /… and 48 more; list_sessions shows them/);
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f]/);
  });

  // rule: pi.md, What the model learns of ends: What pi refuses is kept, and tried again when a call
  //   has ended and whenever pi has settled
  it("what pi refuses is tried again until it is taken; people are told once", async () => {
    const said: string[] = [];
    const tries: unknown[] = [];
    let refuses = true;
    const inbox = new Inbox({
      sendMessage: (_message, how) => {
        tries.push(how);
        if (refuses) throw new Error("stale");
      },
    });
    const wakes = new Wakes(inbox, () => true, (message) => said.push(message));
    wakes.onWake({ session_id: 3, exit_code: 1 });
    await until(() => tries.length === 1, "the first try");
    for (let settles = 0; settles < 3; settles++) inbox.onSettled();
    inbox.onAgentStart();
    inbox.onToolEnd();
    assert.equal(tries.length, 5);
    assert.deepEqual(said, ["the model could not be told yet that #3 ended: stale"]);
    assert.equal(wakes.isPending, true);
    refuses = false;
    inbox.onToolEnd();
    assert.equal(tries.length, 6);
    assert.equal(wakes.isPending, false);
    inbox.onToolEnd();
    inbox.onSettled();
    assert.equal(tries.length, 6);
    inbox.close();
  });

  // A run that a message began during a compaction worked on a conversation that was then replaced.
  // rule: pi.md, What the model learns of ends: compaction: what comes during it is told after it
  it("nothing is sent while the conversation is compacted; what came is told after it", async () => {
    const { inbox, wakes, sent } = inboxOf();
    inbox.onCompaction(true);
    wakes.onWake({ session_id: 7, exit_code: 0 });
    await new Promise((done) => setTimeout(done, 2 * GATHER_MS));
    assert.equal(sent.length, 0);
    inbox.onCompaction(false);
    await until(() => sent.length === 1, "the wake");
    inbox.close();
  });

  it("says that it is no message of the user, what to do, and what failed", () => {
    const text = wakeText([{ session_id: 3, exit_code: 1, failure_message: "log write\nfailed" }]);
    assert.match(text, /^execd: a background session ended \(a notice, no message of the user\):\n/);
    assert.match(text, /^- session_id=3 · exit_code=1 · failure: log write failed$/m);
    assert.match(text, /\nGo on with the task\.$/);
    const named = wakeText([{ session_id: 4, name: "the\nbuild", exit_code: 0, command: "make" }]);
    assert.match(named, /^- session_id=4 · name: the build · exit_code=0 · command: make$/m);
    const names = wakeText(Array.from({ length: 17 }, (_, at) => ({ session_id: at })));
    assert.equal(names.match(/^- session_id=/gm)?.length, 16);
    assert.match(names, /^… and 1 more; list_sessions shows them$/m);
  });

  // rule: pi.md, What the model learns of ends: A session that somebody else has ended wakes all the
  //   same, once, and says by whom
  it("an armed session that somebody ends is told once: by whom, unless a result tells it", async () => {
    const { inbox, wakes, sent } = inboxOf();
    let armed = 0;
    const by = async (killed_by: string | undefined, act: (id: number) => void = () => {}) => {
      const id = 10 + armed++;
      wakes.arm(id);
      wakes.onEnd({ session_id: id, signal: "SIGTERM", ...(killed_by && { killed_by }) });
      act(id);
      assert.equal(wakes.isPending, killed_by !== undefined);
      await new Promise((done) => setTimeout(done, 3 * GATHER_MS));
      assert.equal(wakes.isPending, false);
      return sent.splice(0).map(({ content }) => content.split("\n")[1]);
    };
    const said = (words: string, id = 10) => [`- session_id=${id} · signal=SIGTERM · ended by ${words}`];
    assert.deepEqual(await by("kill_session"), said("somebody else (execd kill)"));
    assert.deepEqual(await by(undefined), [], "a call has told it");
    inbox.close();
    const own = inboxOf();
    own.wakes.arm(4);
    own.wakes.onEnd({ session_id: 4, signal: "SIGTERM", killed_by: "kill_session" });
    own.wakes.tell("a", [{ ended: { session_id: 4, signal: "SIGTERM" }, woke: false }]);
    await new Promise((done) => setTimeout(done, 3 * GATHER_MS));
    assert.deepEqual([own.sent, own.wakes.isPending], [[], false]);
    own.inbox.close();
    const user = inboxOf();
    user.wakes.arm(5);
    user.wakes.onEnd({ session_id: 5, signal: "SIGTERM", killed_by: "kill_process" });
    user.wakes.onUntold([{ ended: { session_id: 5, killed_by: BY_USER }, woke: false }]);
    await until(() => user.sent.length === 1, "the wake");
    await new Promise((done) => setTimeout(done, 2 * GATHER_MS));
    assert.equal(user.sent.length, 1);
    assert.match(user.sent[0]?.content ?? "", /^- session_id=5 · signal=SIGTERM · ended by the user$/m);
    // execd's notification may be read after the reply: what only that knows is told as well.
    user.wakes.arm(6);
    user.wakes.onUntold([{ ended: { session_id: 6, killed_by: BY_USER }, woke: false }]);
    user.wakes.onEnd({ session_id: 6, killed_by: "kill_process", log_path: "/l" });
    await until(() => user.sent.length === 2, "the second wake");
    assert.match(user.sent[1]?.content ?? "", /^- session_id=6 · ended by the user · log_path: \/l$/m);
    user.inbox.close();
  });

  /** An inbox whose messages a test reads, and shows as pi does. */
  function inboxOf() {
    const sent: { content: string; how: { triggerTurn?: boolean } | undefined }[] = [];
    const inbox = new Inbox({
      sendMessage: (message, how) => sent.push({ content: String(message.content), how }),
    });
    const wakes = new Wakes(inbox, () => true, assert.fail);
    const show = (content: string) =>
      inbox.onMessageStart({ role: "custom", customType: "unified-exec-completed", content });
    const run = (stopReason: string) => {
      inbox.onAgentStart();
      inbox.onMessageStart({ role: "user", content: "go on" });
      return inbox.onAgentEnd({ messages: [{ role: "assistant", stopReason }] });
    };
    return { inbox, wakes, sent, show, run };
  }

  // Esc clears pi's queue, and with it a message that waited there for the run's end.
  // rule: pi.md, The extension: What Esc clears from pi's queue is told again, once
  it("what pi has taken and dropped is told again, at the end of the next run", () => {
    const { inbox, wakes, sent, show, run } = inboxOf();
    inbox.onAgentStart();
    wakes.onWake({ session_id: 7, exit_code: 0 });
    assert.equal(run("stop"), true);
    assert.equal(sent.length, 1);
    // The user presses Esc before pi has shown it. It may still be queued, so that it is not told
    // twice.
    assert.equal(run("aborted"), false);
    inbox.onSettled();
    assert.equal(sent.length, 1);
    wakes.onWake({ session_id: 8, exit_code: 0 });
    assert.equal(run("stop"), true);
    assert.match(sent[1]?.content ?? "", /2 background sessions[^]*session_id=7[^]*session_id=8/);
    assert.equal(sent[1]?.how?.triggerTurn, true);
    // What is shown has arrived.
    show(sent[1]?.content ?? "");
    assert.equal(run("stop"), false);
    assert.equal(inbox.isPending, false);
    inbox.close();
  });

  it("a host that never tells what it shows is trusted with what it has taken", () => {
    const { inbox, wakes, sent } = inboxOf();
    for (let turn = 0; turn < 3; turn++) {
      inbox.onAgentStart();
      if (turn === 0) wakes.onWake({ session_id: 7, exit_code: 0 });
      inbox.onAgentEnd({ messages: [] });
      inbox.onSettled();
    }
    assert.equal(sent.length, 1);
    inbox.close();
  });

  // rule: pi.md, The extension: What Esc clears from pi's queue is told again, once
  it("a host that tells of no message of ours is given one once more, and not for ever", () => {
    const { inbox, wakes, sent, run } = inboxOf();
    inbox.onAgentStart();
    wakes.onWake({ session_id: 7, exit_code: 0 });
    for (let turn = 0; turn < 5; turn++) run("stop");
    assert.equal(sent.length, 2);
    inbox.close();
  });

  it("a message whose text the host has made parts of has arrived all the same", () => {
    const { inbox, wakes, sent, run } = inboxOf();
    inbox.onAgentStart();
    wakes.onWake({ session_id: 7, exit_code: 0 });
    run("stop");
    const content = [{ type: "text", text: sent[0]?.content }];
    inbox.onMessageStart({ role: "custom", customType: "unified-exec-completed", content });
    for (let turn = 0; turn < 3; turn++) run("stop");
    assert.equal(sent.length, 1);
    inbox.close();
  });

  it("of many ends that wait the newest are told, and of the others how many they are", () => {
    const { inbox, wakes, sent, run } = inboxOf();
    inbox.onAgentStart();
    for (let id = 1; id <= 1_030; id++) wakes.onWake({ session_id: id, exit_code: 0 });
    run("stop");
    assert.match(sent[0]?.content ?? "", /^execd: 1030 background sessions ended [^\n]*:\n- session_id=7 /);
    inbox.close();
  });

  // rule: pi.md, The extension: In -p and json mode an armed wake holds agent_end, at most
  //   --exec-hold-seconds
  it("only json and print mode hold, and only a run that went well", () => {
    const ended = (stopReason: string) => ({ messages: [{ role: "assistant", stopReason }] });
    const held = (["json", "print", "rpc", "tui"] as const)
      .map((mode) => holdsIn(ended("stop"), { mode }));
    assert.deepEqual(held, [true, true, false, false]);
    assert.equal(holdsIn(ended("error"), { mode: "json" }), false);
    assert.equal(holdsIn(ended("aborted"), { mode: "json" }), false);
    assert.equal(holdsIn(ended("stop"), {}), false);
  });
});
