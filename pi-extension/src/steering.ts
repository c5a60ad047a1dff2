/**
 * Ends an attached wait when the user has typed a message meanwhile: pi delivers it only after the
 * tool has answered, and nobody should wait half an hour for a poll.
 */
import type { HostContext } from "./host.ts";

/** How soon a message that the user has sent ends a wait. */
export const STEER_CHECK_MS = 150;

/** A running watch; `signal` aborts when a message waits. */
export interface Watch {
  signal: AbortSignal;
  stop(): void;
}

export class Steering {
  #steers = 0;
  #followUps = 0;
  #hasInput = false;
  #queuedBefore = false;

  /**
   * A message begins. The user's own is one that no longer waits. At a model's answer, what is
   * queued and was not typed to steer are follow-ups, which pi keeps until the run has ended: they
   * end only the wait during which they come.
   */
  onMessageStart(role: string, ctx: HostContext): void {
    if (role === "user") this.#steers = Math.max(0, this.#steers - 1);
    if (role !== "assistant") return;
    this.#queuedBefore = ctx.hasPendingMessages?.() ?? false;
    if (!this.#queuedBefore) this.#steers = 0;
  }

  /** The user sent something; whether it is queued is for `hasPendingMessages` to tell. */
  onInput(event: { source?: string; streamingBehavior?: string }): void {
    if (event.source === "extension") return;
    this.#hasInput = true;
    if (event.streamingBehavior === "followUp") this.#followUps += 1;
    else this.#steers += 1;
  }

  /** Watches for a message until stopped. Without `hasPendingMessages` it never aborts. */
  watch(ctx: HostContext): Watch {
    const controller = new AbortController();
    if (typeof ctx.hasPendingMessages !== "function") {
      return { signal: controller.signal, stop: () => {} };
    }
    const followUpsBefore = this.#followUps;
    const timer = setInterval(() => {
      if (this.#messageWaits(ctx, followUpsBefore)) controller.abort();
    }, STEER_CHECK_MS);
    timer.unref();
    return { signal: controller.signal, stop: () => clearInterval(timer) };
  }

  #messageWaits(ctx: HostContext, followUpsBefore: number): boolean {
    try {
      if (ctx.hasPendingMessages?.() !== true) return false;
      // A host that tells of no input is asked only for what came during this answer.
      if (!this.#hasInput) return !this.#queuedBefore;
      return this.#steers > 0 || this.#followUps > followUpsBefore;
    } catch {
      // The context went stale with its session; its run is being ended anyway.
      return false;
    }
  }
}
