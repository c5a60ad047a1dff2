/** What pi is shown of a call while it waits. */
import type { Call } from "../pi/host.ts";

/** How often pi is told: every update stands in its event stream. */
export interface Pace {
  /** The shortest pause between two updates while the wait is young; 0: all updates are told. */
  everyMs: number;
  /** For so long a wait is young. */
  liveMs: number;
  /** The shortest pause between two updates from then on. */
  slowMs: number;
}

/** For `progress`, which comes four times a second. */
export const PROGRESS_PACE: Pace = { everyMs: 0, liveMs: 30_000, slowMs: 5_000 };

/** For live chunks, which come as fast as the command writes. */
export const CHUNK_PACE: Pace = { ...PROGRESS_PACE, everyMs: 250 };

/** Fields of `details`; `output` is also the update's text. */
export interface News {
  output?: string;
  [field: string]: unknown;
}

/** Tells pi the newest state of a wait at a bounded pace, and holds nothing but that state. */
export class Updates {
  readonly #onUpdate: NonNullable<Call["onUpdate"]>;
  readonly #known: News;
  readonly #pace: Pace;
  readonly #startedMs = performance.now();
  #newest: (() => News) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /** `known` are details that every update has, where the news have no better. */
  constructor(onUpdate: NonNullable<Call["onUpdate"]>, known: News, pace: Pace) {
    this.#onUpdate = onUpdate;
    this.#pace = pace;
    this.#known = known;
  }

  /** There are news: `news` is called when they are told, unless newer ones have come by then. */
  show(news: () => News): void {
    if (this.#stopped) return;
    this.#newest = news;
    if (this.#timer) return;
    this.#send();
    const { everyMs, liveMs, slowMs } = this.#pace;
    const pauseMs = performance.now() - this.#startedMs < liveMs ? everyMs : slowMs;
    if (pauseMs === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#newest) this.show(this.#newest);
    }, pauseMs).unref();
  }

  /** Nothing is told any more: the call has been answered. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#newest = undefined;
  }

  #send(): void {
    const news = this.#newest?.();
    this.#newest = undefined;
    const details: News = { ...this.#known, ...news };
    update({ onUpdate: this.#onUpdate }, details.output ?? "", details);
  }
}

/** Shows pi what there is of a call so far. */
export function update({ onUpdate }: Pick<Call, "onUpdate">, text: string, details: object): void {
  try {
    onUpdate?.({ content: text === "" ? [] : [{ type: "text", text }], details });
  } catch {
    // A host that cannot draw must not end the wait.
  }
}
