/**
 * What execd could not tell for want of room (`sessions_changed`): which sessions have come and
 * gone meanwhile is asked for, so that what is shown and what is waited for is right again.
 */
import { isObject } from "./daemon.ts";
import type { Instance } from "./instance.ts";
import type { SessionInfo, SessionStarted } from "./wire.ts";

/** execd is asked at most this often. */
const PAUSE_MS = 100;
/** An answer that failed is asked for once more, after this. */
const RETRY_MS = 1_000;

/** What was known when execd was asked: its answer says nothing of what has come since. */
interface Known {
  sessions: number[];
  armed: number[];
  windows: string[];
}

export class Mending {
  readonly #instance: Instance;
  /** Sessions whose end came while the answer was on its way; undefined while none is. */
  #ended: Set<unknown> | undefined;
  /** It has changed once more since. */
  #again = false;

  constructor(instance: Instance) {
    this.#instance = instance;
  }

  /** Asks what there is. What comes during that is asked for once, when it is answered. */
  begin(): void {
    this.#again = true;
    if (this.#ended === undefined) void this.#mend();
  }

  /** A session's end was told. */
  onExited(id: unknown): void {
    this.#ended?.add(id);
  }

  /** Never rejects: an execd that is gone has taken all with it, and that is told elsewhere. */
  async #mend(): Promise<void> {
    this.#ended = new Set();
    let hasFailed = false;
    while (this.#again && this.#instance.client.isRunning) {
      this.#again = false;
      const fails = await this.#look().then(() => false, () => true);
      const tryAgain = fails && !hasFailed;
      hasFailed = fails;
      this.#ended.clear();
      const pauseMs = tryAgain ? RETRY_MS : PAUSE_MS;
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      this.#again ||= tryAgain;
    }
    this.#ended = undefined;
    this.#again = false;
  }

  async #look(): Promise<void> {
    const { client, sessions, wakes, windows } = this.#instance;
    const known = {
      sessions: sessions.list().map(({ session_id }) => session_id),
      armed: wakes.armed,
      windows: windows.background.ids,
    };
    const reply = await client.request("list_sessions", { peek: true });
    const rows = isObject(reply) ? reply.sessions : undefined;
    // Another one may have taken over meanwhile.
    if (Array.isArray(rows) && client === this.#instance.client) this.#apply(rows, known);
  }

  #apply(rows: SessionInfo[], known: Known): void {
    const { sessions, wakes, windows: { background } } = this.#instance;
    const listed = new Map(rows.map((row) => [row.session_id, row]));
    for (const id of known.armed) {
      // What has ended and is still listed was told by a wake, which may be on its way: that is
      // never left out.
      const row = listed.get(id);
      if (!row || (row.running && !row.wake_armed)) wakes.disarm(id);
    }
    for (const id of known.sessions) {
      // A wake tells the command, which is known here.
      if (!listed.get(id)?.running && !wakes.isArmed(id)) sessions.gone(id);
    }
    for (const id of known.windows) {
      const row = listed.get(Number(id.slice(1)));
      if (!row?.running) background.over(id, row === undefined);
    }
    for (const row of rows.filter(({ running, window }) => running && window === undefined)) {
      if (this.#ended?.has(row.session_id)) continue;
      if (!sessions.get(row.session_id)) sessions.started(asStarted(row), startedAt(row));
      if (row.wake_armed) this.#instance.armWake(row.session_id);
    }
  }
}

/** What `session_started` would have told. */
function asStarted({ session_id, pid, command, tty, cwd, log_path }: SessionInfo): SessionStarted {
  return { session_id, pid, command, tty, cwd, ...(log_path !== undefined && { log_path }) };
}

/** By the clock of this machine. */
function startedAt({ elapsed_ms }: SessionInfo): number {
  return Date.now() - elapsed_ms;
}
