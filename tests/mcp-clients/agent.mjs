/**
 * An agent whose model is a script: `node agent.mjs NAME`, one of HOSTS. What the model calls
 * reaches execd, and what execd answers is what the model reads.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HOSTS } from "./hosts.mjs";
import { serve } from "./model.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const { EXECD, WORK, TMPDIR, XDG_RUNTIME_DIR, MARK, PATH, LANG = "C.UTF-8" } = process.env;
const host = HOSTS[process.argv[2]];
/** The most calls that the model makes while it waits for one to tell something. */
const TRIES = 600;

const tool = (name, given) => ({ ...host.ours(name), given });

/** A call of a tool, answered by the text that a model would read. */
function* ask(call, isError = false) {
  const told = yield call;
  if (host.marks) assert.equal(told.isError, isError, told.text);
  return told.text;
}

/** What the model does. */
function* script({ tools, request }) {
  // `instructions` reach the model from their first word to their last.
  assert.match(request, /Never sleep to wait\..*All sessions end with this server\./);
  const { name } = host.ours("exec_command");
  if (host.late !== undefined) {
    assert.ok(host.late.every((one) => request.includes(one)), "their names are told");
    tools = (yield host.load(host.late)).tools;
  }
  const description = /^Runs a shell command in a session\..*log_path is a file with all of it/s;
  assert.match(tools.get(name), description);

  yield* commands();
  const server = yield* ask(tool("exec_command", {
    cmd: "exec python3 -u -m http.server 0 --bind 127.0.0.1",
    until: { port: "any" }, stop: { regex: "rror" }, yield_time_ms: 45_000,
  }));
  assert.match(server, /wait: matched/);
  const id = Number(/session_id: (\d+)/.exec(server)[1]);
  const uri = `execd://session/${id}/log`;
  if (host.list !== undefined) {
    const list = yield* ask(host.list);
    assert.ok(list.includes(uri), list);
  }
  if (host.read !== undefined) {
    assert.match(yield* ask(host.read(`${uri}?from=0`)), /Serving HTTP/);
  }

  const started = yield* ask(tool("exec_command",
    { cmd: "python3 -q -i", tty: true, until: { text: ">>>" }, yield_time_ms: 45_000 }));
  const repl = Number(/session_id: (\d+)/.exec(started)[1]);
  assert.match(yield* ask(tool("write_stdin",
    { session_id: repl, chars: "6*7\\r", until: { text: "42" }, yield_time_ms: 45_000 })), /42/);

  yield* anEndIsTold();
  const wrong = yield* ask(tool("exec_command", { cmd: "true", bogus: 1 }), true);
  assert.match(wrong, /takes no such argument/);
  assert.match(yield* ask(tool("kill_session", { session_id: id })), /Killed session/);
}

/** Commands that end: what they write reaches the model as it is, and whole. */
function* commands() {
  const cmd = "echo out of $((6*7)); echo 'é ↵ \"<&>\"'; pwd; echo \"$MARK\"";
  const said = yield* ask(tool("exec_command", { cmd, ...host.added }));
  const wanted = `\nout of 42\né ↵ "<&>"\n${WORK}\n${MARK}\n--- end `;
  assert.ok(said.includes("[exited]\nexit_code: 0\n--- output ") && said.includes(wanted), said);

  const left = String.raw`\n\[\.\.\. \d+ bytes left out: exec_command \{.*\}\]\n`;
  const lines = [["seq 9000", new RegExp(`\n1\n2\n.*${left}.*\n9000\n--- end `, "s")],
    ["seq 100000000 100009000",
      new RegExp(`\n100000000\n.*${left}(?:1\\d{8}\n){800,}--- end `, "s")]];
  for (const [command, whole] of lines) {
    const long = yield* ask(tool("exec_command", { cmd: command, yield_time_ms: 45_000 }));
    assert.match(long, whole);
  }
}

/** The end of a session that no call waited for is told by the next result. */
function* anEndIsTold() {
  const gated = yield* ask(tool("exec_command",
    { cmd: "until [ -e go ]; do sleep 0.05; done; exit 5", yield_time_ms: 250 }));
  const id = /session_id: (\d+)/.exec(gated)[1];
  writeFileSync(join(WORK, "go"), "");
  let told = "";
  for (let tries = 0; !told.includes(`event: session ${id} `); tries += 1) {
    assert.ok(tries < TRIES, told);
    told = yield* ask(tool("exec_command", { cmd: "true" }));
  }
  assert.match(told, /exited 5/);
}

const home = join(WORK, "..", "home");
mkdirSync(home);
const program = join(HERE, host.program);
const nowhere = "http://127.0.0.1:1";
const env = {
  TMPDIR, XDG_RUNTIME_DIR, MARK, LANG, HOME: home, TERM: "dumb",
  PATH: [dirname(EXECD), dirname(process.execPath), PATH].join(delimiter),
};
const model = await serve(host.format, host.known, script);
const set = host.set({ origin: model.origin, home, env, program, cwd: WORK });
const agent = spawn(program, set.words, {
  cwd: WORK, stdio: ["ignore", "pipe", "pipe"],
  // Nothing but the model is asked: whatever heeds a proxy or asks a registry finds nobody there.
  env: {
    ...env, ...set.env, HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere, NO_PROXY: "127.0.0.1",
    npm_config_registry: nowhere,
  },
});
let written = "";
for (const stream of [agent.stdout, agent.stderr]) {
  stream.on("data", (part) => { written += part; });
}
const status = await new Promise((done) => agent.on("close", done));
model.close();
if (model.failure !== undefined) throw model.failure;
assert.equal(status, 0, written);
assert.match(written, /all done/);
assert.ok(model.done, `${model.calls} calls: ${written}`);
