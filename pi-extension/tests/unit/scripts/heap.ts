// Prints by how many bytes the heap has grown after a hundred answers of 50 KiB and their progress.
import { Pi } from "../lib.ts";

const ANSWERS = 100;
const pi = new Pi();
await pi.start();
const call = () => pi.call(
  "exec_command",
  { cmd: "yes 0123456789 | head -c 100000; sleep 0.01" },
  { onUpdate: () => {} },
);
const used = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
for (let i = 0; i < 10; i++) await call();
const before = used();
for (let i = 0; i < ANSWERS; i++) await call();
console.log(used() - before);
await pi.shutdown();
