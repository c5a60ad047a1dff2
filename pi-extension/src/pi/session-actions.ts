/** What a person can do with a session; each gives the words that say what came of it. */
import { attachCommandTo } from "../execd/attach.ts";
import type { StreamReport } from "../execd/wire-results.ts";
import { titleOf } from "../text/session.ts";
import {
  COMMAND_CELLS, type Row, type RosterContext, asEnded, byUser, noteEnds, rowLabel,
} from "./roster.ts";
import type { KeysHost } from "./session-keys.ts";
import { BY_USER } from "./wakes.ts";

/** What the keys do, in the list and in the view of one's output. */
export function actions(context: RosterContext): Pick<KeysHost, "act" | "whyNoLine" | "send"> {
  return {
    act: async (key, row) => {
      if (key === "k") return end(context, row);
      return key === "c" ? copyLog(context, row) : howToAttach(context, row);
    },
    whyNoLine,
    send: (row, line) => sendLine(context, row, line),
  };
}

/**
 * Ends a session with all its processes, as a person: the signal, and SIGKILL where 2 s later something
 * is left.
 */
export async function end(context: RosterContext, row: Row, signal = "SIGTERM"): Promise<string> {
  const { id: session_id, session } = row;
  const name = titleOf({ ...row.seen, id: session_id }, COMMAND_CELLS);
  if (!row.isRunning) return endLeftOver(context, row);
  const report = await context.execd.request("kill_session", { session_id, signal, by: BY_USER });
  const { killed, escalated, exit_code: exitCode, signal: by, killed_by: killedBy } = report;
  noteEnds(context, [byUser(asEnded({ ...session, exitCode, signal: by, killedBy }))]);
  if (killed !== true) throw new Error(`${name} could not be ended and stays listed`);
  return `ended ${name}${escalated === true ? ` (${signal} was not enough)` : ""}`;
}

/** A session that has ended may have left processes behind. */
async function endLeftOver(context: RosterContext, row: Row): Promise<string> {
  const { execd } = context;
  const { backgroundPids = [] }: Partial<StreamReport> =
    await execd.request("poll_process", { sessionId: row.id });
  await execd.request("kill_process", { sessionId: row.id });
  const left = backgroundPids.length > 0 ? "; ended what it had left in the background" : "";
  return `${rowLabel(row)}: it had ended already${left}`;
}

/** Writes a line to a session, and Enter behind it. */
export async function sendLine(context: RosterContext, row: Row, line: string): Promise<string> {
  const enter = row.session.stdinMode === "pty" ? "\r" : "\n";
  await context.execd.request("write_stdin", { sessionId: row.id, data: `${line}${enter}` });
  return `sent to #${row.id}: ${line === "" ? "an empty line" : line}`;
}

/** Why no line can be sent to a session from here; undefined where one can. */
export function whyNoLine({ id, isRunning, session }: Row): string | undefined {
  if (!isRunning) return `#${id} has ended`;
  if (session.stdinMode === "null") return `#${id} takes no input: its stdin is /dev/null`;
  // What is typed here can be read on the screen.
  if (session.state === "waiting_for_password") {
    return `#${id} waits for a password: type it where nobody sees it, a says how`;
  }
  return undefined;
}

/** Puts the path of a session's log on the clipboard, as pi does it. */
export async function copyLog({ execd }: RosterContext, { id, logPath }: Row): Promise<string> {
  if (logPath === undefined) return `#${id} has no log`;
  try {
    // Where no pi has loaded itself this takes seconds; only who asks for it pays for that.
    const { copyToClipboard } = await import("@earendil-works/pi-coding-agent");
    await copyToClipboard(logPath);
    return `copied: ${logPath}${execd.isRemote ? " (on the machine where commands run)" : ""}`;
  } catch {
    return `its log, which could not be copied: ${logPath}`;
  }
}

/** How a person attaches a terminal to a session. */
export function howToAttach({ execd }: RosterContext, { id, isRunning }: Row): string {
  if (!isRunning) return `#${id} has ended: nothing to attach to`;
  const command = attachCommandTo(execd.running, String(id));
  const where = execd.isRemote ? ", on the machine where commands run" : ", in another terminal";
  return `${command}${where}`;
}
