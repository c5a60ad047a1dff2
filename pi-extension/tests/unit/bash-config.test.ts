/** tmux-bash.jsonc: where it lies, what it may say, what is told about it. */
import assert from "node:assert/strict";
import {
  mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { type TmuxBashConfig, configPath, readConfig } from "../../src/bash/config.ts";
import { KEYS, TMUX_ONLY } from "../../src/bash/keys.ts";
import { deleteLogs, logDirFlags } from "../../src/bash/logs.ts";

const dir = mkdtempSync(join(tmpdir(), "execd-config-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const file = join(dir, "tmux-bash.jsonc");

function read(content: unknown) {
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return readConfig(file);
}

/** What each key may hold beside its default, and something that it may not. */
const CASES: { [K in keyof TmuxBashConfig]: [TmuxBashConfig[K], unknown, RegExp] } = {
  defaultTimeoutSeconds: [7.5, "7", /a number of seconds above 0/],
  defaultTimeoutAction: ["kill", "stop", /"background" or "kill"/],
  maxTimeoutSeconds: [600, 0, /a number of seconds above 0/],
  foregroundBashUpdateIntervalMs: [100, 1.5, /a whole number above 0/],
  bashToolName: ["shell", "two words", /a tool name/],
  tmuxToolName: ["windows", 5, /a tool name/],
  tmuxEnabledActions: [["list-polls", "unpoll"], ["list", "attach"], /an array of "list", /],
  bashPollIntervalEnabled: [true, "yes", /true or false/],
  bashToolDescription: ["Runs.", false, /a string/],
  tmuxToolDescription: ["Looks.", null, /a string/],
  systemPrompt: [false, 0, /true or false/],
  bashSystemPromptSnippet: [false, true, /a string or false/],
  tmuxSystemPromptSnippet: ["Look", 1, /a string or false/],
  systemPromptGuidelines: [[], "one", /an array of strings/],
  tmuxSessionScope: ["git-root", "local", /"global" or "git-root"/],
  globalTmuxSessionName: ["bg", 1, /a string/],
  gitRootTmuxSessionNameTemplate: ["x", [], /a string/],
  tmuxWindowScope: ["all", "mine", /"pi-session", "git-root" or "all"/],
  tmuxWindowNameTemplate: ["bg {{name}}", {}, /a string/],
  maxTmuxWindowNameLength: [12, -1, /a whole number above 0/],
  autoCloseWindowsOnCompletion: [false, "false", /true or false/],
  tmuxBinary: ["/opt/tmux", false, /a string/],
  defaultPollInterval: [15, -1, /a number of seconds, 0 for none/],
  pollDelivery: ["display", "both", /"model" or "display"/],
  minimumPollIntervalSeconds: [0, "0", /a number of seconds, 0 for none/],
  maxOutputBytes: [1024, 0, /a whole number above 0/],
  bashContextLines: [10, 1e12, /a whole number above 0/],
  completedContextLines: [10, "10", /a whole number above 0/],
  pollContextLines: [10, 1.5, /a whole number above 0/],
  peekContextLines: [10, null, /a whole number above 0/],
  bashCompactDisplayLines: [10, -1, /a whole number, 0 or more/],
  bashTruncatedCompactDisplayLines: [3, "3", /a whole number, 0 or more/],
  bashExpandedDisplayLines: [100, 1.5, /a whole number, 0 or more/],
  completedCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  completedTruncatedCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  completedExpandedDisplayLines: [1, -1, /a whole number, 0 or more/],
  pollCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  pollTruncatedCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  pollExpandedDisplayLines: [1, -1, /a whole number, 0 or more/],
  peekCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  peekTruncatedCompactDisplayLines: [1, -1, /a whole number, 0 or more/],
  peekExpandedDisplayLines: [1, -1, /a whole number, 0 or more/],
  displayCommandStartMarker: ["", 0, /a string/],
  alwaysShowOutputFilePath: [true, 1, /true or false/],
  preserveOutputFiles: [false, 0, /true or false/],
  outputDir: ["/srv/out", "", /a string that is not empty/],
  tmuxEnvExportDenylist: [["PWD", "SECRET"], ["A=B"], /an array of names of variables/],
  tty: [true, "pty", /true or false/],
};

const names = Object.keys(KEYS) as (keyof TmuxBashConfig)[];

// rule: bash.md, In pi: All of the seed's keys, same defaults but for `outputDir` and the words of
//   the default texts
it("without a file every key has its default", () => {
  const { config, complaints } = readConfig(join(dir, "none.jsonc"));
  assert.deepEqual(complaints, []);
  assert.deepEqual(Object.keys(config).sort(), [...names].sort());
  assert.deepEqual(
    names.map((name) => [name, config[name]]),
    names.map((name) => [name, KEYS[name].fallback]).map(([name, fallback]) =>
      name === "systemPromptGuidelines" ? [name, config.systemPromptGuidelines] : [name, fallback]),
  );
  assert.deepEqual(
    [config.defaultTimeoutSeconds, config.maxTimeoutSeconds, config.foregroundBashUpdateIntervalMs,
      config.defaultTimeoutAction, config.maxOutputBytes, config.bashContextLines,
      config.completedContextLines, config.pollContextLines, config.peekContextLines,
      config.minimumPollIntervalSeconds, config.defaultPollInterval, config.pollDelivery,
      config.maxTmuxWindowNameLength, config.tmuxWindowScope, config.displayCommandStartMarker],
    [30, 60, 250, "background", 51_200, 2_000, 20, 30, 2_000, 10, 0, "model", 30, "pi-session",
      "# SHIM_END"],
  );
  assert.deepEqual(
    [config.bashToolName, config.tmuxToolName, config.bashPollIntervalEnabled, config.systemPrompt,
      config.tmuxSessionScope, config.globalTmuxSessionName, config.gitRootTmuxSessionNameTemplate,
      config.tmuxWindowNameTemplate, config.autoCloseWindowsOnCompletion, config.tmuxBinary,
      config.alwaysShowOutputFilePath, config.preserveOutputFiles],
    ["bash", "tmux", false, true, "global", "pi-background", "{{gitRootSessionName}}-bg",
      "{{nameOrCommand}}", true, "tmux", false, true],
  );
  const drawn = (kind: "bash" | "completed" | "poll" | "peek") => [
    config[`${kind}CompactDisplayLines`], config[`${kind}TruncatedCompactDisplayLines`],
    config[`${kind}ExpandedDisplayLines`],
  ];
  assert.deepEqual([drawn("bash"), drawn("completed"), drawn("poll"), drawn("peek")],
    [[5, 2, 2_000], [5, 2, 20], [5, 2, 30], [5, 2, 2_000]], "those of tmux-bash");
  assert.deepEqual(config.tmuxEnabledActions, ["list", "peek", "kill"]);
  assert.deepEqual(config.tmuxEnvExportDenylist,
    ["PWD", "OLDPWD", "SHLVL", "_", "TMUX", "TMUX_PANE"]);
});

// rule: bash.md, In pi: All of the seed's keys, same defaults but for `outputDir` and the words of
//   the default texts
// rule: bash.md, tmux-bash.jsonc, key by key: `gitRootTmuxSessionNameTemplate`
it("every key holds what it is given", () => {
  assert.deepEqual(Object.keys(CASES).sort(), [...names].sort());
  for (const name of names) {
    const [value] = CASES[name];
    const { config, complaints } = read({ [name]: value });
    assert.deepEqual(config[name], value, name);
    assert.notDeepEqual(value, KEYS[name].fallback, `${name} is changed here`);
    const told = TMUX_ONLY.includes(name) ? 1 : 0;
    assert.equal(complaints.length, told, `${name}: ${JSON.stringify(complaints)}`);
  }
});

// rule: bash.md, In pi: A wrong type is an error naming key, expected type and file, and the
//   default applies
it("a wrong type is an error that names the key, the type and the file; its default holds", () => {
  for (const name of names) {
    const [, wrong, expected] = CASES[name];
    const { config, complaints } = read({ [name]: wrong });
    const error = complaints.find(({ type }) => type === "error");
    assert.ok(error, `${name}: ${JSON.stringify(wrong)} is refused`);
    assert.match(error.text, expected, name);
    assert.ok(error.text.startsWith(`${name} in ${file}: expected `), error.text);
    if (name !== "systemPromptGuidelines") assert.deepEqual(config[name], KEYS[name].fallback, name);
  }
  const { config, complaints } = read({ tty: 1, bashContextLines: 5 });
  assert.deepEqual([config.tty, config.bashContextLines, complaints.length], [false, 5, 1]);
});

// rule: bash.md, In pi: An unknown key is named in a warning; keys of a real tmux are named once in
//   a notice
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxSessionScope`
it("unknown keys are one warning, tmux's own one notice", () => {
  const { complaints } = read({
    $schema: "x", bashToolname: "a", tmuxBinary: "tmux", tmuxSessionScope: "global", other: 1,
  });
  assert.deepEqual(complaints, [
    { type: "warning", text: `unknown keys in ${file}: bashToolname, other` },
    {
      type: "info",
      text: `tmuxBinary, tmuxSessionScope in ${file}: without effect, `
        + "there is no tmux underneath",
    },
  ]);
  assert.deepEqual(read('{"constructor": 1, "__proto__": 2}').complaints, [
    { type: "warning", text: `unknown keys in ${file}: constructor, __proto__` },
  ]);
});

it("two tools of one name are an error, and both have their defaults", () => {
  for (const given of [{ bashToolName: "tmux" }, { bashToolName: "x", tmuxToolName: "x" }]) {
    const { config, complaints } = read(given);
    assert.deepEqual([config.bashToolName, config.tmuxToolName], ["bash", "tmux"]);
    assert.match(complaints[0]?.text ?? "", /^bashToolName and tmuxToolName in .*: expected two/);
  }
});

// rule: bash.md, In pi: A wrong type is an error naming key, expected type and file, and the
//   default applies
it("a file that cannot be read as settings is one error, and all defaults hold", () => {
  const cases: [string, RegExp][] = [
    ["{ \"tty\": ", /tmux-bash\.jsonc: is not valid JSON with comments: .+; the defaults are used$/],
    ["[true]", /tmux-bash\.jsonc: expected an object of settings; the defaults are used$/],
  ];
  for (const [content, message] of cases) {
    const { config, complaints } = read(content);
    assert.equal(complaints.length, 1);
    assert.equal(complaints[0]?.type, "error");
    assert.match(complaints[0]?.text ?? "", message);
    assert.equal(config.bashToolName, "bash");
  }
  assert.deepEqual(read(" \n").complaints, []);
  assert.deepEqual(read("// nothing but this\n{}").complaints, []);
  const unreadable = readConfig(dir);
  assert.match(unreadable.complaints[0]?.text ?? "", /cannot be read: EISDIR/);
});

// rule: bash.md, In pi: tmux-bash.jsonc in PI_EXTENSION_CONFIG_DIR, else in pi's agent directory
it("the file lies in PI_EXTENSION_CONFIG_DIR, else in pi's agent directory", () => {
  assert.equal(configPath({ PI_EXTENSION_CONFIG_DIR: dir }), file);
  assert.equal(configPath({ PI_EXTENSION_CONFIG_DIR: "~/x" }),
    join(process.env.HOME ?? "", "x", "tmux-bash.jsonc"));
  const agentDir = process.env.PI_CODING_AGENT_DIR;
  process.env.PI_CODING_AGENT_DIR = join(dir, "agent");
  for (const empty of [{}, { PI_EXTENSION_CONFIG_DIR: " " }]) {
    assert.equal(configPath(empty), join(dir, "agent", "tmux-bash.jsonc"));
  }
  if (agentDir === undefined) delete process.env.PI_CODING_AGENT_DIR;
  else process.env.PI_CODING_AGENT_DIR = agentDir;
});

// rule: bash.md, In pi: Default texts say background window, all template variables expanded, in
//   the real system prompt
it("default guidelines name no action that is not there; own ones stay as they are", () => {
  const guidelines = (content: object) => read(content).config.systemPromptGuidelines.join("\n");
  assert.match(guidelines({}), /tmuxToolName\}\} list finds/);
  const none = guidelines({ tmuxEnabledActions: [] });
  assert.match(none, /^\{\{bashToolName\}\}: background: true/);
  assert.doesNotMatch(none, /tmuxToolName/);
  assert.doesNotMatch(guidelines({ tmuxEnabledActions: ["list", "peek"] }), /kill/);
  const own = { tmuxEnabledActions: [], systemPromptGuidelines: ["Use {{tmuxToolName}} list."] };
  assert.equal(guidelines(own), "Use {{tmuxToolName}} list.");
});

// rule: bash-stream.md, The stream family: An index goes with its log
it("a log that is deleted takes along what tells its streams apart, and nothing else", () => {
  const logs = join(dir, "logs");
  mkdirSync(logs);
  const at = (name: string) => join(logs, name);
  for (const name of ["a.log", "a.log.index", "b.log", "c.log", "c.log.index", "a.log.txt"]) {
    writeFileSync(at(name), "");
  }
  deleteLogs([at("a.log"), at("b.log"), at("gone.log")]);
  assert.deepEqual(readdirSync(logs).sort(), ["a.log.txt", "c.log", "c.log.index"]);
  for (const name of ["d.log", "d.log.index", "d.meta"]) writeFileSync(at(name), "");
  deleteLogs([at("d.log"), at("c.log")]);
  assert.deepEqual(readdirSync(logs), ["a.log.txt"]);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `outputDir`
it("outputDir: as it is where only the user can look into it, else a directory inside", () => {
  const own = read({}).config.outputDir;
  assert.deepEqual(logDirFlags(own, false), []);
  const flag = (path: string, remote = false) => logDirFlags(path, remote);
  const fresh = join(dir, "a", "b", "logs");
  assert.deepEqual(flag(fresh), ["--log-dir", fresh], "execd makes it");
  mkdirSync(join(dir, "private"), { mode: 0o700 });
  assert.deepEqual(flag(join(dir, "private")), ["--log-dir", join(dir, "private")]);
  mkdirSync(join(dir, "open"), { mode: 0o755 });
  const inside = join(dir, "open", `pi-execd-${process.getuid?.()}`);
  assert.deepEqual(flag(join(dir, "open")), ["--log-dir", inside]);
  assert.deepEqual(flag("/nowhere/here", true), ["--log-dir", "/nowhere/here"]);
  const home = read({ outputDir: "~/out" }).config.outputDir;
  assert.equal(home, join(process.env.HOME ?? "", "out"));
  symlinkSync(dir, join(dir, "link"));
  assert.deepEqual(flag(join(dir, "link", "private")),
    ["--log-dir", join(dir, "link", "private")]);
});
