/**
 * tmux with `tmuxWindowScope: "all"`: beside the windows of this pi those of others. Each of these
 * has an address, `execd-4242:@3`: the name of its execd, and its id there. `execd attach` takes
 * it too.
 */
import type { Instance } from "../instance.ts";
import type { KillResult, TmuxResult } from "../wire.ts";
import {
  type Other, KILL_WAIT_MS, LIST_WAIT_MS, PEEK_WAIT_MS, Gone, Silent, ask, otherExecds,
} from "./others.ts";
import { viewContext } from "./wire-context.ts";

/** A window of another pi. */
export interface Address {
  execd: string;
  /** Its id there, `@3`. */
  window: string;
}

/** What `execd-4242:@3` names; undefined for an id of this pi's. */
export function addressIn(window: unknown, own: string | undefined): Address | undefined {
  const found = typeof window === "string"
    ? /^(execd-\d+(?:-[0-9a-z]+)?):@?(\d+)$/.exec(window.trim()) : null;
  const [, execd = "", id = ""] = found ?? [];
  return found && execd !== own ? { execd, window: `@${id}` } : undefined;
}

/** The windows of this pi, as it was told them, and behind them those of others. */
export async function listEverywhere(
  instance: Instance,
  own: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const others = instance.isRemote ? [] : otherExecds(instance.client.name);
  const context = viewContext(instance);
  const asked = await Promise.allSettled(others.map((other) =>
    ask(other, "tmux", { action: "list", context }, LIST_WAIT_MS, signal)));
  const lines = asked.flatMap((reply, at) => {
    const { name } = others[at] as Other;
    return reply.status === "fulfilled" ? linesOf(reply.value as unknown as TmuxResult, name) : [];
  });
  const silent = asked.flatMap((reply) =>
    reply.status === "rejected" && reply.reason instanceof Silent ? [reply.reason.message] : []);
  const mine = linesIn(own);
  const all = [...mine, ...lines];
  const head = `Background windows — ${all.length} window(s)`;
  const missing = silent.map((text) => `(${text}: its windows are not listed)`);
  return [head, all.join("\n"), missing.join("\n")].filter(Boolean).join("\n\n");
}

/** The lines of a list, below its head. */
function linesIn(text: string): string[] {
  return text.split("\n").slice(1).filter((line) => line.startsWith("  "));
}

/** The lines of another execd's list, with its name before each id. */
function linesOf({ text, windows = [] }: TmuxResult, execd: string): string[] {
  return linesIn(text).map((line, at) => {
    const id = ` ${windows[at]?.window} (`;
    const place = line.lastIndexOf(id);
    return place < 0 ? line : `${line.slice(0, place)} ${execd}:${line.slice(place + 1)}`;
  });
}

/** Looks into a window of another pi, or ends it. Throws what the model reads as an error. */
export async function actElsewhere(
  instance: Instance,
  action: string,
  address: Address,
  signal: AbortSignal | undefined,
): Promise<string> {
  const named = `${address.execd}:${address.window}`;
  const none = new Error(`No background window ${named}.`);
  const other = otherExecds(instance.client.name).find(({ name }) => name === address.execd);
  const sees = instance.windows.config.tmuxWindowScope === "all" && !instance.isRemote;
  if (!sees || !other) throw none;
  try {
    const text = action === "peek" ? await peek(instance, other, address.window, signal)
      : action === "kill" ? await kill(instance, other, address.window, signal)
      : undefined;
    if (text !== undefined) return text;
  } catch (error) {
    if (error instanceof Gone) throw none;
    throw error;
  }
  throw new Error(action === "peek" || action === "kill" ? none.message
    : `Error: ${action} takes windows of this pi only; peek shows the output of ${named}.`);
}

async function peek(
  instance: Instance,
  other: Other,
  window: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const request = { action: "peek", window, context: viewContext(instance) };
  const reply = await ask(other, "tmux", request, PEEK_WAIT_MS, signal);
  const { text, is_error } = reply as unknown as TmuxResult;
  if (is_error) return undefined;
  // The first line names the window as its own execd does.
  const [head = "", ...rest] = text.split("\n");
  const place = head.lastIndexOf(window);
  const first = place < 0 ? head : `${head.slice(0, place)}${other.name}:${head.slice(place)}`;
  return [first, ...rest].join("\n");
}

/**
 * Ends a window as a person does who ends it from outside: its own pi is told of the end, where a
 * kill by its own tool would be told to nobody.
 */
async function kill(
  instance: Instance,
  other: Other,
  window: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const context = viewContext(instance);
  const listed = await ask(other, "tmux", { action: "list", context }, PEEK_WAIT_MS, signal);
  const { windows = [] } = listed as unknown as TmuxResult;
  const row = windows.find((one) => one.window === window);
  if (!row) return undefined;
  const named = `background window: ${row.name} ${other.name}:${window}.`;
  if (!row.running) {
    await ask(other, "tmux", { action: "kill", window, context }, KILL_WAIT_MS, signal);
    return `Closed ${named} It had ended before.`;
  }
  const session_id = Number(window.slice(1));
  const reply = await ask(other, "kill_session", { session_id }, KILL_WAIT_MS, signal);
  const { killed, failure_message: why } = reply as unknown as KillResult;
  if (killed !== false) return `Killed ${named}`;
  throw new Error(`Error: not all of ${other.name}:${window} could be ended`
    + `${why === undefined ? "" : `: ${why}`}.`);
}
