/**
 * Passwords: a person types one into the box, and no byte of it is anywhere else.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { BASH, bash, tmux } from "./lib/bash.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, kill, newest, poll, stdin, turn } from "./lib/model.ts";
import type { Turn } from "./lib/model.ts";
import { execdBinary } from "./lib/paths.ts";
import { processesLike, waitNone, waitNoneLike, waitProcess } from "./lib/processes.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";
import { STREAM, bash as bashStream, on } from "./lib/stream.ts";
import { Tui } from "./lib/tui.ts";
import { until } from "./lib/waiting.ts";

const SECRET = "xyzzy-Plugh-4711";
const SECOND = "frobnicate-0815";

const asking = (cmd: string) => exec(cmd, { tty: true, yield_time_ms: 30_000 });

/** A pi whose execd says all it can on stderr, which goes to a file. */
async function startPi(place: Scratch, script: Turn[], args?: string[]): Promise<Tui> {
  const execd = place.path("execd-debug");
  const log = place.path("execd.log");
  const lines = ["#!/bin/sh", `EXECD_LOG=debug exec "${execdBinary()}" "$@" 2>>"${log}"`, ""];
  writeFileSync(execd, lines.join("\n"), { mode: 0o755 });
  return Tui.start(place, { script, env: { EXECD_BIN: execd }, ...(args && { args }) });
}

/** Waits for the box, types and presses Enter. What is typed is never on the screen. */
async function give(tui: Tui, title: RegExp, secret: string): Promise<void> {
  await tui.waitScreen(title);
  await tui.type(secret);
  const shown = await tui.waitScreen(new RegExp(`> •{${secret.length}}▏`));
  assert.ok(!shown.includes(secret), shown);
  await tui.key("Enter");
  await tui.goneScreen(/> •+▏/);
}

/** Ends pi and looks for the secrets in every file that the test has left, and on the screen. */
async function assertNowhere(place: Scratch, tui: Tui, ...secrets: string[]): Promise<void> {
  const shown = await tui.scrollback();
  await tui.key("C-d");
  await tui.waitExit();
  assert.ok(existsSync(place.path("execd.log")), "execd has said something");
  const files = [...filesBelow(place.dir)];
  assert.ok(files.some((file) => file.endsWith(".jsonl") && file.includes("/sessions/")));
  assert.ok(files.some((file) => /\/execd-\d+-\w+\.log$/.test(file)), "a log of the session");
  assert.ok(files.some((file) => file.endsWith("requests.jsonl")));
  for (const secret of secrets) {
    const base64 = Buffer.from(secret).toString("base64").slice(0, 16);
    for (const form of [secret, base64]) {
      assert.ok(!shown.includes(form), shown);
      for (const file of files) assert.ok(!readFileSync(file).includes(form), file);
    }
  }
  await waitNone(place.tag, 10_000);
}

function* filesBelow(dir: string): Generator<string> {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (entry.isFile()) yield path;
  }
}

function lastResult(place: Scratch): string {
  return newest(place.requests().at(-1)).text;
}

