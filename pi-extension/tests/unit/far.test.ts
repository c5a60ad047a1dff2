/** An execd behind a command line: what is printed before it, its lease, and its version. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it, type TestContext } from "node:test";
import { withFarLogs } from "../../src/execd/far-logs.ts";
import { durationMs, farStart, farStartOfOlder } from "../../src/execd/far.ts";
import { wakeText } from "../../src/pi/wakes.ts";
import { EXECD, outputOf, Pi, textOf } from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-far-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Starts pi with this command line, has it do something, and ends it. */
async function behind(line: string, act: (pi: Pi) => Promise<void>, tools = "unified"): Promise<void> {
  process.env.EXECD_COMMAND = line;
  const pi = new Pi();
  pi.flags["exec-tools"] = tools;
  try {
    await pi.start();
    await act(pi);
  } finally {
    await pi.shutdown();
    delete process.env.EXECD_COMMAND;
  }
}

/** Why no execd could be started. */
async function failure(line: string): Promise<string> {
  let why = "";
  await behind(line, async (pi) => {
    why = await pi.call("exec_command", { cmd: "true" }).then(() => "", (error: Error) => error.message);
  });
  return why;
}

const OWN_LINE = "tr '\\0' ' ' < /proc/$PPID/cmdline; echo";

// rule: pi.md, The extension: A command line gets `--marker` and, where it has none, `--lease`;
//   a third of the lease is how often something is sent
it("what a command line is started with", () => {
  const beats = [
    ["ssh box execd", 200_000], ["execd --lease 60s", 20_000], ["execd --lease=1h30m", 1_800_000],
    ["execd --lease '6'", 2_000], ["docker exec -i b execd --exit-after-silence 60", 20_000],
    ["ssh box EXECD_LEASE=1.5m execd", 30_000], ["ssh b execd --lease 1d", 28_800_000],
    ["ssh b 'execd --lease .6'", 200], [String.raw`ssh b "execd \"--lease\" \"6s\""`, 2_000],
    // The last flag counts, and a flag before a variable, as in execd.
    ["execd --lease 6s --exit-after-silence 9s --lease=3s", 1_000],
    ["EXECD_LEASE=6s execd --lease 9s", 3_000], ["execd --lease 9s # EXECD_LEASE=6s", 3_000],
    ["EXECD_LEASE=6s EXECD_LEASE=9s execd", 3_000],
    ["EXECD_EXIT_AFTER_SILENCE=9s EXECD_LEASE=6s execd", 3_000],
    ["EXECD_LEASE=6s EXECD_EXIT_AFTER_SILENCE= execd", 2_000],
    // Longer than a timer takes.
    ["execd --lease 2000h", 2 ** 31 - 1], ["execd --lease 3650d", 2 ** 31 - 1],
    // What only a shell can read, and what execd refuses.
    ["execd --lease $TIME", 5_000], ["execd --lease=\"${T:-60s}\"", 5_000],
    ["EXECD_LEASE=$(cat time) execd", 5_000], ["execd --lease soon", 5_000],
    ["execd --lease 0", 5_000], ["execd --lease 3651d", 5_000],
  ] as const;
  const none = ["ssh box execd", "EXECD_LEASE= execd", "MY_EXECD_LEASE=6s my--lease 6s"];
  for (const line of none) assert.equal(farStart(line).flags[1], "--lease=10m", line);
  for (const [line, beatMs] of beats) {
    const far = farStart(line);
    assert.equal(far.beatMs, beatMs, line);
    const word = far.flags[0]?.slice("--marker=".length) ?? "";
    assert.match(word, /^[\w-]{20,64}$/, "the remote shell leaves it as it is");
    assert.equal(far.marker, `=== execd ${word} ===`);
    assert.deepEqual(far.flags.slice(1), line === "ssh box execd" ? ["--lease=10m"] : [], line);
  }
  assert.notEqual(farStart("x").marker, farStart("x").marker);
});

