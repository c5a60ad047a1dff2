/** Start, shutdown, crash and absence of the daemon, under a stub of pi. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { promisify } from "node:util";
import { Client } from "../../src/client.ts";
import { locate, silenceSeconds } from "../../src/locate.ts";
import { EXECD, Pi, processesWith, textOf, until } from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-ext-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Processes of this pid's children that are execd. */
function daemons(): number[] {
  return processesWith(EXECD).filter((pid) => parentOf(pid) === process.pid);
}

function parentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[1]);
  } catch {
    return 0;
  }
}

it("the factory starts nothing, and one session start one daemon", async () => {
  const pi = new Pi();
  const before = daemons().length;
  assert.equal(daemons().length, before);
  await pi.start();
  await pi.call("exec_command", { cmd: "true" });
  assert.equal(daemons().length, before + 1);
  await pi.shutdown();
  assert.equal(daemons().length, before);
});

it("shutdown ends every process, reaps execd, and a new session starts again", async () => {
  const pi = new Pi();
  await pi.start();
  const stubborn = `trap '' TERM; sleep 311 & sleep 311; echo ${scratch}`;
  const { details } = await pi.call("exec_command", { cmd: stubborn, yield_time_ms: 250 });
  const jobs = { cmd: `set -m; sleep 312 & exec sleep 313 # ${scratch}`, yield_time_ms: 250 };
  await pi.call("exec_command", jobs);
  await pi.shutdown();
  assert.deepEqual(processesWith("sleep 31"), []);
  await assert.rejects(pi.call("exec_command", { cmd: "true" }), {
    message: "unified-exec: shutting down",
  });
  const listed = await pi.call("list_sessions");
  assert.match(textOf(listed), /no live sessions/);
  assert.deepEqual((listed.details as unknown as { sessions: [] }).sessions, []);

  await pi.start();
  const again = await pi.call("exec_command", { cmd: "sleep 314", yield_time_ms: 250 });
  assert.ok(again.details.session_id > details.session_id, "ids are never used twice");
  await pi.shutdown();
});

it("a wait that is pending at shutdown is answered", async () => {
  const pi = new Pi();
  await pi.start();
  const wait = pi.call("exec_command", { cmd: "sleep 315", yield_time_ms: 30_000 });
  await until(() => processesWith("sleep 315").length > 0, "the command runs");
  await pi.shutdown();
  const { details } = await wait;
  assert.equal(details.wait_status, "shutting_down");
});

