/**
 * The commands for people: /unified-exec-sessions, /jobs, /tail and /kill. They take nothing away
 * from the model: no exit, no unread output.
 */
import type { Client } from "../execd/client.ts";
import type { Sessions } from "../execd/sessions.ts";
import type {
  SessionInfo, StreamList, StreamReport, StreamSession,
} from "../execd/wire-results.ts";
import { forgottenText, formatAge } from "../text/figures.ts";
import { plainText } from "../text/plain.ts";
import { drawable } from "../text/safe.ts";
import { given, isObject, messageOf } from "../text/values.ts";
import { oneLine } from "../text/width.ts";
import { type Describe, canFollow, follow } from "./follow.ts";
import type { HostContext } from "./host.ts";
import { pick } from "./pick.ts";
import { WAKE_MARK, count, sessionLabel } from "./ui.ts";
import { BY_USER, type Ended, type Wakes } from "./wakes.ts";

export const SESSIONS_COMMAND = "unified-exec-sessions";
export const JOBS_COMMAND = "jobs";
export const TAIL_COMMAND = "tail";
export const KILL_COMMAND = "kill";

const DEFAULT_LINES = 200;
const MAX_LINES = 2_000;
/** The most of a log that is looked at for its last lines: one page. */
const TAIL_BYTES = 150_000;
/** At most so many pages are looked at. */
const TAIL_PAGES = 4;
/** The most sessions that a notice names. */
const MAX_TOLD = 30;
const COMMAND_CELLS = 60;
const HEAD_CELLS = 120;

/** What is read of a row of the list of processes. */
type EndedRow = { [K in "exitCode" | "signal" | "killedBy"]?: StreamSession[K] | undefined }
  & Pick<StreamSession, "sessionId" | "command">;

/** What a command sees of the session of pi. */
export interface CommandContext {
  readonly execd: Client;
  readonly sessions: Sessions;
  /** What people have seen, or ended, the model has still to be told. */
  readonly wakes: Pick<Wakes, "onUntold">;
}

/** `/unified-exec-sessions`: shows what runs; the one that is chosen is ended. */
export async function sessionsCommand(context: CommandContext, ctx: HostContext): Promise<void> {
  const running = await runningSessions(context);
  const say = (text: string, type: "info" | "warning" = "info") =>
    ctx.ui?.notify(`execd: ${text}`, type);
  if (running.length === 0) return say("no live sessions");

  const labels = running.map((s) =>
    sessionLabel(s.session_id, s.elapsed_ms, s.command, marks(s)));
  const killAll = `Kill all ${count(running.length)}`;
  if (!ctx.ui?.select) return say(`${count(running.length)} running: ${labels.join("; ")}`);
  const title = `execd: ${count(running.length)} running. Choose one to end it`;
  const choice = await ctx.ui.select(title, [...labels, killAll]);
  const chosen = choice === killAll
    ? running
    : running.filter((_, index) => labels[index] === choice);
  if (chosen.length === 0) return;

  const ended = await Promise.all(chosen.map((session) => kill(context, session)));
  const killed = ended.filter(Boolean).length;
  const failed = ended.length - killed;
  if (failed === 0) return say(`killed ${count(killed)}`);
  say(`killed ${count(killed)}; ${failed} could not be ended and stay listed`, "warning");
}

function marks({ wake_armed, shell_exited }: SessionInfo): string[] {
  return [...(wake_armed ? [WAKE_MARK] : []), ...(shell_exited ? ["(shell exited)"] : [])];
}

/** People's views take nothing away from the model: no exit, no unread output. */
async function runningSessions(context: CommandContext): Promise<SessionInfo[]> {
  if (!context.execd.isRunning) return [];
  const reply = await context.execd.request("list_sessions", { peek: true });
  noteEnds(context, reply.sessions);
  return reply.sessions.filter((session) => session.running);
}

/** Some rows tell of ends: execd takes what it has told here for told. */
function noteEnds(context: CommandContext, rows: Partial<Ended>[]): void {
  const ended = rows.filter(({ exit_code, signal }) => (exit_code ?? signal) !== undefined);
  context.wakes.onUntold(ended.map(({ session_id, exit_code, signal, killed_by, command }) =>
    ({ ended: given({ session_id, exit_code, signal, killed_by, command }), woke: false })));
}

