// A session runs and nobody waits for it: Node must end by itself, and execd with it.
import { Pi } from "../lib.ts";

const pi = new Pi();
await pi.start();
await pi.call("exec_command", { cmd: "sleep 321", yield_time_ms: 250 });
console.log("done");
