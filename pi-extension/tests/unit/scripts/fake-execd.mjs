// A stand-in for execd that answers lines wrongly: stranger, noisy or deaf. Or slow-log: its log is
// made only after the first output was told. Or late-log: after the session was told.
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
  } else if (how === "slow-log" && method === "exec_command") {
    slowLog(id);
  } else if (how === "late-log" && method === "exec_command") {
    lateLog(id);
  } else if (how !== "deaf") {
    noise(id);
    say({ id, result: { exit_code: 0, output: "fine", header: "[exited]" } });
  }
}).on("close", () => process.exit(0));

function slowLog(request_id) {
  const session = { session_id: 7, pid: 77 };
  const soFar = { tail: "hi\n", total_bytes: 3, elapsed_ms: 1, running: true };
  say({ method: "progress", params: { request_id, ...session, ...soFar } });
  say({ method: "session_started",
    params: { ...session, command: "true", tty: false, cwd: "/there", log_path: "/tmp/7.log" } });
  say({ id: request_id, result: { exit_code: 0, output: "hi\n", header: "[exited]" } });
}

function lateLog(request_id) {
  const session = { session_id: 7, pid: 77 };
  say({ method: "session_started", params: { ...session, command: "true", tty: false, cwd: "/there" } });
  const soFar = { tail: "", total_bytes: 0, elapsed_ms: 1, running: true, log_path: "/tmp/7.log" };
  say({ method: "progress", params: { request_id, ...session, ...soFar } });
  say({ id: request_id, result: { exit_code: 0, output: "", header: "[exited]" } });
}

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
