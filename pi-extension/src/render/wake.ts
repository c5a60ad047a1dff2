/** How a wake message is drawn in the conversation. */
import type { MessageRenderer } from "@earendil-works/pi-coding-agent";
import { Box, Text } from "@earendil-works/pi-tui";
import { home } from "../text/home.ts";
import type { Ended, WakeDetails } from "../pi/wakes.ts";
import { formatAge, oneLine, stripControls, tildify } from "./safe.ts";

const COMMAND_CELLS = 80;
const PATH_CELLS = 120;

/** One line a session; the whole text that the model got when expanded. */
export const renderWakeMessage: MessageRenderer<WakeDetails> = (message, { expanded }, theme) => {
  const box = new Box(1, 1, (text) => theme.bg("customMessageBg", text));
  const sessions = Array.isArray(message.details?.sessions) ? message.details.sessions : [];
  const content = typeof message.content === "string" ? stripControls(message.content) : "";
  const lines = sessions.flatMap((ended) => endedLines(ended, theme));
  if (expanded || lines.length === 0) lines.push(theme.fg("muted", content));
  box.addChild(new Text(lines.join("\n"), 0, 0));
  return box;
};

type Theme = Parameters<MessageRenderer>[2];

function endedLines(ended: Ended, theme: Theme): string[] {
  const ok = ended.exit_code === 0;
  const how = ended.signal === undefined
    ? `exit_code=${ended.exit_code ?? "?"}`
    : `signal=${oneLine(ended.signal, COMMAND_CELLS)}`;
  const age = ended.elapsed_ms === undefined ? "" : ` · took ${formatAge(ended.elapsed_ms)}`;
  const head = `${ok ? "✓" : "✗"} session ${ended.session_id ?? "?"} ended · ${how}${age}`;
  const command = `$ ${oneLine(ended.command ?? "", COMMAND_CELLS)}`;
  const log = oneLine(tildify(ended.log_path ?? "", home()), PATH_CELLS);
  return [
    theme.fg(ok ? "success" : "error", head),
    theme.fg("toolTitle", command) + theme.fg("muted", log ? ` · log: ${log}` : ""),
  ];
}
