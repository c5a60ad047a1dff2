/**
 * What the two slots of a row share (`context.state`): when it started, what its result told its
 * call, and the ticker that redraws a running row every second.
 */
import type { Frame, RowContext, RowTone } from "./row.ts";

/** The shared state of one row. pi makes it empty and keeps it as long as the row. */
export interface RowState {
  startedAt?: number;
  /** A result was drawn: the call's slot need not say how long it has been waiting. */
  hasResult?: boolean;
  /** The final result was drawn: nothing may tick again, whatever pi still sends. */
  settled?: boolean;
  /** Where the command really runs, and how long the call really waits, as the daemon said. */
  cwd?: string;
  heldMs?: number;
  /** The colour behind the row. */
  tone?: RowTone;
  /** The newest output that was shown while the call waited. */
  live?: string;
  /** Draws the call's slot anew with what its result told. */
  redrawCall?: () => void;
  ticker?: NodeJS.Timeout | undefined;
  undrawnTicks?: number;
}

/** How often a running row is redrawn. */
export const TICK_MS = 1000;

/** A row that was not drawn for so many ticks is gone (pi drops rows on /new without a word). */
export const MAX_UNDRAWN_TICKS = 30;

/** Takes a renderer's context and gives the row's state. */
export function rowState(context: RowContext): RowState {
  const state: unknown = context.state;
  return typeof state === "object" && state !== null ? state : {};
}

/** Takes a renderer's context and the row's state and gives what is drawn around a slot. */
export function frameOf(context: RowContext, state: RowState, slot: "call" | "result"): Frame {
  return {
    tone: () => state.tone ?? "toolPendingBg",
    pad: context.outputPad ?? 1,
    isFirst: slot === "call",
    isLast: () => slot === "result" || state.hasResult !== true,
  };
}

/** Takes a running row and gives the milliseconds since its start, which is noted here. */
export function elapsedMs(state: RowState): number {
  state.startedAt ??= Date.now();
  return Date.now() - state.startedAt;
}

/** Makes a running row redraw itself every second; a second call changes nothing. */
export function startTicker(state: RowState, context: RowContext): void {
  if (state.settled || state.ticker) return;
  state.undrawnTicks = 0;
  state.ticker = setInterval(() => tick(state, context), TICK_MS);
  state.ticker.unref();
}

/** Ends the ticking of a row for good. */
export function settle(state: RowState): void {
  state.settled = true;
  stopTicker(state);
}

/** Takes a row's state and gives what to call when it is drawn, so that it may go on ticking. */
export function keepTicking(state: RowState, context: RowContext): () => void {
  return () => {
    state.undrawnTicks = 0;
    startTicker(state, context);
  };
}

/** Ends the ticking of a row until it is started again. */
export function stopTicker(state: RowState): void {
  clearInterval(state.ticker);
  state.ticker = undefined;
}

function tick(state: RowState, context: RowContext): void {
  state.undrawnTicks = (state.undrawnTicks ?? 0) + 1;
  if (state.undrawnTicks > MAX_UNDRAWN_TICKS) return stopTicker(state);
  try {
    context.invalidate();
  } catch {
    // An error that a timer throws ends pi, and a row that cannot be drawn needs no ticks.
    settle(state);
  }
}
