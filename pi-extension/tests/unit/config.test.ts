/** The pure parts: configuration, coercion, environment, lines, the widget. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { checked, coerce, coerceVariables, prepared } from "../../src/tools/coerce.ts";
import { REPAIR, SYNONYMS, type ToolSchema } from "../../src/tools/schema.ts";
import {
  Settings,
  logKeepFlags,
  resolveBashMaxOutputChars,
  resolveBashYieldMs,
  resolveNoLog,
} from "../../src/pi/settings.ts";
import { commandEnv } from "../../src/pi/environment.ts";
import { MAX_EMPTY_POLL_ENV_VAR, resolveMaxEmptyPollMs } from "../../src/index.ts";
import { LineSplitter } from "../../src/execd/lines.ts";
import { statusText, widgetLines } from "../../src/pi/ui.ts";

// rule: pi.md, The extension: PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS is read at each call
it("the cap of empty polls", () => {
  const cases: [string | undefined, number][] = [
    [undefined, 1_800_000], ["", 1_800_000], ["abc", 1_800_000], ["-5", 1_800_000],
    ["0", 1_800_000], ["1", 5_000], ["4999", 5_000], ["300000", 300_000], [" 6000.9 ", 6_000],
    ["Infinity", 1_800_000],
  ];
  for (const [value, ms] of cases) {
    const env = value === undefined ? {} : { [MAX_EMPTY_POLL_ENV_VAR]: value };
    assert.equal(resolveMaxEmptyPollMs(env), ms, String(value));
  }
  assert.equal(MAX_EMPTY_POLL_ENV_VAR, "PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS");
});

/** The settings of a pi with these flags and variables. */
function settingsOf(flags: Record<string, unknown>, env: NodeJS.ProcessEnv = {}): Settings {
  return new Settings({ getFlag: (name: string) => flags[name] as string }, () => env);
}

it("which surfaces: the flag, else the variable, else unified", () => {
  const tools = (flag: unknown, env: NodeJS.ProcessEnv) =>
    settingsOf({ "exec-tools": flag }, env).tools;
  assert.deepEqual(tools(undefined, {}), { names: ["unified"], where: "the default" });
  assert.deepEqual(tools("", { PI_EXECD_TOOLS: " Unified , bash,unified," }), {
    names: ["unified", "bash"], where: "PI_EXECD_TOOLS",
  });
  assert.deepEqual(tools("stream", { PI_EXECD_TOOLS: "bash" }), {
    names: ["stream"], where: "--exec-tools",
  });
});

// rule: bash-stream.md, The stream family: `PI_EXECD_NO_LOG`: pi's execd keeps no logs
it("whether there are logs", () => {
  for (const value of ["1", "true", " yes ", "on"]) {
    assert.equal(resolveNoLog({ PI_EXECD_NO_LOG: value }), true, value);
  }
  for (const value of [undefined, "", " ", "0", "false", "No", "off"]) {
    assert.equal(resolveNoLog({ PI_EXECD_NO_LOG: value }), false, value);
  }
});

it("how long a wake is waited for", () => {
  const cases: [unknown, number][] = [
    [undefined, 600_000], ["x", 600_000], ["-1", 600_000], ["0", 0], ["1.5", 1_500],
    ["999999999", 86_400_000], [true, 600_000],
  ];
  for (const [flag, ms] of cases) {
    assert.equal(settingsOf({ "exec-hold-seconds": flag }).holdMs, ms, String(flag));
  }
});

it("the window of bash_stream: the flag, else the variable, else left to execd", () => {
  const cases: [unknown, string | undefined, number | undefined][] = [
    [undefined, undefined, undefined], ["2000", "3000", 2_000], [undefined, "3000", 3_000],
    ["x", "3000", 3_000], ["", " 3000.9 ", 3_000], ["0", "-1", undefined], [true, "", undefined],
    [undefined, "Infinity", undefined], ["0.5", undefined, 1], ["1e30", undefined, 2 ** 53 - 1],
  ];
  for (const [flag, value, ms] of cases) {
    const env = value === undefined ? {} : { PI_BASH_YIELD_MS: value };
    assert.equal(resolveBashYieldMs(flag, env), ms, `${flag}, ${value}`);
  }
  assert.equal(resolveBashMaxOutputChars({ PI_BASH_MAX_OUTPUT_CHARS: "150" }), 150);
  assert.equal(resolveBashMaxOutputChars({ PI_BASH_MAX_OUTPUT_CHARS: "many" }), undefined);
});

