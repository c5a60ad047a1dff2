/**
 * What the model reads about the tools of the bash family, as tmux-bash.jsonc and its defaults
 * say.
 */
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import { type TmuxBashConfig, TMUX_ACTIONS } from "../bash/keys.ts";
import { expand, settingValues } from "../bash/templates.ts";
import { MODELS } from "../execd/models.ts";
import { type Values, parametersOf } from "./from-table.ts";
import type { ToolSchema } from "./schema.ts";
import type { ToolText } from "./tool.ts";

/** The texts of the tool that runs commands. `attachCommand` is what people attach with. */
export function bashText(config: TmuxBashConfig, attachCommand: string): ToolText {
  const expanded = (template: string) => expand(template, config, attachCommand);
  return {
    label: config.bashToolName,
    description: expanded(config.bashToolDescription),
    ...bashPrompt(config, expanded),
    parameters: bashSchema(config, attachCommand),
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
    parameters: tmuxSchema(config, attachCommand),
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

/** The values of the variables in the words of parameters. */
function values(config: TmuxBashConfig, attachCommand: string): Values {
  return {
    ...settingValues(config, attachCommand),
    tty: config.tty,
    defaultPollInterval: config.defaultPollInterval > 0 ? config.defaultPollInterval : "none",
    pollContextLines: config.pollContextLines,
    pollSeconds: pollSeconds(config),
  };
}

/** A schema without the parameters of these names. */
function without(whole: ToolSchema, names: string[]): ToolSchema {
  const own = Object.entries(whole.properties).filter(([name]) => !names.includes(name));
  return { ...whole, properties: Object.fromEntries(own) };
}

const POLL_PARAMETERS = ["pollInterval", "pollLines"];

function bashSchema(config: TmuxBashConfig, attachCommand: string): ToolSchema {
  const whole = parametersOf(MODELS.bash.bash, values(config, attachCommand));
  return without(whole, config.bashPollIntervalEnabled ? [] : POLL_PARAMETERS);
}

function tmuxSchema(config: TmuxBashConfig, attachCommand: string): ToolSchema {
  const whole = parametersOf(MODELS.bash.tmux, values(config, attachCommand));
  const enabled = TMUX_ACTIONS.filter((action) => config.tmuxEnabledActions.includes(action));
  const { action, ...others } = whole.properties;
  // The words are one sentence for each action, which begins with its name.
  const words = (action?.description ?? "").split(/(?<=\.) /)
    .filter((sentence) => enabled.some((name) => sentence.startsWith(`${name}:`)));
  const own = { ...action, enum: enabled, description: words.join(" ") };
  const onWindow = enabled.some((name) => !name.startsWith("list"));
  return without({ ...whole, properties: { action: own, ...others } }, [
    ...(onWindow ? [] : ["window"]),
    ...(enabled.includes("poll") ? [] : POLL_PARAMETERS),
    ...(enabled.includes("peek") ? [] : ["all"]),
  ]);
}

/** The seconds of a poll that names none and must have some. */
export function pollSeconds(config: TmuxBashConfig): number {
  return config.defaultPollInterval || config.minimumPollIntervalSeconds || 1;
}
