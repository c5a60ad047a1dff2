/**
 * `execd agent` with the real pi: on a terminal, in a pipe, its exit codes.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { textOfMessage } from "../../scripts/model-server.ts";
import { assertTotals, bash, MODEL, outline, PIS, Stage } from "./lib/agent.ts";
import type { AgentEvent, AgentResult } from "./lib/agent.ts";
import { execdBinary } from "./lib/paths.ts";
import { processesOf, waitNone, waitProcess } from "./lib/processes.ts";
import { Tui } from "./lib/tui.ts";
import { until } from "./lib/waiting.ts";

const TEXTS = ["Let me look at it.", "It printed alpha."];
const TWO_TURNS = [
  { text: TEXTS[0] ?? "", calls: [bash("echo alpha")] },
  { text: TEXTS[1] ?? "" },
];

/** What a command in pipes came to. */
interface Outcome {
  stdout: string;
  stderr: string;
  code: number | null;
}

/** Runs `execd agent` with these words; `input` is its stdin, if any. */
async function agent(stage: Stage, words: string[], input?: string): Promise<Outcome> {
  const stdio = [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] as const;
  const child = spawn(execdBinary(), ["agent", "--pi", stage.wrapper, ...words], {
    cwd: stage.place.cwd,
    env: stage.place.plainEnvironment(),
    stdio: [...stdio],
  });
  stage.place.atEnd(() => void child.kill("SIGKILL"));
  const outcome: Outcome = { stdout: "", stderr: "", code: null };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (outcome.stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (outcome.stderr += text));
  child.stdin?.end(input);
  outcome.code = await new Promise((resolve) => child.once("close", resolve));
  assert.deepEqual(processesOf(stage.place.tag), [], "nothing is left at its end");
  return outcome;
}

function onTerminal(stage: Stage, ...words: string[]): Promise<Tui> {
  const argv = [execdBinary(), "agent", "--pi", stage.wrapper, "--model", MODEL, ...words];
  return Tui.run(stage.place, argv, stage.place.plainEnvironment());
}

