/**
 * What pi prints in json and rpc mode, as far as these tests look at it.
 */

/** A block of a message or of a tool result. */
export interface Block {
  type: string;
  text?: string;
  name?: string;
  arguments?: Record<string, unknown>;
}

/** A message of a conversation. */
export interface PiMessage {
  role: string;
  content: string | Block[];
  customType?: string;
  display?: boolean;
  details?: Record<string, unknown>;
  toolName?: string;
  isError?: boolean;
  stopReason?: string;
  /** When it was made, in milliseconds since 1970. */
  timestamp?: number;
}

/** What a tool answered. */
export interface ToolResult {
  content: Block[];
  details?: Record<string, unknown>;
}

/** One line of pi's event stream. */
export interface PiEvent {
  type: string;
  message?: PiMessage;
  messages?: PiMessage[];
  toolCallId?: string;
  toolName?: string;
  args?: Record<string, unknown>;
  result?: ToolResult;
  partialResult?: ToolResult;
  isError?: boolean;
  /** When this line was read, by Date.now(): added by these tests. */
  at: number;
}

/** The end of one tool call, made easy to look at. */
export interface ToolEnd {
  name: string;
  text: string;
  details: Record<string, unknown>;
  isError: boolean;
  at: number;
}

/** The text of a message or of a tool result. */
export function textOf(content: string | Block[] | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("");
}

/** Whether a line is the end of a call of this tool. */
export function isToolEnd(name?: string): (event: PiEvent) => boolean {
  return (event) =>
    event.type === "tool_execution_end" && (name === undefined || event.toolName === name);
}

/** The ends of all calls, or of those of one tool, in order. */
export function toolEnds(events: readonly PiEvent[], name?: string): ToolEnd[] {
  return events.filter(isToolEnd(name)).map((event) => ({
    name: event.toolName ?? "",
    text: textOf(event.result?.content),
    details: event.result?.details ?? {},
    isError: event.isError === true,
    at: event.at,
  }));
}

/** The finished messages of one role, in order. */
export function messagesOf(events: readonly PiEvent[], role: string): PiMessage[] {
  return events
    .filter((event) => event.type === "message_end")
    .flatMap((event) => (event.message?.role === role ? [event.message] : []));
}

/** What the model said, one string a message. */
export function said(events: readonly PiEvent[]): string[] {
  return messagesOf(events, "assistant").map((message) => textOf(message.content));
}

/** The messages an extension sent under a name of its own. */
export function customMessages(events: readonly PiEvent[], customType: string): PiMessage[] {
  return messagesOf(events, "custom").filter((message) => message.customType === customType);
}