// What execd takes, held against the same table as execd's own reading of it.
it("a lease is read as execd reads it", () => {
  const file = join(import.meta.dirname, "../../../tests/fixtures/durations.json");
  const { taken, refused } = JSON.parse(readFileSync(file, "utf8")) as {
    taken: Record<string, number>;
    refused: string[];
  };
  assert.ok(Object.keys(taken).length >= 18 && refused.length >= 26, "the whole table");
  for (const [text, ms] of Object.entries(taken)) assert.equal(durationMs(text), ms, text);
  for (const text of refused) assert.equal(durationMs(text), undefined, text);
});

// Without the marker what a .bashrc prints without a newline made the first answer unreadable.
// rule: pi.md, The extension: What a login prints before execd, with a newline or without, is
//   skipped up to the marker
it("what is printed before execd is not taken for its answers", async () => {
  const noise = String.raw`Welcome!\n{"jsonrpc":"2.0","id":1,"result":{}}\n{"half":`;
  await behind(`printf '${noise}'; exec '${EXECD}'`, async (pi) => {
    const result = await pi.call("exec_command", { cmd: OWN_LINE });
    assert.match(outputOf(result), / --marker=[\w-]+ --lease=10m /);
    assert.deepEqual(pi.notices, []);
  });
  // A command line that echoes what it runs, and one that hands no flags on.
  await behind(`set -x; echo "$0 $@"; exec '${EXECD}'`, async (pi) => {
    assert.equal(outputOf(await pi.call("exec_command", { cmd: "echo hi" })), "hi\n");
  });
  await behind(`echo Welcome; exec '${EXECD}' --no-log #`, async (pi) => {
    assert.equal(outputOf(await pi.call("exec_command", { cmd: "echo hi" })), "hi\n");
  });
});

