/**
 * The sessions that run at this moment, as execd's notifications tell. Windows of the bash tools
 * are not among them: their family counts them.
 */
import type { SeenSession } from "../text/session.ts";
import type { SessionExited, SessionStarted } from "./wire-results.ts";

/** A running session, for the footer, the widget and the details of a wait. */
export interface RunningSession extends SessionStarted {
  startedAtMs: number;
  name?: string | undefined;
  /** What it waits for and the like, as execd has told last. */
  states?: string[];
}

/** A running session as people see it. */
export interface SeenRunning extends SeenSession {
  id: number;
  states: string[];
}

/** A call that waits for its session to be told of. */
interface Expected {
  command: string;
  told(session: RunningSession): void;
}

/** Commands are told apart by so many first characters: a notification may have cut the rest. */
const COMMAND_CHARS = 1_024;

export class Sessions {
  readonly #running = new Map<number, RunningSession>();
  #expected: Expected[] = [];
  readonly #onChange: () => void;

  /** `onChange` is called after a session came or went. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get count(): number {
    return this.#running.size;
  }

  /** The running sessions by id. */
  list(): RunningSession[] {
    return [...this.#running.values()].sort((a, b) => a.session_id - b.session_id);
  }

  /** Takes what execd tells of the session's name and state. */
  noteState(id: number, name: string | undefined, states: string[]): void {
    const session = this.#running.get(id);
    if (session) Object.assign(session, { name, states });
  }

  /** What people see of those that run; of each what execd has told last of its state. */
  seen(nowMs = Date.now()): SeenRunning[] {
    return this.list().map(({ session_id: id, command, name, cwd, startedAtMs, states = [] }) =>
      ({ id, command, name, cwd, ageMs: nowMs - startedAtMs, states }));
  }

  get(id: number): RunningSession | undefined {
    return this.#running.get(id);
  }

  started(session: SessionStarted, nowMs: number): void {
    const running = { ...session, startedAtMs: nowMs };
    this.#running.set(session.session_id, running);
    this.#onChange();
    this.startedElsewhere(running);
  }

  /** A session has started that is counted elsewhere: only who expects it is told. */
  startedElsewhere(running: RunningSession): void {
    const command = beginning(running.command);
    const first = this.#expected.find((one) => one.command === command);
    this.#expected = this.#expected.filter((one) => one !== first);
    first?.told(running);
  }

  /** A session's log may have its file later than the session is told of. */
  noteLog(id: number | undefined, path: string | undefined): void {
    const session = id === undefined ? undefined : this.#running.get(id);
    if (session && path !== undefined) session.log_path = path;
  }

  /**
   * Calls `told` once, with the session that a call has started: execd tells of the session long
   * before it answers the call. Sessions start in the order of their calls, so that of calls with
   * the same command the first call has the first session. Gives what to call when the call has
   * been answered.
   */
  expect(command: unknown, told: Expected["told"]): () => void {
    const expected = { command: beginning(command), told };
    this.#expected.push(expected);
    return () => {
      this.#expected = this.#expected.filter((one) => one !== expected);
    };
  }

  /** Takes the session off the list and gives it back, where it was known. */
  exited(note: SessionExited): RunningSession | undefined {
    const session = this.#running.get(note.session_id);
    if (this.#running.delete(note.session_id)) this.#onChange();
    return session;
  }

  /** The session has gone, and nobody has told of its end. */
  gone(id: number): void {
    if (this.#running.delete(id)) this.#onChange();
  }

  /** All sessions are gone: execd ended. */
  clear(): void {
    if (this.#running.size === 0) return;
    this.#running.clear();
    this.#onChange();
  }
}

function beginning(command: unknown): string {
  return String(command).slice(0, COMMAND_CHARS);
}
