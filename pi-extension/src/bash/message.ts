/**
 * The message by which the model is told what became of its background windows: its type, its text,
 * and the details that are drawn.
 */
import type { Report, WindowReport } from "./background.ts";

/** Messages about windows that have ended, and about those that go on. */
export const COMPLETED_MESSAGE_TYPE = "bash-window-completed";
export const POLL_MESSAGE_TYPE = "bash-window-poll";

/** The `details` of both messages, for their renderer. */
export interface ReportDetails {
  windows: WindowReport[];
}

/** Takes reports and gives the message that tells them. The tails stand in its text alone. */
export function reportMessage(reports: Report[]): {
  customType: string;
  content: string;
  details: ReportDetails;
} {
  let content = "";
  const windows = reports.map(({ text, facts }) => {
    if (content !== "") content += "\n\n";
    const { tail = "", ...others } = facts;
    const within = text.lastIndexOf(tail);
    const from = content.length + within;
    content += text;
    if (within < 0) return facts;
    return { ...others, tail_at: [from, from + tail.length] };
  });
  const polls = windows.every(({ kind }) => kind === "poll");
  const customType = polls ? POLL_MESSAGE_TYPE : COMPLETED_MESSAGE_TYPE;
  return { customType, content, details: { windows } };
}

/** The ids of the windows that are told of. */
export function named(reports: Report[]): string {
  return reports.map(({ facts }) => facts.window).join(", ");
}
