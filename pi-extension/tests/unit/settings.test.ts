/** execd.jsonc: which of several settings holds, and what is said of a file that is wrong. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, it } from "node:test";
import { chosenCommand, locate } from "../../src/execd/locate.ts";
import { Settings } from "../../src/pi/settings.ts";
import { commandShell } from "../../src/pi/shell.ts";
import { nearest } from "../../src/text/nearest.ts";

/** A project and an agent directory, each with the execd.jsonc that is given. */
class Place {
  readonly dir = mkdtempSync(join(tmpdir(), "execd-settings-"));
  readonly own = join(this.dir, "agent", "execd.jsonc");
  readonly project = join(this.dir, "project", ".pi", "execd.jsonc");

  constructor(t: TestContext, own?: string, project?: string, settings = "always") {
    mkdirSync(join(this.dir, "agent"));
    mkdirSync(join(this.dir, "project", ".pi"), { recursive: true });
    writeFileSync(join(this.dir, "agent", "settings.json"), `{"defaultProjectTrust": "${settings}"}`);
    if (own !== undefined) writeFileSync(this.own, own);
    if (project !== undefined) writeFileSync(this.project, project);
    const before = process.env.PI_CODING_AGENT_DIR;
    process.env.PI_CODING_AGENT_DIR = join(this.dir, "agent");
    t.after(() => {
      if (before === undefined) delete process.env.PI_CODING_AGENT_DIR;
      else process.env.PI_CODING_AGENT_DIR = before;
      rmSync(this.dir, { recursive: true });
    });
  }

  settings(flags: Record<string, unknown> = {}, env: NodeJS.ProcessEnv = {}, trusted = true): Settings {
    const host = { getFlag: (name: string) => flags[name] as string };
    const settings = new Settings(host, () => env);
    settings.open({ cwd: join(this.dir, "project"), isProjectTrusted: () => trusted });
    return settings;
  }
}

// rule: pi.md, The file execd.jsonc: A flag beats a variable, a variable the project's file, and
//   that the one in pi's agent directory
it("a flag beats a variable, that the project's file, and that the agent directory's", (t) => {
  const place = new Place(t, `{
    // Comments and trailing commas are fine.
    "tools": ["bash"], "holdSeconds": 5, "header": "full", "secrets": false, "keepBash": true,
    "bashYieldMs": 2000,
  }`, '{"tools": "stream", "pollUpdates": 0, "holdSeconds": 7}');
  const both = place.settings();
  assert.deepEqual(both.complaints, []);
  assert.deepEqual(both.tools, { names: ["stream"], where: place.project });
  assert.deepEqual([both.holdMs, both.header, both.secrets, both.keepsBash, both.bashYieldMs],
    [7_000, "full", false, true, 2_000]);
  assert.equal(both.pollUpdates, 0);
  assert.deepEqual(place.settings({}, { PI_EXECD_TOOLS: "unified" }).tools.names, ["unified"]);
  const flags = { "exec-tools": "stream,bash", "exec-hold-seconds": "9", "bash-yield-ms": "3000" };
  const flagged = place.settings(flags, { PI_EXECD_TOOLS: "unified", PI_BASH_YIELD_MS: "4000" });
  assert.deepEqual(flagged.tools.names, ["stream", "bash"]);
  assert.deepEqual([flagged.holdMs, flagged.bashYieldMs], [9_000, 3_000]);
});

it("without a file the defaults hold, and nothing is said", (t) => {
  const settings = new Place(t).settings();
  assert.deepEqual(settings.complaints, []);
  assert.deepEqual(
    [settings.tools.names, settings.holdMs, settings.header, settings.secrets, settings.keepsBash],
    [["unified"], 600_000, "compact", true, false],
  );
  assert.deepEqual([settings.pollUpdates, settings.bashYieldMs, settings.command], [1, undefined, undefined]);
});

// rule: pi.md, The file execd.jsonc: a project's holds only where you trust the project
it("a project that is not trusted says nothing", (t) => {
  const place = new Place(t, '{"header": "full"}', '{"command": "evil", "header": "compact"}');
  const settings = place.settings({}, {}, false);
  assert.equal(settings.command, undefined);
  assert.equal(settings.header, "full");
  assert.deepEqual(settings.complaints, [
    `${place.project} does not hold: this project is not trusted (/trust)`,
  ]);
});

