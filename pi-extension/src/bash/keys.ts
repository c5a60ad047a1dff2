/** The keys of tmux-bash.jsonc: what each may hold, and what holds where it is left out. */
import { join } from "node:path";
import { MODELS } from "../execd/models.ts";
import { type Kind, filledText, flag, isNumber, isString, oneOf } from "../text/kinds.ts";

/** A key: its kind and its default. */
export interface Key<T> {
  kind: Kind<T>;
  fallback: T;
}

/** What a person does with the tmux tool, in the order in which the schema names them. */
export const TMUX_ACTIONS = ["list", "list-polls", "peek", "kill", "poll", "unpoll"] as const;

/** One action of the tmux tool. */
export type TmuxAction = (typeof TMUX_ACTIONS)[number];

/** How large any number of lines, bytes or milliseconds may be: execd counts in 32 bits. */
const MAX_COUNT = 2 ** 31 - 1;
/** A day: no setting makes anything wait for longer. */
const MAX_SECONDS = 86_400;

const text: Kind<string> = { expected: "a string", fits: isString };
const toolName: Kind<string> = {
  expected: "a tool name (letters, digits, _ and -, at most 64)",
  fits: (value): value is string => isString(value) && /^[A-Za-z0-9_-]{1,64}$/.test(value),
};
const textOrFalse: Kind<string | false> = {
  expected: "a string or false",
  fits: (value) => isString(value) || value === false,
};
const texts: Kind<readonly string[]> = {
  expected: "an array of strings",
  fits: (value): value is readonly string[] => Array.isArray(value) && value.every(isString),
};
const names: Kind<readonly string[]> = {
  expected: "an array of names of variables",
  fits: (value): value is readonly string[] =>
    Array.isArray(value) && value.every((one) => isString(one) && /^[^=\0]+$/.test(one)),
};
const seconds: Kind<number> = {
  expected: `a number of seconds above 0, at most ${MAX_SECONDS}`,
  fits: (value): value is number => isNumber(value) && value > 0 && value <= MAX_SECONDS,
};
const secondsOrNone: Kind<number> = {
  expected: `a number of seconds, 0 for none, at most ${MAX_SECONDS}`,
  fits: (value): value is number => isNumber(value) && value >= 0 && value <= MAX_SECONDS,
};
const count: Kind<number> = {
  expected: "a whole number above 0",
  fits: (value): value is number => isWhole(value) && value > 0 && value <= MAX_COUNT,
};
const displayLines: Kind<number> = {
  expected: "a whole number, 0 or more",
  fits: (value): value is number => isWhole(value) && value >= 0 && value <= MAX_COUNT,
};
const actions: Kind<readonly TmuxAction[]> = {
  expected: `an array of ${TMUX_ACTIONS.map((name) => `"${name}"`).join(", ")}`,
  fits: (value): value is readonly TmuxAction[] =>
    Array.isArray(value) && value.every((one) => TMUX_ACTIONS.includes(one as TmuxAction)),
};

function key<T>(kind: Kind<T>, fallback: T): Key<T> {
  return { kind, fallback };
}

/** The guidelines, each with the actions of the tmux tool that the guideline speaks of. */
const GUIDELINES: readonly [string, readonly TmuxAction[]][] = [
  [
    "{{bashToolName}}: background: true for servers, watchers and long commands. Their end is "
      + "reported by itself: don't poll for it.",
    [],
  ],
  ["{{tmuxToolName}} list finds background windows.", ["list"]],
  ["To watch or take one over, people run: {{attachCommand}}", []],
];

/** The default guidelines where these actions are enabled: none names an action that is not. */
export function defaultGuidelines(enabled: readonly TmuxAction[]): string[] {
  return GUIDELINES.filter(([, needed]) => needed.every((one) => enabled.includes(one)))
    .map(([line]) => line);
}

/** Where execd puts its logs unless told otherwise: a directory that only this user can read. */
export function execdsLogDir(): string {
  return join(process.env.TMPDIR || "/tmp", `pi-execd-${process.getuid?.() ?? 0}`);
}

