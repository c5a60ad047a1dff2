/** `@modelcontextprotocol/sdk` 1.x. */
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { SERVER, scenario, textOf } from "./scenario.mjs";

const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport(SERVER));
const call = (name, given, options) =>
  client.callTool({ name, arguments: given }, undefined, options);
assert.equal(client.getServerVersion().name, "execd");
await client.ping();
await scenario(client, call);

const started = textOf(await call("exec_command", { cmd: "exec cat" }));
const id = Number(/session_id: (\d+)/.exec(started)[1]);
const uri = `execd://session/${id}/log`;
const updated = new Promise((done) => {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => done(params.uri));
});
await client.subscribeResource({ uri });
await call("write_stdin", { session_id: id, chars: "x\\n" });
assert.equal(await updated, uri);
await client.close();
