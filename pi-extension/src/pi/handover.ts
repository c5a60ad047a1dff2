/**
 * From one session of pi to the next in the same process. pi draws the conversation of /reload,
 * /resume and the like before `session_start`, so rows need their renderers when the factory runs.
 * And what a family keeps outlives the session, with the execd that it runs in. What a conversation
 * was not told yet waits until somebody goes on with it.
 */
import type { Client } from "../execd/client.ts";
import type { SessionEvent } from "../execd/wire-results.ts";

/** /reload loads the modules anew; only what hangs on globalThis lives through it. */
const KEY = Symbol.for("pi-execd.handover");
/** Raised with every change of what is handed over: /reload may come after an update. */
const VERSION = 3;
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
  names?: string[] | undefined;
  left: { version: number; left: Left; end: () => Promise<void> }[];
  untold?: { version: number; session: SessionNames; events: SessionEvent[] }[];
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
  const at = all.findLastIndex(({ left: { session } }) => event.reason === "reload"
    ? session.id === sessionId
    : session.file === event.previousSessionFile);
  const [found] = at < 0 ? [] : all.splice(at, 1);
  if (!found) return undefined;
  if (found.version === VERSION) return found.left;
  await found.end();
  return undefined;
}

/** Leaves what this session of pi has not told its model. */
export function leaveUntold(session: SessionNames, events: SessionEvent[]): void {
  if (events.length === 0) return;
  const others = store().untold ?? [];
  store().untold = [...others, { version: VERSION, session, events }].slice(-CONVERSATIONS_MAX);
}

/**
 * Takes what the conversation that goes on was not told. /fork and /clone begin another one with the
 * same past, so that both are told.
 */
export function takeUntold(event: Beginning, sessionId: string): SessionEvent[] {
  const all = store().untold ?? [];
  if (event.reason === "fork") {
    return eventsOf(all.filter(({ session }) => session.file === event.previousSessionFile));
  }
  if (event.reason !== "reload" && event.reason !== "resume") return [];
  store().untold = all.filter(({ session }) => session.id !== sessionId);
  return eventsOf(all.filter(({ session }) => session.id === sessionId));
}

function eventsOf(left: NonNullable<Shared["untold"]>): SessionEvent[] {
  return left.filter(({ version }) => version === VERSION).flatMap(({ events }) => events);
}
