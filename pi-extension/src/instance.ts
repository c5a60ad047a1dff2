/**
 * One instance of the extension: one pi session's client, its sessions, wakes and notices. Nothing
 * is shared between instances.
 */
import { type Awaited, type HoldMode, hold, holdText, holdsIn } from "./hold.ts";
import { Client, ClientClosed, type ClientEvents, NotSent } from "./client.ts";
import {
  BASH_YIELD_FLAG,
  HOLD_FLAG,
  KEEP_BASH_FLAG,
  TOOLS_FLAG,
  logKeepFlags,
  resolveBashYieldMs,
  resolveHoldMs,
  resolveNoLog,
  resolveSurfaces,
} from "./config.ts";
import { DaemonGone, NoAnswer, type RequestOptions, RpcError, isObject } from "./daemon.ts";
import { earlierIds } from "./earlier-ids.ts";
import type { Host, HostContext, ToolResult } from "./host.ts";
import { type Beginning, handOver, handedOver, leave, takeLeft } from "./handover.ts";
import { Mending } from "./mending.ts";
import { Sessions } from "./sessions.ts";
import { Steering } from "./steering.ts";
import { type Telling, sending } from "./telling.ts";
import { type Surface, surfaces } from "./tools/surface.ts";
import { prefixed } from "./tools/tool.ts";
import { UNIFIED_WORDS, type SurfaceWords } from "./tools/words.ts";
import { Ui } from "./ui.ts";
import { WAKE_MESSAGE_TYPE, Wakes } from "./wakes.ts";
import { type LogPlace, deleteLogs } from "./windows/logs.ts";
import { noteFork } from "./windows/scope.ts";
import { execds } from "./windows/shared.ts";
import { Windows } from "./windows/windows.ts";
import type { SessionExited, SessionStarted } from "./wire.ts";

/** pi's start waits this long for execd; on a far machine it may come later. */
const START_WAIT_MS = 2_000;

export class Instance {
  readonly ui = new Ui((id) => this.wakes.isArmed(id));
  readonly sessions = new Sessions(() => this.ui.refresh(this.sessions));
  readonly steering = new Steering();
  readonly windows: Windows;
  readonly wakes: Wakes;
  readonly #host: Host;
  readonly #registered = new Set<string>();
  readonly #mending: Mending;
  readonly #name = () => this.client.name;
  #client: Client;
  #surfaces: Surface[] = [];
  /** From here on each tool draws itself, ours or another extension's. */
  #hasBegun = false;
  /** Surfaces that are registered once an execd has answered. */
  #later: Surface[] = [];

  constructor(host: Host) {
    this.#host = host;
    this.windows = new Windows(host, this.ui);
    this.#client = this.#newClient();
    this.wakes = new Wakes(
      (content, details, triggerTurn) => {
        if (!host.sendMessage) throw new Error("this host takes no messages");
        const message = { customType: WAKE_MESSAGE_TYPE, content, display: true, details };
        host.sendMessage(message, sending(triggerTurn));
      },
      (message) => this.ui.warn(message),
    );
    this.#mending = new Mending(this);
  }

  get host(): Host {
    return this.#host;
  }

  get client(): Client {
    return this.#client;
  }

  /** Whether commands run on another machine. */
  get isRemote(): boolean {
    return this.client.isRemote;
  }

  /** Where logs are. */
  get logPlace(): LogPlace {
    if (resolveNoLog()) return "nowhere";
    return this.isRemote ? "far" : "here";
  }

