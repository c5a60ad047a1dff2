/**
 * One session of pi: its execd, what runs in it, what is told of it; what happens at its start and
 * at its end, and what is handed on at /reload. Which families of tools there are is not known
 * here, nor what they do. Nothing is shared between sessions of pi.
 */
import { Client, type ClientEvents } from "./execd/client.ts";
import type { RequestOptions } from "./execd/daemon.ts";
import { type SeenRunning, Sessions } from "./execd/sessions.ts";
import type { ListResult, Reply, SessionExited, SessionStarted } from "./execd/wire-results.ts";
import type { Method, MethodParams } from "./execd/wire.ts";
import { earlierIds } from "./pi/earlier-ids.ts";
import {
  type Beginning, type SessionNames, handOver, handedOver, leave, leaveNote, leaveUntold, takeLeft,
  takeNotes, takeUntold,
} from "./pi/handover.ts";
import { type HoldMode, hold, holdText, holdsIn, sessionNames } from "./pi/hold.ts";
import { gateNotices } from "./pi/gates.ts";
import type { Host, HostContext } from "./pi/host.ts";
import { Inbox } from "./pi/inbox.ts";
import { keepUntold, keptUntold, withoutDoubles } from "./pi/leftover.ts";
import { Mending } from "./pi/mending.ts";
import { Secrets } from "./pi/secrets.ts";
import { SecondEsc } from "./pi/second-esc.ts";
import { Settings, logKeepFlags, resolveNoLog } from "./pi/settings.ts";
import { roster } from "./pi/roster.ts";
import { Steering } from "./pi/steering.ts";
import { Ui } from "./pi/ui.ts";
import { BY_USER, type LeftEvent, Wakes } from "./pi/wakes.ts";
import { PI_QUIT } from "./text/events.ts";
import { WAKE_MARK, countOf } from "./text/session.ts";
import { isObject, messageOf } from "./text/values.ts";
import { Failures } from "./tools/failures.ts";
import type { Family, FamilyContext, Lasting, MakeFamily } from "./tools/family.ts";
import { Registry } from "./tools/registry.ts";

/** pi's start waits this long for execd; on a far machine it may come later. */
const START_WAIT_MS = 2_000;
/** The end of pi's session waits this long for execd to say what was not told yet. */
const UNTOLD_WAIT_MS = 1_000;
/** execd is asked so often at most: it keeps 1,024 events, and a reply carries 16. */
const UNTOLD_ROUNDS = 65;

/** Stands before what the user is told of all sessions. */
const SPEAKER = "execd";

/**
 * What was said of the settings: the same is not said again at each /new. /reload, which loads this
 * module anew, says it again.
 */
const saidOfSettings = new Set<string>();

/** How many sessions have ended because pi ends. */
let endedByQuit = 0;

/** pi gives the terminal back before it exits; what is said sooner is overdrawn. */
function sayAtExit(ended: number): void {
  if (endedByQuit === 0) {
    process.once("exit", () => console.error(`${SPEAKER}: ended ${countOf(endedByQuit)}`));
  }
  endedByQuit += ended;
}

export class PiSession implements FamilyContext {
  readonly host: Host;
  readonly settings: Settings;
  readonly ui: Ui;
  readonly sessions = new Sessions(() => {
    this.ui.refresh();
    this.secondEsc.onSessionsChanged();
  });
  readonly steering = new Steering();
  readonly secrets = new Secrets(this);
  readonly inbox: Inbox;
  readonly wakes: Wakes;
  readonly secondEsc = new SecondEsc(this);
  readonly failures = new Failures();
  readonly #families: Family[];
  readonly #registry: Registry;
  readonly #mending = new Mending(this);
  #execd: Client;

  constructor(host: Host, makeFamilies: MakeFamily[]) {
    this.host = host;
    this.settings = new Settings(host);
    this.#execd = this.#newClient();
    this.ui = new Ui({
      seen: () => this.seen(),
      isArmed: (id) => this.wakes.isArmed(id),
      look: () => this.#look(),
    });
    this.inbox = new Inbox(host);
    const runs = (id: number) => this.sessions.get(id) !== undefined;
    this.wakes = new Wakes(this.inbox, runs, (message) => this.ui.warn(message));
    this.#families = makeFamilies.map((make) => make(this));
    this.#registry = new Registry(this, this.#families);
  }

