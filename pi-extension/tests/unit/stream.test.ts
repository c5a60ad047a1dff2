/** The stream tools under a minimal stub of pi, against the real execd. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { cutSequence } from "../../src/text/plain.ts";
import { pageText, reportText } from "../../src/tools/stream-answer.ts";
import type { Told } from "../../src/tools/tool.ts";
import type { StreamList, StreamReport, LogPage, StdinResult } from "../../src/execd/wire-results.ts";
import { outputOf, Pi, type Result, processesWith, textOf, until } from "./lib.ts";

process.env.PI_EXECD_TOOLS = "stream";

const whole = ({ head, output, foot }: Told) => head + output + foot;
const reportOf = (result: Result) => result.details as unknown as Required<StreamReport>;

describe("the stream tools", { concurrency: 8 }, () => {
  let pi: Pi;
  before(async () => {
    pi = new Pi();
    await pi.start();
  });
  after(() => pi.shutdown());

  it("registers six tools and takes pi's bash away", () => {
    assert.deepEqual([...pi.tools.keys()].sort(), [
      "bash_stream", "get_process_log", "kill_process", "list_processes", "poll_process",
      "write_stdin",
    ]);
    assert.deepEqual(pi.active, ["read", "edit"]);
    assert.deepEqual(pi.notices, []);
  });

  it("bash_stream: facts, both streams, details as execd gave them", async () => {
    const result = await pi.call("bash_stream", { command: "echo one; echo two >&2; exit 3" });
    const { sessionId, pid, startedAt, durationMs, logPath, ...rest } = reportOf(result);
    const { output_at } = result.details;
    const state = { operation: "bash_stream", status: "failed", running: false };
    assert.deepEqual(rest, { ...state, exitCode: 3, output_at });
    assert.equal(outputOf(result), "stdout:\none\nstderr:\ntwo\n");
    assert.match(startedAt, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.equal(typeof pid, "number");
    assert.equal(
      textOf(result),
      `[failed]\nsessionId: ${sessionId}\nexitCode: 3\ndurationMs: ${durationMs}\n`
        + `logPath: ${logPath}\n---\nstdout:\none\nstderr:\ntwo\n`,
    );
    assert.equal(readFileSync(logPath, "utf8"), "one\ntwo\n");
  });

  it("only stdout needs no name, no output is said", async () => {
    const plain = await pi.call("bash_stream", { command: "echo just this" });
    assert.match(textOf(plain), /^\[completed\]\n[^]*\n---\njust this\n$/);
    const silent = await pi.call("bash_stream", { command: "true" });
    assert.match(textOf(silent), /\n---\n\(no output\)$/);
    const errors = await pi.call("bash_stream", { command: "echo bad >&2" });
    assert.match(textOf(errors), /\n---\nstderr:\nbad\n$/);
  });

  it("a spawn failure is a result", async () => {
    const result = await pi.call("bash_stream", { command: "true", workdir: "no/such/dir" });
    assert.equal(reportOf(result).exitCode, -1);
    assert.match(textOf(result), /^\[failed\]\nsessionId: \d+\nexitCode: -1\nerror: workdir .*ENOENT/);
    const listed = await pi.call("list_processes");
    const { sessionId } = reportOf(result);
    assert.match(textOf(listed), new RegExp(`^- sessionId ${sessionId} · failed · exitCode -1`, "m"));
  });

  // rule: bash-stream.md, The stream family: Trouble with the log is told in each reply
  it("a model is told of trouble with the log, of a gap and of an odd end", () => {
    const report = { status: "failed", sessionId: 1, signal: "SIGKILL", stdout: "x\n" } as const;
    const said = whole(reportText({
      ...report, note: "ended by somebody", failureMessage: "log write failed: ENOSPC: none left",
    }));
    assert.match(said, /\nx\n\n\[ended by somebody\]\n\n\[log write failed: ENOSPC: none left\]$/);
    const limited = whole(reportText({ ...report, logTruncated: true }));
    assert.match(limited, /\n\[the log ended at its limit, what came later is not in it\]$/);
    const page = { sessionId: 1, text: "x", offset: 5, nextOffset: 6, totalBytes: 6, eof: true };
    assert.match(whole(pageText({ ...page, omittedBytes: 5 })),
      /^\[log of sessionId 1, bytes 5 to 6 of 6; end of the log; 5 bytes before it cannot be given\]/);
  });

  // rule: waits.md, Impossible: Who waits for what is said once
  it("a model is told once who waits for input, and what to do", () => {
    const why = "cat waits for a line on stdin; nothing else runs";
    const running = {
      status: "running", sessionId: 1, pid: 7, state: "waiting_for_line",
      stateDetail: { command: "cat" },
    } as const;
    const report = {
      ...running, note: `${why}: write to it (write_stdin), or so`,
      wait: { outcome: "impossible", state: "waiting_for_line", why },
    } as const;
    const began = whole(reportText({ ...report, tail: "up\n" }));
    assert.equal(began, `[running]\nsessionId: 1\npid: 7\nwait: impossible\n---\nup\n\n[${why}: write to it `
      + "(write_stdin), or so]\n\n[This is the end of its output so far]");
    const polled = whole(reportText({ ...report, stdout: "", stderr: "" }));
    assert.equal(polled, "[running]\nsessionId: 1\npid: 7\nwait: impossible\n---\n(no new output)\n"
      + `\n[${why}: write to it (write_stdin), or so]`);
    // A port that somebody else holds is no matter of input.
    const held = { outcome: "impossible", why: "port 80 is held by nginx" } as const;
    const said = whole(reportText({ ...running, wait: held, stdout: "", stderr: "" }));
    assert.match(said, /\nwait: impossible: port 80 is held by nginx\nwaits for a line \(cat\)\n---\n/);
    assert.match(said, /\n\[Still running\. poll_process /);
  });

  it("workdir, environment and loose types are as for exec_command", async () => {
    const command = "pwd; echo $AI_AGENT $GIVEN ${LANG-unset}";
    const result = await pi.call("bash_stream", {
      command, workdir: "tests", env: { GIVEN: 5, LANG: null }, yieldMs: "5000.7",
    });
    assert.equal(outputOf(result), `${process.cwd()}/tests\npi 5 unset\n`);
    const home = await pi.call("bash_stream", { command: "pwd", workdir: "~" });
    assert.equal(outputOf(home), `${process.env.HOME}\n`);
  });

  it("yields, is polled, driven and ends; a finished one is polled again", async () => {
    const started = await pi.call("bash_stream", {
      command: "echo ready; cat; echo bye >&2; exit 7", yieldMs: 1_000, name: "a cat",
    });
    const { sessionId, pid, status } = reportOf(started);
    assert.deepEqual([status, outputOf(started)], ["running", "ready\n"]);
    assert.ok(textOf(started).startsWith(`[running]\nsessionId: ${sessionId}\npid: ${pid}\n`));
    // A machine that is busy may not have seen by then that the command waits for input.
    const more = /\n---\nready\n\n\[(cat waits .*\]\n\n\[This is the end |Still running, .*poll_process)/;
    assert.match(textOf(started), more);

    const first = await pi.call("poll_process", { sessionId: String(sessionId) });
    assert.deepEqual([reportOf(first).status, outputOf(first)], ["running", "ready\n"]);
    const nothing = await pi.call("poll_process", { sessionId });
    assert.match(textOf(nothing), /\n---\n\(no new output\)\n\n\[Still running\./);

    const literal = await pi.call("write_stdin", { sessionId, data: "a\\n\n" });
    const { written, queued, eof } = literal.details as unknown as StdinResult;
    assert.deepEqual({ written, queued, eof }, { written: 4, queued: 0, eof: false });
    assert.equal(textOf(literal), "wrote 4 bytes. poll_process shows what it answers.");
    const echoed = await pi.call("poll_process", { sessionId, maxDrainMs: 20_000 });
    assert.equal(outputOf(echoed), "a\\n\n");

    const data = { base64: Buffer.from("\u0001é\n").toString("base64") };
    await pi.call("write_stdin", { sessionId, data, eof: true });
    const ended = await pi.call("poll_process", { sessionId, waitMs: "600000" });
    assert.deepEqual([reportOf(ended).status, reportOf(ended).exitCode], ["failed", 7]);
    assert.match(outputOf(ended), /^stdout:\nready\na\\n\n.*é\nstderr:\nbye\n$/);
    const again = await pi.call("poll_process", { sessionId });
    assert.deepEqual(again.details, ended.details);
    assert.equal((again.details as { running?: boolean }).running, false);
    await assert.rejects(pi.call("write_stdin", { sessionId, data: "x" }), /has exited/);
  });

  /** `data and chars are one param` was answered, though the call had chars alone. */
  // rule: pi.md, The tools: A name that other agents' tools have for a parameter is taken for it
  it("other agents' names are taken", async () => {
    const started = await pi.call("bash_stream", { cmd: "pwd; exec cat", cwd: "/", yieldMs: 1_000 });
    const { sessionId } = reportOf(started);
    for (const name of ["chars", "input"]) {
      const wrote = await pi.call("write_stdin", { session_id: `#${sessionId}`, [name]: "a\\n\n" });
      assert.equal(textOf(wrote), "wrote 4 bytes. poll_process shows what it answers.");
    }
    const both = { sessionId, chars: "x", input: "y" };
    await assert.rejects(pi.call("write_stdin", both), { message: /are one param: give one of them/ });
    await pi.call("write_stdin", { sessionId, eof: true });
    const ended = await pi.call("poll_process", { sessionId, waitMs: 600_000 });
    assert.equal(outputOf(ended), "/\na\\n\na\\n\n");
  });

  it("eof alone closes stdin", async () => {
    const { sessionId } = reportOf(
      await pi.call("bash_stream", { command: "cat; echo over", yieldMs: 1_000 }),
    );
    const closed = await pi.call("write_stdin", { sessionId, eof: "true", data: "" });
    assert.equal((closed.details as unknown as StdinResult).eof, true);
    assert.match(textOf(closed), /^wrote 0 bytes; stdin is closed\./);
    const poll = await pi.call("poll_process", { sessionId, waitMs: 600_000 });
    assert.equal(outputOf(poll), "over\n");
  });

  it("a terminal has one stream", async () => {
    const command = "test -t 0 && test -t 2 && echo yes; echo err >&2";
    const result = await pi.call("bash_stream", { command, stdinMode: "pty" });
    assert.equal(outputOf(result), "yes\nerr\n");
  });

  // rule: bash-stream.md, The stream family: stdinMode null: /dev/null, told in lists, refused by
  //   write_stdin
  it("without stdin what reads it is at its end", async () => {
    const result = await pi.call("bash_stream", { command: "wc -c", stdinMode: "null" });
    assert.equal(outputOf(result), "0\n");
    const { sessionId } = reportOf(result);
    const row = textOf(await pi.call("list_processes")).split("\n")
      .find((line) => line.startsWith(`- sessionId ${sessionId} `));
    assert.match(row ?? "", / · no stdin · /);
  });

  it("kill_process: the final status; all of it is gone", async () => {
    const command = "sleep 411 & sleep 411; echo never";
    const { sessionId } = reportOf(await pi.call("bash_stream", { command, yieldMs: 1_000 }));
    const killed = await pi.call("kill_process", { sessionId });
    assert.deepEqual([reportOf(killed).status, reportOf(killed).signal], ["failed", "SIGKILL"]);
    assert.match(textOf(killed), /^\[failed\]\nsessionId: \d+\nsignal: SIGKILL\n/);
    assert.deepEqual(processesWith("sleep 411"), []);
  });

  it("poll_process with killIf, and timeoutMs", async () => {
    const { sessionId } = reportOf(
      await pi.call("bash_stream", { command: "sleep 412", yieldMs: 1_000 }),
    );
    const killed = await pi.call("poll_process", { sessionId, killIf: "always" });
    assert.equal(reportOf(killed).signal, "SIGKILL");
    const late = await pi.call("bash_stream", { command: "sleep 413", timeoutMs: 200 });
    assert.equal(reportOf(late).timedOut, true);
    assert.match(textOf(late), /\ntimedOut: true\n/);
  });

  it("what stays in the background is named", async () => {
    const result = await pi.call("bash_stream", { command: "sleep 414 & echo started" });
    const { status, sessionId, backgroundPids } = reportOf(result);
    assert.equal(status, "completed");
    assert.match(
      textOf(result),
      new RegExp(`\n\\[Still running in the background: pid ${backgroundPids[0]}; poll_process `
        + `with sessionId ${sessionId} tells what comes later \\(log: \\S+\\.log\\); kill_process`),
    );
    await pi.call("kill_process", { sessionId });
    await until(() => processesWith("sleep 414").length === 0, "its end");
  });

  it("errors are thrown with execd's words", async () => {
    const unknown = { message: "unknown sessionId: 9999" };
    await assert.rejects(pi.call("poll_process", { sessionId: 9999 }), unknown);
    await assert.rejects(pi.call("kill_process", { sessionId: 9999 }), unknown);
    await assert.rejects(pi.call("get_process_log", { sessionId: 9999 }), unknown);
    await assert.rejects(pi.call("write_stdin", { sessionId: 9999, data: "x" }), unknown);
    const bad = { sessionId: 9999, signal: "FOO" };
    await assert.rejects(pi.call("kill_process", bad), /^Error: unknown signal "FOO" \(/);
  });

  it("list_processes: running first, what has ended stays", async () => {
    const params = { command: "sleep 415", yieldMs: 1_000, name: "nap" };
    const { sessionId } = reportOf(await pi.call("bash_stream", params));
    const listed = await pi.call("list_processes");
    const { processes } = listed.details as unknown as StreamList;
    const mine = processes.find((row) => row.sessionId === sessionId);
    assert.deepEqual([mine?.status, mine?.name, mine?.stdinMode], ["running", "nap", "pipe"]);
    const line = new RegExp(`^- sessionId ${sessionId} · running · .* · nap · sleep 415 \\(`, "m");
    assert.match(textOf(listed), line);
    await pi.call("kill_process", { sessionId });
    const after = await pi.call("list_processes");
    const ended = new RegExp(`^- sessionId ${sessionId} · failed · SIGKILL · `, "m");
    assert.match(textOf(after), ended);
  });

  it("get_process_log: pages that join, the end, one stream, exact bytes", async () => {
    const command = "seq 1 20000; echo err >&2";
    const { sessionId } = reportOf(await pi.call("bash_stream", { command }));
    const page = async (params: object) => {
      const result = await pi.call("get_process_log", { sessionId, ...params });
      const details = result.details as unknown as LogPage;
      return { ...details, text: outputOf(result), said: textOf(result) };
    };
    let all = "";
    let offset = 0;
    for (;;) {
      const one = await page({ offset, limit: "50000" });
      all += one.text;
      offset = one.nextOffset;
      if (one.eof) break;
      assert.match(one.said, new RegExp(`; next page: offset ${offset}\\]\n---\n`));
    }
    const numbers = Array.from({ length: 20_000 }, (_, n) => `${n + 1}\n`).join("");
    assert.equal(all.replace("err\n", ""), numbers);
    const end = await page({ offset: -9 });
    assert.equal(end.text, all.slice(-9));
    assert.match(end.said, new RegExp(`^\\[log of sessionId ${sessionId}, bytes \\d+ to \\d+ of `));
    assert.match(end.said, /; end of the log\]\n---\n/);
    assert.equal((await page({ stream: "stderr" })).text, "err\n");
    const exact = await page({ limit: 4, encoding: "base64" });
    assert.deepEqual([exact.text, exact.encoding], [btoa("1\n2\n"), "base64"]);
  });

  // A model read raw escape sequences and NULs, which cost it tokens and say nothing.
  // rule: bash-stream.md, The stream family: What a model reads of a page is clean, `raw: true`
  //   gives it as it was written
  it("get_process_log: clean text; a sequence that a page cuts begins the next one", async () => {
    const raw = "a\0\x1b[1;31mred\x1b[0m\n10%\r99%\nN\bNA\bA\n\x1b]0;title\x1b\\end\n";
    const command = `printf '${raw.replaceAll("%", "%%").replaceAll("\x1b\\", "\\033\\134")
      .replaceAll("\x1b", "\\033").replaceAll("\0", "\\000").replaceAll("\b", "\\b")
      .replaceAll("\r", "\\r").replaceAll("\n", "\\n")}'`;
    const { sessionId } = reportOf(await pi.call("bash_stream", { command }));
    const read = (params: object) => pi.call("get_process_log", { sessionId, ...params });
    const clean = "ared\n99%\nNA\nend\n";
    assert.equal(outputOf(await read({})), clean);
    assert.equal(outputOf(await read({ raw: false })), clean);
    assert.equal(outputOf(await read({ raw: "true" })), raw);
    // Wherever pages that take the longest sequence are cut, nothing of one is shown.
    for (let limit = 12; limit < raw.length; limit += 1) {
      let offset = 0;
      let all = "";
      for (let eof = false; !eof;) {
        const result = await read({ offset, limit });
        const page = result.details as unknown as LogPage;
        assert.ok(page.nextOffset > offset, "each page leads on");
        all += outputOf(result);
        ({ nextOffset: offset, eof } = page);
      }
      assert.equal(all.replace(/\n.*99%/, "\n99%").replace(/N+A+/, "NA"), clean, `pages of ${limit}`);
    }
  });

  // rule: bash-stream.md, The stream family: What a model reads of a page is clean, `raw: true`
  //   gives it as it was written
  it("what a page may cut", () => {
    const cut = (text: string) => cutSequence(text);
    for (const begun of ["\x1b", "\x1b[", "\x1b[1;3", "\x1b]0;a title", "\x1b]0;t\x1b", "\x1b("]) {
      assert.equal(cut(`text${begun}`), begun.length, JSON.stringify(begun));
    }
    const whole = ["", "text", "\x1b[1m", "\x1b]0;t\x07", "\x1b]0;t\x1b\\", "\x1b]0;\nt", "\x1b(B"];
    for (const text of whole) assert.equal(cut(`${text}x`), 0, JSON.stringify(text));
    assert.equal(cut(`\x1b]${"x".repeat(5_000)}`), 0, "a string that is not ended is text");
    const started = performance.now();
    cut("\x1b]".repeat(75_000));
    assert.ok(performance.now() - started < 1_000, "in time linear in its length");
  });

  it("long output: its end, and where the rest is", async () => {
    const result = await pi.call("bash_stream", { command: "seq 1 20000", maxOutputChars: 10 });
    const { truncated, logPath } = reportOf(result);
    assert.equal(truncated, true);
    assert.match(outputOf(result), /^\[\.\.\. \d+ characters omitted; full output: .*\]\n[^]{10}$/);
    assert.equal(readFileSync(logPath, "utf8").length, 108_894);
    assert.match(textOf(result), /\n\n\[Only the end of it is shown; get_process_log with /);
  });
});