  /** How long bash_stream waits where the call does not say; undefined: as execd decides. */
  get bashYieldMs(): number | undefined {
    return resolveBashYieldMs(this.#host.getFlag(BASH_YIELD_FLAG));
  }

  /** Whether other extensions can be told of events. */
  get hasEvents(): boolean {
    return typeof this.#host.events?.emit === "function";
  }

  /** Tells other extensions of an event, where the host can. */
  emit(name: string, data: object): void {
    this.#host.events?.emit?.(name, data);
  }

  /** A request whose result is an object of fields. */
  async request(
    method: string,
    params: object,
    options: RequestOptions,
  ): Promise<Record<string, unknown>> {
    const result = await this.client.request(method, params, options);
    if (!isObject(result)) return {};
    this.windows.background.noteLog(result.log_path ?? result.logPath);
    return result;
  }

  /**
   * Runs one tool call. Failures become one clear error for the model; the first answer after a
   * restart says that earlier sessions are gone. `words` are those of the tool's surface.
   */
  async run(words: SurfaceWords, call: () => Promise<ToolResult>): Promise<ToolResult> {
    try {
      const result = await call();
      const note = this.client.takeRestartNote();
      return note === undefined ? result : withNote(result, note);
    } catch (error) {
      const note = this.client.takeRestartNote();
      const message = messageOf(error, words);
      throw new Error(note === undefined ? message : `${message} (${note})`, { cause: error });
    }
  }

  /** pi's session begins: registers the tools, and takes pi's bash away where execd answers. */
  async onSessionStart(event: Beginning, ctx: HostContext): Promise<void> {
    this.#hasBegun = true;
    this.ui.attach(ctx);
    await this.#adopt(event, ctx);
    this.client.reopen();
    execds().add(this.#name);
    this.wakes.open();
    this.ui.refresh(this.sessions);
    this.#noteEarlierIds(ctx);
    const registered = this.registerTools();
    if (registered.length + this.#later.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, START_WAIT_MS);
    });
    await Promise.race([this.#start(), late]);
    clearTimeout(timer);
  }

  /** Goes on with the execd of the session before this one, where that has left one. */
  async #adopt(event: Beginning, ctx: HostContext): Promise<void> {
    const { id } = namesOf(ctx);
    const left = await takeLeft(event, id);
    if (left) {
      if (event.reason === "fork") noteFork(id, left.session.scope);
      this.#client = left.client;
      this.#client.moveTo(this.#clientEvents(), () => this.#daemonFlags());
    }
    if (this.#wants("bash")) this.windows.readSettings(event.reason);
    this.windows.open(ctx, left?.background);
    // Nobody was there to whom execd could say that it had left out news.
    if (left) this.#mending.begin();
  }

  /** Never rejects: nobody waits for it when it takes long. */
  async #start(): Promise<void> {
    try {
      await this.client.start();
      const later = this.#later.splice(0).filter((surface) => this.#register(surface));
      this.#surfaces.push(...later);
      if (this.#host.getFlag(KEEP_BASH_FLAG) !== true) this.#takeBashAway();
    } catch (error) {
      if (!this.client.isClosed) this.ui.warn(`pi keeps its own bash: ${text(error)}`);
    }
  }

  /**
   * A reply said that a wake is armed. By the time it is read here the session may have ended, and
   * its wake come: then there is nothing to wait for.
   */
  armWake(id: number): void {
    if (!this.sessions.get(id)) return;
    this.wakes.arm(id);
    if (!this.#host.sendMessage) this.ui.warn("no wake can be sent: this host takes no messages");
  }

  /**
   * Sessions end with pi's, background windows only with pi; resolves when all that ends is gone
   * and reaped.
   */
  async onSessionShutdown(reason: string, ctx: HostContext): Promise<void> {
    if (reason !== "quit") handOver(this.#surfaces);
    execds().delete(this.#name);
    this.wakes.close();
    const session = { ...namesOf(ctx), scope: this.windows.scope.piSession };
    await this.windows.close();
    const hasWindows = this.#surfaces.some(({ ownsBash }) => ownsBash);
    const isOfUse = this.client.isRunning || this.windows.background.hasReports({});
    if (reason !== "quit" && hasWindows && isOfUse) {
      await this.#endSessions();
      this.#leave(session);
    } else {
      await this.client.shutdown();
      deleteLogs(this.windows.background.logs);
      this.windows.background.close();
    }
    this.sessions.clear();
    this.ui.detach();
  }

  /** Ends all sessions but the windows. What cannot be ended goes with execd. */
  async #endSessions(): Promise<void> {
    const kill = (session_id: number) => this.client.request("kill_session", { session_id });
    await Promise.allSettled(this.sessions.list().map(({ session_id }) => kill(session_id)));
  }

  /** Leaves execd to the session that comes next; this instance has none any more. */
  #leave(session: { id: string; file: string | undefined; scope: string }): void {
    const client = this.#client;
    const background = this.windows.handOn();
    const events = {
      onNotification: (method: string, params: unknown) => {
        background.onNotification(method, params);
      },
      onLost: (why: string) => background.lost(`execd ${why}`),
    };
    client.moveTo(events, () => []);
    leave({ client, background, session });
    this.#client = this.#newClient();
    void this.#client.shutdown();
  }

  /** A run begins: what ends from now on is told when it has ended. */
  onAgentStart(): void {
    for (const one of this.#telling) one.onAgentStart();
  }

  /** pi is idle. */
  onSettled(): void {
    for (const one of this.#telling) one.onSettled();
  }

  /** What tells the model of ends. */
  get #telling(): Telling[] {
    return [this.wakes, this.windows.deliveries];
  }

  /** A run ends. In a mode that ends with it, what is to be told is waited for. */
  async onAgentEnd(event: HoldMode, ctx: HostContext): Promise<void> {
    const told = this.#telling.map((one) => one.onAgentEnd(event));
    if (told.includes(true)) return;
    const waitsFor = this.#telling.filter(({ isPending }) => isPending);
    if (waitsFor.length === 0 || !holdsIn(event, ctx)) return;
    const holdMs = resolveHoldMs(this.#host.getFlag(HOLD_FLAG));
    if (holdMs <= 0) return;
    const limit = `${holdMs / 1_000} s (--${HOLD_FLAG})`;
    const awaited = this.#awaited();
    if (awaited.length > 0) console.error(holdText(event, ctx, awaited, limit));
    const how = await hold(waitsFor, holdMs, ctx.signal);
    if (how === "stopped") for (const one of this.#telling) one.onStopped();
    if (how === "late") {
      const what = this.wakes.isPending ? "an armed session" : "a background command";
      console.error(`pi-execd: ${what} did not end within ${limit}; `
        + "pi ends, and the session with it");
    }
  }

  /** What a hold waits for, and has not yet ended. */
  #awaited(): Awaited[] {
    const { background, filters } = this.windows;
    const armed = this.sessions.list().filter(({ session_id }) => this.wakes.isArmed(session_id));
    return [
      ...armed.map(({ session_id, command }) => ({ what: `session ${session_id}`, command })),
      ...background.pending(filters)
        .map(({ name, window, command }) => ({ what: `${name} ${window}`, command })),
    ];
  }

  /** Registers the surfaces that were asked for and are free; gives those that are registered. */
  registerTools(): Surface[] {
    const asked = resolveSurfaces(this.#host.getFlag(TOOLS_FLAG));
    const known = asked.map((name) => surfaces.get(name)).filter((one) => one !== undefined);
    const unknown = asked.filter((name) => !surfaces.has(name));
    if (unknown.length > 0) {
      this.ui.warn(`unknown tools ${unknown.join(", ")} in --${TOOLS_FLAG}; `
        + `there are: ${[...surfaces.keys()].join(", ")}`);
    }
    const taken = this.#compatible(known);
    this.ui.speak(taken[0]?.words ?? UNIFIED_WORDS);
    this.#later = taken.filter((surface) => this.#mustWait(surface));
    this.#surfaces = taken.filter((surface) => !this.#later.includes(surface))
      .filter((surface) => this.#register(surface));
    return this.#surfaces;
  }

  /**
   * Whether pi's own bash has to stay until execd has answered. Where commands belong on another
   * machine an error is better than one that runs on this one.
   */
  #mustWait(surface: Surface): boolean {
    const canWait = typeof this.#host.getAllTools === "function";
    return canWait && surface.ownsBash === true && !this.isRemote && !this.client.isRunning;
  }

  #wants(name: string): boolean {
    return resolveSurfaces(this.#host.getFlag(TOOLS_FLAG)).includes(name);
  }

  /**
   * In the factory: what the instance before this one had can be drawn from now on. As tools they
   * would clash there with those of an extension that has come meanwhile, so only their renderers
   * are given to pi. An older pi takes none without the tool; of bash it draws its own rows.
   */
  takeOver(): void {
    const before = handedOver();
    if (typeof this.#host.registerToolRenderer !== "function") {
      for (const surface of before) if (!surface.ownsBash) this.#registerAll(surface);
      return;
    }
    const tools = before.flatMap((surface) => surface.define(this));
    const renderers = new Map(tools.map((tool) => [tool.name, tool]));
    this.#host.registerToolRenderer((name, next) =>
      (this.#hasBegun ? undefined : renderers.get(name)) ?? next());
  }

  /** Of surfaces that have a tool of the same name, the one that was asked for first. */
  #compatible(asked: Surface[]): Surface[] {
    const taken: Surface[] = [];
    for (const surface of asked) {
      const names = surface.tools(this);
      const shares = (name: string) => names.includes(name);
      const rival = taken.find((other) => other.tools(this).some(shares));
      if (!rival) taken.push(surface);
      else {
        const both = rival.tools(this).filter(shares).join(", ");
        this.ui.warn(`${rival.name} and ${surface.name} both have ${both}; ${rival.name}, which `
          + `stands first in --${TOOLS_FLAG}, is used`);
      }
    }
    return taken;
  }

  #register(surface: Surface): boolean {
    const taken = this.#takenNames(surface);
    if (taken.length > 0) {
      this.ui.warn(`another extension has ${taken.join(", ")}; its tools are used, not execd's`);
      return false;
    }
    this.#registerAll(surface);
    return true;
  }

  #registerAll(surface: Surface): void {
    for (const tool of surface.define(this)) {
      if (this.#registered.has(tool.name) && !surface.ownsBash) continue;
      this.#registered.add(tool.name);
      this.#host.registerTool(tool);
    }
  }

  #takenNames(surface: Surface): string[] {
    const names = surface.tools(this);
    const others = this.#host.getAllTools?.() ?? [];
    return others
      .filter(({ name, sourceInfo }) => {
        // pi's own bash is there to be replaced, by a surface that is one.
        const isPisBash = name === "bash" && sourceInfo?.source === "builtin";
        return !(isPisBash && surface.ownsBash);
      })
      .map(({ name }) => name)
      .filter((name) => names.includes(name) && !this.#registered.has(name));
  }

  /**
   * Takes pi's own bash from the active tools, where a tool of ours is there in its place: a user
   * may have left that out, and another extension's bash (a sandbox, say) is not pi's.
   */
  #takeBashAway(): void {
    const inItsPlace = this.#surfaces.flatMap(({ replacesBash }) => replacesBash ?? []);
    if (inItsPlace.length === 0) return;
    const active = this.#host.getActiveTools();
    const all = this.#host.getAllTools?.();
    const bash = all?.find(({ name }) => name === "bash");
    if (all && !inItsPlace.some((name) => active.includes(name))) return;
    if (bash && bash.sourceInfo?.source !== "builtin") return;
    const others = active.filter((name) => name !== "bash");
    if (others.length < active.length) this.#host.setActiveTools(others);
  }

  /** A conversation that goes on names old ids; a new session must not answer to one of them. */
  #noteEarlierIds(ctx: HostContext): void {
    for (const entry of ctx.sessionManager?.getEntries?.() ?? []) {
      const ids = earlierIds(entry, (toolName) => this.#isOurs(toolName));
      for (const id of ids) this.client.noteSessionId(id);
    }
  }

  #isOurs(toolName: string): boolean {
    return [...surfaces.values()].some((surface) => surface.tools(this).includes(toolName));
  }

  #newClient(): Client {
    return new Client(this.#clientEvents(), () => this.#daemonFlags());
  }

  #daemonFlags(): string[] {
    // Without logs no directory is made for them.
    const noLog = resolveNoLog();
    const ofWindows = this.#wants("bash") && !noLog ? this.windows.flags(this.isRemote) : [];
    const logs = noLog ? ["--no-log"] : ofWindows;
    // The variable stands behind the settings' flag, so that it wins.
    const complain = (text: string) => this.ui.complain(text);
    return [...logs, ...logKeepFlags(complain, keptOtherwise(logs, this.isRemote))];
  }

  #clientEvents(): ClientEvents {
    return {
      onNotification: (method, params) => this.#onNotification(method, params),
      onLost: (why) => this.#onLost(why),
    };
  }

  /** A transport may print JSON of its own: only what names a session is taken. */
  #onNotification(method: string, params: unknown): void {
    if (method === "sessions_changed") this.#mending.begin();
    if (method === "session_exited" && isObject(params)) this.#mending.onExited(params.session_id);
    this.windows.background.onNotification(method, params);
    if (!isObject(params) || !Number.isSafeInteger(params.session_id)) return;
    if (method === "session_started") {
      // Windows are counted elsewhere.
      if (params.window !== undefined) return;
      this.sessions.started(params as unknown as SessionStarted, Date.now());
    } else if (method === "session_exited") {
      this.#onExited(params as unknown as SessionExited);
    }
  }

  #onExited(note: SessionExited): void {
    const session = this.sessions.exited(note);
    if (!note.wake) {
      this.wakes.disarm(note.session_id);
      return;
    }
    const { observed: _, wake: __, ...facts } = note;
    const known = session ? { command: session.command, cwd: session.cwd } : {};
    this.wakes.onWake({ ...known, ...facts });
  }

