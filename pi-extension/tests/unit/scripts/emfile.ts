// Every file descriptor is taken when execd is to be started: the call fails, and pi goes on.
import { closeSync, openSync } from "node:fs";
import { outputOf, Pi } from "../lib.ts";

const pi = new Pi();
const taken: number[] = [];
try {
  for (;;) taken.push(openSync("/dev/null", "r"));
} catch {
  // That was the last one.
}
const failed = await pi.call("exec_command", { cmd: "echo never" }).catch((error: Error) => error);
for (const fd of taken) closeSync(fd);
console.log(`failed: ${failed instanceof Error ? failed.message : "not at all"}`);
console.log(`then: ${outputOf(await pi.call("exec_command", { cmd: "echo back" })).trim()}`);
await pi.shutdown();
