/**
 * What pi's session file keeps of a result: its output once. It stood there up to three times (in
 * the text, as `stdout` and as `aggregated`), so that a long conversation was read and written
 * slowly for nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderers, streamRenderers } from "../../src/render/index.ts";
import type { ToolRenderers } from "../../src/render/row.ts";
import { windowMessageRenderer } from "../../src/render/messages.ts";
import { prefixed } from "../../src/tools/tool.ts";
import { readConfig } from "../../src/bash/config.ts";
import { withBash } from "./bash-lib.ts";
import { Pi, type Result, textOf, until } from "./lib.ts";
import { CWD, drawnBy, give, screen, theme, withoutColours } from "./render-harness.ts";

/** Output that no command line has in it. */
const MARK = /mark-\d+/g;
const PRINTS = "for i in 1 2 3; do echo ma''rk-$i; done";
const ERRS = `${PRINTS}; { ${PRINTS}; } >&2`;

/** Fails unless what pi keeps of it has each line once, and gives what a person sees of it. */
function checked(name: string, result: Result, by: ToolRenderers, lines = 3): string[] {
  const kept = JSON.stringify(result).match(MARK) ?? [];
  assert.equal(kept.length, lines, `${name}: ${JSON.stringify(result)}`);
  // As pi restores it: from the file, in a row that has seen nothing else.
  const made = drawnBy(by, name, {}, CWD);
  give(made, JSON.parse(JSON.stringify(result)) as object);
  made.component.setExpanded(true);
  const seen = screen(made).slice(2);
  assert.equal((seen.join("\n").match(MARK) ?? []).length, lines, seen.join("\n"));
  return seen;
}

async function withTools(tools: string, work: (pi: Pi) => Promise<void>): Promise<void> {
  process.env.PI_EXECD_TOOLS = tools;
  const pi = new Pi();
  await pi.start();
  try {
    await work(pi);
  } finally {
    await pi.shutdown();
  }
}

// rule: pi.md, The extension: pi's session file has each output once
test("unified: each result has its output once, and its row shows it", async () => {
  await withTools("unified", async (pi) => {
    const first = await pi.call("exec_command", { cmd: PRINTS });
    const seen = checked("exec_command", first, renderers.exec_command);
    assert.deepEqual(seen.slice(0, 3), ["mark-1", "mark-2", "mark-3"]);
    const told = prefixed(first as never, "[execd was restarted]\n") as unknown as Result;
    const noted = checked("exec_command", told, renderers.exec_command);
    assert.deepEqual(noted, seen, "words before the text move the place of the output");

    const cmd = `trap '${PRINTS}; exit' TERM; ${PRINTS}; sleep 441 & wait`;
    const held = await pi.call("exec_command", { cmd, yield_time_ms: 1_000 });
    checked("exec_command", held, renderers.exec_command);
    const { session_id } = held.details;
    const killed = await pi.call("kill_session", { session_id });
    checked("kill_session", killed, renderers.kill_session);
  });
});

// rule: pi.md, The extension: pi's session file has each output once
test("stream: each result has its output once, and its row shows it", async () => {
  await withTools("stream", async (pi) => {
    const run = await pi.call("bash_stream", { command: ERRS });
    const seen = checked("bash_stream", run, streamRenderers.bash_stream, 6);
    assert.deepEqual(seen.slice(0, 8), [
      "stdout:", "mark-1", "mark-2", "mark-3", "stderr:", "mark-1", "mark-2", "mark-3",
    ]);
    const { sessionId } = run.details as unknown as { sessionId: number };
    const page = await pi.call("get_process_log", { sessionId, stream: "stdout" });
    checked("get_process_log", page, streamRenderers.get_process_log);

    const command = `${PRINTS}; sleep 442`;
    const held = await pi.call("bash_stream", { command, yieldMs: 1_000 });
    checked("bash_stream", held, streamRenderers.bash_stream);
    const { sessionId: id } = held.details as unknown as { sessionId: number };
    const poll = await pi.call("poll_process", { sessionId: id });
    checked("poll_process", poll, streamRenderers.poll_process);
    const killed = await pi.call("kill_process", { sessionId: id });
    checked("kill_process", killed, streamRenderers.kill_process);
  });
});

// rule: pi.md, The extension: pi's session file has each output once
test("bash: a look, and the message of an end, have the output once", async () => {
  await withBash({ autoCloseWindowsOnCompletion: false }, async (pi) => {
    const jobs = ["one", "two"].map((name) =>
      pi.call("bash", { command: PRINTS, background: true, name }));
    await Promise.all(jobs);
    const told = () => pi.sent.flatMap(({ details }) => details.windows);
    await until(() => told().length === 2, "both ends");
    for (const message of pi.sent) {
      const lines = 3 * message.details.windows.length;
      assert.equal(JSON.stringify(message).match(MARK)?.length, lines);
      const draw = windowMessageRenderer({ config: readConfig("/no/such/file").config });
      const drawn = draw(message, { expanded: false }, theme).render(80);
      assert.equal(withoutColours(drawn.join("\n")).match(MARK)?.length, lines);
    }
    const peek = await pi.call("tmux", { action: "peek", window: "@1" });
    assert.equal(JSON.stringify(peek).match(MARK)?.length, 3);
    assert.match(textOf(peek), /mark-1\nmark-2\nmark-3/);
  });
});
