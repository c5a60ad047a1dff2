/**
 * One running execd: its process, its pipes, and the requests that wait for it.
 *
 * The pipes and the process are unref'ed, so an idle daemon never keeps Node alive; while a request
 * waits they are held, so that Node cannot end under a waiting call.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { isObject, parseObject } from "../text/values.ts";
import { isFirstAnswer, NOISE_KEPT_CHARS, NOISE_MAX_BYTES } from "./far.ts";
import { withFarLogs } from "./far-logs.ts";
import { LineSplitter } from "./lines.ts";
import type { Candidate } from "./locate.ts";

/** execd must answer its first request within this time: a far machine's login included. */
export const START_DEADLINE_MS = 10_000;
/** How long a cancelled request is waited for; execd answers it at once. */
export const CANCEL_DEADLINE_MS = 3_000;
/**
 * Period of the pings while requests wait. Two unanswered ones in a row show that execd is stuck.
 */
export const PING_PERIOD_MS = 30_000;
const PINGS_MISSED_MAX = 2;
/** The most requests that were given up and whose answers are still taken. */
const LATE_MAX = 64;
/**
 * The end of execd's pipes is waited for this long after its exit: it may still have said
 * something.
 */
const DRAIN_MS = 200;
/** After the end of its stdout execd has this long to exit before it is killed. */
const EXIT_AFTER_EOF_MS = 2_000;
/** `shutdown` ends every session: SIGTERM, 1 s, SIGKILL, 3 s, and the logs' last bytes. */
export const SHUTDOWN_DEADLINE_MS = 15_000;
/** The most of execd's stderr that is kept for an error message. */
const STDERR_KEPT_CHARS = 2_000;

/**
 * An error that is known by its name: after /reload there are two copies of these classes, and a
 * client that was handed over throws those of the first.
 */
export class NamedError extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === this.name;
  }
}

/** An error reply of execd. */
export class RpcError extends NamedError {
  readonly code: number;
  /** The stable word of a failed operation, such as `unknown_session`. */
  readonly reason: string | undefined;

  constructor(code: number, message: string, reason: string | undefined) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.reason = reason;
  }
}

/** execd is not there any more. */
export class DaemonGone extends NamedError {
  override readonly name = "DaemonGone";
}

/** A cancelled request was not answered in time; what it started goes on. */
export class NoAnswer extends NamedError {
  override readonly name = "NoAnswer";
}

/** Takes the method and the params of a notification. */
export type NotificationHandler = (method: string, params: Record<string, unknown>) => void;

/** What a request may bring along. */
export interface RequestOptions {
  /** Aborting it cancels the wait; the request still resolves, with what execd has. */
  signal?: AbortSignal | undefined;
  /** Why it is cancelled, for the answer, which then has the output so far; asked at the cancel. */
  whyCancelled?: (() => string | undefined) | undefined;
  /** Whether a foreground command of bash goes on in the background then; asked at the cancel. */
  leaves?(): boolean;
  /** Takes each notification about this request (`request_id`), never after it settled. */
  onNotification?: NotificationHandler | undefined;
  /** Takes the result of a cancelled request that was rejected with NoAnswer and is answered now. */
  onLate?(result: object): void;
}

interface Pending extends RequestOptions {
  resolve(result: unknown): void;
  reject(error: Error): void;
  settle(): void;
}

/** Called for what execd says by itself, and once when it is gone. */
export interface DaemonEvents {
  /** A notification that is about no request. */
  onNotification(method: string, params: unknown): void;
  /** `why` is for people: how it ended and its last lines. `expected` after shutdown(). */
  onGone(why: string, expected: boolean): void;
}

export class Daemon {
  readonly candidate: Candidate;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #events: DaemonEvents;
  readonly #pending = new Map<number, Pending>();
  /** Who takes the answers of requests that were given up. */
  readonly #late = new Map<number, RequestOptions>();
  readonly #gone: Promise<void>;
  #resolveGone: () => void = () => {};
  #lastId = 0;
  #stderr = "";
  #spawnError: Error | undefined;
  #ending = false;
  #isGone = false;
  #pings: NodeJS.Timeout | undefined;
  #pingsMissed = 0;
  #drain: NodeJS.Timeout | undefined;
  #beats: NodeJS.Timeout | undefined;
  /** Whether something was sent since the last beat. */
  #hasSent = false;
  /** The line behind which execd's output begins, until it has come. */
  #marker: string | undefined;
  /** What came before it: the beginning, and how much. */
  #noise = "";
  #noiseBytes = 0;

