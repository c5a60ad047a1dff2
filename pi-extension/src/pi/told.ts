/**
 * Which ends of sessions the model has been told, each once: by the result that saw the end, by a
 * line of another result, or by the message of a wake (docs/pi.md, What happens when).
 * What stands in a result that pi did not keep was not told.
 *
 * Nothing is sent here, and nothing waits: this is the book that the tools and the wakes keep.
 */
import type { SessionEvent } from "../execd/wire-results.ts";

/** The most ends that are remembered as told; sessions that ended before them are not heard of. */
const TOLD_MAX = 4_096;
/** The most events that wait for a result; as many as execd keeps. */
const UNTOLD_MAX = 1_024;
/** The most of those that one result tells. */
const RETOLD_PER_RESULT = 16;
/**
 * The most tool results whose end is awaited: a host that never tells of it must not make the book
 * grow.
 */
const RESULTS_MAX = 256;
/** By whom a session was ended that the person who sits at pi has ended. */
export const BY_USER = "the user" as const;
/** The family of the background windows of bash, which have a message of their own. */
const WINDOWS_FAMILY = "windows";

/** What is told of one ended session. */
export interface Ended {
  session_id?: number;
  /** The label that it was started with. */
  name?: string;
  exit_code?: number;
  signal?: string;
  /** By whom it was ended. */
  killed_by?: string;
  /** What went wrong with it. */
  failure_message?: string;
  command?: string;
  cwd?: string;
  elapsed_ms?: number;
  log_path?: string;
  /** The log lies on the machine where commands run, which is another one. */
  far?: true;
  /** The first byte of the output that the log still has, where that is not the first of all. */
  log_from?: number;
  /** Why the session is gone without an exit: execd itself ended. */
  lost?: string;
  /** No call can read the session's output any more: only the log has it. */
  unreadable?: true;
}

/** An end that a result tells by itself; `woke`: instead of a wake, which execd does not send. */
export interface OwnEnd {
  ended: Ended;
  woke: boolean;
}

/** Something that a result tells and that pi has not kept yet. */
interface Telling {
  id?: number | undefined;
  event?: SessionEvent;
  /** The wake in whose place the result tells it. */
  wake?: Ended | undefined;
}

/** Where an end stands: a wake of it waits, it was told, or a result tells it. */
type Place = "wakes" | "told" | Telling;

export class Told {
  readonly #places = new Map<number, Place>();
  /** The sessions whose ids a result has told. */
  readonly #named = new Set<number>();
  readonly #results = new Map<string, Telling[][]>();
  #untold: SessionEvent[] = [];

