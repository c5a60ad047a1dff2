// Starts a server, waits until it listens, tests it, stops it. Exits 1 if any of that fails.
//
//   node serve_and_test.mjs 'npm run dev'

import assert from "node:assert/strict";
import { Execd } from "./execd_client.mjs";

const EXAMPLE = `exec node -e '
  const server = require("http").createServer((request, reply) => reply.end("hello\\n"));
  server.listen(0, "127.0.0.1");'`;

const execd = new Execd();
try {
  const server = await execd.call("exec_command", {
    cmd: process.argv[2] ?? EXAMPLE,
    until: { port: "any" }, // or a number, or { http: { path: "/health" } }
    stop: { regex: "(?i)error" },
    yield_time_ms: 60_000,
  });
  const outcome = server.wait?.outcome ?? "exited";
  assert.equal(outcome, "matched", `the server does not listen (${outcome}):\n${server.output}`);

  const address = `http://127.0.0.1:${server.wait.port}/`;
  const reply = await fetch(address, { signal: AbortSignal.timeout(10_000) });
  assert.equal(reply.status, 200);
  console.log(`${address} answered ${reply.status}: ${(await reply.text()).trim()}`);

  await execd.call("kill_session", { session_id: server.session_id });
  await assert.rejects(fetch(address), "nobody listens any more");
  console.log("stopped");
} finally {
  await execd.close();
}
