/**
 * tmux with `tmuxWindowScope: "all"`: beside the windows of this pi those of others. A window of
 * another pi has an address, `execd-4242:@3`: the name of its execd, and its id there. `execd
 * attach` takes the address too.
 */
import {
  KILL_WAIT_MS, LIST_WAIT_MS, OTHERS_MAX, PEEK_WAIT_MS, SOCKETS_MAX, Gone, Unanswered, ask, askAll,
  nameWithInstance, processIn, textIn, unreadable, windowsIn,
} from "../execd/asking.ts";
import { type OpenPlace, type Other, otherExecds } from "../execd/others.ts";
import { oneLine } from "../text/width.ts";
import type { Windows } from "./windows.ts";
import { viewContext } from "./wire-context.ts";

/** The most output that is asked for in a look, so that it fits into an answer. */
const PEEK_MAX_BYTES = 256 * 1024;
/** The most of an address that is repeated. */
const ADDRESS_CELLS = 100;
/** The most of a reason of another execd. */
const REASON_CELLS = 300;

/** A window of another pi. */
export interface Address {
  /** What the window is called in answers. */
  named: string;
  /** Undefined where the text cannot be the address of a window. */
  at?: { execd: string; /** Its id there, `@3`. */ window: string };
}

type Place = Required<Address>;

/** What `execd-4242:@3` names; undefined for an id of this pi's. */
export function addressIn(window: unknown, own: string | undefined): Address | undefined {
  const given = typeof window === "string" ? window.trim() : "";
  const [, execd = ""] = /^(execd-[^:]*):/.exec(given) ?? [];
  if (execd === "" || execd === own) return undefined;
  const id = /^execd-\d+(?:-[0-9a-z]+)?:@?(\d+)$/.exec(given)?.[1];
  if (id === undefined) return { named: oneLine(given, ADDRESS_CELLS) };
  return { named: `${execd}:@${id}`, at: { execd, window: `@${id}` } };
}

