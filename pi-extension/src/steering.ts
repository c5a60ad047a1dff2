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
  #queuedBefore = false;
  #typedSince = false;

  /**
   * A model's answer begins: what is queued now (follow-ups, which pi keeps until the run has
   * ended) is none of the messages that end a wait.
   */
  onAssistantMessage(ctx: HostContext): void {
    this.#queuedBefore = ctx.hasPendingMessages?.() ?? false;
    this.#typedSince = false;
  }

  /** The user sent something; whether it is queued is for `hasPendingMessages` to tell. */
  onInput(event: { source?: string; streamingBehavior?: string }): void {
    if (event.source !== "extension" && event.streamingBehavior !== "followUp") {
      this.#typedSince = true;
    }
  }

  /** Watches for a message until stopped. Without `hasPendingMessages` it never aborts. */
  watch(ctx: HostContext): Watch {
    const controller = new AbortController();
    if (typeof ctx.hasPendingMessages !== "function") {
      return { signal: controller.signal, stop: () => {} };
    }
    const timer = setInterval(() => {
      if (this.#messageWaits(ctx)) controller.abort();
    }, STEER_CHECK_MS);
    timer.unref();
    return { signal: controller.signal, stop: () => clearInterval(timer) };
  }

  #messageWaits(ctx: HostContext): boolean {
    try {
      return ctx.hasPendingMessages?.() === true && (this.#typedSince || !this.#queuedBefore);
    } catch {
      // The context went stale with its session; its run is being ended anyway.
      return false;
    }
  }
}
