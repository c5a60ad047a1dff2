/**
 * What the model reads about the unified tools: execd's words, and those of the system prompt, which
 * are pi's alone. Every sentence should change what a model does.
 */
import { MODELS } from "../execd/models.ts";
import { type Prompt, textOf } from "./from-table.ts";
import { type Where, logsText, placeValues } from "./place.ts";
import type { ToolText } from "./tool.ts";

/** The tools of the default set. */
export type UnifiedName = keyof typeof MODELS.unified;

/** The tools that are rarely used, which are a set of their own. */
export type MoreName = keyof typeof MODELS.more;

/** What the system prompt says of the tools; `cap` is the longest poll. */
function prompts(cap: number): Record<UnifiedName, Prompt> {
  return {
    exec_command: {
      promptSnippet: "Run a shell command; what takes longer gives a session_id",
      promptGuidelines: [
        "exec_command: also for files (ls, rg, find), unless another tool is meant for it. Servers "
          + "and watchers: the command itself, without & or nohup.",
        'exec_command, a server: until: {port: 5173}, stop: {regex: "rror"}, yield_time_ms: 120000 '
          + "answers once it is up or has failed. Never sleep to wait.",
      ],
    },
    write_stdin: {
      promptSnippet: "Type into, interrupt or poll a session",
      promptGuidelines: [
        `write_stdin, a build, tests, a download: ONE poll, yield_time_ms up to ${cap}: it answers `
          + "the moment they end. A REPL: until: {input: true} with each line.",
      ],
    },
    wait_for: { promptSnippet: "Wait for several sessions", promptGuidelines: [] },
    kill_session: {
      promptSnippet: "End a session",
      promptGuidelines: ["kill_session: what you started and is not needed any more."],
    },
    list_sessions: { promptSnippet: "List the sessions", promptGuidelines: [] },
  };
}

/** The texts of the default set; `maxPollMs` is the longest poll. */
export function unifiedTexts(where: Where, maxPollMs: number): Record<UnifiedName, ToolText> {
  const values = { ...placeValues(where), maxPollMs };
  const prompt = prompts(maxPollMs);
  const { exec_command, ...others } = MODELS.unified;
  const logs = logsText(where, exec_command.logs, {
    far: "Commands run on another machine, and log_path is a file there: read it with "
      + "exec_command (grep, tail).",
    nowhere: "There are no log files: have long output filtered by the command itself (grep, "
      + "tail).",
  });
  return {
    exec_command: textOf(exec_command, values, logs, prompt.exec_command),
    write_stdin: textOf(others.write_stdin, values, undefined, prompt.write_stdin),
    wait_for: textOf(others.wait_for, values, undefined, prompt.wait_for),
    kill_session: textOf(others.kill_session, values, undefined, prompt.kill_session),
    list_sessions: textOf(others.list_sessions, values, undefined, prompt.list_sessions),
  };
}

/** The texts of what is rarely used: their descriptions say enough. */
export function moreTexts(): Record<MoreName, ToolText> {
  const { set_on_exit, resize_session } = MODELS.more;
  const silent = { promptGuidelines: [] };
  return {
    set_on_exit: textOf(set_on_exit, {}, undefined, silent),
    resize_session: textOf(resize_session, {}, undefined, silent),
  };
}
