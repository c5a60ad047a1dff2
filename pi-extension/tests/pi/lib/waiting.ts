/**
 * Waiting with deadlines: every wait of these tests goes through here, none sleeps and hopes.
 */
import { setTimeout as delay } from "node:timers/promises";

/** How long a wait lasts before the test gives up. Generous: a slow machine is no failure. */
export const PATIENCE_MS = 60_000;

const LOOK_EVERY_MS = 40;

/** Asks `probe` until it gives something other than undefined and false, and returns that. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  patienceMs = PATIENCE_MS,
  explain: () => string = () => "",
): Promise<T> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() >= deadline) throw new Error(gaveUp(what, patienceMs, explain()));
    await delay(LOOK_EVERY_MS);
  }
}

function gaveUp(what: string, patienceMs: number, explanation: string): string {
  return `waited ${patienceMs} ms in vain for ${what}${explanation && `\n${explanation}`}`;
}

interface Waiter<T> {
  from: number;
  matches: (record: T) => boolean;
  found: (record: T) => void;
  failed: (error: Error) => void;
}

/** What a process says, record by record, with waits for the record that matches. */
export class Journal<T> {
  readonly records: T[] = [];
  #waiters: Waiter<T>[] = [];
  #ended: string | undefined;

  /** Adds a record and wakes whoever waits for it. */
  push(record: T): void {
    this.records.push(record);
    for (const waiter of this.#waiters.filter((one) => one.matches(record))) waiter.found(record);
  }

  /** No more records will come: whoever still waits is told why. */
  end(reason: string): void {
    this.#ended = reason;
    for (const waiter of [...this.#waiters]) waiter.failed(new Error(reason));
  }

  /** The first record at or after position `from` that matches, now or when it comes. */
  waitFor(
    what: string,
    matches: (record: T) => boolean,
    from = 0,
    patienceMs = PATIENCE_MS,
  ): Promise<T> {
    const already = this.records.slice(from).find(matches);
    if (already !== undefined) return Promise.resolve(already);
    if (this.#ended !== undefined) {
      return Promise.reject(new Error(`${what} did not come: ${this.#ended}`));
    }
    return this.#await(what, matches, from, patienceMs);
  }

  #await(
    what: string,
    matches: (record: T) => boolean,
    from: number,
    patienceMs: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        this.#waiters = this.#waiters.filter((one) => one !== waiter);
        act();
      };
      const waiter: Waiter<T> = {
        from,
        matches,
        found: (record) => settle(() => resolve(record)),
        failed: (error) =>
          settle(() => reject(new Error(`${what} did not come: ${error.message}`))),
      };
      const timer = setTimeout(
        () => waiter.failed(new Error(`${gaveUp(what, patienceMs, "")}\n${this.#recent()}`)),
        patienceMs,
      );
      this.#waiters.push(waiter);
    });
  }

  #recent(): string {
    const lines = this.records.slice(-12).map((one) => JSON.stringify(one).slice(0, 300));
    return `the last records were:\n${lines.join("\n")}`;
  }
}
