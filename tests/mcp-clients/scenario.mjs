/** What every client in JavaScript does with `execd mcp`. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const { EXECD, WORK } = process.env;

/** Results have structured content, which the SDK holds against the schema of its tool (ajv). */
const flags = process.argv.includes("structured") ? ["--mcp-structured"] : [];

/** How the server is started: commands see the environment of the test. */
export const SERVER = { command: EXECD, args: ["mcp", ...flags], env: process.env, cwd: WORK };

/** The text of a result that is no error. */
export function textOf(result) {
  assert.equal(result.content.length, 1);
  assert.notEqual(result.isError, true, result.content[0].text);
  return result.content[0].text;
}

/** `call(name, arguments, options)` calls a tool. */
export async function scenario(client, call) {
  const ask = async (name, given, options) => textOf(await call(name, given, options));
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  assert.deepEqual(names,
    ["exec_command", "write_stdin", "kill_session", "list_sessions", "wait_for"]);

  assert.match(await ask("exec_command", { cmd: "echo hi" }),
    /^\[exited\]\nexit_code: 0\n--- output (\w+)\nhi\n--- end \1$/);
  const wrong = await call("exec_command", { cmd: "true", bogus: 1 });
  assert.equal(wrong.isError, true);

  await cancels(call, ask);

  // A REPL.
  const started = await ask("exec_command",
    { cmd: "python3 -q -i", tty: true, until: { text: ">>>" }, yield_time_ms: 45_000 });
  const repl = Number(/session_id: (\d+)/.exec(started)[1]);
  const said = await ask("write_stdin",
    { session_id: repl, chars: "6*7\\r", until: { text: "42" }, yield_time_ms: 45_000 });
  assert.match(said, /42/);

  // A server.
  const server = await ask("exec_command", {
    cmd: "exec python3 -u -m http.server 0 --bind 127.0.0.1",
    until: { port: "any" }, stop: { regex: "rror" }, yield_time_ms: 45_000,
  });
  assert.match(server, /wait: matched/);
  const id = Number(/session_id: (\d+)/.exec(server)[1]);

  const { resources } = await client.listResources();
  assert.ok(resources.some(({ uri }) => uri === `execd://session/${id}/log`));
  const { contents } = await client.readResource({ uri: `execd://session/${id}/log?from=0` });
  assert.match(contents[0].text, /Serving HTTP/);

  // An end that no call waits for.
  const gated = await ask("exec_command",
    { cmd: "until [ -e go ]; do sleep 0.05; done; exit 5", yield_time_ms: 250 });
  const gatedId = /session_id: (\d+)/.exec(gated)[1];
  writeFileSync(join(WORK, "go"), "");
  const deadline = Date.now() + 60_000;
  let told = "";
  while (!told.includes(`event: session ${gatedId} `)) {
    assert.ok(Date.now() < deadline, told);
    told = await ask("exec_command", { cmd: "true" });
  }
  assert.match(told, /exited 5/);

  assert.match(await ask("kill_session", { session_id: id }), /^Killed session/);
  await assert.rejects(call("no_such_tool", {}), /Unknown tool/);
}

/** Progress, then a cancellation: the command goes on, and the next result tells of it. */
async function cancels(call, ask) {
  const esc = new AbortController();
  const messages = [];
  const waiting = call("exec_command",
    { cmd: "echo begun; exec sleep 1000", yield_time_ms: 45_000, until: { text: "never" } },
    {
      signal: esc.signal,
      resetTimeoutOnProgress: true,
      onprogress: ({ message }) => {
        messages.push(message);
        esc.abort("Esc");
      },
    });
  await assert.rejects(waiting);
  assert.deepEqual(messages, ["begun"]);
  const deadline = Date.now() + 60_000;
  let next = "";
  while (!next.includes("was cancelled before")) {
    assert.ok(Date.now() < deadline, next);
    next = await ask("list_sessions", {});
  }
  assert.match(next, /1 live/);
  assert.match(next, /was cancelled before has answered:\n\[still running\]\nsession_id: \d+/);
}