/** An end that a command of the user has brought about; others may have done so at the same time. */
function byUser(ended: Partial<Ended>): Partial<Ended> {
  return ended.killed_by?.startsWith("kill_") ? { ...ended, killed_by: BY_USER } : ended;
}

async function kill(context: CommandContext, session: SessionInfo): Promise<boolean> {
  const { session_id, command } = session;
  try {
    const reply = await context.execd.request("kill_session", { session_id });
    noteEnds(context, [byUser({ command, ...reply })]);
    // A session that has ended by itself meanwhile is as good as killed.
    return reply.killed !== false;
  } catch {
    return false;
  }
}

/**
 * `/jobs`: what runs and what has ended lately. The output of the one that is chosen is followed,
 * or shown where the host can only do that.
 */
export async function jobsCommand(context: CommandContext, ctx: HostContext): Promise<void> {
  await saying(ctx, async () => {
    const { processes: rows, ...bounds } = await listed(context);
    const forgotten = forgottenText(bounds);
    const gone = forgotten === undefined ? "" : `; ${forgotten}`;
    if (rows.length === 0) return say(ctx, `no processes${gone}`);
    const labels = rows.map(label);
    if (!ctx.ui?.select) {
      const more = rows.length - MAX_TOLD;
      const left = more > 0 ? `, ${more} older ones not shown` : "";
      return say(ctx, `${labels.slice(0, MAX_TOLD).join("; ")}${left}${gone}`);
    }
    const chosen = await pick(ctx, `Processes. Choose one to see its output${gone}`, labels);
    const row = chosen === undefined ? undefined : rows[chosen];
    if (!row) return;
    if (canFollow(ctx)) await follow(context, ctx, row.sessionId, describe(context));
    else await showTail(context, ctx, row, DEFAULT_LINES);
  });
}

/** `/tail ID [N]`: the last N lines of a session's output. */
export async function tailCommand(
  context: CommandContext,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(ctx, async () => {
    const [id, lines = DEFAULT_LINES, ...rest] = numbersOf(args);
    if (!isId(id) || rest.length > 0 || !(lines > 0)) {
      throw new Error(`usage: /${TAIL_COMMAND} ID [LINES], at most ${MAX_LINES}`);
    }
    const row = await rowOf(context, id);
    if (!row) throw new Error(`unknown sessionId: ${id}`);
    await showTail(context, ctx, row, Math.min(lines, MAX_LINES));
  });
}

/** `/kill ID`: ends a session with all its processes. */
export async function killCommand(
  context: CommandContext,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(ctx, async () => {
    const [id, ...rest] = numbersOf(args);
    if (!isId(id) || rest.length > 0) throw new Error(`usage: /${KILL_COMMAND} ID`);
    const row = await rowOf(context, id);
    if (!row) throw new Error(`unknown sessionId: ${id}`);
    const ended = row.status !== "running";
    // The report of a session that has ended names what it has left in the background.
    const before = ended ? await context.execd.request("poll_process", { sessionId: id }) : {};
    const { backgroundPids = [] } = before as Partial<StreamReport>;
    const { status, exitCode, signal, killedBy } =
      await context.execd.request("kill_process", { sessionId: id });
    const end = asEnded({ ...row, exitCode, signal, killedBy });
    noteEnds(context, [ended ? end : byUser(end)]);
    if (ended) {
      const left = backgroundPids.length > 0 ? "; killed what it had left in the background" : "";
      return say(ctx, `${label(row)}: it had ended already${left}`);
    }
    if (status === "running") throw new Error(`#${id} could not be ended and stays listed`);
    say(ctx, `killed #${id} ${oneLine(row.command, COMMAND_CELLS)}`);
  });
}

/**
 * What may complete an id: the ids of the sessions that run. Nothing completes an id that is
 * complete: Enter takes that one.
 */
export function idCompletions(
  context: CommandContext,
  prefix: string,
): { value: string; label: string; description: string }[] | null {
  const typed = prefix.trim();
  if (context.sessions.get(Number(typed || Number.NaN))) return null;
  const items = context.sessions.list()
    .map(({ session_id, command }) => ({
      value: String(session_id),
      label: String(session_id),
      description: oneLine(command, COMMAND_CELLS),
    }))
    .filter(({ value }) => value.startsWith(typed));
  return items.length > 0 ? items : null;
}

