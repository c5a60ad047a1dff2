/**
 * Ends an attached wait when the user has typed a message meanwhile: pi delivers it only after the
 * tool has answered, and nobody should wait half an hour for a poll.
 */
import type { HostContext } from "./host.ts";

/**
 * pi's queue is looked at so long after the begin of a wait, and as often again where the host
 * tells of no input.
 */
export const STEER_CHECK_MS = 150;
/**
 * pi queues a message only when all extensions have seen its event. After an event the queue is
 * looked at so soon, and then ever more rarely, up to the longer pause.
 */
const FIRST_LOOK_MS = 10;
const LAST_LOOK_MS = 60_000;

/** A running watch; `signal` aborts when a message waits. */
export interface Watch {
  signal: AbortSignal;
  stop(): void;
}

export class Steering {
  #steers = 0;
  #followUps = 0;
  /** Whether the host tells of input: pi does from the first prompt on. */
  #hasInput = false;
  readonly #watches = new Set<(afterMs: number) => void>();
  #queuedBefore = false;

  /**
   * A message begins: a message of the user waits no longer then. What is still queued at a model's
   * answer, and was not typed to steer, are follow-ups, which pi keeps until the run has ended: a
   * follow-up ends only the wait during which it comes.
   */
  onMessageStart(role: string, ctx: HostContext): void {
    if (role === "user") this.#steers = Math.max(0, this.#steers - 1);
    if (role !== "assistant") return;
    this.#queuedBefore = ctx.hasPendingMessages?.() ?? false;
    if (!this.#queuedBefore) this.#steers = 0;
  }

  /** The user sent something; whether it is queued is for `hasPendingMessages` to tell. */
  onInput(event: { source?: string; streamingBehavior?: string }): void {
    this.#hasInput = true;
    if (event.source === "extension") return;
    if (event.streamingBehavior === "followUp") this.#followUps += 1;
    else this.#steers += 1;
    for (const look of this.#watches) look(FIRST_LOOK_MS);
  }

  /** Watches for a message until stopped. Without `hasPendingMessages` it never aborts. */
  watch(ctx: HostContext): Watch {
    const controller = new AbortController();
    if (typeof ctx.hasPendingMessages !== "function") {
      return { signal: controller.signal, stop: () => {} };
    }
    const followUpsBefore = this.#followUps;
    let timer: NodeJS.Timeout | undefined;
    const look = (afterMs: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (this.#messageWaits(ctx, followUpsBefore)) controller.abort();
        else if (!this.#hasInput) look(STEER_CHECK_MS);
        else if (this.#isExpected(followUpsBefore) && afterMs < LAST_LOOK_MS) look(2 * afterMs);
      }, afterMs).unref();
    };
    look(STEER_CHECK_MS);
    this.#watches.add(look);
    const stop = () => {
      clearTimeout(timer);
      this.#watches.delete(look);
    };
    return { signal: controller.signal, stop };
  }

  /** Whether something that the user sent may be queued, and has not been delivered. */
  #isExpected(followUpsBefore: number): boolean {
    return this.#steers > 0 || this.#followUps > followUpsBefore;
  }

  #messageWaits(ctx: HostContext, followUpsBefore: number): boolean {
    try {
      if (ctx.hasPendingMessages?.() !== true) return false;
      // A host that tells of no input is asked only for what came during this answer.
      if (!this.#hasInput) return !this.#queuedBefore;
      return this.#isExpected(followUpsBefore);
    } catch {
      // The context went stale with its session; its run is being ended anyway.
      return false;
    }
  }
}
