/**
 * The Codex CLI, `@openai/codex`, whose model is a script on loopback: its calls of tools reach execd
 * and come back.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROGRAM = join(HERE, "node_modules/.bin/codex");
const { EXECD, WORK, TMPDIR, XDG_RUNTIME_DIR, MARK } = process.env;
/** The most calls that the model makes while it waits for one to tell something. */
const TRIES = 600;

/** A call of a tool of execd, and of one of Codex's own. */
const tool = (name, given) => ({ namespace: "mcp__execd", name, arguments: JSON.stringify(given) });
const own = (name, given) => ({ name, arguments: JSON.stringify(given) });

/** What the model does: each call is answered by the text that a model would read. */
function* model() {
  const said = yield tool("exec_command", { cmd: "echo out of $((6*7))" });
  assert.match(said, /\[exited\]\nexit_code: 0\n---\nout of 42\n/);

  const server = yield tool("exec_command", {
    cmd: "exec python3 -u -m http.server 0 --bind 127.0.0.1",
    until: { port: "any" }, stop: { regex: "rror" }, yield_time_ms: 45_000,
  });
  assert.match(server, /wait: matched/);
  const id = Number(/session_id: (\d+)/.exec(server)[1]);
  const uri = `execd://session/${id}/log`;
  assert.ok((yield own("list_mcp_resources", { server: "execd" })).includes(uri));
  const log = yield own("read_mcp_resource", { server: "execd", uri: `${uri}?from=0` });
  assert.match(log, /Serving HTTP/);

  const gated = yield tool("exec_command",
    { cmd: "until [ -e go ]; do sleep 0.05; done; exit 5", yield_time_ms: 250 });
  const gatedId = /session_id: (\d+)/.exec(gated)[1];
  writeFileSync(join(WORK, "go"), "");
  let told = "";
  for (let tries = 0; !told.includes(`event: session ${gatedId} `); tries += 1) {
    assert.ok(tries < TRIES, told);
    told = yield tool("exec_command", { cmd: "true" });
  }
  assert.match(told, /exited 5/);

  assert.match(yield tool("exec_command", { cmd: "true", bogus: 1 }), /takes no such argument/);
  assert.match(yield tool("kill_session", { session_id: id }), /Killed session/);
}

/** The text of the last output of a tool that Codex sends. */
function outputOf(request) {
  const last = request.input.filter(({ type }) => type === "function_call_output").at(-1);
  if (last === undefined) return undefined;
  const { output } = last;
  return typeof output === "string" ? output : output.map(({ text }) => text).join("\n");
}

const steps = model();
let failure;
let calls = 0;

/** The item that the model answers a request with. */
function answer(request) {
  try {
    const { value, done } = steps.next(outputOf(request));
    if (!done) {
      calls += 1;
      return { type: "function_call", call_id: `call-${calls}`, ...value };
    }
  } catch (error) {
    failure ??= error;
  }
  const text = failure === undefined ? "all done" : "failed";
  return { type: "message", role: "assistant", content: [{ type: "output_text", text }] };
}

const endpoint = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    if (!request.url.endsWith("/responses")) {
      response.writeHead(404).end("{}");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const id = `response-${calls}`;
    for (const event of [
      { type: "response.created", response: { id } },
      { type: "response.output_item.done", item: answer(JSON.parse(Buffer.concat(parts))) },
      { type: "response.completed", response: { id, usage } },
    ]) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
});
await new Promise((done) => endpoint.listen(0, "127.0.0.1", done));

const home = join(WORK, "codex");
mkdirSync(home);
const table = Object.entries({ TMPDIR, XDG_RUNTIME_DIR, MARK, PATH: process.env.PATH });
writeFileSync(join(home, "config.toml"), `
model = "scripted"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "http://127.0.0.1:${endpoint.address().port}/v1"
wire_api = "responses"
[mcp_servers.execd]
command = ${JSON.stringify(EXECD)}
args = ["mcp"]
cwd = ${JSON.stringify(WORK)}
[mcp_servers.execd.env]
${table.map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join("\n")}
`);
const words = ["exec", "--skip-git-repo-check", "-C", WORK, "Do what you are told."];
const codex = spawn(PROGRAM, words, {
  env: { ...process.env, CODEX_HOME: home, HOME: home }, stdio: ["ignore", "pipe", "pipe"],
});
let written = "";
for (const stream of [codex.stdout, codex.stderr]) stream.on("data", (part) => { written += part; });
const status = await new Promise((done) => codex.on("close", done));
endpoint.close();
endpoint.closeAllConnections();
if (failure !== undefined) throw failure;
assert.equal(status, 0, written);
assert.match(written, /all done/);
assert.ok(calls >= 8, `${calls} calls: ${written}`);
