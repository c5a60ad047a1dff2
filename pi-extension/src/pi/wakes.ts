/**
 * Wakes: a session that was started with `on_exit: "wake"` ended and no call told it. Exactly one
 * message to the model says so; it has no output, only where to find it. When the message is sent
 * is for the inbox to decide.
 */
import { oneLine } from "../text/width.ts";
import type { Inbox, Letter, Source } from "./inbox.ts";

/** The most sessions that one message spells out. */
const WAKE_LINES_MAX = 10;
/**
 * The most tool results whose end is awaited: a host that never tells of it must not make the table
 * grow.
 */
const DIRECT_MAX = 256;
/** The most ends that wait to be told; of more, the oldest are only counted. */
const WAITING_MAX = 1_024;
const COMMAND_CELLS = 120;
const PATH_CELLS = 240;

/** What is told of one ended session. */
export interface Ended {
  session_id?: number;
  exit_code?: number;
  signal?: string;
  command?: string;
  cwd?: string;
  elapsed_ms?: number;
  log_path?: string;
  /** Why the session is gone without an exit: execd itself ended. */
  lost?: string;
  /** No call can read the session's output any more: only the log has it. */
  unreadable?: true;
}

/** The message's `details`, for its renderer. */
export interface WakeDetails {
  sessions: Ended[];
}

export const WAKE_MESSAGE_TYPE = "unified-exec-completed";

export class Wakes implements Source {
  readonly types = [WAKE_MESSAGE_TYPE];
  readonly #inbox: Inbox;
  readonly #runs: (id: number) => boolean;
  readonly #warn: (message: string) => void;
  readonly #armed = new Set<number>();
  readonly #direct = new Map<string, Ended[][]>();
  #waiting: Ended[] = [];
  /** How many ends that waited were dropped, for want of room. */
  #dropped = 0;
  /** The ends that pi has refused once. */
  #refused = new WeakSet<Ended>();

  /**
   * `runs` tells whether a session runs; `warn` tells people of what the model cannot be told.
   */
  constructor(inbox: Inbox, runs: (id: number) => boolean, warn: (message: string) => void) {
    this.#inbox = inbox;
    this.#runs = runs;
    this.#warn = warn;
    inbox.add(this);
  }

  get isPending(): boolean {
    return this.#armed.size > 0 || this.hasNews;
  }

