// A stand-in for execd that answers lines wrongly: stranger, noisy or deaf.
import { createInterface } from "node:readline";

const how = process.argv[2];
const say = (message) => console.log(JSON.stringify(message));

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (how === "stranger") {
    say({ id, error: { code: -32601, message: "no such method" } });
  } else if (method === "server_info") {
    if (how === "noisy") noise(id);
    say({ id, result: { name: "execd" } });
  } else if (method === "shutdown") {
    process.exit(0);
  } else if (how !== "deaf") {
    noise(id);
    say({ id, result: { exit_code: 0, output: "fine", header: "[exited]" } });
  }
}).on("close", () => process.exit(0));

function noise(request_id) {
  console.log("Last login: Tue");
  console.log("[1, 2]");
  console.log("{\"half\":");
  say({ method: "session_exited" });
  say({ method: "session_started", params: [] });
  say({ method: "session_exited", params: { session_id: "x" } });
  say({ method: "sessions_changed", params: { started: 211, ended: 209 } });
  say({ method: "of_a_newer_execd", params: { session_id: 1, window: "@1", text: "x" } });
  say({ method: "progress" });
  say({ method: "progress", params: { request_id } });
  say({ id: 12345, result: {} });
  say({ result: null });
}