for (const pi of PIS) {
  describe(`pi ${pi.version} execd agent`, { concurrency: 2 }, () => {
    // rule: agent.md, execd agent: Text on stdout, a line for each tool call and a summary on
    //   stderr
    test(`pi ${pi.version}: text on stdout, calls and a summary on stderr`, async (t) => {
      const stage = await Stage.set(t, pi, TWO_TURNS);
      const { stdout, stderr, code } = await agent(stage, ["--model", MODEL, "Look"]);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, `${TEXTS.join("\n\n")}\n`);
      assert.match(stderr, /bash.*echo alpha/);
      const summary = stderr.trimEnd().split("\n").at(-1) ?? "";
      assert.match(summary, /2 turns.*220 tokens.*\$0\.0009.* s$/);
    });

    // rule: agent.md, execd agent: `--json`: the events and the result as NDJSON
    test(`pi ${pi.version}: --json, - for the prompt, flags`, async (t) => {
      const stage = await Stage.set(t, pi, TWO_TURNS);
      const words = ["--model", MODEL, "--json", "--tools", "bash,read", "--timeout", "100s",
        "--max-cost", "0.50", "--workspace", stage.place.tmp, "-"];
      const { stdout, stderr, code } = await agent(stage, words, "--look\nat it\n");
      assert.equal(code, 0, stderr);
      const lines = stdout.trimEnd().split("\n").map((line) => JSON.parse(line) as AgentEvent);
      const last = lines.pop() as unknown as AgentResult & { event: string };
      assert.deepEqual(outline(lines), [
        "turn_start 1", `text ${TEXTS[0]}`, 'tool_use bash {"command":"echo alpha"}',
        "tool_result bash: alpha\n", "turn_end 1", "turn_start 2", `text \n\n${TEXTS[1]}`,
        "turn_end 2",
      ]);
      assert.deepEqual([last.event, last.success, last.num_turns], ["result", true, 2]);
      const usage = { prompt: 100, completion: 10 };
      assertTotals(pi, last, [usage, usage]);
      const asked = stage.model.asked[0];
      assert.equal(textOfMessage(asked?.messages.at(-1)), " --look\nat it");
      assert.deepEqual(asked?.tools, ["bash", "read"]);
      assert.match(textOfMessage(asked?.messages[0]), new RegExp(stage.place.tmp));
    });

    // rule: agent.md, execd agent: A tool that fails is a line on stderr, with the first line of its
    //   output
    // rule: agent.md, execd agent: `--log FILE`: pi's raw stream and stderr are there, however the run
    //   ended
    test(`pi ${pi.version}: a tool that fails is told, --log has pi's stream`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { text: TEXTS[0] ?? "", calls: [bash("echo no such rule; exit 3")] },
        { text: "It failed." },
      ]);
      const log = stage.place.path("run.log");
      const { stdout, stderr, code } = await agent(stage, ["--model", MODEL, "--log", log, "Go"]);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, `${TEXTS[0]}\n\nIt failed.\n`);
      assert.match(stderr, /\n(✗|x) bash failed: no such rule\n/);
      const lines = readFileSync(log, "utf8").split("\n");
      const types = lines.map((line) => /^\{"type":"(\w+)"/.exec(line)?.[1]);
      assert.ok(["session", "turn_end", "agent_end"].every((type) => types.includes(type)), log);
    });

    // rule: agent.md, execd agent: `--health` says whether pi is there, and exits 1 where it is not
    test(`pi ${pi.version}: --health`, async (t) => {
      const stage = await Stage.set(t, pi, []);
      const well = await agent(stage, ["--health"]);
      const line = `pi ${pi.version} at ${stage.wrapper}: ok\n`;
      assert.deepEqual([well.code, well.stdout, well.stderr], [0, line, ""]);
      const old = await agent(stage, ["--health", "--min-version", "99.0.0"]);
      assert.equal(old.code, 1);
      assert.match(old.stderr, new RegExp(`pi ${pi.version} is older than 99\\.0\\.0`));
    });

    // rule: agent.md, execd agent: Exit 0, 1, 124
    test(`pi ${pi.version}: exit codes 1 and 124`, async (t) => {
      const stage = await Stage.set(t, pi, (asked) =>
        asked.tools.length > 0 ? { text: "Dear." } : { text: "Well", stall: "after-text" });
      const unknown = await agent(stage, ["--model", "nosuch/model", "Go"]);
      assert.equal(unknown.code, 1);
      assert.match(unknown.stderr, /nosuch\/model/);
      assert.equal(unknown.stdout, "");
      let slow = unknown;
      for (let limit = 5; slow.stdout === ""; limit *= 3) {
        assert.ok(limit < 100, slow.stderr);
        const limited = ["--no-tools", "--timeout", `${limit}s`, "--model", MODEL, "Go"];
        slow = await agent(stage, limited);
        assert.equal(slow.code, 124, slow.stderr);
        assert.match(slow.stderr, new RegExp(`\\b${limit}000 ms`));
      }
      assert.equal(slow.stdout, "Well\n");
      assert.deepEqual(stage.model.asked[0]?.tools, []);
      const dear = await agent(stage, ["--model", MODEL, "--json", "--max-cost", "0.0001", "Go"]);
      assert.equal(dear.code, 1, dear.stderr);
      assert.match(dear.stdout, /"finish_reason":"cost_exhausted"/);
    });

    // rule: agent.md, execd agent: Exit 130 on Ctrl-C, and nothing is left
    test(`pi ${pi.version}: a terminal: text as it comes, Ctrl-C, exit code 130`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { text: "Let me see.", calls: [bash("setsid sleep 7601 & exec sleep 7600")] },
      ]);
      const tui = await onTerminal(stage, "Wait for me");
      await tui.waitScreen(/Let me see\./);
      await waitProcess(stage.place.tag, /^sleep 7601$/);
      assert.equal(tui.exited(), undefined);
      await tui.key("C-c");
      assert.equal(await tui.waitExit(20_000), 130);
      await tui.close();
      await waitNone(stage.place.tag, 10_000);
      const stderr = readFileSync(stage.place.path("stderr.log"), "utf8");
      assert.match(stderr, /bash.*sleep 7600/);
      // Where its tool is gone before pi is, pi may begin another turn.
      assert.match(stderr, /cancelled: (1 turn|2 turns),/);
    });

    // rule: agent.md, execd agent: Text on stdout, a line for each tool call and a summary on
    //   stderr
    test(`pi ${pi.version}: a terminal: the text streams, and ends with a line`, async (t) => {
      const stage = await Stage.set(t, pi, [{ text: "word\n", repeat: 30, chunk: 5, pace: 50 }]);
      const tui = await onTerminal(stage, "Talk");
      const words = (screen: string) => screen.match(/^word$/gm)?.length ?? 0;
      const early = await tui.waitScreen((screen) => words(screen) > 1);
      assert.ok(words(early) < 30, early);
      assert.equal(await tui.waitExit(), 0);
      // tmux's note that the pane is dead takes a row.
      await until("the rest", async () => words(await tui.scrollback()) === 30, 5_000);
    });

    // rule: agent.md, execd agent: Nobody reads any more, or the terminal closes: the run ends
    test(`pi ${pi.version}: a terminal that closes takes all with it`, async (t) => {
      const stage = await Stage.set(t, pi, [
        { calls: [bash("setsid sleep 7611 & exec sleep 7610")] },
      ]);
      const tui = await onTerminal(stage, "Wait for me");
      await waitProcess(stage.place.tag, /^sleep 7611$/);
      await tui.close();
      await waitNone(stage.place.tag, 10_000);
    });
  });
}
