/**
 * Esc ends a wait and leaves its command running. A second Esc soon after that is Ctrl-C to the
 * command: to stop a deploy has to be one key away.
 */
import type { Client } from "../execd/client.ts";
import { given } from "../text/values.ts";
import type { HostContext } from "./host.ts";
import { noteEscOver, noteGone, noteLeft } from "./left-running.ts";
import { BY_USER, type Wakes } from "./wakes.ts";

/** So long after the first one a second Esc is taken for Ctrl-C. */
export const SECOND_ESC_MS = 2_000;
/** Esc as terminals send it: alone, or as the keyboard protocol of kitty spells it. */
const ESC = /^\x1b(?:\[27(?:;1(?::[12])?)?u)?$/;
const CTRL_C = "\x03";

/** A session whose wait Esc has ended. */
export interface LeftRunning {
  session_id: number;
  command: string | undefined;
  tty: boolean;
}

/** What is needed of the session of pi. */
interface Interrupting {
  readonly execd: Client;
  readonly wakes: Pick<Wakes, "onUntold">;
  /** The sessions that run. */
  readonly sessions: { get(id: number): unknown };
}

export class SecondEsc {
  readonly #context: Interrupting;
  #left: LeftRunning[] = [];
  #stop: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(context: Interrupting) {
    this.#context = context;
  }

  /**
   * Esc has ended the wait on this session. Gives until when a second one sends Ctrl-C; undefined
   * where the host shows extensions no keys. Waits that ran side by side end together: all of their
   * sessions get it.
   */
  onEsc(left: LeftRunning, ctx: HostContext): number | undefined {
    if (ctx.mode !== "tui" || typeof ctx.ui?.onTerminalInput !== "function") return undefined;
    try {
      this.#stop ??= ctx.ui.onTerminalInput((data) => this.#onKey(data));
    } catch {
      // The context went stale with its session.
      return undefined;
    }
    const { session_id } = left;
    if (this.#context.sessions.get(session_id) !== undefined) noteLeft(session_id, true);
    this.#left.push(left);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.close(), SECOND_ESC_MS).unref();
    return Date.now() + SECOND_ESC_MS;
  }

  /** No key is looked at any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#left = [];
    try {
      this.#stop?.();
    } catch {
      // As above: there is nothing to take back.
    }
    this.#stop = undefined;
    noteEscOver();
  }

  /** Sessions have gone: rows that say that they still run are drawn anew. */
  onSessionsChanged(): void {
    noteGone((id) => this.#context.sessions.get(id) !== undefined);
  }

  /** Any other key means that the person goes on with something else. */
  #onKey(data: string): { consume: boolean } | undefined {
    const left = this.#left;
    this.close();
    if (!ESC.test(data) || left.length === 0) return undefined;
    for (const session of left) void this.#interrupt(session);
    return { consume: true };
  }

  /** Never rejects: what cannot be interrupted goes on, and rows say how to end it. */
  async #interrupt({ session_id, command, tty }: LeftRunning): Promise<void> {
    const { execd, wakes } = this.#context;
    try {
      // Both take none of the output that is new to the model.
      if (tty) return void await execd.request("write_stdin", { sessionId: session_id, data: CTRL_C });
      const { status, exitCode: exit_code, signal } =
        await execd.request("kill_process", { sessionId: session_id, signal: "SIGINT" });
      if (status === "running") return;
      const end = { session_id, command, exit_code, signal, killed_by: BY_USER };
      wakes.onUntold([{ ended: given(end), woke: false }]);
    } catch {
      // It has ended, or execd is gone, which is told elsewhere.
    }
  }
}