describe("waits, settings and their precedence", { concurrency: 8 }, () => {
  let pi: Pi;
  before(async () => {
    pi = new Pi();
    await pi.start();
  });
  after(() => pi.shutdown());

  /** How long bash_stream waited for a command that does not end. */
  async function waitedMs(params: object = {}): Promise<number> {
    const start = performance.now();
    const result = await pi.call("bash_stream", { command: "sleep 420", ...params });
    const waited = performance.now() - start;
    await pi.call("kill_process", { sessionId: reportOf(result).sessionId });
    return waited;
  }

  // rule: pi.md, The extension: --bash-yield-ms and the variables are read at each call
  it("the call beats the flag, the flag the variable; what is invalid is left out", async () => {
    const about = (ms: number, expected: number) =>
      assert.ok(ms >= expected - 20 && ms < expected + 1_000, `${ms} ms, not ${expected}`);
    process.env.PI_BASH_YIELD_MS = "1";
    about(await waitedMs(), 1_000);
    pi.flags["bash-yield-ms"] = "2500";
    about(await waitedMs(), 2_500);
    about(await waitedMs({ yieldMs: 1_200 }), 1_200);
    pi.flags["bash-yield-ms"] = "soon";
    about(await waitedMs(), 1_000);
    delete process.env.PI_BASH_YIELD_MS;
    delete pi.flags["bash-yield-ms"];
  });

  // rule: pi.md, The extension: --bash-yield-ms and the variables are read at each call
  it("the cap of the output is read from the environment at each call", async () => {
    const shown = async (params: object = {}) => {
      const result = await pi.call("bash_stream", { command: "seq 1 9", ...params });
      return outputOf(result).split("\n").slice(-3).join("\n");
    };
    process.env.PI_BASH_MAX_OUTPUT_CHARS = "2";
    assert.match(await shown(), /\]\n9\n$/);
    assert.equal(await shown({ maxOutputChars: 4 }), "8\n9\n");
    process.env.PI_BASH_MAX_OUTPUT_CHARS = "-1";
    const whole = await pi.call("bash_stream", { command: "seq 1 9" });
    assert.equal(reportOf(whole).truncated, undefined);
    delete process.env.PI_BASH_MAX_OUTPUT_CHARS;
  });
});
