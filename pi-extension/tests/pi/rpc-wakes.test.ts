/**
 * Wakes of sessions that somebody else has ended, and of those that end while pi does something
 * else: each is told once, whatever comes between; and what people are told of ended sessions.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { textOf } from "./lib/events.ts";
import { exec, turn } from "./lib/model.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";

const WAKE = "unified-exec-completed";
const armed = (cmd: string) => exec(cmd, { yield_time_ms: 250, on_exit: "wake" });
const until = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;

/** The texts of the wakes so far. */
const wakes = (rpc: Rpc) => rpc.custom(WAKE).map(({ content }) => textOf(content));

// rule: pi.md, What the model learns of ends: A session that somebody else has ended wakes all the
//   same, once, and says by whom
test("/kill of a session with a wake: the model is woken, once, and told by whom", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", armed("exec sleep 7201")),
      turn("I wait."),
      { when: "ended by the user", text: "I see.", calls: [exec("true")] },
      turn("Done."),
    ],
  });
  await rpc.prompt("go");
  await rpc.say("/kill 1");
  await rpc.waitFor("the end of the turn", () => rpc.said().at(-1) === "Done.");
  assert.equal(wakes(rpc).length, 1);
  assert.match(wakes(rpc)[0] ?? "", new RegExp("^execd: a background session ended \\(a notice, no "
    + "message of the user\\):\\n- session_id=1 · signal=SIGTERM · ended by the user · elapsed=\\S+ · "
    + "command: exec sleep 7201 · cwd: \\S+ · log_path: \\S+\\nIts output is in the log\\.\\n"));
  assert.match(wakes(rpc)[0] ?? "", /\nGo on with the task\.$/);
  assert.doesNotMatch(rpc.toolEnds("exec_command")[1]?.text ?? "", /^event:/m);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: A session that somebody else has ended wakes all the
//   same, once, and says by whom
// rule: pi.md, What happens when: /reload, /new, /resume and /fork name the sessions that they end
test("/reload with a wake armed: a notice names what ended, and the model is woken", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", armed("exec sleep 7202"), exec("exec sleep 7203", { yield_time_ms: 250 })),
      turn("I wait."),
      { when: "ended by the user: /reload", text: "I see.", calls: [exec("true")] },
      turn("Done."),
    ],
  });
  await rpc.prompt("go");
  const from = rpc.mark();
  await rpc.say("/test-reload");
  const { text, kind } = await rpc.notice(/ended 2 sessions/, from);
  assert.equal(text, "execd: /reload ended 2 sessions: #1 exec sleep 7202, #2 exec sleep 7203");
  assert.equal(kind, "warning");
  await rpc.waitFor("the end of the turn", () => rpc.said().at(-1) === "Done.");
  assert.equal(wakes(rpc).length, 1);
  assert.match(wakes(rpc)[0] ?? "", /- session_id=1 · ended by the user: \/reload · command: exec/);
  // The other one had no wake: the next result tells it.
  assert.match(rpc.toolEnds("exec_command").at(-1)?.text ?? "",
    /^event: session 2 \(exec sleep 7203\) was killed \(the user: \/reload\), \d+ s ago$/m);
  assert.doesNotMatch(rpc.toolEnds("exec_command").at(-1)?.text ?? "", /event: session 1/);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What happens when: /reload, /new, /resume and /fork name the sessions that they end
test("/new names what it ends; the end of pi says how many there were", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", exec("exec sleep 7204", { yield_time_ms: 250 })),
      turn("Runs."),
      turn("Start.", exec("exec sleep 7205", { yield_time_ms: 250 })),
      turn("Runs."),
    ],
  });
  await rpc.prompt("go");
  const from = rpc.mark();
  await rpc.command("new_session");
  const { text } = await rpc.notice(/ended/, from);
  assert.equal(text, "execd: /new ended 1 session: #1 exec sleep 7204");
  await rpc.prompt("go");
  assert.equal((await rpc.quit()).code, 0);
  assert.match(rpc.stderr, /^execd: ended 1 session$/m);
  assert.equal(rpc.notices(from).filter((one) => / ended \d/.test(one.text)).length, 1);
});

// rule: pi.md, What the model learns of ends: compaction: what comes during it is told after it
test("a wake that comes during a compaction is told after it, once", async (t) => {
  const place = scratch(t);
  const summarized = join(place.cwd, "summarized");
  const long = "long ".repeat(12_000);
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", armed(`${until("go")}; exit 3`)),
      turn(long),
      turn(long),
      { when: "ummar", text: "A summary.", waitForFile: summarized },
      { when: "session_id=1 · exit_code=3", text: "I was woken." },
    ],
  });
  await rpc.prompt("go");
  await rpc.prompt("on");
  const from = rpc.mark();
  const compacted = rpc.command("compact");
  await rpc.waitFor("the compaction", (one) => one.type === "compaction_start", from);
  writeFileSync(join(place.cwd, "go"), "");
  await rpc.status("unified-exec.sessions", undefined, from);
  assert.deepEqual(wakes(rpc), []);
  writeFileSync(summarized, "");
  await compacted;
  await rpc.waitFor("the wake's answer", () => rpc.said().at(-1) === "I was woken.");
  const ended = rpc.records.findIndex((one) => one.type === "compaction_end");
  const woken = rpc.records.findIndex((one) =>
    one.type === "message_start" && one.message?.customType === WAKE);
  assert.ok(ended >= 0 && woken > ended, `${ended} before ${woken}`);
  assert.equal(wakes(rpc).length, 1);
  assert.equal((await rpc.quit()).code, 0);
});
