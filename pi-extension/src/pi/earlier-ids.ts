/**
 * The ids of sessions that a conversation names. A conversation that goes on was perhaps held with
 * another execd, and a session that is started now must not answer to one of those ids.
 */
import { isObject } from "../text/values.ts";
import type { HostContext } from "./host.ts";

type Entry = ReturnType<NonNullable<HostContext["sessionManager"]>["getEntries"]>[number];

/** An error has no details; the text of this one names what the command has left behind. */
const LEFT_BEHIND = /\nStill running in background window @(\d+): [^\n]*$/;

/** Which parts of a conversation are this extension's. */
interface Ours {
  isOurTool(name: string): boolean;
  isOurMessage(customType: string): boolean;
}

/** The ids in one entry of a session: results of tools that are ours, and our messages. */
export function earlierIds(entry: Entry, { isOurTool, isOurMessage }: Ours): number[] {
  if (entry.type === "custom_message") {
    return isOurMessage(entry.customType) ? idsOfMessage(entry.details) : [];
  }
  if (entry.type !== "message" || entry.message.role !== "toolResult") return [];
  const { toolName, details, isError, content } = entry.message;
  if (!isOurTool(toolName)) return [];
  if (isError) {
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
    return ids([LEFT_BEHIND.exec(text)?.[1]]);
  }
  // An id that only the model named (found: false) was never given.
  if (!isObject(details) || details.found === false) return [];
  return ids([details.session_id, details.sessionId, details.window]);
}

/** A message tells of sessions, or of windows. */
function idsOfMessage(details: unknown): number[] {
  if (!isObject(details)) return [];
  return ids([...fields(details.sessions, "session_id"), ...fields(details.windows, "window")]);
}

function fields(list: unknown, name: string): unknown[] {
  return Array.isArray(list) ? list.map((one) => (isObject(one) ? one[name] : undefined)) : [];
}

/** Those of the values that are ids: 3, or the window `@3`. */
function ids(values: unknown[]): number[] {
  const numbers = values.map((value) =>
    typeof value === "string" && /^@?\d+$/.test(value) ? Number(value.replace("@", "")) : value);
  return numbers.filter((number) => Number.isSafeInteger(number)).map(Number);
}
