/**
 * Commands that a person types in pi (`!ls`, `!!ls`), where EXECD_COMMAND or the setting `command` says
 * where commands run: execd runs them then, in the place where the model's run. Everywhere else they
 * are pi's own.
 */
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { BashOperations } from "@earendil-works/pi-coding-agent";
import type { Client } from "../execd/client.ts";
import type { StreamReport } from "../execd/wire-results.ts";
import { commandEnv } from "./environment.ts";
import type { HostContext } from "./host.ts";

/** How long one request waits for output or the end; then the next one does. */
const WAIT_MS = 120_000;
/** Pause between two looks at a command that prints: pi has other things to do. */
const LOOK_MS = 50;
/** The most of the output in one look. */
const PAGE_BYTES = 150_000;
/** Esc is answered within a second, whatever becomes of the processes. */
const ESC_ANSWER_MS = 700;
/** The status of a shell that was ended by a signal is this and the signal's number. */
const SIGNAL_STATUS = 128;

type Exec = BashOperations["exec"];
type Streamed = Parameters<Exec>[2];

/** What runs such a command, for pi's event `user_bash`; undefined where pi itself does. */
export function userBash(
  { execd }: { readonly execd: Client },
  ctx: HostContext,
): { operations: BashOperations } | undefined {
  if (!execd.isRemote) return undefined;
  // The directory is one of this machine, and means nothing there.
  const exec: Exec = (command, _cwd, options) =>
    new UserCommand(execd, ctx, command, options).run();
  return { operations: { exec } };
}

/** One command, from its start to its end, with its output as it comes. */
class UserCommand {
  readonly #execd: Client;
  readonly #ctx: HostContext;
  readonly #command: string;
  readonly #options: Streamed;
  #started: Promise<StreamReport> | undefined;
  /** Up to which byte of its output pi has it. */
  #offset = 0;

  constructor(execd: Client, ctx: HostContext, command: string, options: Streamed) {
    this.#execd = execd;
    this.#ctx = ctx;
    this.#command = command;
    this.#options = options;
  }

  /** Fails with `aborted`, as pi's own does, where a person has ended the command by Esc. */
  async run(): Promise<{ exitCode: number }> {
    const { signal } = this.#options;
    if (signal?.aborted) throw new Error("aborted");
    const stopped = new AbortController();
    const esc = signal && new Promise<"esc">((resolve) => {
      signal.addEventListener("abort", () => resolve("esc"), { once: true, signal: stopped.signal });
    });
    const work = this.#work();
    // Behind an Esc nobody waits for it.
    work.catch(() => {});
    try {
      const report = await (esc ? Promise.race([work, esc]) : work);
      if (report !== "esc") return { exitCode: statusOf(report) };
    } finally {
      stopped.abort();
    }
    const ended = this.#end();
    ended.catch(() => {});
    await Promise.race([ended, delay(ESC_ANSWER_MS, undefined, { ref: false })]);
    throw new Error("aborted");
  }

  /** Runs the command to its end, and shows its output on the way. */
  async #work(): Promise<StreamReport> {
    const { signal } = this.#options;
    await this.#execd.start(signal);
    const params = {
      command: this.#command,
      env: commandEnv(process.env, this.#execd.startedWith, true, this.#ctx, undefined),
      stdinMode: "null" as const,
      yieldMs: WAIT_MS,
      // The first output ends the wait; what there is of it is read by pages, in order and whole.
      until: { regex: "(?s)." },
      onImpossible: "wait" as const,
      stream: false,
      maxOutputChars: 1,
    };
    this.#started = this.#execd.request("bash_stream", params, { signal });
    let report = await this.#started;
    const { sessionId } = report;
    if (sessionId === undefined) throw new Error(report.error ?? "execd told no session");
    this.#execd.noteSessionId(sessionId);
    while (report.status === "running" && !signal?.aborted) {
      await this.#show(sessionId);
      await delay(LOOK_MS, undefined, { ref: false });
      const poll = { sessionId, maxDrainMs: WAIT_MS };
      report = await this.#execd.request("poll_process", poll, { signal });
    }
    if (report.error !== undefined) throw new Error(report.error);
    await this.#show(sessionId);
    return report;
  }

  /** Hands pi what has come since the last look. */
  async #show(sessionId: number): Promise<void> {
    const { signal, onData } = this.#options;
    while (!signal?.aborted) {
      const page = await this.#execd.request("get_process_log", {
        sessionId, offset: this.#offset, limit: PAGE_BYTES, encoding: "base64",
      });
      // Nothing may come behind the answer to an Esc.
      if (signal?.aborted) return;
      const gone = page.omittedBytes ?? 0;
      if (gone > 0) onData(Buffer.from(`[${gone} bytes are gone]\n`));
      if (page.text !== "") onData(Buffer.from(page.text, "base64"));
      this.#offset = page.nextOffset;
      if (page.nextOffset >= page.totalBytes) return;
    }
  }

  /** Ends it, with all that it has started, as pi's own is ended by Esc. */
  async #end(): Promise<void> {
    const { status, sessionId } = (await this.#started) ?? {};
    if (status !== "running" || sessionId === undefined) return;
    await this.#execd.request("kill_session", {
      session_id: sessionId, signal: "SIGKILL", by: "the user",
    });
  }
}

/** The status that a shell would tell of it. */
function statusOf({ exitCode, signal }: StreamReport): number {
  const number = signal === undefined ? undefined
    : constants.signals[signal as NodeJS.Signals] as number | undefined;
  return exitCode ?? (number === undefined ? 1 : SIGNAL_STATUS + number);
}