  get execd(): Client {
    return this.#execd;
  }

  async request<M extends Method>(
    method: M,
    params: object,
    options: RequestOptions,
  ): Promise<Reply<M>> {
    const result = await this.execd.request(method, params as MethodParams[M], options);
    if (!isObject(result)) return {} as Reply<M>;
    for (const one of this.#lasting) one.onReply(result);
    return result;
  }

  /**
   * In the factory. Names that clash at load stop pi, so tools wait for `session_start`, where they
   * can step aside. A host that cannot tell who owns a name gains nothing by waiting.
   */
  load(): void {
    if (typeof this.host.getAllTools !== "function") this.#registry.register();
    else this.#registry.takeOver(handedOver());
  }

  /** pi's session begins: registers the tools, and takes pi's bash away where execd answers. */
  async onSessionStart(event: Beginning, ctx: HostContext): Promise<void> {
    this.#registry.begin();
    this.ui.attach(ctx);
    this.#readSettings(ctx);
    await this.#adopt(event, ctx);
    this.execd.reopen();
    this.inbox.open();
    const left = [...keptUntold(ctx), ...takeUntold(event, namesOf(ctx).id)];
    this.wakes.takeOver(withoutDoubles(left), event.reason === "reload");
    this.ui.refresh();
    // pi writes "Reloaded …" over the last notice of information; a warning stays.
    for (const text of takeNotes(event, namesOf(ctx).id)) this.ui.warn(text);
    this.#noteEarlierIds(ctx);
    if (!this.#registry.register()) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, START_WAIT_MS);
    });
    await Promise.race([this.#start(ctx), late]);
    clearTimeout(timer);
  }

  #readSettings(ctx: HostContext): void {
    this.settings.open(ctx);
    const news = this.settings.complaints.filter((text) => !saidOfSettings.has(text));
    for (const text of news) {
      saidOfSettings.add(text);
      this.ui.warn(text);
    }
  }

  /** Goes on with the execd of the session before this one, where that has left one. */
  async #adopt(event: Beginning, ctx: HostContext): Promise<void> {
    const left = await takeLeft(event, namesOf(ctx).id);
    if (left) {
      this.#execd = left.client;
      this.#execd.moveTo(
        this.#clientEvents(), () => this.#daemonFlags(), () => this.settings.command,
      );
    }
    for (const one of this.#lastingAskedFor) one.readSettings(event.reason);
    for (const { name, lasting } of this.#families) lasting?.open(event, ctx, left?.kept.get(name));
    // Nobody was there to whom execd could say that it had left out news.
    if (left) this.#mending.begin();
  }

  /** Never rejects: nobody waits for it when it takes long. */
  async #start(ctx: HostContext): Promise<void> {
    try {
      await this.execd.start();
      this.#registry.onExecd();
    } catch (error) {
      if (this.execd.isClosed) return;
      const kept = this.execd.isRemote ? "" : "pi keeps its own bash: ";
      return this.ui.warn(`${kept}${messageOf(error)}`);
    }
    await this.#tellGates(ctx);
  }

