// What the extension adds to execd's own answer: the same requests, in turns, by a tool call and as
// bare lines to an execd of its own in the same process. Prints medians and p99 in milliseconds.
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

const work: [string, object][] = [
  ["list_sessions", {}],
  ["exec_command", { cmd: "true" }],
];
for (const [method, params] of work) {
  const times: Record<"bare" | "extension", number[]> = { bare: [], extension: [] };
  const measure = async (who: "bare" | "extension", call: () => Promise<unknown>) => {
    const start = performance.now();
    await call();
    times[who].push(performance.now() - start);
  };
  for (let round = 0; round < ROUNDS; round++) {
    await measure("bare", () => bare(method, params));
    await measure("extension", () => pi.call(method, params, { onUpdate: () => {} }));
  }
  const at = (list: number[], share: number) => list.sort((a, b) => a - b)[
    Math.min(list.length - 1, Math.floor(list.length * share))
  ] ?? Number.NaN;
  const row = {
    method,
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
lines.close();
