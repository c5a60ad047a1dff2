/**
 * Reading a tool result of exec_command or write_stdin.
 */
import type { ToolEnd } from "./events.ts";

/** The output part of a tool result. */
export function outputOf(end: ToolEnd): string {
  return end.text.slice(end.text.indexOf("\n---\n") + 5);
}

/** The value of a line `name: value` of a tool result's header. */
export function headerOf(end: ToolEnd, name: string): string | undefined {
  const [head = ""] = end.text.split("\n---\n");
  return new RegExp(`^${name}: (.*)$`, "m").exec(head)?.[1];
}