  /** Where that fails, as by a context that has gone stale, the tools are none the worse for it. */
  async #tellGates(ctx: HostContext): Promise<void> {
    const instead = this.#registry.registered.flatMap(({ replacesBash }) => replacesBash ?? []);
    const notices = await gateNotices(this.host, ctx, instead).catch(() => []);
    for (const text of notices) this.ui.warn(text);
  }

  /**
   * Sessions end with pi's, what a family keeps only with pi; resolves when all that ends is gone
   * and reaped.
   */
  async onSessionShutdown(reason: string, ctx: HostContext): Promise<void> {
    const registered = this.#registry.registered;
    this.#tellEnds(reason, ctx);
    if (reason !== "quit") handOver(registered.map(({ name }) => name));
    await this.#askUntold();
    this.inbox.close();
    this.secondEsc.close();
    const untold = [...this.wakes.handOn(), ...this.#endedByPi(reason)];
    if (reason !== "quit") leaveUntold(namesOf(ctx), untold);
    if (reason !== "reload") keepUntold(this.host, ctx, untold);
    this.wakes.close();
    await Promise.all(this.#lasting.map((one) => one.close()));
    const isKept = registered.some(({ lasting }) => lasting !== undefined);
    const isOfUse = this.execd.isRunning || this.#lasting.some(({ hasReports }) => hasReports);
    if (reason !== "quit" && isKept && isOfUse) {
      await this.#endSessions();
      this.#leave(namesOf(ctx));
    } else {
      await this.execd.shutdown();
      for (const one of this.#lasting) one.end();
    }
    this.sessions.clear();
    this.ui.detach();
  }

  /** Tells the user which sessions end with this session of pi. */
  #tellEnds(reason: string, ctx: HostContext): void {
    const ending = this.sessions.list().map(({ session_id: id, command }) => ({ id, command }));
    if (reason !== "quit") {
      if (ending.length === 0) return;
      leaveNote(namesOf(ctx), `/${reason} ended ${countOf(ending.length)}: ${sessionNames(ending)}`);
      return;
    }
    const all = this.#lasting.reduce((sum, { running }) => sum + running, ending.length);
    if (all > 0) sayAtExit(all);
  }

  /** Takes from execd what has happened and no reply has told: nobody can ask for that later. */
  async #askUntold(): Promise<void> {
    const over = AbortSignal.timeout(UNTOLD_WAIT_MS);
    const late = new Promise<undefined>((resolve) => {
      over.addEventListener("abort", () => resolve(undefined));
    });
    const ask = () => this.execd.request("list_sessions", { peek: true, events: true } as object);
    for (let rounds = 0; rounds < UNTOLD_ROUNDS && this.execd.isRunning; rounds++) {
      const reply = await Promise.race([ask().catch(() => undefined), late]);
      const { sessions, events } = (reply ?? {}) as Partial<ListResult>;
      const ended = (sessions ?? []).filter(({ running }) => !running);
      this.wakes.onUntold(ended.map((row) => ({ ended: row, woke: false })), events);
      if (!events) return;
    }
  }

  /** What runs now ends with this session of pi, by what the user has typed. */
  #endedByPi(reason: string): LeftEvent[] {
    const killed_by = reason === "quit" ? PI_QUIT : `${BY_USER}: /${reason}`;
    return this.wakes.leave(this.sessions.list().map(({ session_id, command, cwd, log_path }) =>
      ({ session_id, command, cwd, killed_by, ...this.#logOf(log_path) })));
  }

  /** Ends all sessions but those that a family keeps. What cannot be ended goes with execd. */
  async #endSessions(): Promise<void> {
    const kill = (session_id: number) => this.execd.request("kill_session", { session_id });
    await Promise.allSettled(this.sessions.list().map(({ session_id }) => kill(session_id)));
  }

  /** Leaves execd to the session that comes next; this one has none any more. */
  #leave(session: SessionNames): void {
    const kept = this.#families
      .flatMap(({ name, lasting }) => lasting ? [[name, lasting.handOn()] as const] : []);
    leave({ client: this.execd, kept: new Map(kept), session });
    this.#execd = this.#newClient();
    void this.#execd.shutdown();
  }

  /** After /tree: the sessions did not go back with the conversation. */
  onTree(): void {
    this.ui.onTree();
  }

  /** A run ends. In a mode that ends with it, what is to be told is waited for. */
  async onAgentEnd(event: HoldMode, ctx: HostContext): Promise<void> {
    if (this.inbox.onAgentEnd(event)) return;
    if (!this.inbox.isPending || !holdsIn(event, ctx)) return;
    const { holdMs, holdWhere } = this.settings;
    if (holdMs <= 0) return;
    const limit = `${holdMs / 1_000} s`;
    const armed = this.sessions.list().filter(({ session_id }) => this.wakes.isArmed(session_id));
    const awaited = [
      ...armed.map(({ session_id: id, command }) => ({ id, command })),
      ...this.#lasting.flatMap((one) => one.awaited()),
    ];
    if (awaited.length > 0) console.error(holdText(event, ctx, awaited, limit));
    const how = await hold(this.inbox, holdMs, ctx.signal);
    if (how === "stopped") this.inbox.onStopped();
    if (how === "late" && awaited.length > 0) {
      console.error(`execd: waited ${limit} (${holdWhere}) for ${sessionNames(awaited)}; pi ends`);
    }
  }

  /** A conversation that goes on names old ids; a new session must not answer to one of them. */
  #noteEarlierIds(ctx: HostContext): void {
    const ours = {
      isOurTool: (name: string) => this.#registry.isOurs(name),
      isOurMessage: (type: string) => this.inbox.isOurs(type),
    };
    for (const entry of ctx.sessionManager?.getEntries?.() ?? []) {
      for (const id of earlierIds(entry, ours)) this.execd.noteSessionId(id);
    }
  }

  /** What runs, of all families, as people see it. */
  seen(): SeenRunning[] {
    const nowMs = Date.now();
    const others = (this.#families ?? []).flatMap(({ lasting }) => lasting?.seen(nowMs) ?? []);
    return [...this.sessions.seen(nowMs), ...others].sort((a, b) => a.id - b.id);
  }

  /** Asks execd what the sessions are doing. */
  async #look(): Promise<void> {
    for (const { id, seen, states, logPath } of (await roster(this)).rows) {
      this.sessions.noteLog(id, logPath);
      this.sessions.noteState(id, typeof seen.name === "string" ? seen.name : undefined,
        states.filter((state) => state !== WAKE_MARK));
    }
  }

  get #lasting(): Lasting[] {
    return this.#families.flatMap(({ lasting }) => lasting ?? []);
  }

  get #lastingAskedFor(): Lasting[] {
    return this.#families.filter((family) => this.#registry.isAskedFor(family))
      .flatMap(({ lasting }) => lasting ?? []);
  }

  /** What the families know of sessions of their own, each as what mends it. */
  mendFamilies(): ReturnType<Lasting["mend"]>[] {
    return this.#lasting.map((one) => one.mend());
  }

  #newClient(): Client {
    return new Client(
      this.#clientEvents(), () => this.#daemonFlags(), () => this.settings.command,
    );
  }

  #daemonFlags(): string[] {
    const { isRemote } = this.execd;
    // Without logs no directory is made for them.
    const logs = resolveNoLog() ? ["--no-log"]
      : this.#lastingAskedFor.flatMap((one) => one.flags(isRemote));
    // The variable stands behind the settings' flag, so that it wins.
    const complain = (text: string) => this.ui.warn(text);
    return [...logs, ...logKeepFlags(complain, keptOtherwise(logs, isRemote))];
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
    for (const one of this.#lasting) one.onNotification(method, params);
    if (!isObject(params) || !Number.isSafeInteger(params.session_id)) return;
    if (method === "session_started") {
      const started = params as unknown as SessionStarted;
      const startedAtMs = Date.now();
      // Windows are counted elsewhere.
      if (params.window === undefined) this.sessions.started(started, startedAtMs);
      else this.sessions.startedElsewhere({ ...started, startedAtMs });
    } else if (method === "session_exited") {
      this.#onExited(params as unknown as SessionExited);
    }
  }

  #onExited(note: SessionExited): void {
    const session = this.sessions.exited(note);
    const { observed: _, wake, ...facts } = note;
    const known = session ? { command: session.command, cwd: session.cwd } : {};
    if (wake) this.wakes.onWake({ ...known, ...facts });
    else this.wakes.onEnd({ ...known, ...facts });
  }

  /** The log of a session, as what is told of its end names it. */
  #logOf(log_path: string | undefined): { log_path?: string; far?: true } {
    if (log_path === undefined) return {};
    return { log_path, ...(this.execd.isRemote && { far: true as const }) };
  }

  #onLost(why: string): void {
    // The model may have ended its turn to be woken by one of these.
    const lost = `execd ${why}`;
    for (const { session_id, command, cwd, log_path } of this.sessions.list()) {
      if (!this.wakes.isArmed(session_id)) continue;
      this.wakes.onWake({ session_id, command, cwd, lost, ...this.#logOf(log_path) });
    }
    this.sessions.clear();
    for (const one of this.#lasting) one.lost(lost);
    this.ui.warn(`execd ${why}. Its sessions are gone; the next call starts a fresh one.`);
  }
}

/** What becomes of logs under these flags, where nothing else says it. */
function keptOtherwise(flags: string[], isRemote: boolean): string {
  if (flags.includes("--no-log")) return "no logs are written";
  if (flags.includes("--log-keep-days")) return "logs stay (preserveOutputFiles)";
  const unless = isRemote ? ", unless its command line says otherwise" : "";
  return `execd deletes logs after 7 days${unless}`;
}

/** The names of pi's session. */
function namesOf({ sessionManager }: HostContext): SessionNames {
  const id = sessionManager?.getSessionId?.() ?? "";
  return { id, file: sessionManager?.getSessionFile?.() };
}
