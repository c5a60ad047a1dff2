/** pi here, its commands on another machine: EXECD_COMMAND through a real sshd. */
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { call, exec, stdin, turn } from "./lib/model.ts";
import { processesLike, waitNoneLike, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import { startSshd } from "./lib/sshd.ts";
import { Tui } from "./lib/tui.ts";

/** Prints on stdout before whatever ssh runs, with a newline and without. */
const BASHRC = "echo Welcome\nprintf '{\"id\":1,\"result\":{}}\\nstill talking'\n";

// rule: machines.md, ssh: pi here, its commands there: a .bashrc that prints does no harm, and a log
//   is never named as if it lay here
test("ssh: a command, its log, a chatty .bashrc", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  writeFileSync(join(far.home, ".bashrc"), BASHRC);
  const run = await runJson(place, {
    script: [
      turn("Long.", exec("echo ${SSH_CONNECTION%% *}; echo made > ~/made; seq 20000")),
      turn("There?", exec("tail -n 1 $(ls -t $TMPDIR/pi-execd-*/*.log | tail -n 1)")),
      turn("Done."),
    ],
    env: { EXECD_COMMAND: far.line() },
  });
  assert.ok(existsSync(join(far.home, "made")), "it ran with the home of the other machine");
  const [long, there] = run.toolEnds("exec_command");
  const text = long?.text ?? "";
  const log = String(long?.details["log_path"]);
  assert.ok(log.startsWith(place.path("far-tmp")), log);
  assert.ok(text.includes(`\nlog_path on that machine: ${log}\n`), text.slice(0, 600));
  assert.ok(text.includes(` Full output on that machine: ${log}`), text.slice(-400));
  assert.equal(text.split(log).length, 3, "nor anywhere else");
  assert.equal(long?.details["far"], true);
  assert.match(there?.text ?? "", /\n---\n20000\n$/, "what the log has is read where it lies");
  const told = run.requests.at(-1)?.messages.map((one) => one.text).join("\n") ?? "";
  assert.doesNotMatch(told, /Welcome|still talking/);
});

// rule: machines.md, ssh: pi here, its commands there: a .bashrc that prints does no harm, and a log
//   is never named as if it lay here
test("ssh: bash and its windows name their logs as the other machine's", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  const run = await runJson(place, {
    args: ["--exec-tools", "bash"],
    script: [turn("Long.", call("bash", { command: "seq 20000" })), turn("Done.")],
    env: { EXECD_COMMAND: far.line() },
  });
  const { text, details } = run.toolEnd("bash");
  assert.match(text, /\n20000\n/);
  assert.ok(text.includes(` Full output on that machine: ${String(details["fullOutputPath"])}`), text.slice(-400));
});

// rule: machines.md, ssh: `!ls` runs there; in rows logs are there
test("ssh: !command, and what a person sees of logs", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  const script = [turn("Fails.", exec("echo bad; exit 3")), turn("I see.")];
  const tui = await Tui.start(place, { env: { EXECD_COMMAND: far.line() }, script });
  await tui.submit("!echo ${SSH_CONNECTION%% *}; echo $HOME; exit 4");
  await tui.waitScreen((screen) => screen.includes("127.0.0.1") && screen.includes(far.home)
    && screen.includes("(exit 4)"));
  await tui.submit("go");
  await tui.waitScreen(/I see\./);
  await tui.waitScreen(/log there: \//);
  assert.doesNotMatch(await tui.screen(), /log: /);
});

// rule: machines.md, ssh: pi here, its commands there: a flood stays there, and Ctrl-C goes there
test("ssh: a flood, and Ctrl-C in a terminal", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  const trap = "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done";
  const run = await runJson(place, {
    script: [
      turn("Flood.", exec("head -c 67108864 /dev/zero | tr '\\0' x", { yield_time_ms: 60_000 })),
      turn("Trap.", exec(trap, { tty: true, until: { text: "up" }, yield_time_ms: 30_000 })),
      turn("Stop.", stdin({ chars: "\\x03", yield_time_ms: 30_000 })),
      turn("Done."),
    ],
    env: { EXECD_COMMAND: far.line() },
  });
  const flood = run.toolEnds("exec_command")[0];
  assert.equal(flood?.details["output_bytes_total"], 67_108_864);
  assert.ok((flood?.text.length ?? 0) < 100_000, "the model gets the end of it");
  assert.match(run.toolEnd("write_stdin").text, /exit_code: 7\n[^]*caught/);
});

// rule: machines.md, ssh: pi here, its commands there: where the connection stands still, all there
//   ends within the lease
test("ssh stands still: all there ends within the lease", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  const script = [turn("Start.", exec("exec sleep 7603", { yield_time_ms: 250 })), turn("Done.")];
  const rpc = new Rpc(place, { env: { EXECD_COMMAND: far.line("--lease 3s") }, script });
  await rpc.prompt("go");
  const [ssh] = processesLike(place.tag, /^ssh -F .* far /);
  assert.ok(ssh, "the connection");
  process.kill(ssh.pid, "SIGSTOP");
  await waitNoneLike(place.tag, /^sleep 7603$/, 20_000);
  process.kill(ssh.pid, "SIGKILL");
  await rpc.quit();
});

// rule: machines.md, ssh: The end of pi, and a connection that is cut, end what runs there; the next
//   call connects anew
test("ssh is killed: the call fails, all there ends, the next call connects anew", async (t) => {
  const place = scratch(t);
  const far = await startSshd(t, place);
  if (!far) return;
  const script = [
    turn("Wait.", exec("echo up; exec sleep 7601", { yield_time_ms: 60_000 })),
    turn("Again.", exec("echo back; sleep 7602 & sleep 0")), turn("Done."),
  ];
  const rpc = new Rpc(place, { env: { EXECD_COMMAND: far.line("--lease 60s") }, script });
  const prompt = rpc.prompt("go");
  await waitProcess(place.tag, /^sleep 7601$/);
  const [ssh] = processesLike(place.tag, /^ssh -F .* far /);
  assert.ok(ssh, "the connection");
  process.kill(ssh.pid, "SIGKILL");
  await waitNoneLike(place.tag, /^sleep 7601$/, 20_000);
  await prompt;
  const [lost, back] = rpc.toolEnds("exec_command");
  assert.match(lost?.text ?? "", /Its sessions are gone; the next call starts a fresh execd/);
  assert.match(back?.text ?? "", /\nback\n/);
  await rpc.quit();
  await waitNoneLike(place.tag, /sleep 760|execd/, 20_000);
  rmSync(join(far.home, ".bashrc"), { force: true });
});
