/**
 * What other extensions may use: `pi-execd/core`, and the footer's status. And what stands in the
 * real system prompt.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BASH, background, bash, configure } from "./lib/bash.ts";
import { runJson } from "./lib/json.ts";
import { turn } from "./lib/model.ts";
import { EXTENSION_DIR, execdBinary } from "./lib/paths.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";
import { until } from "./lib/waiting.ts";

/** Another package that has pi-execd among its dependencies and writes what it sees to a file. */
const OTHER = `
import { writeFileSync } from "node:fs";
import {
  backgroundBashStatusKey, listBashWindows, loadTmuxBashConfig, resolveTmuxBashContext,
} from "pi-execd/core";

export default function other(pi) {
  pi.registerCommand("core-dump", {
    handler: async (file, ctx) => {
      const options = loadTmuxBashConfig();
      const context = resolveTmuxBashContext(ctx, options);
      const windows = listBashWindows(context);
      const all = listBashWindows(resolveTmuxBashContext(ctx, { ...options, tmuxWindowScope: "all" }));
      const said = { key: backgroundBashStatusKey, options, context, windows, all };
      writeFileSync(file, JSON.stringify(said));
    },
  });
}
`;

interface Dump {
  key: string;
  options: Record<string, unknown>;
  context: {
    cwd: string; gitRoot?: string; session: string; windowScope: string; filters: object;
  };
  windows: { id: string; index: number; title: string; session: string; outputFile: string }[];
  all: object[];
}

function otherPackage(place: Scratch): string {
  const dir = place.path("other");
  mkdirSync(join(dir, "node_modules"), { recursive: true });
  symlinkSync(EXTENSION_DIR, join(dir, "node_modules", "pi-execd"));
  writeFileSync(join(dir, "index.ts"), OTHER);
  return join(dir, "index.ts");
}

// rule: bash.md, In pi: Outside of git is fine
// rule: bash.md, In pi: pi-execd/core: loadTmuxBashConfig, resolveTmuxBashContext, listBashWindows
// rule: bash.md, In pi: tmux-bash.jsonc in PI_EXTENSION_CONFIG_DIR, else in pi's agent directory
test("another extension lists windows, synchronously, by the settings of the user", async (t) => {
  const place = scratch(t);
  const configDir = place.path("config");
  mkdirSync(configDir);
  writeFileSync(join(configDir, "tmux-bash.jsonc"), '{ "pollContextLines": 7, /* mine */ }');
  configure(place, { pollContextLines: 9 });
  const rpc = new Rpc(place, {
    args: BASH,
    extensions: [EXTENSION_DIR, otherPackage(place)],
    env: { PI_EXTENSION_CONFIG_DIR: configDir },
    script: [
      turn("Start.", background("echo out; exec sleep 7480", { name: "one" })),
      turn("Started."),
    ],
  });
  let dumps = 0;
  const dump = async (): Promise<Dump> => {
    const file = place.path(`dump-${++dumps}.json`);
    await rpc.say(`/core-dump ${file}`);
    return until("the dump", () => {
      try {
        return JSON.parse(readFileSync(file, "utf8")) as Dump;
      } catch {
        return undefined;
      }
    });
  };
  assert.deepEqual((await dump()).windows, []);
  await rpc.prompt("start");
  const { key, options, context, windows } = await dump();
  assert.equal(key, "backgroundBashTmuxCommands");
  assert.deepEqual([options["pollContextLines"], options["bashContextLines"]], [7, 2_000]);
  assert.deepEqual([context.cwd, context.gitRoot], [place.cwd, undefined], "outside of git");
  assert.equal(windows.length, 1);
  const { outputFile, ...window } = windows[0] ?? { outputFile: "" };
  assert.match(context.session, /^execd-\d+$/);
  assert.deepEqual(window, { id: "@1", index: 1, title: "one", session: context.session });
  // The command may have only begun when its window is listed.
  await until("the output in its log", () => readFileSync(outputFile, "utf8") === "out\n");
  // The other copy of the module sees them still after /reload, and by scope after /new.
  await rpc.say("/test-reload");
  assert.equal((await dump()).windows.length, 1);
  await rpc.command("new_session");
  const after = await dump();
  assert.deepEqual([after.windows.length, after.all.length], [0, 1]);
  mkdirSync(join(place.home, ".git"));
  assert.equal((await dump()).context.gitRoot, place.home);
  assert.equal((await rpc.quit()).code, 0);
});

