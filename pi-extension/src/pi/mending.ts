/**
 * What execd could not tell for want of room (`sessions_changed`): execd is asked which sessions
 * there are, so that what is shown and what is waited for is right again. Each family mends by
 * itself what it knows of sessions of its own.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../execd/client.ts";
import type { Sessions } from "../execd/sessions.ts";
import type { SessionInfo, SessionStarted } from "../execd/wire-results.ts";
import { isObject } from "../text/values.ts";
import type { Wakes } from "./wakes.ts";

/** execd is asked at most this often. */
const PAUSE_MS = 100;
/** An answer that failed is asked for once more, after this. */
const RETRY_MS = 1_000;

/** execd's list of sessions, by id. */
type Listed = ReadonlyMap<number, SessionInfo>;

/** Takes execd's list and mends what was known when it was asked for: no more than that. */
type Mend = (listed: Listed) => void;

/** What is mended: a session of pi. */
interface Mended {
  readonly execd: Client;
  readonly sessions: Sessions;
  readonly wakes: Wakes;
  /** Notes what the families know of sessions of their own. */
  mendFamilies(): Mend[];
}

export class Mending {
  readonly #mended: Mended;
  /** Sessions whose end came while the answer was on its way; undefined while none is. */
  #ended: Set<unknown> | undefined;
  /** `sessions_changed` has come once more since execd was asked. */
  #again = false;

  constructor(mended: Mended) {
    this.#mended = mended;
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
    while (this.#again && this.#mended.execd.isRunning) {
      this.#again = false;
      const fails = await this.#look().then(() => false, () => true);
      const tryAgain = fails && !hasFailed;
      hasFailed = fails;
      this.#ended.clear();
      const pauseMs = tryAgain ? RETRY_MS : PAUSE_MS;
      await delay(pauseMs, undefined, { ref: false });
      this.#again ||= tryAgain;
    }
    this.#ended = undefined;
    this.#again = false;
  }

  async #look(): Promise<void> {
    const { execd } = this.#mended;
    const mends = [this.#mendWakes(), this.#mendSessions(), ...this.#mended.mendFamilies()];
    const reply = await execd.request("list_sessions", { peek: true });
    const rows: unknown = isObject(reply) ? reply.sessions : undefined;
    // Another execd may have taken over meanwhile.
    if (!Array.isArray(rows) || execd !== this.#mended.execd) return;
    const listed: Listed = new Map(rows.map((row: SessionInfo) => [row.session_id, row]));
    this.#noteEnds(listed);
    for (const mend of mends) mend(listed);
    this.#addUnknown(listed);
  }

  /** execd takes the ends that this list tells for told. */
  #noteEnds(listed: Listed): void {
    const { wakes } = this.#mended;
    const ended = [...listed.values()].filter(({ running }) => !running);
    // The wake of one that is armed is on its way.
    const unarmed = ended.filter(({ session_id }) => !wakes.isArmed(session_id));
    wakes.onUntold(unarmed.map((row) => ({ ended: row, woke: false })));
  }

  #mendWakes(): Mend {
    const { wakes } = this.#mended;
    const known = wakes.armed;
    return (listed) => {
      for (const id of known) {
        // A session that has ended and is still listed was told by a wake, which may be on its way:
        // a wake is never left out.
        const row = listed.get(id);
        if (!row || (row.running && !row.wake_armed)) wakes.disarm(id);
      }
    };
  }

  #mendSessions(): Mend {
    const { sessions, wakes } = this.#mended;
    const known = sessions.list().map(({ session_id }) => session_id);
    return (listed) => {
      for (const id of known) {
        // A wake tells the command, which is known here.
        if (!listed.get(id)?.running && !wakes.isArmed(id)) sessions.gone(id);
      }
    };
  }

  /** Sessions whose start was left out. Windows are counted elsewhere. */
  #addUnknown(listed: Listed): void {
    const { sessions, wakes } = this.#mended;
    for (const row of listed.values()) {
      const { running, session_id, wake_armed, window } = row;
      if (!running || window !== undefined || this.#ended?.has(session_id)) continue;
      if (!sessions.get(session_id)) sessions.started(asStarted(row), startedAt(row));
      if (wake_armed) wakes.arm(session_id);
    }
  }
}

/** What `session_started` would have told. */
function asStarted({ session_id, pid, command, tty, cwd, log_path }: SessionInfo): SessionStarted {
  return { session_id, pid, command, tty, cwd, ...(log_path !== undefined && { log_path }) };
}

/** When the session was started, by the clock of this machine. */
function startedAt({ elapsed_ms }: SessionInfo): number {
  return Date.now() - elapsed_ms;
}