it("execd killed: the call fails clearly, the next one works and says so once", async () => {
  const pi = new Pi();
  await pi.start();
  const first = await pi.call("exec_command", { cmd: "sleep 316", yield_time_ms: 250 });
  const wait = pi.call("write_stdin", {
    session_id: first.details.session_id,
    yield_time_ms: 60_000,
  });
  const failed = assert.rejects(wait, {
    message: "execd was killed by SIGKILL. Its sessions are gone; "
      + "the next call starts a fresh execd.",
  });
  const [daemon] = daemons();
  process.kill(daemon ?? 0, "SIGKILL");
  await failed;
  assert.equal(pi.notices.length, 1);
  assert.match(pi.notices[0] ?? "", /^unified-exec: execd was killed by SIGKILL\. Its sessions/);
  assert.equal(pi.statuses.at(-1), undefined);

  const next = await pi.call("exec_command", { cmd: "sleep 317", yield_time_ms: 250 });
  assert.match(textOf(next), /^\[execd was restarted: the one before was killed by SIGKILL; sessio/);
  assert.ok(next.details.session_id > first.details.session_id, "ids go on");
  assert.doesNotMatch(textOf(await pi.call("exec_command", { cmd: "true" })), /restarted/);
  await until(() => processesWith("sleep 316").length === 0, "the old session is gone");
  await pi.shutdown();
});

it("a restart is also told with an error", async () => {
  const pi = new Pi();
  await pi.start();
  const first = await pi.call("exec_command", { cmd: "sleep 318", yield_time_ms: 250 });
  process.kill(daemons()[0] ?? 0, "SIGKILL");
  await until(() => pi.notices.length > 0, "the loss is noticed");
  const { session_id } = first.details;
  await assert.rejects(pi.call("write_stdin", { session_id }), {
    message: `unknown session_id: ${session_id} (execd was restarted: the one before was killed `
      + "by SIGKILL; sessions started before are gone)",
  });
  await pi.shutdown();
});

it("without any execd pi keeps its bash; one notice and a clear error say why", async () => {
  await withEnv({ EXECD_BIN: join(scratch, "none"), EXECD_COMMAND: undefined }, async () => {
    const pi = new Pi();
    await pi.start();
    assert.deepEqual(pi.active, ["read", "bash", "edit"]);
    assert.equal(pi.notices.length, 1);
    assert.match(pi.notices[0] ?? "", /pi keeps its own bash: no execd to run commands with\. Tri/);
    const call = pi.call("exec_command", { cmd: "true" });
    await assert.rejects(call, /Tried: EXECD_BIN \(.*none\): .*ENOENT.*EXECD_COMMAND/s);
    await pi.shutdown();
  });
});

it("what is found but is no execd is told with what it said", async () => {
  const fake = join(scratch, "fake");
  writeFileSync(fake, "#!/bin/sh\necho cannot open display >&2\nexit 3\n");
  chmodSync(fake, 0o755);
  await withEnv({ EXECD_BIN: fake }, async () => {
    const client = new Client({ onNotification: () => {}, onLost: () => assert.fail() });
    await assert.rejects(client.start(), /exited with status 3; it said: cannot open display/);
  });
});

it("the order in which execd is looked for", () => {
  const here = join(scratch, "ext", "src");
  const none = locate({ PATH: "/nonexistent" }, here);
  assert.deepEqual(none.candidates, []);
  assert.equal(none.missing.length, 3);
  writeFileSync(join(scratch, "execd"), "#!/bin/sh\n");
  chmodSync(join(scratch, "execd"), 0o755);
  const env = { PATH: `relative:${scratch}` };
  assert.deepEqual(locate(env, here).candidates.map((c) => c.command), [join(scratch, "execd")]);
  const bin = { ...env, EXECD_BIN: "/x/execd" };
  assert.deepEqual(locate(bin, here).candidates.map((c) => c.command), ["/x/execd"]);
  const both = locate({ ...bin, EXECD_COMMAND: "ssh 'my box' execd" }, here).candidates;
  assert.deepEqual(both.map((c) => c.args), [["-c", "ssh 'my box' execd \"$@\"", "execd"]]);
  assert.equal(silenceSeconds("docker exec -i b execd --exit-after-silence 60"), 60);
  assert.equal(silenceSeconds("execd"), undefined);
});

it("EXECD_COMMAND: a command line; nothing of this machine's environment is sent", async () => {
  const line = `env -i EXECD_THERE='a b' PATH="$PATH" '${EXECD}'`;
  await withEnv({ EXECD_COMMAND: line, EXECD_TEST_HERE: "1" }, async () => {
    const pi = new Pi();
    await pi.start();
    assert.match(pi.tools.get("exec_command")?.description ?? "", /on another machine/);
    const cmd = 'echo "$EXECD_THERE ${EXECD_TEST_HERE-none} $AI_AGENT"; pwd';
    const result = await pi.call("exec_command", { cmd });
    assert.equal(result.details.output, `a b none pi\n${process.cwd()}\n`);
    await pi.shutdown();
  });
});

it("a second extension with one of the names: theirs win, one notice", async () => {
  const theirs = { name: "exec_command", sourceInfo: { path: "/theirs.ts" } };
  const pi = new Pi({ getAllTools: () => [{ name: "bash" }, theirs] });
  await pi.start();
  assert.deepEqual([...pi.tools.keys()], []);
  assert.deepEqual(pi.active, ["read", "bash", "edit"]);
  assert.deepEqual(pi.notices, [
    "unified-exec: another extension has exec_command; its tools are used, not execd's",
  ]);
  await pi.shutdown();
});

it("--keep-builtin-bash, --exec-tools and PI_EXECD_TOOLS", async () => {
  const keep = new Pi({ getAllTools: () => [] });
  keep.flags["keep-builtin-bash"] = true;
  await keep.start();
  assert.deepEqual(keep.active, ["read", "bash", "edit"]);
  await keep.shutdown();

  const unknown = new Pi({ getAllTools: () => [] });
  unknown.flags["exec-tools"] = "unified,magic";
  await unknown.start();
  assert.equal(unknown.tools.size, 6);
  assert.match(unknown.notices[0] ?? "", /unknown tools magic in --exec-tools; there are: unified/);
  await unknown.shutdown();

  await withEnv({ PI_EXECD_TOOLS: "magic" }, async () => {
    const none = new Pi({ getAllTools: () => [] });
    await none.start();
    assert.deepEqual([none.tools.size, none.active.includes("bash")], [0, true]);
    await none.shutdown();
  });
});

it("instances in one process are independent", async () => {
  const [one, two] = [new Pi(), new Pi()];
  await Promise.all([one.start(), two.start()]);
  const params = { cmd: "sleep 319", yield_time_ms: 250 };
  const { session_id } = (await one.call("exec_command", params)).details;
  await assert.rejects(two.call("write_stdin", { session_id }), /unknown session_id/);
  await two.shutdown();
  assert.match(textOf(await one.call("list_sessions")), /sleep 319/);
  await one.shutdown();
});

it("ids of a conversation that goes on are not given again", async () => {
  const message = { role: "toolResult", toolName: "exec_command", details: { session_id: 41 } };
  const entries = [{ type: "message", message }];
  const pi = new Pi({}, { sessionManager: { getEntries: () => entries } });
  await pi.start();
  const { details } = await pi.call("exec_command", { cmd: "sleep 320", yield_time_ms: 250 });
  assert.equal(details.session_id, 42);
  await pi.shutdown();
});

it("a session and an idle daemon do not keep Node alive, nor do 40 instances", async () => {
  for (const script of ["idle.ts", "forty.ts"]) {
    const args = [join(import.meta.dirname, "scripts", script)];
    const run = promisify(execFile)(process.execPath, args, { timeout: 60_000 });
    const { stdout } = await run;
    assert.equal(stdout, "done\n", script);
  }
});

async function withEnv(env: Record<string, string | undefined>, run: () => Promise<void>) {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  for (const [name, value] of Object.entries(env)) set(name, value);
  try {
    await run();
  } finally {
    for (const [name, value] of before) set(name, value);
  }
}