  /**
   * Starts the process; whether it answers is for the first request to tell. What comes before the
   * line `marker` is none of execd's.
   */
  constructor(
    candidate: Candidate,
    flags: string[],
    env: NodeJS.ProcessEnv,
    to: DaemonEvents,
    marker?: string,
  ) {
    this.candidate = candidate;
    this.#marker = marker;
    this.#events = to;
    this.#gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    // A session of its own: a terminal's Ctrl-C is for pi, not for the commands.
    this.#child = spawn(candidate.command, [...candidate.args, ...flags], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env,
    });
    this.#listen();
    this.#hold(false);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isGone(): boolean {
    return this.#isGone || this.#ending;
  }

  #listen(): void {
    const child = this.#child;
    child.once("error", (error) => {
      this.#spawnError = error;
      if (child.pid === undefined) this.#finish(`cannot be started: ${error.message}`);
    });
    // Out of file descriptors, spawn gives a child without pipes, and the error right after.
    const pipes = this.#pipes();
    if (pipes.length === 0) return;
    const lines = new LineSplitter((line) => this.#onLine(line));
    child.stdout.on("data", (bytes: Buffer) => {
      if (this.#marker !== undefined) this.#noteNoise(bytes);
      if (!lines.push(bytes)) this.kill("a line of its output is too long");
    });
    child.stdout.once("end", () => {
      this.#drain ??= setTimeout(() => this.#signal(), EXIT_AFTER_EOF_MS).unref();
    });
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT_CHARS);
    });
    // The process's end is told by `exit`; a write to a pipe that nobody reads must not throw
    // beside that.
    for (const pipe of pipes) pipe.on("error", () => {});
    child.once("close", (code, signal) => this.#finish(describeExit(code, signal)));
    child.once("exit", (code, signal) => {
      clearTimeout(this.#drain);
      // Another process may still hold the pipes; then `close` would come late or never.
      this.#drain = setTimeout(() => this.#finish(describeExit(code, signal)), DRAIN_MS);
      if (this.#pending.size === 0 && !this.#ending) this.#drain.unref();
    });
  }

  /** Sends one request. Rejects with RpcError, or with DaemonGone when execd ends before. */
  request(method: string, params: object, options: RequestOptions = {}): Promise<unknown> {
    if (this.#isGone) return Promise.reject(new DaemonGone("execd is not running"));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const { signal } = options;
      let late: NodeJS.Timeout | undefined;
      const cancel = () => {
        const reason = options.whyCancelled?.();
        const leave = options.leaves?.() === true && { leave: true };
        const params = { id, ...(reason !== undefined && { reason, take: true }), ...leave };
        this.#send({ jsonrpc: "2.0", method: "cancel", params });
        late = setTimeout(() => {
          const seconds = CANCEL_DEADLINE_MS / 1000;
          const error = new NoAnswer(`execd has not answered within ${seconds} s of the cancel`);
          this.#settle(id)?.reject(error);
          if (this.#late.size < LATE_MAX) this.#late.set(id, options);
        }, CANCEL_DEADLINE_MS);
      };
      const settle = () => {
        clearTimeout(late);
        signal?.removeEventListener("abort", cancel);
      };
      this.#pending.set(id, { ...options, resolve, reject, settle });
      if (this.#pending.size === 1) this.#hold(true);
      this.#send({ jsonrpc: "2.0", id, method, params });
      if (signal?.aborted) cancel();
      else signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Sends a blank line where nothing else was sent for `periodMs`, for execd's `--lease`. */
  beat(periodMs: number): void {
    this.#beats = setInterval(() => {
      const [stdin] = this.#pipes();
      // What waits to be sent is heard too, once it is.
      if (!this.#hasSent && stdin?.writableLength === 0) stdin.write("\n");
      this.#hasSent = false;
    }, periodMs).unref();
  }

  /** Ends every session and execd itself; resolves when its process has been reaped. */
  async shutdown(): Promise<void> {
    if (this.#isGone) return;
    this.#ending = true;
    this.#hold(true);
    const late = setTimeout(() => this.kill("it did not shut down"), SHUTDOWN_DEADLINE_MS);
    this.request("shutdown", {}).catch(() => {});
    await this.#gone;
    clearTimeout(late);
  }

  /**
   * Kills execd where nothing else helps; execd's guard ends the sessions. `why` goes to the
   * callers.
   */
  kill(why: string): void {
    this.#stderr += `\n${why}`;
    this.#signal();
  }

  /** Resolves when the process is gone and was reaped. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** SIGKILL to its process group: a transport's shell must not leave the transport behind. */
  #signal(): void {
    const { pid } = this.#child;
    if (this.#isGone || pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#child.kill("SIGKILL");
    }
  }

  #send(message: object): void {
    const [stdin] = this.#pipes();
    if (stdin && !stdin.destroyed) stdin.write(`${JSON.stringify(message)}\n`);
    this.#hasSent = true;
  }

  /** Notes what may have come before the marker. */
  #noteNoise(bytes: Buffer): void {
    this.#noiseBytes += bytes.length;
    const room = NOISE_KEPT_CHARS - this.#noise.length;
    if (room > 0) this.#noise += bytes.toString("utf8").slice(0, room);
    if (this.#noiseBytes > NOISE_MAX_BYTES) {
      this.kill(`more than ${NOISE_MAX_BYTES} bytes came before execd's own output`);
    }
  }

  #onLine(line: string): void {
    // A terminal on the way ends lines in its own way.
    if (this.#marker !== undefined && line.trimEnd() === this.#marker) {
      this.#marker = undefined;
      return;
    }
    // A transport may print lines of its own between.
    const said = parseObject(line);
    if (!said) return;
    const message = this.candidate.remote ? withFarLogs(said) : said;
    if (this.#marker !== undefined) {
      if (!isFirstAnswer(message)) return;
      this.#marker = undefined;
    }
    if (typeof message.method === "string") {
      this.#onNotification(message.method, message.params);
      return;
    }
    this.#pingsMissed = 0;
    if (typeof message.id !== "number") return;
    const pending = this.#settle(message.id);
    const error = isObject(message.error) ? message.error : undefined;
    if (!pending) this.#onLate(message.id, message.result);
    else if (!error) pending.resolve(message.result);
    else pending.reject(rpcError(error));
  }

  #onLate(id: number, result: unknown): void {
    const options = this.#late.get(id);
    this.#late.delete(id);
    try {
      if (isObject(result)) options?.onLate?.(result);
    } catch (error) {
      console.error("pi-execd: a late answer could not be taken:", error);
    }
  }

  /** Catches what a handler throws: inside the event of a pipe an error would end pi. */
  #onNotification(method: string, params: unknown): void {
    try {
      if (isObject(params) && params.request_id !== undefined) {
        this.#pending.get(Number(params.request_id))?.onNotification?.(method, params);
      } else {
        this.#events.onNotification(method, params);
      }
    } catch (error) {
      console.error("pi-execd: a notification could not be shown:", error);
    }
  }

  /** Takes a request off the table: from here on it is answered, once. */
  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (!pending) return undefined;
    this.#pending.delete(id);
    pending.settle();
    if (this.#pending.size === 0 && !this.#ending) this.#hold(false);
    return pending;
  }

  /** Whether the process and its pipes keep Node alive. */
  #hold(on: boolean): void {
    for (const handle of [this.#child, ...this.#pipes()]) {
      if (on) handle.ref();
      else handle.unref();
    }
    if (on) this.#startPings();
    else this.#stopPings();
  }

  #pipes(): Socket[] {
    const { stdin, stdout, stderr } = this.#child as Partial<ChildProcessWithoutNullStreams>;
    return [stdin, stdout, stderr].filter((pipe) => pipe !== undefined) as Socket[];
  }

  #startPings(): void {
    clearInterval(this.#pings);
    this.#pings = setInterval(() => this.#ping(), PING_PERIOD_MS).unref();
  }

  #stopPings(): void {
    clearInterval(this.#pings);
    this.#pingsMissed = 0;
  }

  #ping(): void {
    if (this.#pingsMissed >= PINGS_MISSED_MAX) {
      this.kill("it did not answer for a minute");
      return;
    }
    this.#pingsMissed += 1;
    // Nobody waits for this reply: any reply at all shows that execd is alive.
    this.#send({ jsonrpc: "2.0", id: ++this.#lastId, method: "ping" });
  }

  #finish(how: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#stopPings();
    clearInterval(this.#beats);
    clearTimeout(this.#drain);
    const said = this.#stderr.trim();
    const printed = this.#marker === undefined ? "" : this.#noise.trim();
    const why = (this.#spawnError?.message ?? how) + (said && `; it said: ${lastLines(said)}`)
      + (printed && `; it printed: ${lastLines(printed)}`);
    for (const id of [...this.#pending.keys()]) {
      this.#settle(id)?.reject(new DaemonGone(`execd ${why}`));
    }
    for (const pipe of this.#pipes()) pipe.destroy();
    this.#hold(false);
    this.#resolveGone();
    this.#events.onGone(why, this.#ending);
  }
}

const STDERR_LINES = 5;

function lastLines(text: string): string {
  return text.split("\n").slice(-STDERR_LINES).join("\n");
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  return signal ? `was killed by ${signal}` : `exited with status ${code}`;
}

function rpcError(error: Record<string, unknown>): RpcError {
  const data = isObject(error.data) ? error.data : {};
  const reason = typeof data.reason === "string" ? data.reason : undefined;
  return new RpcError(Number(error.code), String(error.message), reason);
}