  /**
   * The result of a call is made: it tells its `own` ends by itself, and has to tell the events that
   * this gives. `takeBack` takes a wake that waits off the list.
   */
  tell(
    callId: string,
    own: OwnEnd[],
    arrived: SessionEvent[],
    takeBack: (id: number) => Ended | undefined,
  ): SessionEvent[] {
    const tellings = own.flatMap((one) => this.#ownTelling(one, takeBack));
    const due = [...this.#untold.splice(0, RETOLD_PER_RESULT), ...arrived.filter(isForModel)];
    const events = withoutEarlierNews(due.filter((event) => {
      const telling = this.#telling(event, takeBack);
      if (telling) tellings.push(telling);
      return telling !== undefined;
    }));
    this.#remember(callId, tellings);
    return events;
  }

  /**
   * pi has finalised the result of a call. What an error was to tell is told otherwise: gives the
   * wakes that are to be sent.
   */
  settle(callId: string, isError: boolean): Ended[] {
    const [tellings = [], ...others] = this.#results.get(callId) ?? [];
    if (others.length > 0) this.#results.set(callId, others);
    else this.#results.delete(callId);
    if (!isError) {
      for (const { id } of tellings) if (id !== undefined) this.#put(id, "told");
      return [];
    }
    for (const { id } of tellings) if (id !== undefined) this.#places.delete(id);
    this.#keep(tellings.flatMap(({ event, wake }) => (event && !wake ? [event] : [])), "first");
    return tellings.flatMap(({ wake }) => wake ?? []);
  }

  /** A wake has come; gives whether it is to be sent: something else may tell its end. */
  wake(ended: Ended): boolean {
    const { session_id: id } = ended;
    if (id === undefined) return true;
    const place = this.#places.get(id);
    if (place === "told") return false;
    if (typeof place === "object") {
      place.wake ??= ended;
      return false;
    }
    this.#forget(id);
    this.#put(id, "wakes");
    return true;
  }

  /** pi has taken the message of these wakes. */
  woken(ended: Ended[]): void {
    for (const { session_id } of ended) if (session_id !== undefined) this.#put(session_id, "told");
  }

  /** pi has dropped the message of these wakes, or refused it: they wait again. */
  dropped(ended: Ended[]): void {
    for (const { session_id } of ended) if (session_id !== undefined) this.#put(session_id, "wakes");
  }

  /** A result names this session, which goes on. */
  name(id: number): void {
    this.#named.delete(id);
    this.#named.add(id);
    const [oldest] = this.#named;
    if (this.#named.size > TOLD_MAX && oldest !== undefined) this.#named.delete(oldest);
  }

  /**
   * A session was seen to have ended by a request that was not the model's. One that the model was
   * never told of has ended within its call, and is none of its affair.
   */
  seen(ended: Ended): void {
    const { session_id: id } = ended;
    if (id !== undefined && this.#named.has(id)) this.learned([eventOf(ended, id)]);
  }

  /** Something has happened that no reply to a call of the model has told. */
  learned(events: SessionEvent[]): void {
    const isNew = (event: SessionEvent) => event.what !== "exited"
      || (!this.#places.has(event.session_id) && !this.#untold.some(isEndOf(event.session_id)));
    this.#keep(events.filter(isForModel).filter(isNew), "last");
  }

  /** Whether a result, or the message of a wake, tells the end of this session, or has told it. */
  tells(id: number): boolean {
    const place = this.#places.get(id);
    return place === "told" || typeof place === "object";
  }

  /** What no result that pi has kept has told, and no wake tells. */
  get untold(): SessionEvent[] {
    const onTheirWay = [...this.#results.values()].flat(2);
    return [...onTheirWay.flatMap(({ event }) => event ?? []), ...this.#untold];
  }

  /** Forgets everything. */
  clear(): void {
    this.#places.clear();
    this.#named.clear();
    this.#results.clear();
    this.#untold = [];
  }

  #ownTelling({ ended, woke }: OwnEnd, takeBack: (id: number) => Ended | undefined): Telling[] {
    const { session_id: id } = ended;
    if (id === undefined) return woke ? [{ wake: ended }] : [];
    const place = this.#places.get(id);
    if (place === "told" || typeof place === "object") return [];
    const wake = (place && takeBack(id)) ?? (woke ? ended : undefined);
    this.#forget(id);
    const telling = { id, event: eventOf(ended, id), wake };
    this.#put(id, telling);
    return [telling];
  }

  /** What a result is to tell of an event; undefined where it was told, or something else tells it. */
  #telling(
    event: SessionEvent,
    takeBack: (id: number) => Ended | undefined,
  ): Telling | undefined {
    if (event.what === "log_trouble") return { event };
    const { session_id: id } = event;
    const place = this.#places.get(id);
    if (place === "told" || typeof place === "object") return undefined;
    if (event.what !== "exited") return { event };
    const telling = { id, event, wake: place && takeBack(id) };
    this.#forget(id);
    this.#put(id, telling);
    return telling;
  }

  #remember(callId: string, tellings: Telling[]): void {
    const open = [...this.#results.values()].reduce((sum, { length }) => sum + length, 0);
    if (open >= RESULTS_MAX) this.#results.clear();
    // An id may come twice; each end takes the oldest.
    this.#results.set(callId, [...(this.#results.get(callId) ?? []), tellings]);
  }

  #put(id: number, place: Place): void {
    this.#places.delete(id);
    this.#places.set(id, place);
    const [oldest] = this.#places.keys();
    if (this.#places.size > TOLD_MAX && oldest !== undefined) this.#places.delete(oldest);
  }

  #keep(events: SessionEvent[], where: "first" | "last"): void {
    const all = where === "first" ? [...events, ...this.#untold] : [...this.#untold, ...events];
    this.#untold = all.slice(-UNTOLD_MAX);
  }

  /** The end is told otherwise than by an event that waits. */
  #forget(id: number): void {
    if (this.#untold.length > 0) this.#untold = this.#untold.filter((one) => !isEndOf(id)(one));
  }
}

/** What happens to windows is told by their own messages; that a wake was sent is no news. */
function isForModel({ family, what }: SessionEvent): boolean {
  return family !== WINDOWS_FAMILY && what !== "wake";
}

function isEndOf(id: number): (event: SessionEvent) => boolean {
  return ({ session_id, what }) => session_id === id && what === "exited";
}

/** Where an end is told, it is not told as well that the session was about to end. */
function withoutEarlierNews(events: SessionEvent[]): SessionEvent[] {
  const ended = new Set(events.filter(({ what }) => what === "exited").map((one) => one.session_id));
  return events.filter(({ what, session_id }) =>
    what === "exited" || what === "log_trouble" || !ended.has(session_id));
}

/** The event of an end that a reply, or a wake, has told by itself. */
export function eventOf(ended: Ended, session_id: number): SessionEvent {
  const { exit_code, signal, command, lost } = ended;
  const killed_by = ended.killed_by ?? lost;
  return {
    what: "exited",
    session_id,
    at_ms: Date.now(),
    command: command ?? "",
    ...(exit_code !== undefined && { exit_code }),
    ...(signal !== undefined && { signal }),
    ...(killed_by !== undefined && { killed_by }),
  };
}
