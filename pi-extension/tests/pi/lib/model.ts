/**
 * The scripted model: what a test writes into its script, and what it reads back of each request.
 */
import { readFileSync } from "node:fs";

/** The variables by which a test tells the model extension where its files are. */
export const SCRIPT_VARIABLE = "FAUX_SCRIPT";
export const STATE_VARIABLE = "FAUX_STATE";

/** What the model says once its script is used up. */
export const EXHAUSTED = "(script exhausted)";

/** One tool call of the model. Strings in `args` may hold placeholders (see `Turn`). */
export interface Call {
  name: string;
  args: Record<string, unknown>;
}

/**
 * One answer of the model.
 *
 * Strings may hold `{{last:REGEX}}`, which becomes the first group of the newest match in earlier
 * tool results and user texts; a string that is only `{{lastnum:REGEX}}` becomes a number.
 */
export interface Turn {
  text?: string;
  calls?: Call[];
  /**
   * A regex on the newest message. Such a turn is used when that matches, before any turn that has
   * no condition, wherever it stands in the script.
   */
  when?: string;
  /** A path: the model answers only once this file exists (or when it was aborted, or 60 s on). */
  waitForFile?: string;
}

/** A message as the model was shown it. */
export interface SeenMessage {
  role: "system" | "user" | "assistant" | "toolResult";
  text: string;
  toolName?: string;
  isError?: boolean;
}

/** One request to the model: the tools that were declared, and all messages. */
export interface ModelRequest {
  tools: string[];
  messages: SeenMessage[];
}

/** A turn that says something and calls tools. */
export function turn(text: string, ...calls: Call[]): Turn {
  return { text, calls };
}

/** A call of any tool. */
export function call(name: string, args: Record<string, unknown> = {}): Call {
  return { name, args };
}

/** A call of exec_command. */
export function exec(cmd: string, args: Record<string, unknown> = {}): Call {
  return call("exec_command", { cmd, ...args });
}

/** The session that a tool result named last. */
export const LAST_SESSION = "{{lastnum:session_id: (\\d+)}}";

/** A call of write_stdin on the session that was named last. */
export function stdin(args: Record<string, unknown>): Call {
  return call("write_stdin", { session_id: LAST_SESSION, ...args });
}

/** An empty poll of the session that was named last. */
export function poll(yieldTimeMs = 5_000): Call {
  return stdin({ yield_time_ms: yieldTimeMs });
}

/** A call of kill_session on the session that was named last. */
export function kill(args: Record<string, unknown> = {}): Call {
  return call("kill_session", { session_id: LAST_SESSION, ...args });
}

/** The requests that the model extension has recorded so far. */
export function readRequests(file: string): ModelRequest[] {
  return readLines(file).map((line) => JSON.parse(line) as ModelRequest);
}

/** The newest message of a request. */
export function newest(request: ModelRequest | undefined): SeenMessage {
  const message = request?.messages.at(-1);
  if (message === undefined) throw new Error("the model was never asked");
  return message;
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter((line) => line !== "");
  } catch {
    // The model has not been asked yet.
    return [];
  }
}
