/**
 * What a model pays for its tools: the characters of the tools and of the prompt that the real pi
 * sends, and of the results of twelve everyday commands. Prints a table of each.
 *
 *   npm install --prefix DIR --legacy-peer-deps pi-unified-exec@0.11.0    # the peer, once
 *   node scripts/model-cost.ts --peer DIR/node_modules/pi-unified-exec [--write] [--texts DIR]
 *
 * Without --peer its columns are left out. --write puts the first table into docs/pi.md, --texts
 * keeps each result, to look at. EXECD_TEST_BIN is the execd to measure, by default
 * ../target/release/execd. Each pi runs offline, in a home of its own.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { PiChild } from "../tests/pi/lib/child.ts";
import { execdBinary, EXTENSION_DIR } from "../tests/pi/lib/paths.ts";
import { Scratch } from "../tests/pi/lib/scratch.ts";
import { until } from "../tests/pi/lib/waiting.ts";
import { EVERYDAY, furnish } from "./everyday.ts";
import type { Place, Play } from "./everyday.ts";
import { bashTools, pisBash, unified, unifiedExec } from "./hands.ts";
import type { Hands } from "./hands.ts";
import { MODEL_ID, ModelServer, modelsJson, PROVIDER, textOfMessage } from "./model-server.ts";
import type { Answer, Asked } from "./model-server.ts";
import { writePart } from "./doc-part.ts";

/** All twelve commands take well under a minute; a busy machine takes longer. */
const RUN_LIMIT_MS = 400_000;
/** Characters in a token, about: what people reckon with who do not know the model. */
const CHARACTERS_IN_TOKEN = 4;

/** A set of tools in pi. */
interface Surface {
  title: string;
  /** pi's options for it. */
  args: string[];
  /** Whose commands are measured. */
  hands?: Hands;
}

/** What pi sends with every request. */
interface Sent {
  tools: { name: string; json: string }[];
  prompt: string[];
}

/** What one of the twelve came to. */
interface Cost {
  calls: number;
  characters: number;
  cannot?: string;
}

/** Plays the twelve as a model, and counts what it is told. */
class Player {
  readonly costs: Cost[] = [];
  readonly texts: string[] = [];
  readonly #plays: Play[];
  #at = 0;
  #begun = false;

  constructor(hands: Hands, place: Place) {
    this.#plays = EVERYDAY.map((one) => one.play(hands, place));
  }

