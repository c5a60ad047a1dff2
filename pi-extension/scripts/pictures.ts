/**
 * The pictures of docs/img: moments of the real pi in a terminal, offline, with a scripted model.
 *
 *   node scripts/pictures.ts [--only NAME] [OUTDIR]       # by default ../docs/img
 *
 * Needs tmux. EXECD_TEST_BIN is the execd to show, by default ../target/release/execd.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { exec, turn } from "../tests/pi/lib/model.ts";
import type { Turn } from "../tests/pi/lib/model.ts";
import { Scratch } from "../tests/pi/lib/scratch.ts";
import { Tui } from "../tests/pi/lib/tui.ts";
import { furnish } from "./everyday.ts";
import { svgOf } from "./svg.ts";

/** The width of the terminal that tests/pi/lib/tui.ts starts. */
const COLUMNS = 110;
/** Where logs of another user lie, which is what the pictures show. */
const NEUTRAL_LOGS = "/tmp/pi-execd-1000";

/** A moment: what the model does, and what is done at the terminal until the picture is taken. */
interface Moment {
  name: string;
  title: string;
  script: Turn[];
  prompt: string;
  until(tui: Tui): Promise<unknown>;
}

const MOMENTS: Moment[] = [
  {
    name: "running",
    title: "A command that runs: its newest output, its seconds, its session and its log",
    script: [turn("I run the tests.", exec("sh suites.sh", { yield_time_ms: 30_000 }))],
    prompt: "run the tests",
    until: (tui) => tui.waitScreen(/ok 9 - suite 9[^]*elapsed [2-9]/),
  },
  {
    name: "failed",
    title: "A command that has failed: a red row, with its exit status and its log",
    script: [
      turn("I run the tests.", exec("node --test tests/sums.test.mjs", { yield_time_ms: 30_000 })),
      turn("One of twenty has failed: 13 + 13 is not 27."),
    ],
    prompt: "run the tests",
    until: (tui) => tui.waitScreen(/One of twenty/),
  },
  {
    name: "port",
    title: "A wait on a port: it ends when the server listens",
    script: [
      turn("I start the server.", exec("node server.mjs 47311", { until: { port: 47311 } })),
      turn("It listens on 47311."),
    ],
    prompt: "start the dev server",
    until: (tui) => tui.waitScreen(/It listens on 47311/),
  },
  {
    name: "password",
    title: "A program asks for a password: the person is asked in a masked box, the model is not",
    script: [turn("I sign in.", exec("sh sign-in.sh", { tty: true, yield_time_ms: 30_000 }))],
    prompt: "sign in to the registry",
    until: async (tui) => {
      await tui.waitScreen(/asks for a password/);
      await tui.type("correct horse");
      await tui.waitScreen(/[•*]{13}/);
    },
  },
  {
    name: "sessions",
    title: "/sessions: what runs, with its age and its state, and what can be done with it",
    script: [
      turn("I start both.", exec("sh suites.sh", { yield_time_ms: 250, name: "suites" }),
        exec("node server.mjs 47312", { until: { port: 47312 } })),
      turn("Both run."),
    ],
    prompt: "start the server and the tests",
    until: async (tui) => {
      await tui.waitScreen(/Both run\.[^]*2 sessions/);
      await tui.submit("/sessions");
      await tui.waitScreen(/→ #2 [^]*#1 /);
    },
  },
  {
    name: "follow",
    title: "The live tail of a session over pi's screen, and the keys that do something with it",
    script: [
      turn("I start it.", exec("sh suites.sh", { yield_time_ms: 250, name: "suites" })),
      turn("It runs."),
    ],
    prompt: "start the tests",
    until: async (tui) => {
      await tui.waitScreen(/It runs\.[^]*1 session/);
      await tui.submit("/sessions");
      await tui.waitScreen(/→ #1 /);
      await tui.key("Enter");
      await tui.waitScreen(/ok 12 - suite 12\n[^]*following · /);
    },
  },
  {
    name: "wake",
    title: "A command in the background, and the message that its end wakes the model with",
    script: [
      turn("I go on when it ends.",
        exec("node build.mjs", { yield_time_ms: 250, on_exit: "wake" })),
      turn("The build runs; I am told when it ends."),
      turn("The build is done."),
    ],
    prompt: "build it, and tell me when it is done",
    until: (tui) => tui.waitScreen(/The build is done\./),
  },
];

const SUITES = `
for i in $(seq 1 400); do echo "ok $i - suite $i"; sleep 0.2; done
`;
const SIGN_IN = `
printf 'Password for registry: '
stty -echo
read -r word
stty echo
echo signed in
`;

async function take({ title, script, prompt, until }: Moment): Promise<string> {
  const place = new Scratch();
  try {
    furnish(place.cwd);
    writeFileSync(join(place.cwd, "suites.sh"), SUITES);
    writeFileSync(join(place.cwd, "sign-in.sh"), SIGN_IN);
    const tui = await Tui.start(place, { script, env: { COLORTERM: "truecolor" } });
    await tui.submit(prompt);
    await until(tui);
    const screen = (await tui.screenCells()).split("\n").map((line) => neutral(line, place));
    return svgOf(withoutBlankEnds(screen), COLUMNS, title);
  } finally {
    await place.close();
  }
}

/** A line that names no path of this run, and is as long as it was. */
function neutral(line: string, place: Scratch): string {
  const shown = line
    .replaceAll(/\S*\/tmp\/pi-execd-\d+/g, NEUTRAL_LOGS)
    .replaceAll(place.home, "~");
  const missing = " ".repeat(Math.max(0, line.length - shown.length));
  return shown.replace(/(?:\x1b\[[\d;]*m)*$/, (last) => `${missing}${last}`);
}

/** Without the lines above and below that show nothing. */
function withoutBlankEnds(lines: string[]): string[] {
  const shows = (line: string) => line.replace(/\x1b\[[\d;]*m/g, "").trim() !== "";
  return lines.slice(lines.findIndex(shows), lines.findLastIndex(shows) + 1);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { only: { type: "string" } }, allowPositionals: true,
  });
  const dir = resolve(positionals[0] ?? join(import.meta.dirname, "../../docs/img"));
  mkdirSync(dir, { recursive: true });
  for (const moment of MOMENTS.filter(({ name }) => (values.only ?? name) === name)) {
    writeFileSync(join(dir, `${moment.name}.svg`), await take(moment));
    console.error(`${moment.name}: taken`);
  }
}

await main();
