/** The commands for people on processes: /jobs, /tail and /kill. The model misses nothing. */
import { isObject } from "./daemon.ts";
import { type Describe, canFollow, follow } from "./follow.ts";
import type { HostContext } from "./host.ts";
import type { Instance } from "./instance.ts";
import { pick } from "./pick.ts";
import { plainText } from "./plain.ts";
import { drawable, forgottenText, formatAge, oneLine } from "./render/safe.ts";
import type { JobList, JobReport, JobRow, LogPage } from "./wire.ts";

export const JOBS_COMMAND = "jobs";
export const TAIL_COMMAND = "tail";
export const KILL_COMMAND = "kill";

const DEFAULT_LINES = 200;
const MAX_LINES = 2_000;
/** The most of a log that is looked at for its last lines: one page. */
const TAIL_BYTES = 150_000;
/** So many times that is looked at for lines. */
const TAIL_PAGES = 4;
/** What a notice names of them. */
const MAX_TOLD = 30;
const COMMAND_CELLS = 60;
const HEAD_CELLS = 120;

/**
 * `/jobs`: what runs and what has ended lately. The output of the one that is chosen is followed,
 * or shown where the host can only do that.
 */
export async function jobsCommand(instance: Instance, ctx: HostContext): Promise<void> {
  await saying(ctx, async () => {
    const { processes: rows, ...bounds } = await jobList(instance);
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
    if (canFollow(ctx)) await follow(instance, ctx, row.sessionId, describe(instance));
    else await showTail(instance, ctx, row, DEFAULT_LINES);
  });
}

/** `/tail ID [N]`: the last N lines of a process's output. */
export async function tailCommand(
  instance: Instance,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(ctx, async () => {
    const [id, lines = DEFAULT_LINES, ...rest] = numbersOf(args);
    if (!isId(id) || rest.length > 0 || !(lines > 0)) {
      throw new Error(`usage: /${TAIL_COMMAND} ID [LINES], at most ${MAX_LINES}`);
    }
    const row = (await processes(instance)).find(({ sessionId }) => sessionId === id);
    if (!row) throw new Error(`unknown sessionId: ${id}`);
    await showTail(instance, ctx, row, Math.min(lines, MAX_LINES));
  });
}

/** `/kill ID`: ends all of a process. */
export async function killCommand(
  instance: Instance,
  args: string,
  ctx: HostContext,
): Promise<void> {
  await saying(ctx, async () => {
    const [id, ...rest] = numbersOf(args);
    if (!isId(id) || rest.length > 0) throw new Error(`usage: /${KILL_COMMAND} ID`);
    const row = (await processes(instance)).find(({ sessionId }) => sessionId === id);
    if (!row) throw new Error(`unknown sessionId: ${id}`);
    const ended = row.status !== "running";
    // What is remembered names those who were left in the background.
    const before = ended ? await instance.client.request("poll_process", { sessionId: id }) : {};
    const { backgroundPids = [] } = before as Partial<JobReport>;
    const reply = await instance.client.request("kill_process", { sessionId: id });
    const { status } = reply as JobReport;
    if (ended) {
      const left = backgroundPids.length > 0 ? "; killed what it had left in the background" : "";
      return say(ctx, `${label(row)}: it had ended already${left}`);
    }
    if (status === "running") throw new Error(`#${id} could not be ended and stays listed`);
    say(ctx, `killed #${id} ${oneLine(row.command, COMMAND_CELLS)}`);
  });
}

/** What completes an id: the sessions that run. An id that is complete is for Enter to take. */
export function idCompletions(
  instance: Instance,
  prefix: string,
): { value: string; label: string; description: string }[] | null {
  const typed = prefix.trim();
  if (instance.sessions.get(Number(typed || Number.NaN))) return null;
  const items = instance.sessions.list()
    .map(({ session_id, command }) => ({
      value: String(session_id),
      label: String(session_id),
      description: oneLine(command, COMMAND_CELLS),
    }))
    .filter(({ value }) => value.startsWith(typed));
  return items.length > 0 ? items : null;
}

async function showTail(
  instance: Instance,
  ctx: HostContext,
  row: JobRow,
  lines: number,
): Promise<void> {
  const sessionId = row.sessionId;
  const read = async (offset: number, limit: number) =>
    (await instance.client.request("get_process_log", { sessionId, offset, limit })) as LogPage;
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
  // The first line of a part is broken, unless there is no other.
  if (page.offset > 0 && all.length > 1) all.shift();
  const last = all.slice(-lines);
  const whole = page.offset === 0 && last.length === all.length;
  const what = whole ? "" : ` · last ${last.length === 1 ? "line" : `${last.length} lines`}`;
  const text = page.totalBytes === 0 ? "(no output)" : last.join("\n");
  const log = row.logPath === undefined ? "" : `\nlog: ${oneLine(row.logPath, HEAD_CELLS)}`;
  ctx.ui?.notify(`${label(row)}${what}\n${text}${log}`, "info");
}

function describe(instance: Instance): Describe {
  return async (sessionId) => {
    const row = (await processes(instance)).find((one) => one.sessionId === sessionId);
    if (!row) return undefined;
    const hasLog = row.logPath !== undefined;
    return { title: [label(row), ...(hasLog ? [row.logPath] : [])].join(" · "), hasLog };
  };
}

async function processes(instance: Instance): Promise<JobRow[]> {
  return (await jobList(instance)).processes;
}

async function jobList(instance: Instance): Promise<JobList> {
  if (!instance.client.isRunning) return { processes: [] };
  const reply = await instance.client.request("list_processes", {});
  return isObject(reply) ? (reply as unknown as JobList) : { processes: [] };
}

/** `#2 41s npm run dev`; of one that has ended how it did: `#1 exit 3 npm test`. */
function label(row: JobRow): string {
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
    const text = error instanceof Error ? error.message : String(error);
    ctx.ui?.notify(`execd: ${oneLine(text, HEAD_CELLS * 4)}`, "warning");
  }
}
