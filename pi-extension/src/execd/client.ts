/**
 * The extension's one client of execd: starts a daemon at the first need, sends requests to it, and
 * starts a fresh one after it ended unexpectedly. Where execd may be is said in locate.ts; what one
 * process does, in daemon.ts.
 */
import { isObject } from "../text/values.ts";
import { Daemon, DaemonGone, NamedError, RpcError, START_DEADLINE_MS } from "./daemon.ts";
import type { RequestOptions } from "./daemon.ts";
import { type FarStart, farStart, farStartOfOlder, refusesFlags } from "./far.ts";
import { type Candidate, type SettledCommand, chosenCommand, locate } from "./locate.ts";
import { execdName } from "./others.ts";
import type { Reply } from "./wire-results.ts";
import type { Method, MethodParams } from "./wire.ts";

/** What the owner of a client gives to it. */
export interface ClientEvents {
  /** A notification of execd that is about no request. */
  onNotification(method: string, params: unknown): void;
  /** The daemon ended unexpectedly; its sessions are gone. `why` is for people. */
  onLost(why: string): void;
}

/** No execd could be started; the message says what was tried and how to fix it. */
export class NoExecd extends NamedError {
  override readonly name = "NoExecd";
}

/** The call was cancelled before its request was sent, while execd was starting, say. */
export class NotSent extends NamedError {
  override readonly name = "NotSent";
}

/** Requests after shutdown() and before reopen(). */
export class ClientClosed extends NamedError {
  override readonly name = "ClientClosed";
}

export class Client {
  #events: ClientEvents;
  readonly #env: () => NodeJS.ProcessEnv;
  #settled: () => SettledCommand | undefined;
  #flags: () => string[];
  #daemon: Daemon | undefined;
  #starting: Promise<Daemon> | undefined;
  /** The process whose start is being tried at this moment. */
  #attempt: Daemon | undefined;
  #startedWith: NodeJS.ProcessEnv = {};
  #socket: unknown;
  #closed = false;
  #starts = 0;
  #lastSessionId = 0;
  /** The running daemon gives no id up to this one. */
  #lastIdOfDaemon = 0;
  #restartNote: string | undefined;
  #lost = "is not running";
  /**
   * Of daemons of an earlier version, the params of ours that they refuse to be asked with, each behind
   * the name of its method.
   */
  readonly #refused = new WeakMap<Daemon, Set<string>>();

  /**
   * `flags`, `settled` and `env` are asked at each start: flags of execd; the command line of the
   * settings; and the environment, which says where execd is, and is what it inherits.
   */
  constructor(
    events: ClientEvents,
    flags: () => string[] = () => [],
    settled: () => SettledCommand | undefined = () => undefined,
    env: () => NodeJS.ProcessEnv = () => process.env,
  ) {
    this.#events = events;
    this.#flags = flags;
    this.#settled = settled;
    this.#env = env;
  }

  /** From now on events go there, and settings come from there: the client has a new owner. */
  moveTo(
    events: ClientEvents,
    flags: () => string[],
    settled: () => SettledCommand | undefined = () => undefined,
  ): void {
    this.#events = events;
    this.#flags = flags;
    this.#settled = settled;
  }

  /** The process of the running daemon, and its program where that is on this machine. */
  get running(): { pid?: number | undefined; program?: string | undefined } {
    const daemon = this.#daemon;
    if (!daemon || daemon.isGone || daemon.candidate.remote) return {};
    return { pid: daemon.pid, program: daemon.candidate.command };
  }

  /**
   * `execd-4242`, as `execd attach` takes it; undefined while none runs on this machine, and where
   * nobody can attach.
   */
  get name(): string | undefined {
    return execdName(this.socket);
  }

