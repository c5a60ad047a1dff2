/**
 * The ids of sessions that a conversation names: one that goes on was perhaps held with another
 * execd, and what is started now must not answer to an id of those.
 */
import { isObject } from "./daemon.ts";
import type { HostContext } from "./host.ts";
import { WAKE_MESSAGE_TYPE } from "./wakes.ts";
import { COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE } from "./windows/deliveries.ts";

type Entry = ReturnType<NonNullable<HostContext["sessionManager"]>["getEntries"]>[number];

/** An error has no details; of these one names what the command has left behind. */
const LEFT_BEHIND = /\nStill running in background window @(\d+): [^\n]*$/;

/** The ids in one entry of a session: results of tools that are ours, and our messages. */
export function earlierIds(entry: Entry, isOurs: (toolName: string) => boolean): number[] {
  if (entry.type === "custom_message") return idsOfMessage(entry.customType, entry.details);
  if (entry.type !== "message" || entry.message.role !== "toolResult") return [];
  const { toolName, details, isError, content } = entry.message;
  if (!isOurs(toolName)) return [];
  if (isError) {
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
    return ids([LEFT_BEHIND.exec(text)?.[1]]);
  }
  // An id that only the model named (found: false) was never given.
  if (!isObject(details) || details.found === false) return [];
  return ids([details.session_id, details.sessionId, details.window]);
}

function idsOfMessage(customType: string, details: unknown): number[] {
  if (!isObject(details)) return [];
  if (customType === WAKE_MESSAGE_TYPE) return ids(fields(details.sessions, "session_id"));
  const ofWindows = [COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE].includes(customType);
  return ofWindows ? ids(fields(details.windows, "window")) : [];
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
