/** `@modelcontextprotocol/client` 2.x: `node client.mjs legacy|auto|2026-07-28`. */
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { SERVER, scenario, textOf } from "./scenario.mjs";

const era = process.argv[2];
const mode = era === "legacy" || era === "auto" ? era : { pin: era };
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport(SERVER));
const call = (name, given, options) => client.callTool({ name, arguments: given }, options);
await scenario(client, call);

if (era !== "legacy") {
  const started = textOf(await call("exec_command", { cmd: "exec cat" }));
  const id = Number(/session_id: (\d+)/.exec(started)[1]);
  const uri = `execd://session/${id}/log`;
  const updated = new Promise((done) => {
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      done(params.uri);
    });
  });
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [uri] });
  await call("write_stdin", { session_id: id, chars: "x\\n" });
  assert.equal(await updated, uri);
  await subscription.close();
}
await client.close();
