/**
 * From one session of pi to the next in the same process. pi draws the conversation of /reload,
 * /resume and the like before `session_start`, so rows need their renderers when the factory runs.
 * And what a family keeps outlives the session, with the execd that it runs in. What a conversation
 * was not told yet waits until somebody goes on with it.
 */
import type { Client } from "../execd/client.ts";
import type { LeftEvent } from "./wakes.ts";

/** /reload loads the modules anew; only what hangs on globalThis lives through it. */
const KEY = Symbol.for("pi-execd.handover");
/** Raised with every change of what is handed over: /reload may come after an update. */
const VERSION = 4;
/** The conversations for which events are kept: those that were left last. */
const CONVERSATIONS_MAX = 32;

/** What a family keeps while no session of pi is there for it. */
export interface Kept {
  /** A notification of execd that is about no request. */
  onNotification(method: string, params: unknown): void;
  /** execd is gone, with all its sessions. */
  lost(why: string): void;
  /** Nobody takes it over. */
  close(): void;
}

/** An execd whose session of pi has ended, and what families keep of it, by their names. */
export interface Left {
  client: Client;
  kept: ReadonlyMap<string, Kept>;
  /** The session that has ended. */
  session: SessionNames;
}

/** The names of a session of pi. */
export interface SessionNames {
  id: string;
  file: string | undefined;
}

interface Shared {
  /** What the user is told when the next session of pi has begun: pi draws its screen anew then. */
  notes?: { session: SessionNames; text: string }[];
  names?: string[] | undefined;
  left: { version: number; left: Left; end: () => Promise<void> }[];
  untold?: { version: number; session: SessionNames; events: LeftEvent[] }[];
}

const shared = globalThis as { [KEY]?: Shared };

function store(): Shared {
  shared[KEY] ??= { left: [] };
  return shared[KEY];
}

/** Leaves the names of the families whose tools this session had. */
export function handOver(families: string[]): void {
  store().names = families;
}

/** Takes what was left, once: a session of pi that was started otherwise must not find it. */
export function handedOver(): string[] {
  const names = store().names ?? [];
  store().names = undefined;
  return names;
}

/** Leaves an execd for the session that comes next. What it says meanwhile is kept. */
export function leave(left: Left): void {
  const { client, kept } = left;
  const all = [...kept.values()];
  client.moveTo({
    onNotification: (method, params) => all.forEach((one) => one.onNotification(method, params)),
    onLost: (why) => all.forEach((one) => one.lost(`execd ${why}`)),
  }, () => []);
  const end = async () => {
    all.forEach((one) => one.close());
    await client.shutdown();
  };
  store().left.push({ version: VERSION, left, end });
}

/** How pi told that a session begins. */
export interface Beginning {
  reason: string;
  previousSessionFile?: string | undefined;
}

/** Takes the execd of the session before this one, where one was left. */
export async function takeLeft(event: Beginning, sessionId: string): Promise<Left | undefined> {
  if (event.reason === "startup") return undefined;
  const all = store().left;
  const at = all.findLastIndex(({ left }) => isBefore(left.session, event, sessionId));
  const [found] = at < 0 ? [] : all.splice(at, 1);
  if (!found) return undefined;
  if (found.version === VERSION) return found.left;
  await found.end();
  return undefined;
}

/** Leaves what this session of pi has not told its model. */
export function leaveUntold(session: SessionNames, events: LeftEvent[]): void {
  if (events.length === 0) return;
  const others = store().untold ?? [];
  store().untold = [...others, { version: VERSION, session, events }].slice(-CONVERSATIONS_MAX);
}

/**
 * Takes what the conversation that goes on was not told. /fork and /clone begin another one with the
 * same past, so that both are told.
 */
export function takeUntold(event: Beginning, sessionId: string): LeftEvent[] {
  const all = store().untold ?? [];
  if (event.reason === "fork") {
    return eventsOf(all.filter(({ session }) => session.file === event.previousSessionFile));
  }
  if (event.reason !== "reload" && event.reason !== "resume") return [];
  store().untold = all.filter(({ session }) => session.id !== sessionId);
  return eventsOf(all.filter(({ session }) => session.id === sessionId));
}

function eventsOf(left: NonNullable<Shared["untold"]>): LeftEvent[] {
  return left.filter(({ version }) => version === VERSION).flatMap(({ events }) => events);
}

/** Leaves something for the user to read in the session of pi that comes next. */
export function leaveNote(session: SessionNames, text: string): void {
  store().notes = [...store().notes ?? [], { session, text }].slice(-CONVERSATIONS_MAX);
}

/** Takes what the session of pi before this one has left to be read. */
export function takeNotes(event: Beginning, sessionId: string): string[] {
  if (event.reason === "startup") return [];
  const all = store().notes ?? [];
  const ours = all.filter(({ session }) => isBefore(session, event, sessionId));
  store().notes = all.filter((note) => !ours.includes(note));
  return ours.map(({ text }) => text);
}

/** Whether that is the session of pi in whose place this one has come. */
function isBefore(session: SessionNames, event: Beginning, sessionId: string): boolean {
  return event.reason === "reload" ? session.id === sessionId
    : session.file === event.previousSessionFile;
}