async function showTail(
  context: CommandContext,
  ctx: HostContext,
  row: StreamSession,
  lines: number,
): Promise<void> {
  const sessionId = row.sessionId;
  const read = (offset: number, limit: number) =>
    context.execd.request("get_process_log", { sessionId, offset, limit });
  let page = await read(-TAIL_BYTES, TAIL_BYTES);
  // Long lines need more than a page.
  for (let pages = 1; pages < TAIL_PAGES && page.offset > 0; pages++) {
    if (page.text.split("\n").length > lines + 1) break;
    const offset = Math.max(0, page.offset - TAIL_BYTES);
    const before = await read(offset, page.offset - offset);
    if (before.nextOffset !== page.offset) break;
    page = { ...page, offset: before.offset, text: before.text + page.text };
  }
  const all = drawable(plainText(page.text)).replace(/\n$/, "").split("\n");
  // The first line of a part of a log is broken, and is left out unless there is no other.
  if (page.offset > 0 && all.length > 1) all.shift();
  const last = all.slice(-lines);
  const whole = page.offset === 0 && last.length === all.length;
  const what = whole ? "" : ` · last ${last.length === 1 ? "line" : `${last.length} lines`}`;
  const text = page.totalBytes === 0 ? "(no output)" : last.join("\n");
  const log = row.logPath === undefined ? "" : `\nlog: ${oneLine(row.logPath, HEAD_CELLS)}`;
  ctx.ui?.notify(`${label(row)}${what}\n${text}${log}`, "info");
}

function describe(context: CommandContext): Describe {
  return async (sessionId) => {
    const row = await rowOf(context, sessionId);
    if (!row) return undefined;
    const hasLog = row.logPath !== undefined;
    return { title: [label(row), ...(hasLog ? [row.logPath] : [])].join(" · "), hasLog };
  };
}

async function rowOf(context: CommandContext, id: number): Promise<StreamSession | undefined> {
  return (await listed(context)).processes.find(({ sessionId }) => sessionId === id);
}

async function listed(context: CommandContext): Promise<StreamList> {
  if (!context.execd.isRunning) return { processes: [] };
  const reply = await context.execd.request("list_processes", {});
  if (!isObject(reply)) return { processes: [] };
  noteEnds(context, reply.processes.map(asEnded));
  return reply;
}

/** How a session ended, as far as the list of processes tells it. */
function asEnded(row: EndedRow): Ended {
  const { sessionId: session_id, exitCode: exit_code, signal, killedBy: killed_by, command } = row;
  return given({ session_id, exit_code, signal, killed_by, command });
}

/** `#2 41s npm run dev`; of a session that has ended, how it ended: `#1 exit 3 npm test`. */
function label(row: StreamSession): string {
  const { sessionId, status, exitCode, signal, durationMs, name, command } = row;
  const ended = signal ?? `exit ${exitCode ?? "?"}`;
  const state = status === "running" ? formatAge(durationMs) : ended;
  const what = name === undefined ? command : `${name}: ${command}`;
  return `#${sessionId} ${state} ${oneLine(what, COMMAND_CELLS)}`;
}

/** The words of a command's arguments as whole numbers, NaN for others. `#` may stand first. */
function numbersOf(args: string): number[] {
  const words = args.trim().split(/\s+/).filter(Boolean);
  return words.map((word) => (/^#?\d+$/.test(word) ? Number(word.replace("#", "")) : Number.NaN));
}

function isId(id: number | undefined): id is number {
  return Number.isSafeInteger(id);
}

function say(ctx: HostContext, text: string): void {
  ctx.ui?.notify(`execd: ${text}`, "info");
}

/** Runs a command's work; what fails is told as a warning. */
async function saying(ctx: HostContext, work: () => Promise<void> | void): Promise<void> {
  try {
    await work();
  } catch (error) {
    ctx.ui?.notify(`execd: ${oneLine(messageOf(error), HEAD_CELLS * 4)}`, "warning");
  }
}
