// 40 instances come and go in one process; none may leave a handle that keeps Node alive.
import { Pi } from "../lib.ts";

const INSTANCES = 40;
/** So many at a time. */
const TOGETHER = 10;
const held = () => process.getActiveResourcesInfo().filter((name) => name !== "Immediate").sort();
const before = held();
for (let i = 0; i < INSTANCES; i += TOGETHER) {
  await Promise.all(Array.from({ length: TOGETHER }, async () => {
    const pi = new Pi();
    await pi.start();
    await pi.call("exec_command", { cmd: "sleep 322", yield_time_ms: 250 });
    await pi.shutdown();
  }));
}
// The handles of the last one are closed in one of the loop's next turns.
for (let turn = 0; turn < 100 && held().join() !== before.join(); turn++) {
  await new Promise((done) => setImmediate(done));
}
const after = held();
const same = after.join() === before.join();
console.log(same ? "done" : `held before: ${before.join(", ")}; after: ${after.join(", ")}`);
