/**
 * What the model reads about the stream tools: execd's words, and those of the system prompt, which
 * are pi's alone. Every sentence should change what a model does.
 */
import { MODELS } from "../execd/models.ts";
import { type Prompt, textOf } from "./from-table.ts";
import { type Where, logsText, placeValues } from "./place.ts";
import type { ToolText } from "./tool.ts";

/** The tools of the set. */
export type StreamName = keyof typeof MODELS.stream;

/** What the system prompt says of the tools. */
const PROMPTS: Record<StreamName, Prompt> = {
  bash_stream: {
    promptSnippet: "Run a shell command; what takes longer gives a sessionId",
    promptGuidelines: [
      "bash_stream: also for files (ls, rg, find). Servers and watchers: the command itself, "
        + "without & or nohup.",
      "bash_stream, yieldMs 120000: a build or tests (it answers the moment they end), or a server "
        + 'with until: {port: 5173}, stop: {regex: "rror"}. Never sleep to wait.',
    ],
  },
  poll_process: {
    promptSnippet: "Look at a command, or wait for it",
    promptGuidelines: [
      "poll_process: ONE call with waitMs up to 1800000. A REPL: until: {input: true} after each "
        + "write_stdin.",
    ],
  },
  write_stdin: { promptSnippet: "Type into a running command", promptGuidelines: [] },
  kill_process: {
    promptSnippet: "End a running command",
    promptGuidelines: ["kill_process: what you started and is not needed any more."],
  },
  list_processes: { promptSnippet: "List running and recent commands", promptGuidelines: [] },
  get_process_log: { promptSnippet: "Read more of a command's output", promptGuidelines: [] },
};

/**
 * The texts of the set. `yieldMs`: how long bash_stream waits where the call does not say; `chars`:
 * how many of each stream it then shows.
 */
export function streamTexts(
  where: Where,
  yieldMs: number,
  chars: number,
): Record<StreamName, ToolText> {
  const values = { ...placeValues(where), yieldMs, chars };
  const { bash_stream, get_process_log, ...others } = MODELS.stream;
  const logs = logsText(where, bash_stream.logs, {
    far: "Commands run on another machine, and logPath is a file there: read it with "
      + "get_process_log.",
    nowhere: "There are no log files: have long output filtered by the command itself (grep, "
      + "tail).",
  });
  const memory = where.logs === "nowhere" ? "Memory has the last MiB of it." : undefined;
  // On the wire these names mean the other form of write_stdin, which reads C escapes.
  const stdin = { ...others.write_stdin, synonyms: { chars: "data", input: "data" } };
  return {
    bash_stream: textOf(bash_stream, values, logs, PROMPTS.bash_stream),
    poll_process: textOf(others.poll_process, values, undefined, PROMPTS.poll_process),
    write_stdin: textOf(stdin, values, undefined, PROMPTS.write_stdin),
    kill_process: textOf(others.kill_process, values, undefined, PROMPTS.kill_process),
    list_processes: textOf(others.list_processes, values, undefined, PROMPTS.list_processes),
    get_process_log: textOf(get_process_log, values, memory, PROMPTS.get_process_log),
  };
}
