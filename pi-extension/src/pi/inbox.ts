/**
 * The one messenger to the model. It decides when the model is told of what has ended: in one
 * message of each source, when pi is idle or when a run has ended; and it tells again what pi has
 * dropped. What is told, and in which words, is for the sources to say.
 *
 * Nothing is given to pi during a run: pi would keep it for the run's end just the same, but drop
 * it when the user presses Esc. News wait with their source until pi has taken them, and are kept
 * here until pi has shown them.
 */
import { messageOf } from "../text/values.ts";
import type { HoldMode } from "./hold.ts";
import type { Host } from "./host.ts";

/** News that come within this time of each other are told in one message. */
export const GATHER_MS = 250;

/** A message to the model, with all news that its source has at the moment. */
export interface Letter {
  customType: string;
  content: string;
  details: object;
  /** pi has dropped the message: its news are to be told anew. */
  putBack(): void;
  /** pi has not taken the message, and why. */
  refused(why: string): void;
}

/** Something that has news for the model. */
export interface Source {
  /** The types of its messages. */
  readonly types: readonly string[];
  /** Whether something is to be told, or will be. */
  readonly isPending: boolean;
  /** Whether something is to be told now. */
  readonly hasNews: boolean;
  /** Gives all that is to be told. The source has no news then. */
  take(): Letter;
}

export class Inbox {
  readonly #host: Pick<Host, "sendMessage">;
  readonly #sources: Source[] = [];
  /** What pi has taken, and has not shown yet. */
  #given: Letter[] = [];
  /** Whether the host tells when it shows a message, as pi does. */
  #tellsOfMessages = false;
  /** Whether the host has ever shown one of ours. */
  #hasShownOurs = false;
  #hasRetold = false;
  #isRunning = false;
  #isCompacting = false;
  #wasStopped = false;
  /** Whether pi has refused a message, whose news wait since. */
  #wasRefused = false;
  #isClosed = false;
  #gathering: NodeJS.Timeout | undefined;
  #holders: (() => void)[] = [];

  constructor(host: Pick<Host, "sendMessage">) {
    this.#host = host;
  }

  /** Adds a source. Its messages come after those of the sources before it. */
  add(source: Source): void {
    this.#sources.push(source);
  }

  /** Whether the host takes messages at all. */
  get canSend(): boolean {
    return this.#host.sendMessage !== undefined;
  }

  /** Whether messages of this type are ours. */
  isOurs(customType: string): boolean {
    return this.#sources.some(({ types }) => types.includes(customType));
  }

  /** Whether something is to be told, or will be. */
  get isPending(): boolean {
    return this.#sources.some((source) => source.isPending);
  }

  /** Whether pi's session has ended. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  get #hasNews(): boolean {
    return this.#sources.some((source) => source.hasNews);
  }

  /** There is news: it is told soon, with what comes at the same time. */
  hasCome(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      // The news may have been told, or taken back, in the meantime.
      if (!this.#hasNews) return;
      if (this.#holders.length > 0) this.#release();
      else if (!this.#isRunning && !this.#isCompacting) this.#flush(true);
    }, GATHER_MS).unref();
  }

  /** What will come has changed: nobody waits for what cannot come any more. */
  changed(): void {
    if (!this.isPending) this.#release();
  }

  /** pi shows a message of anybody; one that was given to pi here has arrived then. */
  onMessageStart(message: { role: string; customType?: string; content?: unknown }): void {
    this.#tellsOfMessages = true;
    if (message.role !== "custom" || !this.isOurs(message.customType ?? "")) return;
    this.#hasShownOurs = true;
    // pi shows them in the order in which it took them; it may have made parts of the text.
    const ofType = this.#given.filter(({ customType }) => customType === message.customType);
    const shown = ofType.find(({ content }) => content === message.content) ?? ofType[0];
    this.#given = this.#given.filter((letter) => letter !== shown);
  }

  /**
   * The conversation is being compacted, or no more: a run that a message began meanwhile would go
   * on beside that, with a conversation that is about to be replaced.
   */
  onCompaction(isCompacting: boolean): void {
    this.#isCompacting = isCompacting;
    // pi is not done yet when it tells the end; by the time that the news are gathered it is.
    if (!isCompacting && this.#hasNews) this.hasCome();
  }

  /** A call has ended: what pi has refused before is tried again. */
  onToolEnd(): void {
    if (this.#wasRefused) this.#flush(true);
  }

  /** A run begins. */
  onAgentStart(): void {
    this.#isRunning = true;
    this.#isCompacting = false;
    this.#wasStopped = false;
  }

  /**
   * A run ends; gives whether it goes on with something that was told now. Whoever stopped it does
   * not want it to go on by itself.
   */
  onAgentEnd(event: HoldMode): boolean {
    const last = event.messages?.findLast(({ role }) => role === "assistant");
    this.#wasStopped = last?.stopReason === "error" || last?.stopReason === "aborted";
    if (this.#wasStopped) return false;
    this.#takeBackDropped();
    return this.#flush(true);
  }

  /**
   * A run that was not stopped shows all that is queued before it ends. A message that such a run
   * has not shown is queued no more: Esc has cleared the queue during an earlier run.
   */
  #takeBackDropped(): void {
    const dropped = this.#given.splice(0);
    if (dropped.length === 0 || !this.#tellsOfMessages) return;
    // A host that never tells of ours is not taken for one that has dropped them time and again.
    if (!this.#hasShownOurs && this.#hasRetold) return;
    this.#hasRetold = true;
    for (const letter of dropped) letter.putBack();
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
      if (this.#hasNews) this.hasCome();
    });
    if (!over.aborted) this.#flush(true);
  }

  /** pi is told to end while it is held: what comes now begins no turn. */
  onStopped(): void {
    this.#wasStopped = true;
  }

  /** Tells again after close(). */
  open(): void {
    this.#isClosed = false;
    if (this.#hasNews) this.hasCome();
  }

  /** pi's session ends: nothing is told any more. */
  close(): void {
    this.#takeBackDropped();
    this.#isClosed = true;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#isRunning = false;
    this.#isCompacting = false;
    this.#wasStopped = false;
    this.#release();
  }

  /** Gives pi all news, and says whether it took some. */
  #flush(triggerTurn: boolean): boolean {
    if (this.#isClosed) return false;
    this.#wasRefused = false;
    const taken = this.#sources.filter((source) => source.hasNews)
      .map((source) => this.#give(source.take(), triggerTurn));
    return taken.includes(true);
  }

  /**
   * Gives pi one message, which begins a turn or is read with the next prompt; says whether pi took
   * the message.
   */
  #give(letter: Letter, triggerTurn: boolean): boolean {
    const { customType, content, details } = letter;
    try {
      if (!this.#host.sendMessage) throw new Error("this host takes no messages");
      const message = { customType, content, display: true, details };
      const how = triggerTurn ? { triggerTurn, deliverAs: "followUp" as const } : { triggerTurn };
      // pi may show the message before it returns.
      if (triggerTurn) this.#given.push(letter);
      this.#host.sendMessage(message, how);
      return true;
    } catch (error) {
      this.#given = this.#given.filter((other) => other !== letter);
      this.#wasRefused = true;
      letter.refused(messageOf(error));
      return false;
    }
  }

  #release(): void {
    for (const done of this.#holders.splice(0)) done();
  }
}