// rule: pi.md, The extension: Where the marker never comes the error shows what came instead, and
//   endless output before it ends the start
it("the error shows what was printed where no execd comes", async () => {
  const failed = await failure("echo 'Welcome to far'; echo 'no route' >&2; exit 7 #");
  assert.match(failed, /exited with status 7; it said: no route; it printed: Welcome to far\./);
  const started = Date.now();
  const endless = await failure("exec yes 'More and more' #");
  assert.match(endless, /more than 1048576 bytes came before execd's own output; it printed: /);
  assert.ok(endless.includes("More and more") && endless.length < 2_000, endless);
  assert.ok(Date.now() - started < 9_000, "not only at the start's deadline");
});

/** An execd of a version that knows neither flag. */
function olderExecd(): string {
  const program = join(scratch, "older");
  const refuse = 'case " $* " in *" --marker"*) echo "execd: unknown flag --marker" >&2; exit 125; esac';
  writeFileSync(program, `#!/bin/sh\n${refuse}\nexec '${EXECD}' "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

// rule: pi.md, The extension: An execd of an earlier version on the other machine is started
//   without them, and a lease that its line gives is kept
it("an execd that knows neither flag is started without them", async () => {
  const program = olderExecd();
  await behind(`'${program}'`, async (pi) => {
    const said = outputOf(await pi.call("exec_command", { cmd: OWN_LINE }));
    assert.doesNotMatch(said, /--marker|--lease/);
    assert.deepEqual(pi.notices, []);
  });
});

/** Whether an idle pi has the same execd behind this line after one lease and a half, of 3 s. */
async function keepsItsExecd(line: string, t: TestContext): Promise<void> {
  await behind(line, async (pi) => {
    const own = "echo $PPID";
    const before = outputOf(await pi.call("exec_command", { cmd: own }));
    let longest = 0;
    for (let last = Date.now(), until = last + 4_500; last < until;) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      longest = Math.max(longest, Date.now() - last);
      last = Date.now();
    }
    const same = outputOf(await pi.call("exec_command", { cmd: own })) === before;
    if (longest > 1_500) t.diagnostic("the machine stood still: nothing is shown");
    else assert.ok(same, "the same execd");
  });
}

// rule: pi.md, The extension: A command line gets `--marker` and, where it has none, `--lease`;
//   a third of the lease is how often something is sent
it("an idle pi keeps its execd beyond the lease", async (t) => {
  await keepsItsExecd(`exec '${EXECD}' --lease 3s`, t);
});

// rule: pi.md, The extension: An execd of an earlier version on the other machine is started
//   without them, and a lease that its line gives is kept
it("an idle pi keeps an execd that knows neither flag beyond the lease of its line", async (t) => {
  assert.equal(farStartOfOlder("ssh box execd").beatMs, undefined, "no lease");
  await keepsItsExecd(`exec '${olderExecd()}' --exit-after-silence 3`, t);
});

// rule: pi.md, The extension: A log on another machine is named as one there: in headers, footers,
//   wakes and rows
it("texts and fields say that a log is on another machine; output stays as it is", () => {
  const log_path = "/tmp/x.log";
  const said = {
    id: 1,
    result: {
      log_path, header: `[exited]\nlog_path: ${log_path}\ncwd: /`, output: `log_path: ${log_path}`,
      footer: `[Showing lines 1-2 of 3. Full output: ${log_path}]`,
      sessions: [{ log_path, summary: `log_path: ${log_path}\nlog_path: ${log_path}` }, { session_id: 2 }],
    },
  };
  assert.deepEqual(withFarLogs(said), {
    id: 1,
    result: {
      log_path, header: `[exited]\nlog_path on that machine: ${log_path}\ncwd: /`,
      output: `log_path: ${log_path}`,
      footer: `[Showing lines 1-2 of 3. Full output on that machine: ${log_path}]`,
      sessions: [
        { log_path, summary: `log_path: ${log_path}\nlog_path on that machine: ${log_path}`, far: true },
        { session_id: 2 },
      ],
      far: true,
    },
  });
  const page = { logPath: log_path, nextOffset: 5, text: `log_path: ${log_path}` };
  assert.deepEqual(withFarLogs({ result: page }), { result: { ...page, far: true } });
  const ended = { session_id: 3, exit_code: 0, log_path };
  assert.match(wakeText([{ ...ended, far: true }]), / · log_path on the machine where it ran: \/tmp\/x\.log\n/);
  assert.match(wakeText([ended]), / · log_path: \/tmp\/x\.log\n/);
});

/** What of a text names a log as one of this machine. */
const BARE = /(?:log_path|logPath|log|Full output):? \//g;

// rule: pi.md, The extension: A log on another machine is named as one there: in headers, footers,
//   wakes and rows
it("list_sessions and wait_for name the logs of all their sessions as logs there", async () => {
  await behind(`exec '${EXECD}'`, async (pi) => {
    const named = join(scratch, "named");
    const cmd = `until [ -s '${named}' ]; do sleep 0.05; done; seq 3000; cat '${named}'`;
    const long = await pi.call("exec_command", { cmd, yield_time_ms: 250 });
    await pi.call("exec_command", { cmd: "exec sleep 300", yield_time_ms: 250 });
    const log = String(long.details.log_path);
    const list = textOf(await pi.call("list_sessions", {}));
    assert.match(list, /\n    log on that machine: \/.*\n.*\n    log on that machine: \//);
    assert.doesNotMatch(list, BARE);
    writeFileSync(named, `log_path: ${log}\n`);
    const waited = textOf(await pi.call("wait_for", { session_ids: [1, 2], timeout_ms: 30_000 }));
    assert.equal(waited.match(/\nlog_path on that machine: \//g)?.length, 2, waited);
    assert.ok(waited.includes(` Full output on that machine: ${log}`), waited);
    assert.deepEqual(waited.match(BARE), ["log_path: /"], "only the output's own");
    assert.ok(waited.includes(`\nlog_path: ${log}`), "output stays as it is");
  });
});

// rule: pi.md, The extension: A log on another machine is named as one there: in headers, footers,
//   wakes and rows
it("the stream tools name logs as logs there", async () => {
  await behind(`exec '${EXECD}'`, async (pi) => {
    const ended = textOf(await pi.call("bash_stream", { command: "echo hi; sleep 300 & exit 3" }));
    assert.match(ended, /\nlogPath on that machine: \//);
    assert.match(ended, /background: pid \d+[^\n]* \(log on that machine: \//);
    const list = textOf(await pi.call("list_processes", {}));
    assert.match(list, / · log on that machine \//);
    assert.doesNotMatch(ended + list, BARE);
  }, "stream");
});
