/** The sessions of all families as people choose from them: those that run, then what has ended. */
import type { Client } from "../execd/client.ts";
import type { SessionInfo, StreamList, StreamSession } from "../execd/wire-results.ts";
import { type SeenSession, WAKE_MARK, endOf, labelOf, statesOf } from "../text/session.ts";
import { given, isObject } from "../text/values.ts";
import { BY_USER, type Ended, type Wakes } from "./wakes.ts";

/** The cells of a command, in lists and notices. */
export const COMMAND_CELLS = 60;

/** What a command sees of the session of pi. */
export interface RosterContext {
  readonly execd: Client;
  /** What people have seen, or ended, the model has still to be told. */
  readonly wakes: Pick<Wakes, "onUntold">;
}

/** One session. */
export interface Row {
  id: number;
  isRunning: boolean;
  seen: SeenSession;
  /** What is said of its state: what it waits for, how it ended, that its end is told to the model. */
  states: string[];
  session: StreamSession;
  logPath: string | undefined;
}

/** All sessions, and what execd says of those that it lists no more. */
export interface Roster extends Omit<StreamList, "processes"> {
  rows: Row[];
}

/** Asks execd for its sessions. People's views take nothing away: no exit, no unread output. */
export async function roster(context: RosterContext): Promise<Roster> {
  const { execd } = context;
  if (!execd.isRunning) return { rows: [] };
  const [reply, listed] = await Promise.all([
    execd.request("list_processes", {}),
    execd.request("list_sessions", { peek: true }),
  ]);
  if (!isObject(reply) || !Array.isArray(reply.processes)) return { rows: [] };
  const infos = isObject(listed) && Array.isArray(listed.sessions) ? listed.sessions : [];
  noteEnds(context, reply.processes.map(asEnded));
  noteEnds(context, infos);
  const { processes, ...bounds } = reply;
  const known = new Map(infos.map((info) => [info.session_id, info]));
  return { ...bounds, rows: processes.map((one) => rowOf(one, known.get(one.sessionId))) };
}

/** One of them; undefined where execd remembers no such session. */
export async function rowOfId(context: RosterContext, id: number): Promise<Row | undefined> {
  return (await roster(context)).rows.find((row) => row.id === id);
}

function rowOf(session: StreamSession, info: SessionInfo | undefined): Row {
  const { sessionId: id, name, command, cwd, durationMs: ageMs, exitCode, signal } = session;
  const isRunning = session.status === "running";
  const by = session.killedBy === BY_USER ? ["ended by you"] : [];
  const ended = [...by, endOf(exitCode, signal) ?? "ended"];
  const states = isRunning ? statesOf({ ...info, ...session }) : ended;
  if (isRunning && info?.wake_armed === true) states.push(WAKE_MARK);
  const seen = { id, name, command, cwd, ageMs };
  return { id, isRunning, seen, states, session, logPath: session.logPath };
}

/** `#2 41s web: npm run dev · waits for a line (python3)` */
export function rowLabel({ seen, states }: Row): string {
  const { cwd: _, ...others } = seen;
  return [labelOf(others, COMMAND_CELLS), ...states].join(" · ");
}

/** Some rows tell of ends: execd takes what it has told here for told. */
export function noteEnds({ wakes }: RosterContext, rows: Partial<Ended>[]): void {
  const ended = rows.filter(({ exit_code, signal }) => (exit_code ?? signal) !== undefined);
  wakes.onUntold(ended.map(({ session_id, exit_code, signal, killed_by, command }) =>
    ({ ended: given({ session_id, exit_code, signal, killed_by, command }), woke: false })));
}

/** What is read of a row of the list of processes. */
type EndedRow = { [K in "exitCode" | "signal" | "killedBy"]?: StreamSession[K] | undefined }
  & Pick<StreamSession, "sessionId" | "command">;

/** An end that a command of the user has brought about; others may have done so at the same time. */
export function byUser(ended: Ended): Ended {
  return ended.killed_by?.startsWith("kill_") ? { ...ended, killed_by: BY_USER } : ended;
}

/** How a session ended, as far as the list of processes tells it. */
export function asEnded(row: EndedRow): Ended {
  const { sessionId: session_id, exitCode: exit_code, signal, killedBy: killed_by, command } = row;
  return given({ session_id, exit_code, signal, killed_by, command });
}
