// What the extension adds to execd's own answer: the same requests, in turns, by a tool call and as
// bare lines to an execd of its own in the same process, and as lines to cat, the floor of any round
// trip over pipes. Prints medians and p99 in milliseconds.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { EXECD, Pi } from "../lib.ts";

const ROUNDS = Number(process.argv[2] ?? 300);
const pi = new Pi();
await pi.start();

const child = spawn(EXECD, { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: child.stdout });
const bare = async (method: string, params: object) => {
  child.stdin.write(`${JSON.stringify({ id: 1, method, params })}\n`);
  await once(lines, "line");
};

const cat = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
const echoed = createInterface({ input: cat.stdout });
const floor = async () => {
  cat.stdin.write("{}\n");
  await once(echoed, "line");
};

const work: [string, object][] = [
  ["list_sessions", {}],
  ["exec_command", { cmd: "true" }],
];
for (const [method, params] of work) {
  const times = { floor: [] as number[], bare: [] as number[], extension: [] as number[] };
  const measure = async (who: keyof typeof times, call: () => Promise<unknown>) => {
    const start = performance.now();
    await call();
    times[who].push(performance.now() - start);
  };
  for (let round = 0; round < ROUNDS; round++) {
    await measure("floor", floor);
    await measure("bare", () => bare(method, params));
    await measure("extension", () => pi.call(method, params, { onUpdate: () => {} }));
  }
  const at = (list: number[], share: number) => list.sort((a, b) => a - b)[
    Math.min(list.length - 1, Math.floor(list.length * share))
  ] ?? Number.NaN;
  const row = {
    method,
    floorMedian: at(times.floor, 0.5),
    bareMedian: at(times.bare, 0.5),
    extensionMedian: at(times.extension, 0.5),
    addedMedian: at(times.extension, 0.5) - at(times.bare, 0.5),
    bareP99: at(times.bare, 0.99),
    extensionP99: at(times.extension, 0.99),
  };
  console.log(JSON.stringify(row));
}
await pi.shutdown();
child.stdin.end();
cat.stdin.end();
echoed.close();
lines.close();
