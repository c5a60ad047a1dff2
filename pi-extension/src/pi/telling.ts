/**
 * When the model is told of what has ended: in one message that begins a turn, when pi is idle or
 * when a run has ended.
 *
 * Nothing is given to pi during a run: it would keep it for the run's end just the same, but drop
 * it when the user presses Esc. News wait here until pi has taken them.
 */
import type { HoldMode } from "./hold.ts";

/** What comes within this time of each other is told in one message. */
export const GATHER_MS = 250;

export abstract class Telling {
  #isRunning = false;
  #wasStopped = false;
  #closed = false;
  #gathering: NodeJS.Timeout | undefined;
  #holders: (() => void)[] = [];

  /** The types of its messages. */
  abstract readonly types: readonly string[];

  /** Whether something is to be told, or will be. */
  abstract get isPending(): boolean;

  /** Whether something is to be told. */
  protected abstract get hasNews(): boolean;

  /**
   * Gives pi all that is to be told and says whether it took something. That begins a turn, or is
   * read with the next prompt.
   */
  protected abstract tell(triggerTurn: boolean): boolean;

  /** Whether pi's session has ended. */
  protected get isClosed(): boolean {
    return this.#closed;
  }

  /** There is news: it is told soon, with what comes at the same time. */
  protected hasCome(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      // It may have been told, or taken back, in the meantime.
      if (!this.hasNews) return;
      if (this.#holders.length > 0) this.#release();
      else if (!this.#isRunning) this.#flush(true);
    }, GATHER_MS).unref();
  }

  /** A run begins. */
  onAgentStart(): void {
    this.#isRunning = true;
    this.#wasStopped = false;
  }

  /**
   * A run ends; gives whether it goes on with something that was told now. Whoever stopped it does
   * not want it to go on by itself.
   */
  onAgentEnd(event: HoldMode): boolean {
    const last = event.messages?.findLast(({ role }) => role === "assistant");
    this.#wasStopped = last?.stopReason === "error" || last?.stopReason === "aborted";
    return !this.#wasStopped && this.#flush(true);
  }

  /** pi is idle again. */
  onSettled(): void {
    this.#isRunning = false;
    this.#flush(!this.#wasStopped);
  }

  /** Resolves after something was told, when nothing will be any more, or when `over` aborts. */
  async hold(over: AbortSignal): Promise<void> {
    if (!this.isPending || over.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        over.removeEventListener("abort", done);
        this.#holders = this.#holders.filter((other) => other !== done);
        resolve();
      };
      over.addEventListener("abort", done, { once: true });
      this.#holders.push(done);
      if (this.hasNews) this.hasCome();
    });
    if (!over.aborted) this.#flush(true);
  }

  /** pi is told to end while it is held: what comes now begins no turn. */
  onStopped(): void {
    this.#wasStopped = true;
  }

  /** What will come has changed: nobody waits for what cannot come any more. */
  changed(): void {
    if (!this.isPending) this.#release();
  }

  /** Tells again after close(). */
  open(): void {
    this.#closed = false;
    if (this.hasNews) this.hasCome();
  }

  /** pi's session ends: nothing is told any more. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#isRunning = false;
    this.#wasStopped = false;
    this.#release();
  }

  #flush(triggerTurn: boolean): boolean {
    return !this.#closed && this.hasNews && this.tell(triggerTurn);
  }

  #release(): void {
    for (const done of this.#holders.splice(0)) done();
  }
}

/** How a message of an extension is given to pi: as `Telling` says. */
export function sending(triggerTurn: boolean): { triggerTurn: boolean; deliverAs?: "followUp" } {
  return triggerTurn ? { triggerTurn, deliverAs: "followUp" } : { triggerTurn };
}