/** All keys with what they may hold and their defaults. */
export const KEYS = {
  defaultTimeoutSeconds: key(seconds, 30),
  defaultTimeoutAction: key(oneOf("background", "kill"), "background"),
  maxTimeoutSeconds: key(seconds, 60),
  foregroundBashUpdateIntervalMs: key(count, 250),
  bashToolName: key(toolName, "bash"),
  tmuxToolName: key(toolName, "tmux"),
  tmuxEnabledActions: key(actions, ["list", "peek", "kill"]),
  bashPollIntervalEnabled: key(flag, false),
  bashToolDescription: key(text, MODELS.bash.bash.description),
  tmuxToolDescription: key(text, MODELS.bash.tmux.description),
  systemPrompt: key(flag, true),
  bashSystemPromptSnippet: key(textOrFalse, "Run bash commands, also in background windows"),
  tmuxSystemPromptSnippet: key(textOrFalse, "Look after the windows of {{bashToolName}}"),
  systemPromptGuidelines: key<readonly string[]>(texts, defaultGuidelines(TMUX_ACTIONS)),
  tmuxSessionScope: key(oneOf("global", "git-root"), "global"),
  globalTmuxSessionName: key(text, "pi-background"),
  gitRootTmuxSessionNameTemplate: key(text, "{{gitRootSessionName}}-bg"),
  tmuxWindowScope: key(oneOf("pi-session", "git-root", "all"), "pi-session"),
  tmuxWindowNameTemplate: key(text, "{{nameOrCommand}}"),
  maxTmuxWindowNameLength: key(count, 30),
  autoCloseWindowsOnCompletion: key(flag, true),
  tmuxBinary: key(text, "tmux"),
  defaultPollInterval: key(secondsOrNone, 0),
  pollDelivery: key(oneOf("model", "display"), "model"),
  minimumPollIntervalSeconds: key(secondsOrNone, 10),
  maxOutputBytes: key(count, 51_200),
  bashContextLines: key(count, 2_000),
  completedContextLines: key(count, 20),
  pollContextLines: key(count, 30),
  peekContextLines: key(count, 2_000),
  bashCompactDisplayLines: key(displayLines, 5),
  bashTruncatedCompactDisplayLines: key(displayLines, 2),
  bashExpandedDisplayLines: key(displayLines, 2_000),
  completedCompactDisplayLines: key(displayLines, 5),
  completedTruncatedCompactDisplayLines: key(displayLines, 2),
  completedExpandedDisplayLines: key(displayLines, 20),
  pollCompactDisplayLines: key(displayLines, 5),
  pollTruncatedCompactDisplayLines: key(displayLines, 2),
  pollExpandedDisplayLines: key(displayLines, 30),
  peekCompactDisplayLines: key(displayLines, 5),
  peekTruncatedCompactDisplayLines: key(displayLines, 2),
  peekExpandedDisplayLines: key(displayLines, 2_000),
  displayCommandStartMarker: key(text, "# SHIM_END"),
  alwaysShowOutputFilePath: key(flag, false),
  preserveOutputFiles: key(flag, true),
  outputDir: key(filledText, execdsLogDir()),
  tmuxEnvExportDenylist: key(names, ["PWD", "OLDPWD", "SHLVL", "_", "TMUX", "TMUX_PANE"]),
  tty: key(flag, false),
};

/** Keys that only mean something where there is a real tmux. */
export const TMUX_ONLY: readonly string[] = [
  "tmuxBinary",
  "globalTmuxSessionName",
  "tmuxSessionScope",
  "gitRootTmuxSessionNameTemplate",
];

type Held<K> = K extends Key<infer T> ? T : never;

/** The settings of tmux-bash.jsonc, each with a value. */
export type TmuxBashConfig = { readonly [K in keyof typeof KEYS]: Held<(typeof KEYS)[K]> };

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