/** What the documents show to other extensions, each as the body of a command `/example-N`. */
function examples(): string {
  const page = readFileSync(join(EXTENSION_DIR, "..", "docs", "bash.md"), "utf8");
  const part = page.slice(page.indexOf("\n### For other extensions\n"));
  const shown = [...part.matchAll(/```ts\n([^]*?)```/g)].map(([, text = ""]) => text.split("\n"));
  const isImport = (line: string) => line.startsWith("import ");
  // Several may import the same.
  const commands = shown.map((lines, at) => {
    const names = lines.filter(isImport)
      .map((line) => line.replace(/^import (\{.*\}) from (.*);$/, "const $1 = await import($2);"));
    const body = [...names, ...lines.filter((line) => !isImport(line))].join("\n");
    return `pi.registerCommand("example-${at + 1}", { handler: async (_args, ctx) => {${body}} });`;
  });
  assert.equal(commands.length, 4);
  return `export default function examples(pi) {\n${commands.join("\n")}\n}`;
}

// The context had no session, which people give to `tmux attach -t` with the original.
// rule: bash.md, In pi: resolveTmuxBashContext gives `session`, a name that `execd attach` takes;
//   each helper documented with an example that runs
test("the examples for other extensions run; execd takes the session that they show", async (t) => {
  const place = scratch(t);
  const other = otherPackage(place);
  writeFileSync(other, examples());
  const rpc = new Rpc(place, {
    args: BASH,
    extensions: [EXTENSION_DIR, other],
    script: [
      turn("Start.", background("echo out; exec sleep 7481", { name: "dev" })),
      turn("Started."),
    ],
  });
  await rpc.prompt("start");
  const shown = async (example: number, text: RegExp) => {
    const from = rpc.mark();
    await rpc.say(`/example-${example}`);
    return text.exec((await rpc.notice(text, from)).text) ?? [];
  };
  await shown(1, /^a command waits 30 s$/);
  const [, session] = await shown(2, /^execd attach (execd-\d+)$/);
  const [, target = "", log = ""] = await shown(3, /^dev: execd attach (\S+:1) or less (\S+)$/);
  assert.equal(target, `${session}:1`);
  const tail = () => execFileSync(execdBinary(), ["tail", target], {
    env: place.plainEnvironment(), encoding: "utf8",
  });
  await until("its output", () => tail() === "out\n" && readFileSync(log, "utf8") === "out\n");
  assert.equal((await rpc.quit()).code, 0);
});

/** The parts of the system prompt that the model was sent. */
async function promptWith(place: Scratch, settings: object | undefined): Promise<string> {
  if (settings) configure(place, settings);
  const run = await runJson(place, { args: BASH, script: [turn("Hi.")] });
  return run.requests[0]?.messages.find((one) => one.role === "system")?.text ?? "";
}

// rule: bash.md, In pi: Default texts say background window, all template variables expanded, in
//   the real system prompt
test("the system prompt: the default texts, with every variable expanded", async (t) => {
  const prompt = await promptWith(scratch(t), undefined);
  for (const line of [
    "- bash: Run bash commands, also in background windows\\n",
    "- tmux: Look after the windows of bash\\n",
    "- bash: background: true for servers, watchers and long commands.",
    "Their end is reported by itself: don't poll for it.\\n",
    "- tmux list finds background windows.\\n",
    "execd attach @123",
    "- You can inspect PI_* environment variables",
  ]) {
    assert.ok(prompt.includes(line), `${line} in ${prompt}`);
  }
  assert.doesNotMatch(prompt, /\{\{|tmux window|tmux session/);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `systemPrompt`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashSystemPromptSnippet`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxSystemPromptSnippet`
// rule: bash.md, tmux-bash.jsonc, key by key: `systemPromptGuidelines`
test("the system prompt: own texts, none, and pi's own", async (t) => {
  const own = await promptWith(scratch(t), {
    bashToolName: "sh", tmuxToolName: "win", bashSystemPromptSnippet: "Own {{maxTimeoutSeconds}}",
    tmuxSystemPromptSnippet: false, systemPromptGuidelines: ["Rule of {{bashToolName}}."],
  });
  assert.ok(own.includes("- sh: Own 60\\n") && own.includes("- Rule of sh.\\n"), own);
  assert.doesNotMatch(own, /- win:/);
  assert.match(own, /- bash: Execute bash commands \(ls/, "pi's own bash stays beside it");
  const none = await promptWith(scratch(t), { systemPromptGuidelines: [] });
  assert.doesNotMatch(none, /reported by itself|people run/);
  const pis = await promptWith(scratch(t), { systemPrompt: false });
  assert.match(pis, /- bash: Execute bash commands \(ls, grep, find, etc\.\)/);
  assert.doesNotMatch(pis, /background|- tmux:/);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `bashToolName`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxEnabledActions`
test("another name: pi's own bash stays beside it; no actions: no tmux tool", async (t) => {
  const place = scratch(t);
  configure(place, { bashToolName: "run", tmuxEnabledActions: [] });
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Both.", { name: "run", args: { command: "echo ours" } }, bash("echo theirs")),
      turn("Done."),
    ],
  });
  assert.deepEqual(run.requests[0]?.tools, ["bash", "edit", "read", "run", "write"]);
  assert.deepEqual([run.toolEnd("run").text, run.toolEnd("bash").text], ["ours\n", "theirs\n"]);
});
