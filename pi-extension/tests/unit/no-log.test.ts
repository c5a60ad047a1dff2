/** With PI_EXECD_NO_LOG no text leads a model to a log: there is none. */
import assert from "node:assert/strict";
import { after, it } from "node:test";
import { reportText } from "../../src/tools/stream-answer.ts";
import * as words from "../../src/tools/words.ts";
import { wakeText } from "../../src/pi/wakes.ts";
import { withBash } from "./bash-lib.ts";
import { EXECD, Pi } from "./lib.ts";

process.env.PI_EXECD_NO_LOG = "1";
after(() => {
  delete process.env.PI_EXECD_NO_LOG;
});

/** Fails where a text speaks of a log, other than to say that there is none. */
function assertNoLog(text: string, what: string): void {
  const others = text.replace(/There (are no log files|is no log)\b/g, "");
  assert.doesNotMatch(others, /.{0,40}(\blogs?\b|\blog_?path).{0,40}/i, what);
}

/** All that a model reads about the tools that are registered. */
function assertTools(pi: Pi, where: string): string {
  const texts = [...pi.tools.values()].map((tool) => {
    const { description, promptSnippet, promptGuidelines, parameters } = tool;
    const text = JSON.stringify({ description, promptSnippet, promptGuidelines, parameters });
    assertNoLog(text, `${where} ${tool.name}`);
    return text;
  });
  return texts.join("\n");
}

// poll_process told to grep the log, the texts of wakes that the log has all of the output; and of
// commands on another machine no tool said so.
for (const surface of ["unified", "stream"]) {
  // rule: bash-stream.md, The stream family: Without logs no text promises one, and one of a far
  //   machine still says so
  it(`no text of a tool promises a log, here and on another machine: ${surface}`, async () => {
    process.env.PI_EXECD_TOOLS = surface;
    for (const command of [undefined, `exec ${EXECD}`]) {
      if (command !== undefined) process.env.EXECD_COMMAND = command;
      const pi = new Pi();
      await pi.start();
      const texts = assertTools(pi, surface);
      assert.match(texts, /There are no log files/);
      assert.equal(/Commands run on another machine/.test(texts), command !== undefined);
      await pi.shutdown();
      delete process.env.EXECD_COMMAND;
    }
  });
}

// rule: bash-stream.md, The stream family: Without logs no text promises one, and one of a far
//   machine still says so
it("no text of a tool promises a log: bash", async () => {
  await withBash({}, async (pi) => {
    assertTools(pi, "bash");
  });
});

// rule: bash-stream.md, The stream family: Without logs no text promises one, and one of a far
//   machine still says so
it("no error and no note of a result promises a log", () => {
  for (const surface of Object.values(words)) {
    const texts = Object.entries(surface).filter(([, text]) => typeof text === "string");
    assert.ok(texts.length >= 3);
    for (const [name, text] of texts) assertNoLog(text, name);
  }
  const ended = {
    sessionId: 1, status: "completed", exitCode: 0, stdout: "end\n", stderr: "", durationMs: 5,
    startedAt: "2026-11-21T17:57:39.819Z", pid: 7, truncated: true, late: true,
    backgroundPids: [8],
  };
  const { head, foot } = reportText(ended as never);
  assertNoLog(head + foot, "report");
  assert.match(foot, /get_process_log with sessionId 1 gives what memory still has of it\]/);
  const logged = reportText({ ...ended, logPath: "/tmp/a.log" } as never);
  assert.match(logged.foot, /gives any part of the log\]/);
});

// rule: bash-stream.md, The stream family: Without logs no text promises one, and one of a far
//   machine still says so
it("a wake names the log where there is one", () => {
  const here = { session_id: 1, exit_code: 0, command: "make" };
  const logged = { ...here, session_id: 2, log_path: "/tmp/execd-2-0123abcd.log" };
  const lost = "execd was killed by SIGKILL";
  assertNoLog(wakeText([here]), "read");
  assertNoLog(wakeText([{ ...here, lost }]), "lost");
  assert.match(wakeText([{ ...here, lost }]), /what no call has shown of its output is gone\.$/m);
  assert.match(wakeText([logged]), /at once; the log has all of it\.$/m);
  assert.match(wakeText([logged, here]), /where there is a log_path, that file has all of it\.$/m);
  assert.match(wakeText([{ ...logged, lost }]), /^Its output is in the log\.$/m);
  assert.match(wakeText([{ ...logged, lost }, { ...here, lost }]), /; else it is gone\.$/m);
});
