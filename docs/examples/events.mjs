// Starts commands, waits for none of them, and learns what becomes of each from the events.
// Exits 1 if a command failed.
//
//   node events.mjs 'sleep 1' 'exit 3' 'sleep 2; echo done'

import { Execd } from "./execd_client.mjs";

const execd = new Execd();
const running = new Map(); // session id -> command
let failures = 0;

function report(command, end) {
  if (end.exit_code !== 0) failures += 1;
  console.log(`${end.signal ?? `exit ${end.exit_code}`}: ${command}`);
}

try {
  for (const cmd of process.argv.slice(2)) {
    const start = await execd.call("exec_command", { cmd, yield_time_ms: 250 });
    if (start.session_id === undefined) report(cmd, start);
    else running.set(start.session_id, cmd);
  }
  // Events have numbers that rise by one. Keep the last number that you have seen: after a cut
  // the same question to the same execd goes on behind it.
  let after = 0;
  while (running.size > 0) {
    const page = await execd.call("events", { after, wait_ms: 60_000 });
    for (const event of page.events) {
      const command = running.get(event.session_id);
      if (event.what !== "exited" || command === undefined) continue;
      running.delete(event.session_id);
      report(command, event);
    }
    after = page.next_after;
  }
} finally {
  await execd.close();
}
process.exitCode = failures > 0 ? 1 : 0;