// rule: architecture.md, The keeper: `--log-keep-days 0`: execd deletes no logs; in pi as
//   `PI_EXECD_LOG_KEEP_DAYS` says
it("how long logs are kept: whole days, 0 for ever; what is none is said and sends nothing", () => {
  const said: string[] = [];
  const flags = (value: string | undefined) =>
    logKeepFlags((text) => said.push(text), "logs stay", { PI_EXECD_LOG_KEEP_DAYS: value });
  for (const [value, days] of [
    [undefined, undefined], ["", undefined], [" ", undefined], ["0", "0"], [" 30 ", "30"],
    ["007", "7"], ["36501", "36500"], ["9".repeat(400), "36500"],
  ] as const) {
    assert.deepEqual(flags(value), days === undefined ? [] : ["--log-keep-days", days], value);
  }
  assert.deepEqual(said, []);
  for (const value of ["-1", "1.5", "never", "0x10"]) assert.deepEqual(flags(value), []);
  assert.equal(said.length, 4);
  assert.equal(said[2], "PI_EXECD_LOG_KEEP_DAYS=never is no whole number of days (0 to 36500; "
    + "0 keeps logs for ever). As without it, logs stay");
});

it("loose types are brought into the schema, the rest is left for execd to refuse", () => {
  const described = <T extends string>(type: T) => ({ type, description: "" });
  const schema: ToolSchema = {
    type: "object",
    properties: {
      n: described("integer"), b: described("boolean"), s: described("string"),
      o: { ...described("object"), [REPAIR]: coerceVariables },
    },
  };
  const cases: [unknown, object][] = [
    [{ n: "5", b: "TRUE", s: 7, o: '{"A":1,"B":null}' },
      { n: 5, b: true, s: "7", o: { A: "1", B: null } }],
    [{ n: 5.9, b: 0, s: "" }, { n: 5, b: false }],
    [{ n: "five", b: "maybe", s: ["x"], o: "no json" },
      { n: "five", b: "maybe", s: ["x"], o: "no json" }],
    // What the tool does not have is left for execd to refuse by its name.
    [{ n: "", b: null, o: "", x: 1, y: null }, { x: 1 }],
    [null, {}],
    ["text", {}],
  ];
  for (const [given, taken] of cases) assert.deepEqual(coerce(schema, given), taken);
  const either: ToolSchema = {
    type: "object",
    properties: { data: { description: "", anyOf: [{ type: "string" }, { type: "object" }] } },
  };
  for (const data of ["5", '{"base64":"AA=="}', { base64: "AA==" }]) {
    assert.deepEqual(coerce(either, { data }), { data }, "taken literally");
  }
  assert.deepEqual(coerce(either, { data: 5 }), { data: "5" });
  // An empty string that is required is for execd to refuse.
  assert.deepEqual(coerce({ ...schema, required: ["s"] }, { s: "" }), { s: "" });
});

// rule: pi.md, The tools: A name that other agents' tools have for a parameter is taken for it
it("other agents' names are taken; a wrong name passes pi's check and is named", () => {
  const described = <T extends string>(type: T) => ({ type, description: "" });
  const schema: ToolSchema = {
    type: "object",
    required: ["id", "cmd"],
    properties: { id: described("integer"), cmd: described("string"), s: described("string") },
    [SYNONYMS]: { command: "cmd", session: "id" },
  };
  assert.deepEqual(coerce(schema, { command: 5, session: "7" }), { cmd: "5", id: 7 });
  assert.deepEqual(coerce(schema, { command: "a", cmd: null }), { cmd: "a" });
  // With both, execd refuses the other name.
  assert.deepEqual(coerce(schema, { command: "a", cmd: "b" }), { command: "a", cmd: "b" });
  assert.deepEqual(coerce(schema, { command: "a", Cmd: "b", sessionX: 1 }),
    { cmd: "a", Cmd: "b", sessionX: 1 });
  const wrong = prepared(schema, { comand: "ls" });
  assert.deepEqual(wrong, { id: -1, cmd: "", comand: "ls" });
  assert.throws(() => checked("run", schema, wrong), {
    message: "comand: unknown param of run; did you mean cmd?",
  });
  // What is missing, and not for a wrong name, is refused by pi in its words.
  assert.deepEqual(prepared(schema, { s: "x" }), { s: "x" });
  assert.deepEqual(checked("run", schema, { id: -1, cmd: "" }), { id: -1, cmd: "" });
});

