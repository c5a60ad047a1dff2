/**
 * From one instance to the next in the same process. pi draws the conversation of /reload, /resume
 * and the like before `session_start`, so rows need their renderers when the factory runs. And
 * background windows outlive the session, with the execd that they run in.
 */
import type { Client } from "./client.ts";
import { type Surface, surfaces } from "./tools/surface.ts";
import type { Background } from "./windows/background.ts";

/** /reload loads the modules anew; only what hangs on globalThis lives through it. */
const KEY = Symbol.for("pi-execd.handover");
/** Raised with every change of what is handed over: /reload may come after an update. */
const VERSION = 2;

/** An execd whose session of pi has ended, and its windows. */
export interface Left {
  client: Client;
  background: Background;
  /** The session that has ended. */
  session: { id: string; file: string | undefined; scope: string };
}

interface Shared {
  names?: string[] | undefined;
  left: { version: number; left: Left; end: () => Promise<void> }[];
}

const shared = globalThis as { [KEY]?: Shared };

function store(): Shared {
  shared[KEY] ??= { left: [] };
  return shared[KEY];
}

/** Leaves the names of the surfaces that this instance had registered. */
export function handOver(registered: Surface[]): void {
  store().names = registered.map(({ name }) => name);
}

/** Takes what was left, once: an instance that was started otherwise must not find it. */
export function handedOver(): Surface[] {
  const names = store().names ?? [];
  store().names = undefined;
  return names.map((name) => surfaces.get(name)).filter((surface) => surface !== undefined);
}

/** Leaves an execd for the session that comes next. */
export function leave(left: Left): void {
  const { client, background } = left;
  const end = async () => {
    background.close();
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
