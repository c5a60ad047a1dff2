/**
 * The stream surface in these tests: pi's options for it, and calls of its tools.
 */
import { call } from "./model.ts";
import type { Call } from "./model.ts";

/** pi's options that put the stream tools in the place of the unified ones. */
export const STREAM = ["--exec-tools", "stream"];

/** The process that a tool result named last. */
export const LAST_PROCESS = "{{lastnum:sessionId: (\\d+)}}";

/** A call of bash_stream. */
export function bash(command: string, args: Record<string, unknown> = {}): Call {
  return call("bash_stream", { command, ...args });
}

/** A call of a tool on the process that was named last. */
export function on(tool: string, args: Record<string, unknown> = {}): Call {
  return call(tool, { sessionId: LAST_PROCESS, ...args });
}