/** pi counts a project with nothing of pi's own in it as trusted, without having asked. */
// rule: pi.md, The file execd.jsonc: a project's holds only where you trust the project
it("a project about which the user was not asked is not trusted, until /trust", (t) => {
  const place = new Place(t, undefined, '{"command": "evil", "header": "full"}', "ask");
  assert.equal(place.settings().command, undefined);
  const project = realpathSync(join(place.dir, "project"));
  writeFileSync(join(place.dir, "agent", "trust.json"), JSON.stringify({ [project]: true }));
  assert.equal(place.settings().header, "full");
  writeFileSync(join(place.dir, "agent", "trust.json"), "{}");
  assert.equal(place.settings().header, "compact");
  writeFileSync(join(place.dir, "project", ".pi", "settings.json"), "{}");
  assert.equal(place.settings().header, "full", "pi has asked about this one");
});

// rule: pi.md, The file execd.jsonc: An unknown key is named with the nearest one, a bad value with
//   what is right
it("unknown keys are named with the nearest, bad values with what is right", (t) => {
  const place = new Place(t, `{
    "header": "small", "hedaer": "full", "keep-builtin-bash": true, "nonsense": 1,
    "holdSeconds": -1, "tools": [], "$schema": "x",
  }`);
  const settings = place.settings({ "exec-hold-seconds": "long" });
  const left = "it counts as left out";
  assert.deepEqual(settings.complaints, [
    `--exec-hold-seconds: expected a number of seconds from 0 to 86400, not "long"; ${left}`,
    `header in ${place.own}: expected "compact" or "full", not "small"; ${left}`,
    `unknown key hedaer in ${place.own}; did you mean header?`,
    `unknown key keep-builtin-bash in ${place.own}; did you mean keepBash?`,
    `unknown key nonsense in ${place.own}; there are: tools, keepBash, command, header, `
      + "holdSeconds, bashYieldMs, pollUpdates, secrets",
    `holdSeconds in ${place.own}: expected a number of seconds from 0 to 86400, not -1; ${left}`,
    `tools in ${place.own}: expected "unified", "stream" or "bash", or an array of them, not []; `
      + left,
  ]);
  assert.equal(settings.holdMs, 600_000);
});

it("a file that cannot be read says so, and nothing of it holds", (t) => {
  for (const [text, why] of [
    ["[1]", /: expected an object of settings; nothing of it holds$/],
    ['{"header": full}', /: is not valid JSON with comments: /],
  ] as const) {
    const place = new Place(t, text);
    assert.match(place.settings().complaints.join(), why);
    assert.equal(place.settings().header, "compact");
  }
  const place = new Place(t);
  mkdirSync(place.own);
  assert.match(place.settings().complaints.join(), /: cannot be read: EISDIR/);
});

// rule: pi.md, The file execd.jsonc: `EXECD_COMMAND` and `EXECD_BIN` beat `command`
it("command starts execd where no variable says otherwise", (t) => {
  const { command, } = new Place(t, '{"command": "ssh devbox execd"}').settings();
  assert.ok(command);
  assert.match(command.where, /^command in .*execd\.jsonc$/);
  const [candidate, ...others] = locate({}, "/nowhere", command).candidates;
  assert.deepEqual(others, []);
  assert.equal(candidate?.source, `${command.where} (ssh devbox execd)`);
  assert.deepEqual([candidate?.remote, candidate?.explicit], [true, true]);
  assert.equal(chosenCommand({ EXECD_BIN: "/x/execd" }, command), undefined);
  assert.equal(chosenCommand({ EXECD_COMMAND: " a " }, command)?.line, "a");
});

it("the nearest name", () => {
  const names = ["header", "holdSeconds", "tools"];
  for (const [given, name] of [
    ["Header", "header"], ["hader", "header"], ["tolls", "tools"], ["holdseconds", "holdSeconds"],
    ["xyz", undefined], ["", undefined], ["h".repeat(1_000_000), undefined],
  ] as const) assert.equal(nearest(given, names), name, given.slice(0, 20));
});

it("pi's shell for commands of any family: none on another machine, its prefix there too", () => {
  const host = { getSettings: () => ({ shellPath: "/bin/sh", shellCommandPrefix: "set -u" }) };
  assert.deepEqual(commandShell(host as never, {}, false), {
    shell: "/bin/sh", command_prefix: "set -u",
  });
  assert.deepEqual(commandShell(host as never, {}, true), { command_prefix: "set -u" });
  const none = { getSettings: () => ({ shellPath: "/no/such/shell" }) };
  assert.throws(() => commandShell(none as never, {}, false), /^Error: Custom shell path not found/);
});
