/** The sessions that run at this moment, as the daemon's notifications tell. */
import type { SessionExited, SessionStarted } from "./wire.ts";

/** A running session, for the footer, the widget and the details of a wait. */
export interface RunningSession extends SessionStarted {
  startedAtMs: number;
}

export class Sessions {
  readonly #running = new Map<number, RunningSession>();
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

  get(id: number): RunningSession | undefined {
    return this.#running.get(id);
  }

  started(session: SessionStarted, nowMs: number): void {
    this.#running.set(session.session_id, { ...session, startedAtMs: nowMs });
    this.#onChange();
  }

  /** Takes the session off the list and gives it back, where it was known. */
  exited(note: SessionExited): RunningSession | undefined {
    const session = this.#running.get(note.session_id);
    if (this.#running.delete(note.session_id)) this.#onChange();
    return session;
  }

  /** All are gone: execd ended. */
  clear(): void {
    if (this.#running.size === 0) return;
    this.#running.clear();
    this.#onChange();
  }
}
