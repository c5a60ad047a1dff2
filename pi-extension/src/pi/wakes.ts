/**
 * Wakes: a session that was started with `on_exit: "wake"` ended and no call told it. Exactly one
 * message to the model says so; it has no output, only where to find it. When the message is sent
 * is for the inbox to decide; whether the end is told otherwise, by a result, the book says.
 */
import type { SessionEvent } from "../execd/wire-results.ts";
import { oneLine } from "../text/width.ts";
import type { Inbox, Letter, Source } from "./inbox.ts";
import { type Ended, type OwnEnd, Told, eventOf } from "./told.ts";

export type { Ended, OwnEnd } from "./told.ts";

/** The most sessions that one message spells out. */
const WAKE_LINES_MAX = 10;
/** The most ends that wait to be told; of more, the oldest are only counted. */
const WAITING_MAX = 1_024;
const COMMAND_CELLS = 120;
const PATH_CELLS = 240;

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
  readonly #told = new Told();
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
    if (!this.#told.wake(ended)) {
      this.#inbox.changed();
      return;
    }
    this.#wait(this.#waiting, [ended], 0);
    this.#inbox.hasCome();
  }

  /**
   * The result of a call is made, which tells its `own` ends by itself: wakes of them that still
   * wait are not sent. Gives which of the events that the reply carried, and of those that an
   * earlier result failed to tell, the result has to tell besides.
   */
  tell(callId: string, own: OwnEnd[], carried: SessionEvent[] = []): SessionEvent[] {
    if (this.#inbox.isClosed) return carried;
    return this.#told.tell(callId, own, carried, (id) => this.#takeBack(id));
  }

  /** pi finalised a result: as an error, the model did not get the ends from it. */
  onToolEnd(toolCallId: string, isError: boolean): void {
    for (const one of this.#told.settle(toolCallId, isError)) {
      this.onWake({ ...one, unreadable: true });
    }
  }

  /** A reply came too late to be told, or was to a request of people. */
  onUntold(own: OwnEnd[], carried: SessionEvent[] = []): void {
    if (this.#inbox.isClosed) return;
    this.#told.learned(carried);
    for (const { ended, woke } of own) {
      if (woke) this.onWake({ ...ended, unreadable: true });
      else this.#told.seen(ended);
    }
  }

  /** A result names a session that goes on. */
  name(id: number): void {
    this.#told.name(id);
  }

  /** Takes a wake that still waits off the list. */
  #takeBack(id: number): Ended | undefined {
    const ended = this.#waiting.find((one) => one.session_id === id && !one.lost);
    if (!ended) return undefined;
    this.#waiting = this.#waiting.filter((one) => one !== ended);
    this.#inbox.changed();
    return ended;
  }

  /** What the session of pi before this one has not told of this conversation. */
  takeOver(events: SessionEvent[]): void {
    this.#told.learned(events);
  }

  /** What was not told yet, for who goes on with the conversation. */
  handOn(): SessionEvent[] {
    const waiting = this.#waiting.flatMap((ended) =>
      (ended.session_id === undefined ? [] : eventOf(ended, ended.session_id)));
    return [...this.#told.untold, ...waiting];
  }

  /** Forgets everything: a wake must never reach another session of pi. */
  close(): void {
    this.#waiting = [];
    this.#dropped = 0;
    this.#armed.clear();
    this.#told.clear();
  }

  take(): Letter {
    const ended = this.#waiting.splice(0);
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#told.woken(ended);
    const details: WakeDetails = { sessions: ended.map(bounded) };
    return {
      customType: WAKE_MESSAGE_TYPE,
      content: wakeText(ended, dropped),
      details,
      putBack: () => {
        this.#told.dropped(ended);
        this.#wait(ended, this.#waiting, dropped);
      },
      refused: (why) => this.#tellAgain(ended, dropped, why),
    };
  }

  /** What pi refuses is told once more, at the next occasion. */
  #tellAgain(ended: Ended[], dropped: number, why: string): void {
    const twice = ended.filter((one) => this.#refused.has(one));
    if (twice.length > 0) this.#warn(`could not tell the model that ${names(twice)} ended: ${why}`);
    const once = ended.filter((one) => !twice.includes(one));
    for (const one of once) this.#refused.add(one);
    this.#told.dropped(once);
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
  const isCut = ended.some((one) => one.log_from !== undefined);
  const logs: Logs = withLog === 0 ? "none" : isCut ? "cut" : withLog < ended.length ? "some" : "all";
  return [`unified-exec: ${what} ended:`, ...shown, readable ? READ_IT[logs] : READ_LOG[logs]]
    .join("\n");
}

/**
 * Which of the ended sessions have a log: none, with PI_EXECD_NO_LOG; and whether one has lost its
 * beginning.
 */
type Logs = "all" | "some" | "cut" | "none";

const READ = "Unread output comes with one empty write_stdin to the session_id, which answers at once";
const READ_IT: Record<Logs, string> = {
  all: `${READ}; the log has all of it.`,
  some: `${READ}; where there is a log_path, that file has all of it.`,
  cut: `${READ}; a log has all of it, or the bytes that its line names.`,
  none: `${READ}.`,
};
const READ_LOG: Record<Logs, string> = {
  all: "Its output is in the log.",
  some: "Where there is a log_path, that file has the output; else it is gone.",
  cut: "A log has its output, or the bytes of it that the line names; else it is gone.",
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
    facts.log_from === undefined ? undefined : `log: bytes ${facts.log_from}– kept`,
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
