/**
 * The commands for people: /sessions (and its old names), /tail and /kill. They take nothing away
 * from the model: no exit, no unread output.
 */
import type { SeenRunning } from "../execd/sessions.ts";
import { forgottenText } from "../text/figures.ts";
import { plainText } from "../text/plain.ts";
import { drawable } from "../text/safe.ts";
import { countOf, idOf, labelOf } from "../text/session.ts";
import { messageOf } from "../text/values.ts";
import { oneLine } from "../text/width.ts";
import { type Describe, canFollow, follow } from "./follow.ts";
import type { HostContext } from "./host.ts";
import { choose, pick } from "./pick.ts";
import {
  COMMAND_CELLS, type RosterContext, type Row, roster, rowLabel, rowOfId,
} from "./roster.ts";
import { end, howToAttach } from "./session-actions.ts";
import type { Ui } from "./ui.ts";

export const SESSIONS_COMMAND = "sessions";
/** The name of the command in pi-unified-exec, and in earlier versions of this extension. */
export const SESSIONS_ALIAS = "unified-exec-sessions";
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
const HEAD_CELLS = 120;

/** What a command sees of the session of pi. */
export interface CommandContext extends RosterContext {
  /** What runs, of all families. */
  seen(): SeenRunning[];
  readonly ui: Pick<Ui, "inform" | "meet" | "show" | "warn">;
}

/** What a host without a terminal offers for the session that is chosen. */
const END_IT = "End it";
const SHOW_IT = `Show its last ${DEFAULT_LINES} lines`;
const ATTACH_TO_IT = "How to attach a terminal";

/** `/sessions`: what runs and what has ended; one of them is followed, ended, written to. */
export async function sessionsCommand(context: CommandContext, ctx: HostContext): Promise<void> {
  await saying(context, ctx, async () => {
    const chosen = await chosenRow(context, ctx, true);
    if (chosen === undefined) return;
    if (chosen === "all") return endAll(context);
    const actions = chosen.isRunning ? [SHOW_IT, END_IT, ATTACH_TO_IT] : [SHOW_IT];
    const action = await ctx.ui?.select?.(rowLabel(chosen), actions);
    if (action === SHOW_IT) await showTail(context, chosen, DEFAULT_LINES);
    if (action === END_IT) say(context, await end(context, chosen));
    if (action === ATTACH_TO_IT) say(context, howToAttach(context, chosen));
  });
}

/** `/jobs`: the same; where there is no terminal, the chosen one's last lines are shown at once. */
export async function jobsCommand(context: CommandContext, ctx: HostContext): Promise<void> {
  await saying(context, ctx, async () => {
    const chosen = await chosenRow(context, ctx, false);
    if (chosen !== undefined && chosen !== "all") {
      await showTail(context, chosen, DEFAULT_LINES);
    }
  });
}

/**
 * What a person chooses. In a terminal all is done there, and nothing is left to do; on a host that
 * cannot even ask, the sessions are told in a notice.
 */
async function chosenRow(
  context: CommandContext,
  ctx: HostContext,
  canEndAll: boolean,
): Promise<Row | "all" | undefined> {
  const all = await roster(context);
  const { rows, ...bounds } = all;
  const forgotten = forgottenText(bounds);
  const gone = forgotten === undefined ? "" : `; ${forgotten}`;
  const running = rows.filter(({ isRunning }) => isRunning).length;
  if (rows.length === 0) return say(context, `no sessions${gone}`);
  if (canFollow(ctx)) {
    const id = await pick(context, ctx, all);
    if (id !== undefined) await follow(context, ctx, id, describe(context));
    return undefined;
  }
  const labels = rows.map(rowLabel);
  if (!ctx.ui?.select) {
    const more = rows.length - MAX_TOLD;
    const left = more > 0 ? `, ${more} older ones not shown` : "";
    return say(context, `${countOf(running)} running: ${labels.slice(0, MAX_TOLD).join("; ")}${left}${gone}`);
  }
  const last = canEndAll && running > 0 ? [`End all ${countOf(running)}`] : [];
  const title = `execd: ${countOf(running)} running. Choose one${gone}`;
  const at = await choose(ctx, title, [...labels, ...last]);
  if (at === undefined) return undefined;
  return at === rows.length ? "all" : rows[at];
}

