/**
 * Reading a tool result of exec_command or write_stdin.
 */
import type { ToolEnd } from "./events.ts";

/** The output part of a tool result, with what is said below it. */
export function outputOf(end: ToolEnd): string {
  return end.text.slice(end.text.indexOf("\n---\n") + 5);
}

/** The command's output alone, which stands in a result's text and nowhere else. */
export function placedOutput({ text, details }: ToolEnd): string {
  const [from, to] = details["output_at"] as [number, number];
  return text.slice(from, to);
}

/** The value of a line `name: value` of a tool result's header. */
export function headerOf(end: ToolEnd, name: string): string | undefined {
  const [head = ""] = end.text.split("\n---\n");
  return new RegExp(`^${name}: (.*)$`, "m").exec(head)?.[1];
}
