/**
 * Wakes: a session that was started with `on_exit: "wake"` ended and no call told it. Exactly one
 * message to the model says so; it has no output, only where to find it. When the message is sent
 * is for the inbox to decide; whether the end is told otherwise, by a result, the book says.
 */
import type { SessionEvent } from "../execd/wire-results.ts";
import { oneLine } from "../text/width.ts";
import { GATHER_MS, type Inbox, type Letter, type Source } from "./inbox.ts";
import { BY_USER, type Ended, type OwnEnd, Told, eventOf } from "./told.ts";

export { BY_USER, type Ended, type OwnEnd } from "./told.ts";

/** The most sessions that one message spells out. */
const WAKE_LINES_MAX = 16;
/** The most ends that wait to be told; of more, the oldest are only counted. */
const WAITING_MAX = 1_024;
const NAME_CELLS = 80;
const COMMAND_CELLS = 120;
const PATH_CELLS = 240;
const FAILURE_CELLS = 240;

/** An event for the session of pi that comes next, with the wake that was to tell it. */
export type LeftEvent = SessionEvent & { wake?: Ended };

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
  /** Armed sessions that somebody has ended; whether a result tells that is not known yet. */
  readonly #ended = new Map<number, { facts: Ended; timer: NodeJS.Timeout }>();
  /** Armed sessions that the user has ended, and whose exit execd has not told yet. */
  readonly #byUser = new Map<number, Ended>();
  readonly #told = new Told();
  #waiting: Ended[] = [];
  /** How many ends that waited were dropped, for want of room. */
  #dropped = 0;
  /** The ends that pi has refused, and people were told so. */
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
    return this.#armed.size > 0 || this.#ended.size > 0 || this.hasNews;
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

  /**
   * A session has ended of which execd sends no wake: a call tells its end, or somebody has ended it.
   * The model was promised to be woken all the same, unless what has ended it was a call of its own,
   * whose result is made right after this.
   */
  onEnd(ended: Ended): void {
    const { session_id: id } = ended;
    if (id === undefined || !this.#armed.delete(id)) return;
    if (ended.killed_by === undefined || this.#inbox.isClosed) return this.#inbox.changed();
    const byUser = this.#byUser.get(id);
    const facts: Ended = { ...ended, ...byUser, unreadable: true };
    if (byUser) return this.onWake(facts);
    const timer = setTimeout(() => {
      if (!this.#told.tells(id)) return this.onWake(facts);
      this.#forget(id);
      this.#inbox.changed();
    }, GATHER_MS).unref();
    this.#ended.set(id, { facts, timer });
  }

  /** The user has ended a session; gives whether the wake that was promised tells it. */
  #onUsersEnd(ended: Ended): boolean {
    const { session_id: id, killed_by } = ended;
    if (id === undefined || killed_by !== BY_USER) return false;
    const known = this.#ended.get(id);
    if (known) this.onWake({ ...known.facts, ...ended });
    else if (this.#armed.has(id)) this.#byUser.set(id, ended);
    else return false;
    return true;
  }

  /** The daemon told the exit of a session by a wake. */
  onWake(ended: Ended): void {
    if (this.#inbox.isClosed) return;
    if (ended.session_id !== undefined) this.#forget(ended.session_id);
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
      else if (!this.#onUsersEnd(ended)) this.#told.seen(ended);
    }
  }

  #forget(id: number): void {
    this.#armed.delete(id);
    this.#byUser.delete(id);
    clearTimeout(this.#ended.get(id)?.timer);
    this.#ended.delete(id);
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

  /**
   * What the session of pi before this one has not told of this conversation. What was to be told by
   * a wake is told so again, where the conversation goes on by itself (`wakes`).
   */
  takeOver(events: LeftEvent[], wakes = false): void {
    const woken = wakes ? events.filter(({ wake }) => wake) : [];
    const others = events.filter((event) => !woken.includes(event));
    this.#told.learned(others.map(({ wake: _, ...event }) => event));
    for (const { wake } of woken) if (wake) this.onWake({ ...wake, unreadable: true });
  }

  /** What was not told yet, for who goes on with the conversation. */
  handOn(): LeftEvent[] {
    const waiting = this.#waiting.flatMap((ended) =>
      (ended.session_id === undefined ? [] : leftEvent(ended, ended.session_id, true)));
    return [...this.#told.untold, ...waiting];
  }

  /** What is left of sessions that end with this session of pi, `killed_by` it. */
  leave(ended: Ended[]): LeftEvent[] {
    return ended.flatMap((one) => one.session_id === undefined ? []
      : leftEvent(one, one.session_id, this.isArmed(one.session_id)));
  }

  /** Forgets everything: a wake must never reach another session of pi. */
  close(): void {
    this.#waiting = [];
    this.#dropped = 0;
    this.#armed.clear();
    for (const id of [...this.#ended.keys(), ...this.#byUser.keys()]) this.#forget(id);
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

  /** What pi refuses waits on, and people are told so once. */
  #tellAgain(ended: Ended[], dropped: number, why: string): void {
    const news = ended.filter((one) => !this.#refused.has(one));
    if (news.length > 0) {
      this.#warn(`the model could not be told yet that ${names(news)} ended: ${why}`);
    }
    for (const one of news) this.#refused.add(one);
    this.#told.dropped(ended);
    this.#wait(ended, this.#waiting, dropped);
  }

  /** These ends wait, the older ones first, and of so many others only the number is known. */
  #wait(older: Ended[], newer: Ended[], dropped: number): void {
    const all = [...older, ...newer];
    this.#waiting = all.slice(-WAITING_MAX);
    this.#dropped += dropped + all.length - this.#waiting.length;
  }
}

function leftEvent(ended: Ended, id: number, isWake: boolean): LeftEvent {
  return { ...eventOf(ended, id), ...(isWake && { wake: ended }) };
}

/**
 * The message's text: that the user has not written it, bounded facts, one line a session, and what
 * to do. Of `dropped` others only the number is known.
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
  return [
    `execd: ${what} ended (a notice, no message of the user):`,
    ...shown,
    readable ? READ_IT[logs] : READ_LOG[logs],
    GO_ON,
  ].join("\n");
}

const GO_ON = "Go on with the task.";

/** By whom a session was ended, in the model's words, where execd's own do not say it. */
const ENDERS: ReadonlyMap<string, string> = new Map([
  ["execd kill", "somebody else (execd kill)"],
  ["kill_session", "somebody else (execd kill)"],
  ["kill_process", "somebody else (execd kill)"],
  ["kill_window", "somebody else (execd kill)"],
  ["eviction", "eviction: a new session needed its place"],
  ["timeout", "its timeout"],
  ["shutdown", "the end of execd"],
  ["client_gone", "the end of execd"],
  ["signal from outside", "a signal from outside"],
]);

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
  const { killed_by: by, failure_message: failure } = facts;
  const parts = [
    facts.session_id === undefined ? undefined : `session_id=${facts.session_id}`,
    facts.name === undefined ? undefined : `name: ${facts.name}`,
    facts.exit_code === undefined ? undefined : `exit_code=${facts.exit_code}`,
    facts.signal === undefined ? undefined : `signal=${facts.signal}`,
    by === undefined ? undefined : `ended by ${ENDERS.get(by) ?? by}`,
    facts.lost === undefined ? undefined : `lost: ${facts.lost}`,
    facts.elapsed_ms === undefined ? undefined : `elapsed=${seconds(facts.elapsed_ms)}`,
    facts.command === undefined ? undefined : `command: ${facts.command}`,
    facts.cwd === undefined ? undefined : `cwd: ${facts.cwd}`,
    facts.log_path === undefined ? undefined : `${logLabel(facts)}: ${facts.log_path}`,
    facts.log_from === undefined ? undefined : `log: bytes ${facts.log_from}– kept`,
    failure === undefined ? undefined : `failure: ${failure}`,
  ];
  return `- ${parts.filter(Boolean).join(" · ")}`;
}

function logLabel({ far }: Ended): string {
  return far === true ? "log_path on the machine where it ran" : "log_path";
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)}s`;
}

function bounded(ended: Ended): Ended {
  const cut = { ...ended };
  if (cut.name !== undefined) cut.name = oneLine(cut.name, NAME_CELLS);
  if (cut.command !== undefined) cut.command = oneLine(cut.command, COMMAND_CELLS);
  if (cut.cwd !== undefined) cut.cwd = oneLine(cut.cwd, PATH_CELLS);
  if (cut.lost !== undefined) cut.lost = oneLine(cut.lost, PATH_CELLS);
  if (cut.killed_by !== undefined) cut.killed_by = oneLine(cut.killed_by, PATH_CELLS);
  if (cut.failure_message !== undefined) {
    cut.failure_message = oneLine(cut.failure_message, FAILURE_CELLS);
  }
  if (cut.log_path !== undefined) cut.log_path = oneLine(cut.log_path, PATH_CELLS);
  return cut;
}

function names(ended: Ended[]): string {
  return ended.map(({ session_id }) => `#${session_id ?? "?"}`).join(", ");
}