async function endAll(context: CommandContext): Promise<void> {
  const running = (await roster(context)).rows.filter(({ isRunning }) => isRunning);
  const done = await Promise.allSettled(running.map((row) => end(context, row)));
  const failed = done.filter(({ status }) => status === "rejected").length;
  const ended = countOf(done.length - failed);
  if (failed === 0) return say(context, `ended ${ended}`);
  throw new Error(`ended ${ended}; ${failed} could not be ended and stay listed`);
}

/** `/tail ID [N]`: the last N lines of a session's output. */
export async function tailCommand(
  context: CommandContext,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(context, ctx, async () => {
    const [word, count, ...rest] = wordsOf(args);
    const id = idOf(word);
    const lines = count === undefined ? DEFAULT_LINES : /^\d+$/.test(count) ? Number(count) : 0;
    if (id === undefined || rest.length > 0 || lines === 0) {
      throw new Error(`usage: /${TAIL_COMMAND} ID [LINES], at most ${MAX_LINES}`);
    }
    await showTail(context, await known(context, id), Math.min(lines, MAX_LINES));
  });
}

/** `/kill [SIG] ID`: ends a session with all its processes: SIGTERM first, or the signal that is given. */
export async function killCommand(
  context: CommandContext,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(context, ctx, async () => {
    const words = wordsOf(args);
    const [id, signal] = words.length === 2
      ? [idOf(words[1]), signalOf(words[0])] : [idOf(words[0]), "SIGTERM"];
    if (id === undefined || signal === undefined || words.length > 2) {
      throw new Error(`usage: /${KILL_COMMAND} [SIGNAL] ID`);
    }
    say(context, await end(context, await known(context, id), signal));
  });
}

/** The name of a signal as people write it: `INT`, `sigint`, `-9`, `-INT`. */
function signalOf(word = ""): string | undefined {
  const name = word.replace(/^-/, "").toUpperCase();
  if (/^\d{1,2}$/.test(name)) return name;
  return /^[A-Z][A-Z0-9+]{1,9}$/.test(name) ? `SIG${name.replace(/^SIG/, "")}` : undefined;
}

async function known(context: CommandContext, id: number): Promise<Row> {
  const row = await rowOfId(context, id);
  if (row === undefined) throw new Error(`no session #${id}`);
  return row;
}

/**
 * What may complete an id, in any spelling: the sessions that run, with what they are doing. Nothing
 * completes an id that is complete: Enter takes that one.
 */
export function idCompletions(
  context: Pick<CommandContext, "seen">,
  prefix: string,
): { value: string; label: string; description: string }[] | null {
  const words = prefix.trimStart().split(/\s+/);
  const typed = (words.pop() ?? "").replace(/^[#@]/, "");
  const before = words.map((word) => `${word} `).join("");
  const running = context.seen();
  if (running.some(({ id }) => String(id) === typed)) return null;
  const items = running.filter(({ id }) => String(id).startsWith(typed)).map(({ states, ...seen }) => ({
    value: `${before}${seen.id}`,
    label: `#${seen.id}`,
    description: [labelOf(seen, COMMAND_CELLS).replace(/^#\S+ /, ""), ...states].join(" · "),
  }));
  return items.length > 0 ? items : null;
}

async function showTail(
  context: CommandContext,
  row: Row,
  lines: number,
): Promise<void> {
  const sessionId = row.id;
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
  const where = context.execd.isRemote ? "log there" : "log";
  const log = row.logPath === undefined ? "" : `\n${where}: ${oneLine(row.logPath, HEAD_CELLS)}`;
  context.ui.show(`${rowLabel(row)}${what}\n${text}${log}`);
}

function describe(context: CommandContext): Describe {
  return async (sessionId) => {
    const row = await rowOfId(context, sessionId);
    if (!row) return undefined;
    const { logPath } = row;
    const log = context.execd.isRemote ? `log there: ${logPath}` : logPath;
    const title = [rowLabel(row), ...(logPath === undefined ? [] : [log])].join(" · ");
    return { title, row };
  };
}

/** The words of a command's arguments. */
function wordsOf(args: string): string[] {
  return args.trim().split(/\s+/).filter((word) => word !== "");
}

function say({ ui }: CommandContext, text: string): undefined {
  ui.inform(text);
}

/** Runs a command's work; what fails is told as a warning. */
async function saying(
  { ui }: CommandContext,
  ctx: HostContext,
  work: () => Promise<void> | void,
): Promise<void> {
  ui.meet(ctx);
  try {
    await work();
  } catch (error) {
    ui.warn(messageOf(error));
  }
}