it("the environment sent is what differs, and execd's own names never", () => {
  const ctx = {
    model: { provider: "p", id: "m" }, thinkingLevel: "high",
    sessionManager: { getSessionId: () => "s", getSessionFile: () => undefined },
  } as unknown as Parameters<typeof commandEnv>[3];
  const daemons = { PATH: "/bin", SAME: "1", GONE: "1", PI_SESSION_ID: "outer" };
  const now = { PATH: "/bin", SAME: "1", NEW: "2", EXECD_INSTANCE: "x", PI_PROVIDER: "outer" };
  const pis = {
    AI_AGENT: "pi", PI_CODING_AGENT: "true", PI_SESSION_ID: "s", PI_PROVIDER: "p", PI_MODEL: "m",
    PI_REASONING_LEVEL: "high",
  };
  const { PATH, ...env } = commandEnv(now, daemons, false, ctx, { NEW: "3", SAME: null });
  assert.match(String(PATH), /\/bin:\/bin$/);
  assert.deepEqual(env, { ...pis, NEW: "3", SAME: null, GONE: null });
  assert.deepEqual(commandEnv(now, daemons, true, ctx, undefined), pis);
});

it("lines come whole, whatever the chunks", () => {
  const text = "one\n\nzwei ü 漢\nthree\nrest";
  for (let size = 1; size < 12; size++) {
    const lines: string[] = [];
    const splitter = new LineSplitter((line) => lines.push(line));
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) {
      assert.ok(splitter.push(bytes.subarray(at, at + size)));
    }
    assert.deepEqual(lines, ["one", "zwei ü 漢", "three"]);
  }
});

it("the widget: five sessions, the rest counted, nothing of a command's codes", () => {
  const session = (id: number) => ({
    id, cwd: "/srv/app", command: `npm run \u001b]0;x\u0007dev\n${id}`, ageMs: 41_000,
    states: id === 3 ? ["shell exited, output held"] : [],
  });
  const lines = widgetLines([1, 2, 3, 4, 5, 6, 7].map(session), (id) => id === 2);
  assert.deepEqual(lines, [
    "⚠ execd: 7 sessions still running",
    "  #1 41s npm run dev 1 (/srv/app)",
    "  #2 41s npm run dev 2 (/srv/app) · [wake]",
    "  #3 41s npm run dev 3 (/srv/app) · shell exited, output held",
    ...[4, 5].map((id) => `  #${id} 41s npm run dev ${id} (/srv/app)`),
    "  … 2 more",
    "  /sessions shows them all: follow one, end it, send it a line",
  ]);
  assert.match(widgetLines([session(1)], () => false)[0] ?? "", /1 session still running/);
});

// rule: pi.md, What you see: the footer names what runs, with age and state
it("the footer: how many, the first three, what they wait for", () => {
  const one = { id: 1, command: "npm run dev", ageMs: 41_000, states: [] };
  const two = { ...one, id: 2, name: "db", command: "psql", states: ["waits for a line", "[wake]"] };
  assert.equal(statusText([], true), undefined);
  assert.equal(statusText([one], true), "execd: 1 session running · #1 41s npm run dev");
  assert.equal(statusText([one], false), "execd: 1 session running · #1 npm run dev");
  // A status beside it has said how many.
  assert.equal(statusText([one, two], false, 2)?.startsWith("execd: #1 npm run dev · #"), true);
  assert.equal(statusText([one, two], false, 1)?.startsWith("execd: 2 sessions running · "), true);
  assert.equal(statusText([one, two, one, one], true), "execd: 4 sessions running · "
    + "#1 41s npm run dev · #2 41s db: psql, waits for a line · #1 41s npm run dev · 1 more");
});
