/**
 * Requests to the execds of other pis, over their control sockets. What comes back may be of
 * another version, or of no execd at all: it is bounded, looked at, and made fit to be read.
 */
import { type Socket, connect } from "node:net";
import { stripControls } from "../text/safe.ts";
import { isObject, parseObject } from "../text/values.ts";
import { oneLine } from "../text/width.ts";
import { LineSplitter } from "./lines.ts";
import type { Other } from "./others.ts";
import type { Method, MethodParams } from "./wire.ts";

/** How long the others have to say which windows they have: what is late is not waited for. */
export const LIST_WAIT_MS = 200;
/** How long another execd has for a look at a window. */
export const PEEK_WAIT_MS = 2_000;
/** How long another execd has for ending a window: SIGTERM, 2 s, SIGKILL, 3 s. */
export const KILL_WAIT_MS = 10_000;
/** The longest answer that is taken of another execd. */
export const REPLY_MAX_BYTES = 1024 * 1024;
/** At most so many execds are asked; one that has ended and left its socket does not count. */
export const OTHERS_MAX = 64;
/** At most so many sockets are tried. */
export const SOCKETS_MAX = 1_024;
/** The most of another execd's error message that is repeated. */
const ERROR_CELLS = 300;
/** Nobody listens: the socket has gone, or its execd has ended and left it. */
const NOBODY = ["ENOENT", "ECONNREFUSED"];
/** Why a connection fails, where the system's name for it says too little. */
const HUNG_UP = "hung up without an answer (it may have all the clients that it takes)";
const FAILURES: Record<string, string> = {
  EPIPE: HUNG_UP,
  ECONNRESET: HUNG_UP,
  EAGAIN: "takes no more connections now (too many wait already: it may be stopped)",
};
const INSTANCE = /^[0-9a-z]{1,64}$/;

/** An execd could not be asked, or gave no answer that can be read; the message says why. */
export class Unanswered extends Error {}
/** The execd has not answered in time. */
export class Silent extends Unanswered {}
/** Nobody listens there any more: its pi has ended. */
export class Gone extends Error {}

/** What an execd is called where another may have the same name. */
export function labelOf({ name, path, isShared }: Other): string {
  return isShared ? `${name} (${path})` : name;
}

/**
 * Sends one request to another execd. Rejects with Silent when `waitMs` are over, with Gone when
 * nobody is there, with Unanswered for whatever else it does instead, and when `signal` aborts.
 */
export function ask<M extends Method>(
  other: Other,
  method: M,
  params: MethodParams[M],
  waitMs: number,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const label = labelOf(other);
  return new Promise((resolve, reject) => {
    let socket: Socket | undefined;
    const abort = () => end(() => reject(new Error("Command aborted")));
    const late = setTimeout(() => {
      end(() => reject(new Silent(`${label} did not answer within ${waitMs} ms`)));
    }, waitMs);
    const end = (settle: () => void) => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
      socket?.destroy();
      settle();
    };
    const fail = (why: string) => end(() => reject(new Unanswered(`${label} ${why}`)));
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
    const lines = new LineSplitter((line) => {
      const reply = replyIn(line);
      if (!reply) return;
      const { result, error } = reply;
      if (isObject(error)) fail(`answered with an error: ${shown(error.message)}`);
      else if (isObject(result)) end(() => resolve(result));
      else fail("gave an answer that cannot be read");
    }, REPLY_MAX_BYTES);
    socket = connect(other.path);
    socket.on("data", (bytes) => {
      if (!lines.push(bytes)) fail(`gave an answer of more than ${REPLY_MAX_BYTES} bytes`);
    });
    socket.once("error", ({ code = "an error" }: NodeJS.ErrnoException) => {
      if (NOBODY.includes(code)) end(() => reject(new Gone(`${label} is not there any more`)));
      else fail(FAILURES[code] ?? `could not be reached (${code})`);
    });
    socket.once("close", () => fail(HUNG_UP));
    socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
  });
}

/**
 * Takes a line and gives the answer in it; undefined for the notifications that come between, which
 * every client is told. An execd that takes no more clients says so before it has read the request:
 * that error names no request.
 */
function replyIn(line: string): Record<string, unknown> | undefined {
  const value = parseObject(line);
  const isRefusal = value?.id === null && isObject(value.error);
  return value?.id === 1 || isRefusal ? value : undefined;
}

function shown(message: unknown): string {
  return oneLine(typeof message === "string" ? message : "", ERROR_CELLS) || "it does not say which";
}

/** A window in the list of another execd. */
export interface ListedWindow {
  window: string;
  name: string;
  running: boolean;
}

/** The text of a reply of tmux, without what would steer a terminal. */
export function textIn({ text }: Record<string, unknown>, other: Other): string {
  if (typeof text !== "string") throw unreadable(other);
  return stripControls(text);
}

/** The windows of a reply to `list`. */
export function windowsIn(reply: Record<string, unknown>, other: Other): ListedWindow[] {
  if (reply.is_error === true) {
    throw new Unanswered(`${labelOf(other)} answered with an error: ${shown(reply.text)}`);
  }
  const { windows } = reply;
  if (!Array.isArray(windows)) throw unreadable(other);
  return windows.map((row: unknown) => {
    const { window, name, running } = isObject(row) ? row : {};
    const isId = typeof window === "string" && /^@\d+$/.test(window);
    if (!isId || typeof name !== "string") throw unreadable(other);
    return { window, name: oneLine(name, ERROR_CELLS), running: running === true };
  });
}

/** The answer is nothing that an execd says. */
export function unreadable(other: Other): Unanswered {
  return new Unanswered(`${labelOf(other)} gave an answer that cannot be read`);
}

/**
 * Asks an execd for the name that no other one has, `execd-4242-0af3`: two may share the shorter
 * one.
 */
export async function nameWithInstance(
  other: Other,
  waitMs: number,
  signal?: AbortSignal,
): Promise<string> {
  const { instance } = await ask(other, "server_info", {}, waitMs, signal);
  if (typeof instance !== "string" || !INSTANCE.test(instance)) throw unreadable(other);
  return `${processIn(other.name)}-${instance}`;
}

/** `execd-4242` of `execd-4242-0af3`. */
export function processIn(name: string): string {
  return /^execd-\d+/.exec(name)?.[0] ?? name;
}

/**
 * Asks all execds at once, within LIST_WAIT_MS; gives the outcomes of those that are there, in
 * their order, and how many were not asked because there are too many.
 */
export async function askAll<T>(
  others: Other[],
  work: (other: Other) => Promise<T>,
): Promise<{ outcomes: (T | Unanswered)[]; unasked: number }> {
  const dueMs = performance.now() + LIST_WAIT_MS;
  const outcomes: (T | Unanswered | undefined)[] = [];
  let [next, there] = [0, 0];
  const isDone = () => next >= Math.min(others.length, SOCKETS_MAX) || there >= OTHERS_MAX
    || performance.now() >= dueMs;
  const inTurn = async () => {
    while (!isDone()) {
      const at = next++;
      there += 1;
      try {
        outcomes[at] = await work(others[at] as Other);
      } catch (error) {
        if (error instanceof Unanswered) outcomes[at] = error;
        else if (error instanceof Gone) there -= 1;
        else throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: OTHERS_MAX }, inTurn));
  const known = outcomes.filter((one) => one !== undefined);
  return { outcomes: known, unasked: others.length - next };
}
