/**
 * What the model reads about the tools of the bash family, as tmux-bash.jsonc and its defaults
 * say.
 */
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import { type TmuxBashConfig, TMUX_ACTIONS } from "../bash/keys.ts";
import { expand } from "../bash/templates.ts";
import {
  type ParameterSchema, type ToolSchema, flag, integer, number, oneOf, schema, text,
} from "./schema.ts";
import type { ToolText } from "./tool.ts";

/** The texts of the tool that runs commands. `attachCommand` is what people attach with. */
export function bashText(config: TmuxBashConfig, attachCommand: string): ToolText {
  const expanded = (template: string) => expand(template, config, attachCommand);
  return {
    label: config.bashToolName,
    description: expanded(config.bashToolDescription),
    ...bashPrompt(config, expanded),
    parameters: bashSchema(config),
  };
}

/** The texts of the tool that inspects windows. */
export function tmuxText(config: TmuxBashConfig, attachCommand: string): ToolText {
  const snippet = config.systemPrompt && config.tmuxSystemPromptSnippet;
  return {
    label: config.tmuxToolName,
    description: expand(config.tmuxToolDescription, config, attachCommand),
    ...(snippet && { promptSnippet: expand(snippet, config, attachCommand) }),
    promptGuidelines: [],
    parameters: tmuxSchema(config),
  };
}

type Prompt = Pick<ToolText, "promptSnippet" | "promptGuidelines">;

/**
 * What pi says of its own bash in the system prompt is lost where a tool takes its name, so its
 * guidelines are said here too; without `systemPrompt` the prompt stays just as pi has it.
 */
function bashPrompt(config: TmuxBashConfig, expanded: (template: string) => string): Prompt {
  const own: Partial<Prompt> = config.bashToolName === "bash" ? pisBash() : {};
  const promptGuidelines = own.promptGuidelines ?? [];
  if (!config.systemPrompt) return { ...own, promptGuidelines };
  const snippet = config.bashSystemPromptSnippet;
  return {
    ...(snippet && { promptSnippet: expanded(snippet) }),
    promptGuidelines: [...promptGuidelines, ...config.systemPromptGuidelines.map(expanded)],
  };
}

function pisBash(): Partial<Prompt> {
  const { promptSnippet, promptGuidelines } = createBashToolDefinition(process.cwd());
  return {
    ...(promptSnippet !== undefined && { promptSnippet }),
    ...(promptGuidelines !== undefined && { promptGuidelines }),
  };
}

function bashSchema(config: TmuxBashConfig): ToolSchema {
  const { defaultTimeoutSeconds: seconds, maxTimeoutSeconds: most } = config;
  return schema({
    command: text("Shell command to execute"),
    name: text("Short label of its window. Default: the command's program."),
    timeout: number(`Seconds to wait for it, more than 0. Default ${seconds}, at most ${most}.`),
    timeoutAction: oneOf(
      ["background", "kill"],
      'At the timeout: "background" lets it go on and reports its end later, '
        + `"kill" ends it. Default "${config.defaultTimeoutAction}".`,
    ),
    background: flag("Start it in the background and return at once; its end is reported later."),
    tty: flag(
      "Give it a terminal, for what wants input: REPLs, prompts, editors. A person "
        + `can attach and type. Default ${config.tty}; without one its input is empty. What the `
        + "shell leaves behind on it (server &) gets SIGHUP when the shell ends.",
    ),
    ...(config.bashPollIntervalEnabled && pollParameters(config)),
  }, ["command"]);
}

function pollParameters(config: TmuxBashConfig): Record<string, ParameterSchema> {
  const fallback = config.defaultPollInterval;
  return {
    pollInterval: number(
      "Seconds between check-ins on its output while it runs in the background. "
        + `Default: ${fallback > 0 ? fallback : "none"}.`,
    ),
    pollLines: integer(
      `Lines of output in a check-in, the last ones. Default ${config.pollContextLines}.`,
    ),
  };
}

/** What each action does, for the schema. */
const ACTIONS: Record<(typeof TMUX_ACTIONS)[number], string> = {
  list: "list shows the background windows",
  "list-polls": "list-polls shows the windows with check-ins",
  peek: "peek shows the end of a window's output",
  kill: "kill ends a window with all its processes",
  poll: "poll starts periodic check-ins on a window's output",
  unpoll: "unpoll stops them",
};

function tmuxSchema(config: TmuxBashConfig): ToolSchema {
  const enabled = TMUX_ACTIONS.filter((action) => config.tmuxEnabledActions.includes(action));
  const onWindow = enabled.filter((action) => !action.startsWith("list"));
  return schema({
    action: oneOf(enabled, `${enabled.map((action) => ACTIONS[action]).join("; ")}.`),
    ...(onWindow.length > 0 && {
      window: text(`Window id like @123, for ${onWindow.join(", ")}.`),
    }),
    ...(enabled.includes("poll") && tmuxPollParameters(config)),
  }, ["action"]);
}

function tmuxPollParameters(config: TmuxBashConfig): Record<string, ParameterSchema> {
  return {
    pollInterval: number(`For poll: seconds between check-ins. Default ${pollSeconds(config)}.`),
    pollLines: integer(
      `For poll: lines of output, the last ones. Default ${config.pollContextLines}.`,
    ),
  };
}

/** The seconds of a poll that names none and must have some. */
export function pollSeconds(config: TmuxBashConfig): number {
  return config.defaultPollInterval || config.minimumPollIntervalSeconds || 1;
}
