/**
 * pi in json mode: one prompt, the event stream, the end.
 */
import { PiChild } from "./child.ts";
import type { Ending } from "./child.ts";
import { customMessages, said, toolEnds } from "./events.ts";
import type { PiEvent, PiMessage, ToolEnd } from "./events.ts";
import type { ModelRequest } from "./model.ts";
import { piArguments } from "./scratch.ts";
import type { PiOptions, Scratch } from "./scratch.ts";

/** A run in json mode. */
export interface JsonOptions extends PiOptions {
  prompt?: string;
  /** Sends pi this signal at the first event that matches. */
  signalWhen?: { matches: (event: PiEvent) => boolean; signal: NodeJS.Signals };
  /** How long the run may take. */
  patienceMs?: number;
}

/** What came of it. */
export interface JsonRun extends Ending {
  events: readonly PiEvent[];
  stderr: string;
  requests: ModelRequest[];
  elapsedMs: number;
  /** The ends of all tool calls, or of those of one tool. */
  toolEnds(name?: string): ToolEnd[];
  /** The n-th end of a call of this tool; fails if there were fewer. */
  toolEnd(name: string, index?: number): ToolEnd;
  /** What the model said, message by message. */
  said(): string[];
  /** The custom messages of this type. */
  custom(customType: string): PiMessage[];
}

/** Starts pi in json mode without waiting for its end. */
export function startJson(place: Scratch, options: JsonOptions): PiChild<PiEvent> {
  const args = ["--mode", "json", ...piArguments(options), options.prompt ?? "go"];
  return new PiChild<PiEvent>(place, args, place.environment(options), false);
}

/** Runs pi in json mode to its end. */
export async function runJson(place: Scratch, options: JsonOptions): Promise<JsonRun> {
  const pi = startJson(place, options);
  const sending = options.signalWhen;
  if (sending !== undefined) {
    await pi.journal.waitFor("the event to send a signal at", sending.matches);
    pi.signal(sending.signal);
  }
  const ending = await pi.end(options.patienceMs);
  return finished(place, pi, ending);
}

function finished(place: Scratch, pi: PiChild<PiEvent>, ending: Ending): JsonRun {
  const events = pi.journal.records;
  return {
    ...ending,
    events,
    stderr: pi.stderr,
    requests: place.requests(),
    elapsedMs: Date.now() - pi.startedAt,
    toolEnds: (name) => toolEnds(events, name),
    toolEnd: (name, index = 0) => nth(toolEnds(events, name), index, name, pi.stderr),
    said: () => said(events),
    custom: (customType) => customMessages(events, customType),
  };
}

function nth(ends: ToolEnd[], index: number, name: string, stderr: string): ToolEnd {
  const end = ends[index];
  if (end === undefined) {
    throw new Error(`${ends.length} calls of ${name} ended, no number ${index}\n${stderr}`);
  }
  return end;
}