/** The id of a window of this pi (`3`, `#3`), as `@3` and without the name of its execd. */
export function idHere(window: unknown, own: string | undefined): unknown {
  if (typeof window !== "string") return window;
  const given = window.trim();
  const id = own !== undefined && given.startsWith(`${own}:`) ? given.slice(own.length + 1) : given;
  return id.replace(/^[#@]?(\d+)$/, "@$1");
}

/** The windows of this pi, as its own execd lists them, and behind them those of others. */
export async function listEverywhere(
  windows: Windows,
  own: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { others, open } = seenBy(windows);
  const context = viewContext(windows);
  const list = async (other: Other) => {
    const [reply, name] = await Promise.all([
      ask(other, "tmux", { action: "list", context }, LIST_WAIT_MS, signal),
      other.isShared ? nameWithInstance(other, LIST_WAIT_MS, signal) : other.name,
    ]);
    return linesOf(reply, other, name);
  };
  const { outcomes, unasked } = await askAll(others, list);
  const theirs = outcomes.flatMap((one) => one instanceof Unanswered ? [] : one);
  const all = [...linesIn(own), ...theirs];
  const missing = [
    ...outcomes.flatMap((one) => one instanceof Unanswered
      ? [`(${one.message}: its windows are not listed)`] : []),
    ...unasked > 0 ? [`(${unasked} more sockets were not asked: one list takes at most `
      + `${OTHERS_MAX} execds, ${SOCKETS_MAX} sockets and ${LIST_WAIT_MS} ms)`] : [],
    ...open.map((place) => `(${whyNot(place)})`),
  ];
  const head = `Background windows — ${all.length} window(s)`;
  return [head, all.join("\n"), missing.join("\n")].filter(Boolean).join("\n\n");
}

/** The execds that this pi may ask. */
function seenBy({ execd }: Windows): ReturnType<typeof otherExecds> {
  return execd.isRemote ? { others: [], open: [] } : otherExecds(execd.socket);
}

function whyNot({ dir }: OpenPlace): string {
  return `others may enter ${dir}, so the execds there are not asked: chmod 700 it`;
}

/** The lines of a list, below its head. */
function linesIn(text: string): string[] {
  return text.split("\n").slice(1).filter((line) => line.startsWith("  "));
}

/**
 * The lines of another execd's list, with its name before each id: a line without it would name a
 * window of this pi.
 */
function linesOf(reply: Record<string, unknown>, other: Other, name: string): string[] {
  const windows = windowsIn(reply, other);
  const lines = linesIn(textIn(reply, other));
  if (lines.length !== windows.length) throw unreadable(other);
  return lines.map((line, at) => {
    const place = line.lastIndexOf(` ${windows[at]?.window} (`);
    if (place < 0) throw unreadable(other);
    return `${line.slice(0, place)} ${name}:${line.slice(place + 1)}`;
  });
}

/** Looks into a window of another pi, or ends it. Throws what the model reads as an error. */
export async function actElsewhere(
  windows: Windows,
  action: string,
  { named, at }: Address,
  signal: AbortSignal | undefined,
): Promise<string> {
  const none = new Error(`No background window ${named}.`);
  if (windows.config.tmuxWindowScope !== "all" || !at) throw none;
  try {
    const other = await find(windows, at, signal);
    if (!other) throw none;
    if (action !== "peek" && action !== "kill") {
      throw new Error(`Error: ${action} takes windows of this pi only; `
        + `peek shows the output of ${named}.`);
    }
    const act = action === "peek" ? peek : kill;
    const text = await act(windows, other, { named, at }, signal);
    if (text === undefined) throw none;
    return text;
  } catch (error) {
    if (error instanceof Gone) throw none;
    if (!(error instanceof Unanswered)) throw error;
    throw new Error(`Error: ${named} could not be asked for: ${error.message}.`);
  }
}

/** The execd of this name, or the one of several by its instance; undefined where there is none. */
async function find(
  windows: Windows,
  { execd: name, window }: Place["at"],
  signal: AbortSignal | undefined,
): Promise<Other | undefined> {
  const { others, open } = seenBy(windows);
  const exact = others.filter((other) => other.name === name);
  if (exact.length === 1) return exact[0];
  const fits = exact.length > 0 ? exact : others.filter((one) => one.name === processIn(name));
  const asked = await Promise.allSettled(fits.map((other) =>
    nameWithInstance(other, PEEK_WAIT_MS, signal)));
  const there = asked.flatMap((reply, at) => reply.status === "rejected" ? []
    : [{ full: reply.value, other: fits[at] as Other }]);
  const meant = there.filter(({ full }) => exact.length > 0 || full === name);
  if (meant.length > 1) {
    const names = meant.map(({ full }) => `${full}:${window}`).join(" or ");
    throw new Error(`Error: several execds are called ${name}: say ${names}.`);
  }
  const failed = asked.flatMap((reply) => reply.status === "rejected"
    && !(reply.reason instanceof Gone) ? [reply.reason] : []);
  // An execd that did not say what it is called may be the one that is meant.
  const isCertain = failed.length === 0 || (exact.length === 0 && meant.length === 1);
  if (!isCertain) throw failed[0];
  const place = open.find(({ names }) => [name, processIn(name)].some((one) => names.includes(one)));
  if (meant.length === 0 && place) throw new Unanswered(whyNot(place));
  return meant[0]?.other;
}

async function peek(
  windows: Windows,
  other: Other,
  { named, at: { window } }: Place,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const view = viewContext(windows);
  const maxOutputBytes = Math.min(Number(view.maxOutputBytes), PEEK_MAX_BYTES);
  const context = { ...view, maxOutputBytes };
  const look = (more: { all?: true }) =>
    ask(other, "tmux", { action: "peek", window, context, ...more }, PEEK_WAIT_MS, signal);
  // Each look is a client of its own, which would be shown the first 5 KiB of what is new to it.
  const reply = await look({ all: true }).catch((error: unknown) => {
    // An execd of an earlier version shows everything.
    if (error instanceof Unanswered && error.message.includes('unknown param "all"')) return look({});
    throw error;
  });
  const text = textIn(reply, other);
  if (reply.is_error === true) return undefined;
  // The first line names the window as its own execd does.
  const [head = "", ...rest] = text.split("\n");
  const place = head.lastIndexOf(window);
  const first = place < 0 ? head : head.slice(0, place) + named + head.slice(place + window.length);
  return [first, ...rest].join("\n");
}

/**
 * Ends a window as a person does who ends it from outside: its own pi is told of the end, where a
 * kill by its own tool would be told to nobody.
 */
async function kill(
  windows: Windows,
  other: Other,
  { named, at: { window } }: Place,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const context = viewContext(windows);
  const listed = await ask(other, "tmux", { action: "list", context }, PEEK_WAIT_MS, signal);
  const row = windowsIn(listed, other).find((one) => one.window === window);
  if (!row) return undefined;
  try {
    if (!row.running) {
      const reply =
        await ask(other, "tmux", { action: "kill", window, context }, KILL_WAIT_MS, signal);
      textIn(reply, other);
      if (reply.is_error === true) return undefined;
      return `Closed background window: ${row.name} ${named}. It had ended before.`;
    } else {
      const request = { session_id: Number(window.slice(1)) };
      const { killed, failure_message: why } =
        await ask(other, "kill_session", request, KILL_WAIT_MS, signal);
      if (typeof killed !== "boolean") throw unreadable(other);
      if (!killed) {
        const reason = typeof why === "string" ? `: ${oneLine(why, REASON_CELLS)}` : "";
        throw new Error(`Error: not all of ${named} could be ended${reason}.`);
      }
    }
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    throw new Error(`Error: ${named} may not have ended: ${error.message}. list shows what runs.`);
  }
  return `Killed background window: ${row.name} ${named}.`;
}