  /** The path of the running daemon's control socket; undefined where `name` is. */
  get socket(): string | undefined {
    const isSeen = this.isRunning && !this.isRemote && typeof this.#socket === "string";
    return isSeen ? String(this.#socket) : undefined;
  }

  /**
   * How many daemons have been started: the number tells whether the running one is still the same.
   */
  get starts(): number {
    return this.#starts;
  }

  /** Throws where the daemon with that number of `starts` is gone, as a request to it would. */
  assertSame(starts: number): void {
    if (this.#starts !== starts || !this.isRunning) throw new DaemonGone(`execd ${this.#lost}`);
  }

  /** Whether a daemon runs at this moment. */
  get isRunning(): boolean {
    return this.#daemon !== undefined && !this.#daemon.isGone;
  }

  /** Whether shutdown() was called, and reopen() not yet. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether commands run on a machine that need not be this one (`EXECD_COMMAND`, `command`). */
  get isRemote(): boolean {
    return this.#daemon?.candidate.remote
      ?? chosenCommand(this.#env(), this.#settled()) !== undefined;
  }

  /** The environment that the running daemon was started with. */
  get startedWith(): NodeJS.ProcessEnv {
    return this.#startedWith;
  }

  /**
   * Takes an id that was told before: every daemon goes on above it, so that ids stay unique. A
   * daemon that runs learns of the id before the next request.
   */
  noteSessionId(id: unknown): void {
    this.#lastSessionId = higher(this.#lastSessionId, id);
  }

  /** Starts the daemon if none runs. Rejects with NoExecd, or NotSent as soon as `signal` aborts. */
  async start(signal?: AbortSignal): Promise<void> {
    await unlessAborted(this.#running(), signal);
  }

  /**
   * Sends one request, to a daemon that is started if need be.
   *
   * Rejects with RpcError for an error reply, DaemonGone when execd ended before it answered,
   * NoExecd when there is none, and ClientClosed after shutdown(). An aborted `signal` before the
   * request is sent rejects with NotSent; later it ends the wait.
   */
  async request<M extends Method>(
    method: M,
    params: MethodParams[M],
    options: RequestOptions = {},
  ): Promise<Reply<M>> {
    const daemon = await unlessAborted(this.#running(), options.signal);
    this.#reserveIds(daemon);
    for (;;) {
      const refused = this.#refused.get(daemon) ?? new Set();
      const known = Object.entries(params).filter(([name]) => !refused.has(`${method} ${name}`));
      // A daemon that knows no events takes no reason of a cancel either.
      const own = [...refused].some((one) => one.endsWith(" events")) ? { ...options, whyCancelled: undefined } : options;
      try {
        return await daemon.request(method, Object.fromEntries(known), own) as Reply<M>;
      } catch (error) {
        const name = newParam(error);
        if (name === undefined || refused.has(`${method} ${name}`)) throw error;
        this.#refused.set(daemon, refused.add(`${method} ${name}`));
      }
    }
  }

  /**
   * Has the daemon pass over ids that a conversation names and the daemon has not given. A daemon
   * takes requests in their order, so that what is asked for next gets an id above them.
   */
  #reserveIds(daemon: Daemon): void {
    if (this.#lastSessionId <= this.#lastIdOfDaemon) return;
    this.#lastIdOfDaemon = this.#lastSessionId;
    // An older execd does not know the method; its commands are of use all the same.
    daemon.request("reserve_session_ids", { up_to: this.#lastSessionId }).catch(() => {});
  }

  /** What the first answer after a restart has to say, once; undefined otherwise. */
  takeRestartNote(): string | undefined {
    const note = this.#restartNote;
    if (note !== undefined && !this.isRunning) return undefined;
    this.#restartNote = undefined;
    return note;
  }

  /** Ends every session and the daemon; resolves when its process has been reaped. */
  async shutdown(): Promise<void> {
    this.#closed = true;
    this.#attempt?.kill("pi's session has ended");
    await this.#starting?.catch(() => {});
    const daemon = this.#daemon;
    this.#daemon = undefined;
    this.#restartNote = undefined;
    await daemon?.shutdown();
  }

  /** Requests are taken again after shutdown(). */
  reopen(): void {
    this.#closed = false;
  }

  #running(): Promise<Daemon> {
    if (this.#closed) return Promise.reject(new ClientClosed("shutting down"));
    if (this.#daemon && !this.#daemon.isGone) return Promise.resolve(this.#daemon);
    this.#starting ??= this.#startAny().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** The first candidate that starts and answers. */
  async #startAny(): Promise<Daemon> {
    const env = { ...this.#env() };
    const { candidates, missing } = locate(env, undefined, this.#settled());
    const failed: string[] = [];
    for (const candidate of candidates) {
      try {
        return await this.#startFar(candidate, env);
      } catch (error) {
        if (this.#closed) throw new ClientClosed("shutting down");
        failed.push(`${candidate.source}: ${String((error as Error).message)}`);
      } finally {
        this.#attempt = undefined;
      }
    }
    throw new NoExecd(noExecdMessage(failed, missing));
  }

  /** Starts one, on another machine with a marker and a lease where it knows these. */
  async #startFar(candidate: Candidate, env: NodeJS.ProcessEnv): Promise<Daemon> {
    if (candidate.line === undefined) return await this.#startOne(candidate, env);
    try {
      return await this.#startOne(candidate, env, farStart(candidate.line));
    } catch (error) {
      if (this.#closed || !refusesFlags(String((error as Error).message))) throw error;
      return await this.#startOne(candidate, env, farStartOfOlder(candidate.line));
    }
  }

  async #startOne(
    candidate: Candidate,
    env: NodeJS.ProcessEnv,
    far?: FarStart,
  ): Promise<Daemon> {
    this.#lastIdOfDaemon = this.#lastSessionId;
    const first = this.#lastSessionId + 1;
    const ids = first > 1 ? ["--first-session-id", String(first)] : [];
    const flags = [...far?.flags ?? [], ...ids, ...this.#flags()];
    let started = false;
    const daemon = new Daemon(candidate, flags, env, {
      onNotification: (method, params) => {
        if (method === "session_started" && isObject(params)) {
          this.noteSessionId(params.session_id);
          this.#lastIdOfDaemon = higher(this.#lastIdOfDaemon, params.session_id);
        }
        this.#events.onNotification(method, params);
      },
      onGone: (why, expected) => {
        if (started && !expected) this.#onLost(daemon, why);
      },
    }, far?.marker);
    this.#attempt = daemon;
    this.#socket = (await answersInTime(daemon)).socket;
    started = true;
    this.#starts += 1;
    this.#startedWith = env;
    this.#daemon = daemon;
    if (far?.beatMs !== undefined) daemon.beat(far.beatMs);
    return daemon;
  }

  #onLost(daemon: Daemon, why: string): void {
    if (this.#daemon === daemon) this.#daemon = undefined;
    this.#lost = why;
    this.#restartNote = `execd was restarted: the one before ${firstLine(why)}; `
      + "sessions started before are gone";
    this.#events.onLost(why);
  }
}

/**
 * Asks the process what it is: one exchange shows that it is an execd, and what it says of itself.
 * A process that does not answer in time is killed.
 */
async function answersInTime(daemon: Daemon): Promise<Record<string, unknown>> {
  const late = setTimeout(
    () => daemon.kill(`it did not answer within ${START_DEADLINE_MS / 1000} s`),
    START_DEADLINE_MS,
  );
  try {
    const info = await daemon.request("server_info", {});
    if (!isObject(info) || info.name !== "execd") throw new Error("answers, but is not execd");
    return info;
  } catch (error) {
    daemon.kill("it was not used");
    await daemon.gone;
    throw error instanceof RpcError ? new Error(`is not execd: ${error.message}`) : error;
  } finally {
    clearTimeout(late);
  }
}

/** Throws NotSent when `signal` has aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new NotSent("cancelled");
}

/** `work`, or a rejection with NotSent as soon as the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  throwIfCancelled(signal);
  if (!signal) return work;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new NotSent("cancelled"));
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Params that the extension sends by itself, and that an execd of an earlier version refuses. */
const NEWER_PARAMS = [
  "by", "events", "header", "max_empty_poll_ms", "tellPassword", "until_password",
];

/** The one of them for which an execd has refused a request, before it did anything. */
function newParam(error: unknown): string | undefined {
  if (!(error instanceof RpcError)) return undefined;
  const name = /^unknown param "(\w+)"/.exec(error.message)?.[1] ?? "";
  return NEWER_PARAMS.includes(name) ? name : undefined;
}

function noExecdMessage(failed: string[], missing: string[]): string {
  const tried = [...failed, ...missing.map((what) => `${what}: not found`)];
  return `no execd to run commands with. Tried: ${tried.join("; ")}. `
    + "Install it so that `execd` is on PATH (the package brings it along for Linux on x64 and "
    + "arm64), "
    + "set EXECD_BIN to its path, or EXECD_COMMAND to a command line that starts it elsewhere, "
    + 'for example EXECD_COMMAND="ssh devbox execd".';
}

/** The higher one of two ids; a value that is no id counts for nothing. */
function higher(id: number, other: unknown): number {
  return Number.isSafeInteger(other) ? Math.max(id, Number(other)) : id;
}

function firstLine(text: string): string {
  return text.split(/[\n;]/, 1)[0] ?? "";
}
