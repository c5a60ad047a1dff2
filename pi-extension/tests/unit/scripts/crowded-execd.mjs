// A stand-in for an execd whose client had no room for a while: it has not told that session 1 and
// window @6 have ended and that session 2 has begun, only that something has changed. With
// --fails-once it cannot say at first what there is.
import { createInterface } from "node:readline";

let fails = process.argv.includes("--fails-once");
const say = (message) => console.log(JSON.stringify(message));
const session = (session_id, command, more) => ({
  session_id, command, pid: 100 + session_id, tty: false, cwd: "/here", ...more,
});
const row = (session_id, command, more = {}) =>
  session(session_id, command, { running: true, elapsed_ms: 5_000, wake_armed: false, ...more });
const armed = (session_id) =>
  ({ session_id, running: true, completion_notification: "armed", output: "", header: "[running]" });

const answers = {
  server_info: () => ({ name: "execd" }),
  bash: () => {
    say({ method: "session_started", params: session(6, "w", { window: "@6" }) });
    say({ method: "window_exited", params: { window: "@6", text: "Ended.", tail: "", name: "w",
      command: "w", exit_code: 0, still_running: [{ pid: 9, command: "x" }] } });
    return { status: "background", window: "@6", name: "w", text: "Started.", is_error: false };
  },
  exec_command: ({ cmd }) => {
    if (cmd === "one") {
      say({ method: "session_started", params: session(1, "one") });
      say({ method: "session_started", params: session(4, "four") });
      return armed(1);
    }
    if (cmd === "two") return armed(2);
    if (cmd === "room") say({ method: "sessions_changed", params: { started: 1, ended: 2 } });
    if (cmd === "end") {
      say({ method: "session_exited",
        params: { session_id: 2, exit_code: 0, wake: true, observed: false, elapsed_ms: 9 } });
    }
    return { exit_code: 0, output: "fine", header: "[exited]" };
  },
  list_sessions: () => ({
    sessions: [
      row(2, "two, whose start was left out", { wake_armed: true }),
      row(4, "four", { running: false }),
      row(5, "in the foreground", { window: "@5" }),
    ],
  }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "shutdown") process.exit(0);
  if (method === "list_sessions" && fails) {
    fails = false;
    say({ id, error: { code: -32000, message: "no room" } });
  } else if (id !== undefined) say({ id, result: answers[method]?.(params) ?? {} });
}).on("close", () => process.exit(0));