  /** The next answer of the model. */
  answer(asked: Asked): Answer {
    const last = asked.messages.findLastIndex((message) => message.role === "assistant");
    const news = asked.messages.slice(last + 1).map(textOfMessage).join("\n");
    if (this.#begun) this.#count(news);
    const answer = this.#next(this.#begun ? news : undefined);
    this.#begun = true;
    return answer;
  }

  /** Whether all have been played. */
  get isDone(): boolean {
    return this.#at >= this.#plays.length;
  }

  #cost(): Cost {
    return (this.costs[this.#at] ??= { calls: 0, characters: 0 });
  }

  #count(news: string): void {
    this.#cost().characters += news.length;
    this.texts[this.#at] = `${this.texts[this.#at] ?? ""}${news}\n=====\n`;
  }

  #next(told: string | undefined): Answer {
    while (!this.isDone) {
      const play = this.#plays[this.#at] as Play;
      const step = told === undefined ? play.next("") : play.next(told);
      const cost = this.#cost();
      if (step.done !== true) {
        if (step.value === undefined) return { text: "Waiting." };
        cost.calls += 1;
        return { calls: [step.value] };
      }
      if (step.value !== undefined) cost.cannot = step.value;
      this.#at += 1;
      told = undefined;
    }
    return { text: "Done." };
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** One pi with a set of tools: what it sends, and what the twelve cost. */
async function measure(surface: Surface, textsDir?: string): Promise<Omit<Measured, "title">> {
  const place = new Scratch();
  const here = { cwd: place.cwd, port: await freePort() };
  const player = surface.hands && new Player(surface.hands, here);
  const server = await ModelServer.start((asked) => player?.answer(asked) ?? { text: "Done." });
  place.atEnd(() => server.close());
  try {
    if (player !== undefined) furnish(place.cwd);
    writeFileSync(join(place.agentDir, "models.json"), modelsJson(server.url));
    // In rpc mode pi stays until its stdin ends, so that what ends in the background is told.
    const model = ["--mode", "rpc", "--no-session", "--model", `${PROVIDER}/${MODEL_ID}`];
    const env = { ...place.plainEnvironment(), EXECD_BIN: execdBinary() };
    const pi = new PiChild(place, [...surface.args, ...model], env, true);
    pi.write({ id: "go", type: "prompt", message: "go" });
    const isDone = () => (player === undefined ? server.asked.length > 0 : player.isDone);
    await until(`the end of ${surface.title}`, isDone, RUN_LIMIT_MS, () => pi.stderr);
    pi.endInput();
    await pi.end();
    keepTexts(textsDir, surface.title, player);
    return { sent: sentBy(server), costs: player?.costs ?? [] };
  } finally {
    await place.close();
  }
}

function keepTexts(dir: string | undefined, title: string, player: Player | undefined): void {
  if (dir === undefined || player === undefined) return;
  mkdirSync(dir, { recursive: true });
  const texts = EVERYDAY.map(({ what }, at) => `##### ${what}\n${player.texts[at] ?? ""}`);
  writeFileSync(join(dir, `${title.replace(/\W+/g, "-")}.txt`), texts.join("\n"));
}

function sentBy(server: ModelServer): Sent {
  const [first] = server.asked;
  if (first === undefined) throw new Error("pi has asked for nothing");
  const tools = (first.body["tools"] ?? []) as { function: { name: string } }[];
  const system = first.messages.filter(({ role }) => role === "system" || role === "developer");
  return {
    tools: tools.map((tool) => ({ name: tool.function.name, json: JSON.stringify(tool) })),
    prompt: system.flatMap((message) => textOfMessage(message).split("\n")),
  };
}

/** What a pi with these tools sends more than one without any that run commands. */
function added(sent: Sent, without: Sent): { json: number; prompt: number } {
  const known = new Set(without.tools.map(({ name }) => name));
  const tools = sent.tools.filter(({ name }) => !known.has(name));
  const lines = new Set(without.prompt);
  const more = sent.prompt.filter((line) => !lines.has(line));
  return {
    json: tools.reduce((sum, { json }) => sum + json.length, 0),
    prompt: more.reduce((sum, line) => sum + line.length + 1, 0),
  };
}

const number = (value: number) => value.toLocaleString("en-US");

/** A row of a table in Markdown. */
function row(cells: (string | number)[]): string {
  return `| ${cells.map((one) => (typeof one === "number" ? number(one) : one)).join(" | ")} |`;
}

interface Measured {
  title: string;
  sent: Sent;
  costs: Cost[];
}

/** What the tools cost before anything is called: their JSON and their lines of the prompt. */
function toolsTable(found: Measured[], without: Sent): string[] {
  const rows = found.map(({ title, sent }) => {
    const { json, prompt } = added(sent, without);
    return row([title, json + prompt, Math.ceil((json + prompt) / CHARACTERS_IN_TOKEN)]);
  });
  return [row(["tools", "characters", "tokens"]), row(["---", "---:", "---:"]), ...rows];
}

/** What the twelve cost. */
function commandsTable(found: Measured[]): string[] {
  const played = found.filter(({ costs }) => costs.length > 0);
  return [
    row(["command", ...played.map(({ title }) => title)]),
    row(["---", ...played.map(() => "---:")]),
    ...EVERYDAY.map(({ what }, at) => row([what, ...played.map(({ costs }) => told(costs[at]))])),
  ];
}

/** Characters and calls of one command. */
function told(cost: Cost | undefined): string {
  if (cost === undefined) throw new Error("not played");
  if (cost.cannot !== undefined) return cost.cannot;
  const characters = number(cost.characters);
  return cost.calls === 1 ? characters : `${characters} (${cost.calls} calls)`;
}

function versionIn(dir: string): string {
  const { version } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as
    { version: string };
  return version;
}

/** The sets of tools that are measured. */
function surfacesWith(peer: string | undefined): Surface[] {
  const own = (name: string) => ["--exec-tools", name, "-e", EXTENSION_DIR];
  const surfaces: Surface[] = [
    { title: "unified", args: own("unified"), hands: unified },
    { title: "bash", args: own("bash"), hands: bashTools },
    { title: "stream", args: own("stream") },
    { title: "pi's own bash", args: [], hands: pisBash },
  ];
  if (peer === undefined) return surfaces;
  const dir = resolve(peer);
  const title = `pi-unified-exec ${versionIn(dir)}`;
  return [...surfaces, { title, args: ["-e", dir], hands: unifiedExec }];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      peer: { type: "string" }, texts: { type: "string" }, write: { type: "boolean" },
    },
  });
  const { sent: without } = await measure({ title: "none", args: ["--exclude-tools", "bash"] });
  const found: Measured[] = [];
  for (const surface of surfacesWith(values.peer)) {
    console.error(`${surface.title} …`);
    found.push({ title: surface.title, ...await measure(surface, values.texts) });
  }
  const tools = toolsTable(found, without);
  console.log([...tools, "", ...commandsTable(found)].join("\n"));
  if (values.write === true) writePart("model-cost", tools);
}

await main();