  #onLost(why: string): void {
    // Somebody may have ended its turn to be woken by one of these.
    const lost = `execd ${why}`;
    for (const { session_id, command, cwd, log_path } of this.sessions.list()) {
      if (!this.wakes.isArmed(session_id)) continue;
      this.wakes.onWake({ session_id, command, cwd, lost, ...(log_path && { log_path }) });
    }
    this.sessions.clear();
    this.windows.background.lost(lost);
    this.ui.warn(`execd ${why}. Its sessions are gone; the next call starts a fresh one.`);
  }
}

/** What becomes of logs under these flags, where nothing else says it. */
function keptOtherwise(flags: string[], isRemote: boolean): string {
  if (flags.includes("--no-log")) return "no logs are written";
  if (flags.includes("--log-keep-days")) return "logs stay (preserveOutputFiles)";
  const unless = isRemote ? ", unless EXECD_COMMAND says otherwise" : "";
  return `execd deletes logs after 7 days${unless}`;
}

/** The names of pi's session. */
function namesOf({ sessionManager }: HostContext): { id: string; file: string | undefined } {
  const id = sessionManager?.getSessionId?.() ?? "";
  return { id, file: sessionManager?.getSessionFile?.() };
}

function withNote(result: ToolResult, note: string): ToolResult {
  const { content, details } = prefixed(result, `[${note}]\n`);
  return { content, details: { ...details, restart_note: note } };
}

function messageOf(error: unknown, words: SurfaceWords): string {
  const { shuttingDown } = words;
  if (error instanceof ClientClosed) return shuttingDown;
  if (error instanceof NotSent) return words.notSent;
  if (error instanceof RpcError && error.reason === "shutting_down") return shuttingDown;
  if (error instanceof DaemonGone) {
    return `${error.message}. Its sessions are gone; the next call starts a fresh execd.`;
  }
  if (error instanceof NoAnswer) return `${error.message}. ${words.noAnswer}`;
  return text(error);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