// rule: pi.md, Secrets: no byte of it is in any request to the model, event, row, session file, log
// rule: pi.md, Secrets: A program that asks twice opens the box twice
test("a program asks twice: what was typed is nowhere, also for who attaches", async (t) => {
  const place = scratch(t);
  const program = [
    "import getpass", "a = getpass.getpass('First: ')", "b = getpass.getpass('Second: ')",
    "print('you said', len(a), len(b), flush=True)", "input('more? ')", "",
  ];
  writeFileSync(join(place.cwd, "ask.py"), program.join("\n"));
  const tui = await startPi(place, [turn("Asking.", asking("/usr/bin/python3 ask.py")), turn("Told.")]);
  await tui.submit("go");
  await give(tui, /#1 python3\S* asks for a password \(hidden from the model\)\n *First:/, SECRET);
  await give(tui, /#1 python3\S* asks for a password[^]*Second:/, SECOND);
  await tui.waitScreen(/Told\./);
  const told = lastResult(place);
  assert.match(told, /^password asked; answered$/m);
  const said = `you said ${SECRET.length} ${SECOND.length}`;
  assert.ok(told.includes(`First: \nSecond: \n${said}\nmore?`), told);
  const env = place.plainEnvironment();
  const name = /execd-1-\w+(?=\.log)/.exec(told)?.[0] ?? "";
  const log = await promisify(execFile)(execdBinary(), ["log", name], { env });
  assert.ok(log.stdout.includes(said) && !log.stdout.includes(SECRET), log.stdout);
  // Other tests have execds too.
  const { pid } = await waitProcess(place.tag, /\/execd( |$)/);
  const attach = [execdBinary(), "attach", "@1", "--pid", String(pid)];
  const attached = await Tui.run(place, attach, env);
  const replay = await attached.waitScreen(/you said \d+ [^]*more\?/);
  assert.ok(!replay.includes(SECRET) && !replay.includes(SECOND), replay);
  await attached.close();
  await assertNowhere(place, tui, SECRET, SECOND);
});

// rule: pi.md, Secrets: Esc declines: the model is told `password asked; the person declined`
test("a person declines: the model is told so, and is not asked again at once", async (t) => {
  const place = scratch(t);
  const script = [
    turn("Asking.", asking("read -rsp 'Secret: ' s; echo; echo got ${#s}")), turn("", poll()),
    turn("", kill()), turn("Given up."),
  ];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await tui.waitScreen(/#1 bash asks for a password/);
  await tui.type(SECRET);
  await tui.waitScreen(/> •+▏/);
  await tui.key("Escape");
  await tui.waitScreen(/Given up\./);
  const results = place.requests().map((request) => newest(request).text);
  const declined = /^password asked; the person declined$/m;
  assert.deepEqual(results.map((text) => declined.test(text)), [false, true, true, false]);
  await assertNowhere(place, tui, SECRET);
});

// rule: pi.md, Secrets: The box closes by itself when its session is over or waits for something else
test("the box closes by itself when its session has ended", async (t) => {
  const place = scratch(t);
  const script = [turn("Asking.", asking("read -rsp 'Secret: ' s; exec sleep 7511")), turn("Over.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await tui.waitScreen(/#1 bash asks for a password/);
  await tui.type(SECRET);
  await tui.waitScreen(/> •+▏/);
  const [shell] = processesLike(place.tag, /^bash -c read -rsp/);
  assert.ok(shell);
  process.kill(shell.pid, "SIGKILL");
  await tui.waitScreen(/Over\./);
  assert.match(lastResult(place), /^password asked; the session no longer waits for it$/m);
  await assertNowhere(place, tui, SECRET);
});

// rule: pi.md, Secrets: pi killed while the box is open leaves nothing behind
test("pi is killed while the box is open: nothing stays and nothing is told", async (t) => {
  const place = scratch(t);
  const tui = await startPi(place, [turn("Asking.", asking("read -rsp 'Secret: ' s"))]);
  await tui.submit("go");
  await tui.waitScreen(/#1 bash asks for a password/);
  await tui.type(SECRET);
  await tui.waitScreen(/> •+▏/);
  const [pi] = processesLike(place.tag, /^pi( |$)/);
  assert.ok(pi);
  process.kill(pi.pid, "SIGKILL");
  await tui.waitExit();
  await waitNoneLike(place.tag, /read -rsp|execd/, 20_000);
  for (const file of filesBelow(place.dir)) {
    assert.ok(!readFileSync(file).includes(SECRET), file);
  }
});

// rule: pi.md, Secrets: Two programs that ask at once open one box after the other
test("two programs that ask at once: one box after the other", async (t) => {
  const place = scratch(t);
  const ask = (name: string) => asking(`read -rsp '${name}: ' s; echo; echo "${name} got \${#s}"`);
  const script = [turn("Asking.", ask("left"), ask("right")), turn("Both told.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  const first = await tui.waitScreen(/#(1|2) bash asks for a password/);
  const one = /#(1|2) bash asks/.exec(first)?.[1];
  assert.doesNotMatch(first, one === "1" ? /#2 bash asks/ : /#1 bash asks/);
  await give(tui, new RegExp(`#${one} bash asks`), SECRET);
  await give(tui, new RegExp(`#${one === "1" ? 2 : 1} bash asks`), SECOND);
  await tui.waitScreen(/Both told\./);
  const messages = place.requests().at(-1)?.messages ?? [];
  const results = messages.filter(({ role }) => role === "toolResult").map(({ text }) => text);
  assert.equal(results.length, 2);
  for (const text of results) assert.match(text, /password asked; answered[^]* got 1[56]\n/);
  await assertNowhere(place, tui, SECRET, SECOND);
});

// The box opened when the wait was over by its time alone, since another session went on.
// rule: pi.md, Secrets: `wait_for` opens it as soon as one of its sessions asks, while the others go on
test("wait_for of several sessions: the box opens, and the wait goes on", async (t) => {
  const place = scratch(t);
  const start = (cmd: string) => exec(cmd, { tty: true, yield_time_ms: 250 });
  const ask = "until [ -e go ]; do sleep 0.05; done; read -rsp 'Secret: ' s; echo; echo got ${#s}";
  const script = [
    turn("", start(ask), start("exec sleep 7513")),
    turn("", call("wait_for", { session_ids: [1, 2], mode: "any", timeout_ms: 600_000 })), turn("Done."),
  ];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await until("both run", () => place.requests().length >= 2);
  writeFileSync(join(place.cwd, "go"), "");
  await give(tui, /#1 bash asks for a password[^]*Secret:/, SECRET);
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^session 1: password asked; answered$[^]*got 16\n/m);
  await assertNowhere(place, tui, SECRET);
});

// rule: pi.md, Secrets: a prompt that was declined ends no further `wait_for`
test("wait_for of several sessions: a prompt that was declined is not asked about again", async (t) => {
  const place = scratch(t);
  const start = (cmd: string) => exec(cmd, { tty: true, yield_time_ms: 250, on_impossible: "wait" });
  const goes = "until [ -e go ]; do sleep 0.05; done; echo built";
  const wait = () => call("wait_for", { session_ids: [1, 2], mode: "any", timeout_ms: 600_000 });
  const script = [
    turn("", start(goes)), turn("", start("sleep 0.5; read -rsp 'Secret: ' s")),
    turn("", wait()), turn("", wait()), turn("Done."),
  ];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await tui.waitScreen(/#2 bash asks for a password/);
  await tui.key("Escape");
  await until("the model waits again", () => place.requests().length >= 4);
  const declined = /^session 2: password asked; the person declined$/m;
  assert.match(lastResult(place), declined);
  writeFileSync(join(place.cwd, "go"), "");
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^wait: exited \(session 1\)$[^]*\nbuilt$/m);
  assert.match(lastResult(place), declined);
  await assertNowhere(place, tui, SECRET);
});

/** A command of bash on a terminal, with time enough for who types. */
const inTerminal = (cmd: string, more: object = {}) => bash(cmd, { tty: true, timeout: 60, ...more });

// bash left the foreground at a prompt, or waited until its time was over, and nobody was asked.
// rule: pi.md, Secrets: The tools are `exec_command`, `write_stdin`, `wait_for` and `bash` in the
//   foreground
test("bash: the box opens twice, and the command goes on in the foreground", async (t) => {
  const place = scratch(t);
  const ask = "read -rsp 'First: ' a; echo; read -rsp 'Second: ' b; echo; echo \"got ${#a} ${#b}\"";
  const tui = await startPi(place, [turn("Asking.", inTerminal(ask)), turn("Told.")], BASH);
  await tui.submit("go");
  await give(tui, /#1 bash asks for a password \(hidden from the model\)\n *First:/, SECRET);
  await give(tui, /#1 bash asks for a password[^]*Second:/, SECOND);
  await tui.waitScreen(/Told\./);
  const told = `First: \nSecond: \ngot ${SECRET.length} ${SECOND.length}\n\n\npassword asked; answered`;
  assert.equal(lastResult(place), told);
  await assertNowhere(place, tui, SECRET, SECOND);
});

// rule: pi.md, Secrets: Where nobody gives the password, the command of `bash` goes on in the
//   background (with `timeoutAction: "kill"` it is ended); the text says so
test("bash: where the person declines, the command goes on in the background or is ended", async (t) => {
  const place = scratch(t);
  const ask = "read -rsp 'Secret: ' s; exec sleep 7514";
  const script = [
    turn("Asking.", inTerminal(ask)), turn("Again.", inTerminal(ask, { timeoutAction: "kill" })),
    turn("Told."),
  ];
  const tui = await startPi(place, script, BASH);
  await tui.submit("go");
  for (const id of [1, 2]) {
    await tui.waitScreen(new RegExp(`#${id} bash asks for a password`));
    await tui.type(SECRET);
    await tui.waitScreen(/> •+▏/);
    await tui.key("Escape");
    await tui.goneScreen(new RegExp(`#${id} bash asks for a password`));
  }
  await tui.waitScreen(/Told\./);
  const [, left = "", ended = ""] = place.requests().map((request) => newest(request).text);
  assert.match(left, /^wait: cancelled \(password asked; the person declined\)\nSecret: \n\nStill running /);
  assert.match(left, /in background window @1\. It gets no input here: end it \(tmux kill\) and run it again/);
  assert.equal(ended, "Secret: \n\nCommand aborted\n\npassword asked; the person declined");
  await assertNowhere(place, tui, SECRET);
});

/** A command of bash_stream on a terminal. */
const inStream = (cmd: string) => bashStream(cmd, { stdinMode: "pty", yieldMs: 60_000 });

// The stream tools opened no box, and their note told the model to write the password.
// rule: pi.md, Secrets: `bash_stream` and `poll_process` while they wait, for those with `stdinMode:
//   "pty"`
test("stream tools: the box opens in a call and in a poll, and both go on", async (t) => {
  const place = scratch(t);
  const ask = "read -rsp 'First: ' a; echo; echo \"got ${#a}\"; until [ -e go ]; do sleep 0.05; done; "
    + "read -rsp 'Second: ' b; echo; echo \"and ${#b}\"";
  const script = [
    turn("Asking.", bashStream(ask, { stdinMode: "pty", yieldMs: 60_000, until: { text: "got" } })),
    turn("Waiting.", on("poll_process", { waitMs: 120_000 })), turn("Told."),
  ];
  const tui = await startPi(place, script, STREAM);
  await tui.submit("go");
  await give(tui, /#1 bash asks for a password \(hidden from the model\)\n *First:/, SECRET);
  await until("the model polls", () => place.requests().length >= 2);
  assert.match(lastResult(place), /got 16\n[^]*\[password asked; answered\]/);
  writeFileSync(join(place.cwd, "go"), "");
  await give(tui, /#1 bash asks for a password[^]*Second:/, SECOND);
  await tui.waitScreen(/Told\./);
  assert.match(lastResult(place), /^\[completed\]\n[^]*and 15\n[^]*\[password asked; answered\]/);
  await assertNowhere(place, tui, SECRET, SECOND);
});

// rule: pi.md, Secrets: Where nobody gives the password, a call of the stream tools is answered as
//   still running
test("stream tools: where nobody gives the password the call is answered, and says so", async (t) => {
  const place = scratch(t);
  const script = [
    turn("Asking.", inStream("read -rsp 'Secret: ' s")), turn("", on("kill_process")), turn("Told."),
  ];
  const tui = await startPi(place, script, STREAM);
  await tui.submit("go");
  await tui.waitScreen(/#1 bash asks for a password/);
  await tui.type(SECRET);
  await tui.waitScreen(/> •+▏/);
  await tui.key("Escape");
  await tui.waitScreen(/Told\./);
  const [, told = ""] = place.requests().map((request) => newest(request).text);
  assert.match(told, /^\[running\]\n[^]*\n\[password asked; the person declined\]\n/);
  assert.doesNotMatch(told, /write/);
  await assertNowhere(place, tui, SECRET);
  const json = scratch(t);
  await runJson(json, { script, prompt: "go", args: STREAM });
  const [, alone = ""] = json.requests().map((request) => newest(request).text);
  assert.match(alone, /^\[running\]\n[^]*\n\[a password is asked for, and nobody can give it here: /);
  assert.doesNotMatch(alone, /write/);
});

// rule: pi.md, Secrets: Without a terminal the model is told to ask for another way
test("bash: without a terminal the command goes on in the background, and the model is told", async (t) => {
  const place = scratch(t);
  const script = [turn("", inTerminal("read -rsp 'Secret: ' s; sleep 7515")), turn("", tmux("kill", { window: "@1" })),
    turn("Done."),
  ];
  await runJson(place, { script, prompt: "go", args: BASH });
  const told = place.requests().map((request) => newest(request).text)[1] ?? "";
  assert.match(told, /^wait: cancelled \(a password is asked for, and nobody can give it here: /);
});

// rule: pi.md, Secrets: Without a terminal the model is told to ask for another way
test("without a terminal the model is told to ask for another way", async (t) => {
  const place = scratch(t);
  const script = [turn("", asking("read -rsp 'Secret: ' s")), turn("", kill()), turn("Done.")];
  await runJson(place, { script, prompt: "go" });
  const told = place.requests().map((request) => newest(request).text)[1] ?? "";
  assert.match(told, /^a password is asked for, and nobody can give it here: /m);
});

// rule: pi.md, Secrets: `"secrets": false` in execd.jsonc: nobody is asked
test("with the setting off nobody is asked", async (t) => {
  const place = scratch(t);
  writeFileSync(join(place.agentDir, "execd.jsonc"), '{ "secrets": false }');
  const script = [turn("", asking("read -rsp 'Secret: ' s")), turn("", kill()), turn("Done.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await tui.waitScreen(/Done\./);
  const [, first = ""] = place.requests().map((request) => newest(request).text);
  assert.match(first, /waits for a password on its terminal/);
  assert.doesNotMatch(first, /password asked|nobody can give/);
});

/** What sudo does, where there is none or it needs no password: it asks for it up to three times. */
const LIKE_SUDO = [
  "#!/bin/bash", "for try in 1 2 3; do", "  read -rsp \"[sudo] password for $USER: \" given; echo",
  `  [ "$(printf %s "$given" | sha256sum | cut -c1-64)" = "${sha256(SECRET)}" ] && exec "$@"`,
  "  echo 'Sorry, try again.'", "done", "echo 'sudo: 3 incorrect password attempts'", "exit 1", "",
];

function sha256(text: string): string {
  return execFileSync("sha256sum", { input: text, encoding: "utf8" }).slice(0, 64);
}

// rule: pi.md, Secrets: A program that asks twice opens the box twice
test("sudo: a wrong password, then the right one", async (t) => {
  const place = scratch(t);
  const sudo = join(place.cwd, "sudo");
  writeFileSync(sudo, LIKE_SUDO.join("\n"), { mode: 0o755 });
  const script = [turn("", asking("USER=anna ./sudo echo it worked")), turn("Done.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await give(tui, /#1 \S+ asks for a password[^]*\[sudo\] password for anna:/, SECOND);
  await give(tui, /#1 \S+ asks for a password[^]*> ▏/, SECRET);
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^exit_code: 0$[^]*Sorry, try again\.\n[^]*it worked\n/m);
  await assertNowhere(place, tui, SECRET, SECOND);
});

/** Why the real sudo cannot be asked here. Only root may become somebody who must give a password. */
function noSudo(): string | false {
  const has = (program: string) => ["/usr/bin", "/bin"].some((dir) => existsSync(join(dir, program)));
  if (!has("sudo") || !has("setpriv")) return "no sudo, or no setpriv";
  return process.getuid?.() === 0 ? false : "not root";
}

// rule: pi.md, Secrets: A program that asks twice opens the box twice
test("the real sudo asks three times", { skip: noSudo() }, async (t) => {
  const place = scratch(t);
  const nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
  const script = [turn("", asking(`${nobody} sudo -k true`)), turn("Done.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  // Nobody knows the password of the user nobody: each try fails.
  for (let tries = 0; tries < 3; tries++) {
    await give(tui, /#1 sudo asks for a password[^]*\[sudo\] password for nobody:[^]*> ▏/, SECRET);
  }
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^exit_code: 1$[^]*3 incorrect password attempts/m);
  await assertNowhere(place, tui, SECRET);
});

test("ssh-keygen asks for a passphrase twice", async (t) => {
  const place = scratch(t);
  const script = [turn("", asking("ssh-keygen -q -t ed25519 -f key && ls key.pub")), turn("Done.")];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await give(tui, /#1 ssh-keygen asks for a password[^]*Enter passphrase[^]*> ▏/, SECRET);
  await give(tui, /#1 ssh-keygen asks for a password[^]*Enter same passphrase again[^]*> ▏/, SECRET);
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^exit_code: 0$[^]*key\.pub\n/m);
  const key = join(place.cwd, "key");
  assert.throws(() => execFileSync("ssh-keygen", ["-y", "-P", "wrong", "-f", key], { stdio: "ignore" }));
  execFileSync("ssh-keygen", ["-y", "-P", SECRET, "-f", key], { stdio: "ignore" });
  await assertNowhere(place, tui, SECRET);
});

// rule: pi.md, Secrets: the box says so before it takes anything
test("ssh's far end asks: the box says that its terminal may show what is typed", async (t) => {
  const place = scratch(t);
  // What execd takes for ssh is its name; its terminal passes on each key as that of ssh does.
  const program = [
    "import sys, tty", "open('/proc/self/comm', 'w').write('ssh')", "tty.setraw(0)",
    "print(\"anna@far's password: \", end='', flush=True)", "typed = ''",
    "while not typed.endswith('\\r'): typed += sys.stdin.read(1)", "print(len(typed) - 1)", "",
  ];
  writeFileSync(join(place.cwd, "far.py"), program.join("\n"));
  const tui = await startPi(place, [turn("", asking("/usr/bin/python3 far.py")), turn("Done.")]);
  await tui.submit("go");
  await give(tui, /#1 ssh asks for a password[^]*a terminal within this program may show[^]*> ▏/, SECRET);
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^exit_code: 0$/m);
  await assertNowhere(place, tui, SECRET);
});

/** A repository behind Basic auth; gives its address, and what was sent to it to get in. */
async function serveRepository(t: TestContext, dir: string): Promise<[string, () => string[]]> {
  const git = (...args: string[]) => execFileSync("git", ["-C", dir, ...args], { stdio: "pipe" });
  const env = ["-c", "user.name=a", "-c", "user.email=a@b"];
  mkdirSync(dir);
  git("init", "-q");
  git(...env, "commit", "-q", "--allow-empty", "-m", "one");
  git("update-server-info");
  const given: string[] = [];
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    if (authorization !== undefined) given.push(authorization);
    const path = join(dir, ".git", new URL(request.url ?? "/", "http://x").pathname.slice(5));
    const isIn = authorization === `Basic ${btoa(`anna:${SECRET}`)}`;
    const status = !isIn ? 401 : existsSync(path) ? 200 : 404;
    response.writeHead(status, { "WWW-Authenticate": 'Basic realm="x"' });
    response.end(status === 200 ? readFileSync(path) : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return [`http://127.0.0.1:${(server.address() as AddressInfo).port}/git`, () => given];
}

test("git over http: the model gives the name, the person the password", async (t) => {
  const place = scratch(t);
  const [url, given] = await serveRepository(t, place.path("served"));
  const script = [
    turn("", asking(`GIT_TERMINAL_PROMPT=1 git clone -q ${url} copy && git -C copy log --oneline`)),
    turn("", stdin({ chars: "anna\\r", yield_time_ms: 30_000 })),
    turn("Done."),
  ];
  const tui = await startPi(place, script);
  await tui.submit("go");
  await give(tui, /#1 git\S* asks for a password[^]*Password for 'http:\/\/anna@/, SECRET);
  await tui.waitScreen(/Done\./);
  assert.match(lastResult(place), /^exit_code: 0$[^]*password asked; answered[^]* one\n/m);
  assert.ok(given().length > 0);
  await assertNowhere(place, tui, SECRET);
});

// rule: pi.md, Secrets: pi killed while the box is open leaves nothing behind
test("pi's end closes the box, and ends the session", async (t) => {
  const place = scratch(t);
  const tui = await startPi(place, [turn("Asking.", asking("read -rsp 'Secret: ' s; sleep 7512"))]);
  await tui.submit("go");
  await tui.waitScreen(/#1 bash asks for a password/);
  const pi = await waitProcess(place.tag, /^pi( |$)/);
  process.kill(pi.pid, "SIGTERM");
  await tui.waitExit();
  await until("all is gone", () => processesLike(place.tag, /read -rsp|execd/).length === 0);
});

// The wait went on in a fresh execd, which knew no such session: the model was told of an unknown id,
// or that nothing runs, and the output so far was lost.
// rule: pi.md, Secrets: execd dies while the box is open: the call fails as any other then
test("execd is killed while the box is open: the call says so, with the output so far", async (t) => {
  const ask = "echo before; read -rsp 'Secret: ' s";
  const calls = [
    [exec(ask, { tty: true, yield_time_ms: 30_000 })],
    [
      exec(`until [ -e go ]; do sleep 0.05; done; ${ask}`, { tty: true, yield_time_ms: 250 }),
      call("wait_for", { timeout_ms: 600_000 }),
    ],
  ];
  for (const ones of calls) {
    const place = scratch(t);
    const script = [...ones.map((one) => turn("", one)), turn("Over.")];
    const tui = await Tui.start(place, { script });
    await tui.submit("go");
    if (ones.length > 1) await tui.waitScreen(/↻ wait/);
    writeFileSync(join(place.cwd, "go"), "");
    await tui.waitScreen(/#1 bash asks for a password/);
    await tui.type(SECRET);
    for (const one of processesLike(place.tag, /\/execd\b/)) process.kill(one.pid, "SIGKILL");
    await tui.waitScreen(/Over\./);
    const told = lastResult(place);
    assert.match(told, /^execd was killed by SIGKILL\. Its sessions are gone; the next call starts/);
    if (ones.length === 1) assert.match(told, /\nlog_path: \S+\.log\n---\nbefore\nSecret:$/);
    assert.doesNotMatch(await tui.screen(), /> •/);
    assert.ok(!(await tui.scrollback()).includes(SECRET));
  }
});
