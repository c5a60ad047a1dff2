/**
 * Twelve everyday commands, and what a model calls to have each done with a set of tools.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Hands } from "./hands.ts";
import type { ScriptedCall } from "./model-server.ts";

/**
 * Gives one call after the other and is handed the text of each result; what it returns says what
 * these tools cannot do. `undefined` in a call's place: the model has nothing to call, and a
 * message is to come.
 */
export type Play = Generator<ScriptedCall | undefined, string | undefined, string>;

/** One everyday command. */
export interface Everyday {
  what: string;
  play(hands: Hands, place: Place): Play;
}

/** Where the commands are run, and what they need there. */
export interface Place {
  cwd: string;
  port: number;
}

const LINES_OF_FLOOD = "yes 'a line of sixty characters, as build logs have many of them.'";
const CLONE = "git clone --progress file://$PWD/origin copy";
/** How long the stand-in for a dev server takes before it listens. */
const SERVER_MS = 2_000;

/** What is typed into the REPL. */
const INPUTS = ["const a = [3, 1, 2]", "a.sort()", "a.map((n) => n * n)", "b", "a.length"];

/** One call that runs to its end. */
function one(cmd: string): Everyday["play"] {
  return function* (hands) {
    yield hands.run(cmd);
    return undefined;
  };
}

/** The same on a terminal; what has none runs it without. */
function oneOnTerminal(cmd: string): Everyday["play"] {
  return function* (hands) {
    yield hands.run(cmd, { tty: true });
    return undefined;
  };
}

function* repl(hands: Hands): Play {
  if (hands.type === undefined) return "no input";
  const start = yield hands.start("node -i", { tty: true });
  for (const input of INPUTS) yield hands.type(start, `${input}\r`);
  yield hands.kill(start);
  return undefined;
}

function* server(hands: Hands, place: Place): Play {
  const ready = { port: place.port, withinSeconds: 2 * SERVER_MS / 1_000 };
  const start = yield hands.serve(`node server.mjs ${place.port}`, ready);
  yield hands.kill(start);
  return undefined;
}

function* question(hands: Hands): Play {
  if (hands.type === undefined) return "no input";
  const start = yield hands.run("sh ask.sh", { tty: true });
  yield hands.type(start, "y\r");
  return undefined;
}

function* job(hands: Hands): Play {
  const start = yield hands.start("sleep 3; echo built");
  yield hands.run("ls");
  yield hands.wait?.(start);
  return undefined;
}

function* endless(hands: Hands): Play {
  const start = yield hands.startEndless("echo begun; sleep 300");
  const end = hands.kill(start);
  if (end !== undefined) yield end;
  return undefined;
}

/** The twelve, in the order of the table. */
export const EVERYDAY: Everyday[] = [
  { what: "`true`", play: one("true") },
  { what: "`ls`", play: one("ls") },
  { what: "a failing test run", play: one("node --test tests/sums.test.mjs") },
  { what: "a build with a progress bar, in a terminal", play: oneOnTerminal("node build.mjs") },
  { what: "`npm install`", play: one("npm install --offline --no-audit --no-fund") },
  { what: "`git clone --progress`, in a terminal", play: oneOnTerminal(CLONE) },
  { what: "a REPL, five inputs", play: repl },
  { what: "a dev server: until it is ready, then its end", play: server },
  { what: "a flood of 10 MB", play: one(`${LINES_OF_FLOOD} | head -c 10000000`) },
  { what: "a question, `[Y/n]`", play: question },
  { what: "a background job, with `ls` meanwhile", play: job },
  { what: "a command that is killed", play: endless },
];

/** How many dependencies `npm install` installs, all of them from the disk. */
const DEPENDENCIES = 12;
/** How many commits the repository has: enough for git to count in percent. */
const COMMITS = 60;

/** Writes what the commands need into a directory. */
export function furnish(cwd: string): void {
  const write = (name: string, text: string) => {
    mkdirSync(join(cwd, name, ".."), { recursive: true });
    writeFileSync(join(cwd, name), text);
  };
  const names = Array.from({ length: DEPENDENCIES }, (_, at) => `part-${at + 1}`);
  const dependencies = Object.fromEntries(names.map((name) => [name, `file:./parts/${name}`]));
  write("package.json", JSON.stringify({ name: "project", version: "1.0.0", dependencies }));
  for (const name of names) {
    write(`parts/${name}/package.json`, JSON.stringify({ name, version: "1.0.0" }));
  }
  write("tests/sums.test.mjs", TESTS);
  write("build.mjs", BUILD);
  write("server.mjs", SERVER);
  write("ask.sh", ASK);
  makeRepository(join(cwd, "origin"));
}

function makeRepository(dir: string): void {
  const commits = Array.from({ length: COMMITS }, (_, at) => [
    `commit refs/heads/main`, `committer A <a@example.org> ${1_700_000_000 + at} +0000`,
    `data 1`, `c`, `M 100644 inline file-${at}.txt`, `data <<E`, `text ${at} `.repeat(50), `E`, ``,
  ].join("\n"));
  const git = (args: string[], input = "") => {
    const { status, stderr } = spawnSync("git", args, { input, encoding: "utf8" });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  };
  git(["init", "--quiet", "--bare", "--initial-branch=main", dir]);
  git(["-C", dir, "fast-import", "--quiet"], `${commits.join("")}done\n`);
}

const TESTS = `
import assert from "node:assert/strict";
import { it } from "node:test";
for (let n = 0; n < 20; n++) {
  it("adds up " + n, () => assert.equal(n + n, n === 13 ? 27 : 2 * n));
}
`;

const BUILD = `
import { setTimeout as delay } from "node:timers/promises";
const steps = 100;
for (let step = 1; step <= steps; step++) {
  const bar = "#".repeat(step / 2).padEnd(50, ".");
  const line = \`\\r\\x1b[K\\x1b[32m[\${bar}]\\x1b[0m \${step} %\`;
  if (process.stdout.isTTY) process.stdout.write(line);
  else console.log(\`[\${step}/\${steps}] compiling module \${step}\`);
  const clear = process.stdout.isTTY ? "\\r\\x1b[K" : "";
  if (step % 50 === 0) console.log(\`\${clear}warning: module \${step} is unused\`);
  await delay(10);
}
console.log("\\nbuilt in 1.0 s");
`;

const SERVER = `
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
const port = Number(process.argv[2]);
for (let at = 1; at <= 10; at++) {
  console.log(\`building module group \${at} of 10\`);
  await delay(${SERVER_MS / 10});
}
createServer((request, response) => response.end("ok"))
  .listen(port, "127.0.0.1", () => console.log(\`ready on http://localhost:\${port}\`));
`;

const ASK = `
printf 'Overwrite 3 files? [Y/n] '
read -r answer
echo "answer: \${answer:-none}"
`;