  get hasNews(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * A reply said that a wake is armed. By the time that the reply is read the session may have
   * ended, and its wake come: then there is nothing to wait for.
   */
  arm(id: number): void {
    if (!this.#runs(id)) return;
    if (!this.#inbox.isClosed) this.#armed.add(id);
    if (!this.#inbox.canSend) this.#warn("no wake can be sent: this host takes no messages");
  }

  /** The ids of the sessions whose end will be told. */
  get armed(): number[] {
    return [...this.#armed];
  }

  isArmed(id: number): boolean {
    return this.#armed.has(id);
  }

  disarm(id: number): void {
    if (this.#armed.delete(id)) this.#inbox.changed();
  }

  /** The daemon told the exit of a session by a wake. */
  onWake(ended: Ended): void {
    if (this.#inbox.isClosed) return;
    if (ended.session_id !== undefined) this.#armed.delete(ended.session_id);
    this.#wait(this.#waiting, [ended], 0);
    this.#inbox.hasCome();
  }

  /** A call told the model of a session's end, of which a wake still waits: the wake is not sent. */
  onRead(toolCallId: string, id: number): void {
    const ended = this.#takeBack(id);
    if (ended) this.onDirect(toolCallId, ended);
  }

  /**
   * A call told the model of the ends of these sessions. Wakes of them that still wait are not sent;
   * of what was armed before the call, execd sends none.
   */
  onReadAll(toolCallId: string, told: Ended[], wasArmed: (id: number) => boolean): void {
    const ends = told.flatMap((ended) => {
      const { session_id: id } = ended;
      if (id === undefined) return [];
      return this.#takeBack(id) ?? (wasArmed(id) ? ended : []);
    });
    if (ends.length > 0) this.onDirect(toolCallId, ...ends);
  }

  /** Takes a wake that still waits off the list. */
  #takeBack(id: number): Ended | undefined {
    const ended = this.#waiting.find((one) => one.session_id === id && !one.lost);
    if (!ended) return undefined;
    this.#waiting = this.#waiting.filter((one) => one !== ended);
    this.#inbox.changed();
    return ended;
  }

  /** A tool result told exits in the wake's place; pi has still to finalise that result. */
  onDirect(toolCallId: string, ...ended: Ended[]): void {
    if (this.#inbox.isClosed) return;
    if (this.#direct.size >= DIRECT_MAX) this.#direct.clear();
    // An id may come twice; each end takes the oldest.
    this.#direct.set(toolCallId, [...(this.#direct.get(toolCallId) ?? []), ended]);
  }

  /** pi finalised a result: as an error, the model did not get the exits from it. */
  onToolEnd(toolCallId: string, isError: boolean): void {
    const [ended = [], ...others] = this.#direct.get(toolCallId) ?? [];
    if (others.length > 0) this.#direct.set(toolCallId, others);
    else this.#direct.delete(toolCallId);
    if (isError) for (const one of ended) this.onWake({ ...one, unreadable: true });
  }

  /** Forgets everything: a wake must never reach another session of pi. */
  close(): void {
    this.#waiting = [];
    this.#dropped = 0;
    this.#armed.clear();
    this.#direct.clear();
  }

  take(): Letter {
    const ended = this.#waiting.splice(0);
    const dropped = this.#dropped;
    this.#dropped = 0;
    const details: WakeDetails = { sessions: ended.map(bounded) };
    return {
      customType: WAKE_MESSAGE_TYPE,
      content: wakeText(ended, dropped),
      details,
      putBack: () => this.#wait(ended, this.#waiting, dropped),
      refused: (why) => this.#tellAgain(ended, dropped, why),
    };
  }

  /** What pi refuses is told once more, at the next occasion. */
  #tellAgain(ended: Ended[], dropped: number, why: string): void {
    const twice = ended.filter((one) => this.#refused.has(one));
    if (twice.length > 0) this.#warn(`could not tell the model that ${names(twice)} ended: ${why}`);
    const once = ended.filter((one) => !twice.includes(one));
    for (const one of once) this.#refused.add(one);
    this.#wait(once, this.#waiting, twice.length > 0 ? 0 : dropped);
  }

  /** These ends wait, the older ones first, and of so many others only the number is known. */
  #wait(older: Ended[], newer: Ended[], dropped: number): void {
    const all = [...older, ...newer];
    this.#waiting = all.slice(-WAITING_MAX);
    this.#dropped += dropped + all.length - this.#waiting.length;
  }
}

/**
 * The message's text: bounded facts, one line a session, and what to do with them. Of `dropped`
 * others only the number is known.
 */
export function wakeText(ended: Ended[], dropped = 0): string {
  const shown = ended.slice(0, WAKE_LINES_MAX).map(line);
  const all = ended.length + dropped;
  const more = all - shown.length;
  if (more > 0) shown.push(`… and ${more} more; list_sessions shows them`);
  const what = all === 1 ? "a background session" : `${all} background sessions`;
  const readable = ended.some(({ lost, unreadable }) => !lost && !unreadable);
  const withLog = ended.filter((one) => one.log_path !== undefined).length;
  const logs: Logs = withLog === 0 ? "none" : withLog === ended.length ? "all" : "some";
  return [`unified-exec: ${what} ended:`, ...shown, readable ? READ_IT[logs] : READ_LOG[logs]]
    .join("\n");
}

/** Which of the ended sessions have a log: none, with PI_EXECD_NO_LOG. */
type Logs = "all" | "some" | "none";

const READ = "Unread output comes with one empty write_stdin to the session_id, which answers at once";
const READ_IT: Record<Logs, string> = {
  all: `${READ}; the log has all of it.`,
  some: `${READ}; where there is a log_path, that file has all of it.`,
  none: `${READ}.`,
};
const READ_LOG: Record<Logs, string> = {
  all: "Its output is in the log.",
  some: "Where there is a log_path, that file has the output; else it is gone.",
  none: "There is no log: what no call has shown of its output is gone.",
};

function line(ended: Ended): string {
  const facts = bounded(ended);
  const parts = [
    facts.session_id === undefined ? undefined : `session_id=${facts.session_id}`,
    facts.exit_code === undefined ? undefined : `exit_code=${facts.exit_code}`,
    facts.signal === undefined ? undefined : `signal=${facts.signal}`,
    facts.lost === undefined ? undefined : `lost: ${facts.lost}`,
    facts.elapsed_ms === undefined ? undefined : `elapsed=${seconds(facts.elapsed_ms)}`,
    facts.command === undefined ? undefined : `command: ${facts.command}`,
    facts.cwd === undefined ? undefined : `cwd: ${facts.cwd}`,
    facts.log_path === undefined ? undefined : `log_path: ${facts.log_path}`,
  ];
  return `- ${parts.filter(Boolean).join(" · ")}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)}s`;
}

function bounded(ended: Ended): Ended {
  const cut = { ...ended };
  if (cut.command !== undefined) cut.command = oneLine(cut.command, COMMAND_CELLS);
  if (cut.cwd !== undefined) cut.cwd = oneLine(cut.cwd, PATH_CELLS);
  if (cut.lost !== undefined) cut.lost = oneLine(cut.lost, PATH_CELLS);
  if (cut.log_path !== undefined) cut.log_path = oneLine(cut.log_path, PATH_CELLS);
  return cut;
}

function names(ended: Ended[]): string {
  return ended.map(({ session_id }) => `session ${session_id ?? "?"}`).join(", ");
}
