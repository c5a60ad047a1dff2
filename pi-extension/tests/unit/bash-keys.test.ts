/** What each key of tmux-bash.jsonc changes, under a stub of pi and with the real execd. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import type { ToolSchema } from "../../src/tools/schema.ts";
import type { BashPi } from "./bash-lib.ts";
import { withBash } from "./bash-lib.ts";
import { EXECD, type Result, textOf, until } from "./lib.ts";

/** The text of a call, also where it is an error. */
async function say(pi: BashPi, tool: string, params: object): Promise<string> {
  return pi.call(tool, params).then(textOf, (error: Error) => `ERROR ${error.message}`);
}

const schemaOf = (pi: BashPi, tool: string) =>
  pi.tools.get(tool)?.parameters as unknown as ToolSchema;

/** What stands in the system prompt. */
const promptOf = (pi: BashPi, tool: string) => {
  const { promptSnippet = "", promptGuidelines = [] } = pi.tools.get(tool) ?? {};
  return [promptSnippet, ...promptGuidelines].join("\n");
};

// rule: bash.md, tmux-bash.jsonc, key by key: `defaultTimeoutSeconds`
// rule: bash.md, tmux-bash.jsonc, key by key: `defaultTimeoutAction`
// rule: bash.md, tmux-bash.jsonc, key by key: `maxTimeoutSeconds`
it("defaultTimeoutSeconds, defaultTimeoutAction and maxTimeoutSeconds", async () => {
  await withBash({ defaultTimeoutSeconds: 0.3 }, async (pi) => {
    assert.match(await say(pi, "bash", { command: "sleep 9" }), /^Still running after 0\.3s in/);
    const { timeout } = schemaOf(pi, "bash").properties;
    assert.equal(timeout?.description, "Seconds. Default 0.3, at most 60.");
  });
  await withBash({ defaultTimeoutAction: "kill", defaultTimeoutSeconds: 0.3 }, async (pi) => {
    assert.equal(await say(pi, "bash", { command: "echo a; sleep 9" }),
      "ERROR a\n\n\nCommand timed out after 0.3 seconds");
    const kept = await say(pi, "bash", { command: "sleep 9", timeoutAction: "background" });
    assert.match(kept, /^Still running after 0\.3s/);
  });
  await withBash({ maxTimeoutSeconds: 0.4 }, async (pi) => {
    const text = await say(pi, "bash", { command: "sleep 9", timeout: "50" });
    assert.match(text, /^Still running after 0\.4s in background window @1\./);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `foregroundBashUpdateIntervalMs`
it("foregroundBashUpdateIntervalMs", async () => {
  const updatesWith = (foregroundBashUpdateIntervalMs: number) =>
    withBash({ foregroundBashUpdateIntervalMs }, async (pi) => {
      const seen: Result[] = [];
      const command = "for i in $(seq 1 20); do echo $i; sleep 0.05; done";
      await pi.call("bash", { command }, { onUpdate: (update) => seen.push(update) });
      return seen.length;
    });
  const [fast, slow] = [await updatesWith(50), await updatesWith(5_000)];
  assert.ok(fast >= 4 && slow <= 3 && fast > slow, `${fast} and ${slow} updates`);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `bashToolName`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxToolName`
it("bashToolName and tmuxToolName", async () => {
  const settings = { bashToolName: "sh_run", tmuxToolName: "windows" };
  await withBash(settings, async (pi) => {
    assert.deepEqual([...pi.tools.keys()], ["sh_run", "windows"]);
    const text = await say(pi, "sh_run", { command: "sleep 9", timeout: 0.2 });
    assert.match(text, /Use windows peek\/list\/kill to inspect/);
    assert.match(pi.tools.get("windows")?.description ?? "", / background windows of sh_run\.$/);
    assert.match(promptOf(pi, "sh_run"), /sh_run: background: true[^]*windows list/);
    assert.match(await say(pi, "windows", { action: "list" }), /1 window/);
  });
});

// rule: bash.md, In pi: Schemas have what the settings enable, nothing else
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxEnabledActions`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashPollIntervalEnabled`
it("tmuxEnabledActions and bashPollIntervalEnabled decide what the schemas have", async () => {
  const names = (pi: BashPi, tool: string) => Object.keys(schemaOf(pi, tool).properties);
  await withBash({}, async (pi) => {
    assert.deepEqual(names(pi, "bash"),
      ["command", "name", "timeout", "timeoutAction", "background", "tty"]);
    assert.deepEqual(names(pi, "tmux"), ["action", "window", "all"]);
    assert.deepEqual(schemaOf(pi, "tmux").properties.action?.enum, ["list", "peek", "kill"]);
    const refused = await say(pi, "tmux", { action: "poll", window: "@1", pollInterval: 1 });
    assert.equal(refused, "ERROR Error: unknown action poll; there are: list, peek, kill.");
    // What the schema does not have is not sent either.
    const text = await say(pi, "bash", { command: "true", background: true, pollInterval: 1 });
    assert.doesNotMatch(text, /Polling/);
  });
  const settings = { bashPollIntervalEnabled: true, tmuxEnabledActions: ["unpoll", "poll", "list"] };
  await withBash(settings, async (pi) => {
    assert.deepEqual(names(pi, "bash").slice(-2), ["pollInterval", "pollLines"]);
    assert.deepEqual(names(pi, "tmux"), ["action", "window", "pollInterval", "pollLines"]);
    assert.deepEqual(schemaOf(pi, "tmux").properties.action?.enum, ["list", "poll", "unpoll"]);
    const command = "sleep 9";
    const text = await say(pi, "bash", { command, background: true, pollInterval: "30" });
    assert.match(text, /@1\. Polling every 30s\./);
    assert.match(await say(pi, "bash", { command, timeout: 0.2 }), /Use tmux list to inspect/);
  });
  await withBash({ tmuxEnabledActions: [] }, async (pi) => {
    assert.deepEqual([...pi.tools.keys()], ["bash"]);
    assert.doesNotMatch(promptOf(pi, "bash"), /tmux/);
    const text = await say(pi, "bash", { command: "sleep 9", timeout: 0.2 });
    assert.match(text, /@1\. Result will be reported when it finishes\.$/);
  });
  await withBash({ tmuxEnabledActions: ["list"] }, async (pi) => {
    assert.deepEqual(names(pi, "tmux"), ["action"]);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `bashToolDescription`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxToolDescription`
it("bashToolDescription, tmuxToolDescription: every variable is expanded", async () => {
  // With blanks within the braces as without.
  const template = "{{bashToolName}} {{ tmuxToolName }} {{defaultTimeoutSeconds }} "
    + "{{ defaultTimeoutAction}} {{maxTimeoutSeconds}} {{  bashContextLines\t}} {{maxOutputKb}} "
    + "{{ unknown }} | {{ attachCommand }}";
  const settings = { bashToolDescription: template, tmuxToolDescription: template };
  await withBash({ ...settings, maxOutputBytes: 1536 }, async (pi) => {
    for (const tool of ["bash", "tmux"]) {
      const [facts, attach] = (pi.tools.get(tool)?.description ?? "").split(" | ");
      assert.equal(facts, "bash tmux 30 background 60 2000 1.5 {{ unknown }}");
      assert.match(attach ?? "", /execd attach @123( --pid \d+)?$/);
    }
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `systemPrompt`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashSystemPromptSnippet`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxSystemPromptSnippet`
// rule: bash.md, tmux-bash.jsonc, key by key: `systemPromptGuidelines`
it("systemPrompt, both snippets, systemPromptGuidelines", async () => {
  const pis = /PI_\* environment variables/;
  await withBash({}, async (pi) => {
    assert.match(promptOf(pi, "bash"), /^Run bash commands, also in background windows\n/);
    assert.match(promptOf(pi, "bash"), pis);
    assert.match(promptOf(pi, "bash"), /reported by itself: don't poll/);
    assert.match(promptOf(pi, "tmux"), /^Look after the windows of bash/);
    for (const tool of pi.tools.values()) {
      assert.doesNotMatch(`${tool.description} ${tool.promptSnippet}`, /tmux window/);
    }
  });
  await withBash({ systemPrompt: false }, async (pi) => {
    assert.match(promptOf(pi, "bash"), /^Execute bash commands \(ls, grep, find, etc\.\)\n/);
    assert.match(promptOf(pi, "bash"), pis);
    assert.doesNotMatch(promptOf(pi, "bash"), /background/);
    assert.equal(promptOf(pi, "tmux"), "");
  });
  const none = { bashSystemPromptSnippet: false, tmuxSystemPromptSnippet: false };
  await withBash({ ...none, systemPromptGuidelines: [] }, async (pi) => {
    assert.equal(pi.tools.get("bash")?.promptSnippet, undefined);
    assert.doesNotMatch(promptOf(pi, "bash"), /background/);
    assert.equal(promptOf(pi, "tmux"), "");
  });
  const own = {
    bashSystemPromptSnippet: "Runs for {{defaultTimeoutSeconds}}s",
    tmuxSystemPromptSnippet: "Looks after {{bashToolName}}",
    systemPromptGuidelines: ["Say {{ tmuxToolName }} aloud."],
  };
  await withBash(own, async (pi) => {
    assert.match(promptOf(pi, "bash"), /^Runs for 30s\n[^]*\nSay tmux aloud\.$/);
    assert.equal(promptOf(pi, "tmux"), "Looks after bash");
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxWindowNameTemplate`
// rule: bash.md, tmux-bash.jsonc, key by key: `maxTmuxWindowNameLength`
it("tmuxWindowNameTemplate and maxTmuxWindowNameLength", async () => {
  const settings = { tmuxWindowNameTemplate: "[{{ name }}] {{command}}", maxTmuxWindowNameLength: 12 };
  await withBash(settings, async (pi) => {
    const call = { command: "sleep 9", background: true, name: "job" };
    assert.match(await say(pi, "bash", call), /window: \[job\] sleep @1\./);
  });
  await withBash({}, async (pi) => {
    const call = { command: "/bin/sleep 9", background: true };
    assert.match(await say(pi, "bash", call), /window: sleep @1\./);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `defaultPollInterval`
// rule: bash.md, tmux-bash.jsonc, key by key: `minimumPollIntervalSeconds`
// rule: bash.md, tmux-bash.jsonc, key by key: `pollContextLines`
it("defaultPollInterval and pollContextLines; minimumPollIntervalSeconds", async () => {
  const settings = {
    bashPollIntervalEnabled: true, defaultPollInterval: 0.2, minimumPollIntervalSeconds: 0.2,
    pollContextLines: 2, tmuxEnabledActions: ["poll", "list-polls"],
  };
  await withBash(settings, async (pi) => {
    const text = await say(pi, "bash", { command: "seq 1 9; sleep 9", background: true });
    assert.match(text, /Polling every 0\.2s\./);
    await until(() => pi.sent.length > 0, "a poll");
    const [poll] = pi.sent;
    assert.equal(poll?.customType, "bash-window-poll");
    assert.match(poll?.content ?? "", /\n8\n9(\n|$)/);
    assert.doesNotMatch(poll?.content ?? "", /\n7\n/);
    assert.deepEqual(poll?.how, { triggerTurn: true, deliverAs: "followUp" });
    assert.equal(await say(pi, "tmux", { action: "poll", window: "1" }),
      "Polling seq every 0.2s.");
    assert.equal(await say(pi, "tmux", { action: "list-polls" }),
      "Active polls:\n\n  seq every 0.2s (2 lines)");
  });
  await withBash({ ...settings, defaultPollInterval: 0 }, async (pi) => {
    const text = await say(pi, "bash", { command: "sleep 9", background: true, pollInterval: 0 });
    assert.doesNotMatch(text, /Polling/);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `maxOutputBytes`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashContextLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `completedContextLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `peekContextLines`
it("maxOutputBytes, bashContextLines, peekContextLines, completedContextLines", async () => {
  await withBash({ bashContextLines: 3, peekContextLines: 2, completedContextLines: 1 }, async (pi) => {
    const text = await say(pi, "bash", { command: "seq 1 9" });
    // On a busy machine the log is not there in time, and is not named.
    assert.match(text, /^7\n8\n9\n\n\[Showing lines 7-9 of 9(\. Full output: \S+\.log)?\]$/);
    const call = { command: "seq 1 9; until [ -e gone-on ]; do sleep 0.05; done" };
    await say(pi, "bash", { ...call, background: true, name: "nine" });
    const look = () => say(pi, "tmux", { action: "peek", window: "@2" });
    const patience = Date.now() + 30_000;
    // A look that came before all was there is followed by one of what is new only.
    const looks = [];
    while (!/\n9\n/.test(looks.at(-1) ?? "")) {
      assert.ok(Date.now() < patience, "its output comes");
      looks.push(await look());
    }
    assert.doesNotMatch(looks.at(-1) ?? "", /\n[67]\n/);
    if (looks.length === 1) assert.match(looks[0] ?? "", /\n8\n9\n\n\[Showing lines 8-9 of 9/);
    await say(pi, "tmux", { action: "kill", window: "@2" });
    await say(pi, "bash", { command: "seq 1 9", background: true });
    await until(() => pi.sent.length > 0, "its end");
    assert.match(pi.sent[0]?.content ?? "", /```\n9\n```/);
  });
  await withBash({ maxOutputBytes: 20 }, async (pi) => {
    const text = await say(pi, "bash", { command: "seq 1 20" });
    assert.match(text, /^1[345]\n[^]*\n20\n\n\[Showing lines .* \(20B limit\)/);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `displayCommandStartMarker`
it("displayCommandStartMarker", async () => {
  const command = "export A=1\n# MARK\nsleep 9";
  await withBash({ displayCommandStartMarker: "# MARK" }, async (pi) => {
    assert.match(await say(pi, "bash", { command, background: true }), /window: sleep @1\./);
    assert.match(await say(pi, "tmux", { action: "peek", window: "@1" }), /\n\$ sleep 9\n/);
  });
  await withBash({ displayCommandStartMarker: "" }, async (pi) => {
    const shim = "export A=1\n# SHIM_END\nsleep 9";
    assert.match(await say(pi, "bash", { command: shim, background: true }), /window: export @1\./);
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `alwaysShowOutputFilePath`
it("alwaysShowOutputFilePath", async () => {
  await withBash({ alwaysShowOutputFilePath: true }, async (pi) => {
    const patience = Date.now() + 30_000;
    let path: string | undefined;
    let result: Result;
    do {
      // On a busy machine the log is not there in time, and is not named.
      assert.ok(Date.now() < patience, "the log is named");
      result = await pi.call("bash", { command: "echo hi" });
      path = /^hi\n\n\n\[Full output: (\S+\.log)\]$/.exec(textOf(result))?.[1];
    } while (path === undefined);
    assert.ok(existsSync(path), textOf(result));
    assert.equal((result.details as unknown as { fullOutputPath: string }).fullOutputPath, path);
  });
  await withBash({}, async (pi) => {
    const { details } = await pi.call("bash", { command: "echo hi" });
    assert.deepEqual(details, { operation: "bash", status: "completed", running: false });
  });
});

// rule: bash.md, In pi: A timeout that is none is refused with what is allowed
it("a timeout that is none is refused with what is allowed", async () => {
  for (const [settings, most, without] of [[{}, 60, 30], [{ maxTimeoutSeconds: 9 }, 9, 9]] as const) {
    await withBash(settings, async (pi) => {
      for (const timeout of [0, -1, "0"]) {
        assert.match(await say(pi, "bash", { command: "true", timeout }),
          new RegExp(`Invalid timeout: must be more than 0 seconds \\(more than ${most} counts as `
            + `${most}\\); without one it is ${without}$`));
      }
    });
  }
});

// They were kept at pi's end, and deleted a week later by whatever execd started then.
// rule: bash.md, tmux-bash.jsonc, key by key: `preserveOutputFiles`
it("preserveOutputFiles: true holds against cleaning by age, also that of another pi", async () => {
  const outputDir = mkdtempSync(join(tmpdir(), "execd-kept-"));
  const monthAgo = new Date(Date.now() - 30 * 86_400_000);
  const logs = () => readdirSync(outputDir).filter((name) => name.endsWith(".log")).sort();
  // The mark of the last look too: the directory is looked at once an hour.
  const age = () => {
    for (const name of readdirSync(outputDir)) utimesSync(join(outputDir, name), monthAgo, monthAgo);
  };
  try {
    writeFileSync(join(outputDir, "execd-1-0123abcd.log"), "of an execd that keeps none for good");
    age();
    await withBash({ outputDir }, async (pi) => {
      // Old logs are looked for before the first one is opened.
      await pi.call("bash", { command: "seq 1 3000" });
    });
    assert.equal(logs().length, 2, "nothing was deleted by age");
    const [kept] = logs().filter((name) => name !== "execd-1-0123abcd.log");
    age();
    // The variable is about days: it wins.
    process.env.PI_EXECD_LOG_KEEP_DAYS = "7";
    await withBash({ outputDir }, async (pi) => {
      await pi.call("bash", { command: "seq 1 3000" });
      // Old logs are looked at a moment after the start, and not once pi has ended.
      await until(() => !logs().includes("execd-1-0123abcd.log"), "what is not kept for good goes");
    });
    assert.ok(logs().includes(kept ?? ""), "what a pi has preserved stays");
  } finally {
    delete process.env.PI_EXECD_LOG_KEEP_DAYS;
    rmSync(outputDir, { recursive: true });
  }
});

// A log's path was deleted here, also where the log was on another machine.
// rule: bash.md, tmux-bash.jsonc, key by key: `preserveOutputFiles`
it("preserveOutputFiles: false deletes no file here for a log on another machine", async () => {
  const outputDir = mkdtempSync(join(tmpdir(), "execd-far-"));
  const logs = () => readdirSync(outputDir).filter((name) => name.endsWith(".log")).length;
  const settings = { outputDir, preserveOutputFiles: false };
  const call = (pi: BashPi) => pi.call("bash", { command: "seq 1 3000" });
  try {
    await withBash(settings, call);
    assert.equal(logs(), 0, "the end of pi deletes its own");
    // What is behind a command line may be anywhere.
    process.env.EXECD_COMMAND = `exec '${EXECD}'`;
    await withBash(settings, call);
    assert.equal(logs(), 1);
  } finally {
    delete process.env.EXECD_COMMAND;
    rmSync(outputDir, { recursive: true });
  }
});

// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxEnvExportDenylist`
// rule: bash.md, tmux-bash.jsonc, key by key: `tty`
it("tmuxEnvExportDenylist and tty", async () => {
  process.env.KEPT_BACK = "secret";
  process.env.PASSED_ON = "yes";
  const command = "echo ${KEPT_BACK-unset} $PASSED_ON; test -t 1 && echo terminal";
  // execd sets some itself and lets nobody change them.
  const denied = ["KEPT_BACK", "EXECD_INSTANCE"];
  await withBash({ tmuxEnvExportDenylist: denied }, async (pi) => {
    assert.equal(await say(pi, "bash", { command }),
      "ERROR unset yes\n\n\nCommand exited with code 1");
  });
  await withBash({ tty: true }, async (pi) => {
    assert.equal(await say(pi, "bash", { command }), "secret yes\nterminal\n");
    assert.match(await say(pi, "bash", { command, tty: false }), /Command exited with code 1$/);
    assert.match(schemaOf(pi, "bash").properties.tty?.description ?? "", / Default true\. /);
  });
  await withBash({}, async (pi) => {
    assert.equal(await say(pi, "bash", { command, tty: "true" }), "secret yes\nterminal\n");
  });
  delete process.env.KEPT_BACK;
  delete process.env.PASSED_ON;
});
