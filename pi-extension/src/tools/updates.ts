/** What pi is shown of a call while it waits. */
import type { Call } from "../pi/host.ts";

/** How often pi is told: every update stands in its event stream. */
export interface Pace {
  /** The shortest pause between two updates while the wait is young. */
  everyMs: number;
  /** For so long a wait is young. */
  liveMs: number;
  /** The shortest pause between two updates from then on; without end, no more are told. */
  slowMs: number;
}

/** The most of an output in one update: a row shows five lines of it, and some more when expanded. */
const UPDATE_CHARS = 2_048;

/** Four times a second for 10 s, then so many times as the setting `pollUpdates` says; 0: never. */
export function paceOf({ pollUpdates }: { readonly pollUpdates: number }): Pace {
  const slowMs = pollUpdates > 0 ? 1_000 / pollUpdates : Number.POSITIVE_INFINITY;
  return { everyMs: 250, liveMs: 10_000, slowMs };
}

/** Fields of `details`; `output` is the update's text. */
export interface News {
  output?: string;
  [field: string]: unknown;
}

/**
 * Tells pi the newest state of a wait at a bounded pace, where it is another one than it was told
 * last, and holds nothing but that state.
 */
export class Updates {
  readonly #onUpdate: NonNullable<Call["onUpdate"]>;
  readonly #known: News;
  readonly #pace: Pace;
  readonly #startedMs = performance.now();
  #newest: (() => News) | undefined;
  #told: string | undefined;
  #shown: News | undefined;
  #sent = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /** `known` are details that every update has, where the news have no better. */
  constructor(onUpdate: NonNullable<Call["onUpdate"]>, known: News, pace: Pace) {
    this.#onUpdate = onUpdate;
    this.#pace = pace;
    this.#known = known;
  }

  /** What pi was shown last; undefined where it was shown nothing yet. */
  get shown(): News | undefined {
    return this.#shown;
  }

  /** There are news: `news` is called when they are told, unless newer ones have come by then. */
  show(news: () => News): void {
    if (this.#stopped) return;
    this.#newest = news;
    if (this.#timer) return;
    if (this.#sent > 0 && this.#pauseMs() === Number.POSITIVE_INFINITY) return;
    this.#send();
    const pauseMs = this.#pauseMs();
    if (pauseMs === 0 || pauseMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#newest) this.show(this.#newest);
    }, pauseMs).unref();
  }

  /**
   * The first update names the session; the first output need not wait for its turn, and has that of
   * the next one.
   */
  #pauseMs(): number {
    const { everyMs, liveMs, slowMs } = this.#pace;
    if (performance.now() - this.#startedMs >= liveMs) return slowMs;
    return this.#sent > 2 ? everyMs : this.#sent === 2 ? 2 * everyMs : 0;
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
    const { output: all = "", ...details }: News = { ...this.#known, ...news };
    const output = endOf(all);
    const state = JSON.stringify([output, details]);
    if (state === this.#told) return;
    this.#told = state;
    this.#shown = { ...details, output };
    this.#sent += 1;
    update({ onUpdate: this.#onUpdate }, output, { ...details, output_at: [0, output.length] });
  }
}

/** The last lines of an output, within the bound. */
function endOf(output: string): string {
  if (output.length <= UPDATE_CHARS) return output;
  const end = output.slice(-UPDATE_CHARS);
  return end.slice(end.indexOf("\n") + 1);
}

/** Shows pi what there is of a call so far. */
export function update({ onUpdate }: Pick<Call, "onUpdate">, text: string, details: object): void {
  try {
    onUpdate?.({ content: text === "" ? [] : [{ type: "text", text }], details });
  } catch {
    // A host that cannot draw must not end the wait.
  }
}
