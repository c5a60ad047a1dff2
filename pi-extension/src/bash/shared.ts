/**
 * What all copies of this package in one process share: pi loads the modules anew at /reload, and
 * for each extension that imports them.
 */

/** Where a window was started. */
export interface Scope {
  piSession: string;
  /** The root of the repository, or the directory itself where it lies in none. */
  gitRoot: string;
}

/** A background window, as the extension knows it. */
export interface Window {
  /** Its id, `@3`. */
  window: string;
  name: string;
  command: string;
  logPath?: string;
  /** The log lies on another machine. */
  far?: true;
  /** The name of the execd that it runs in, `execd-4242`, where that is on this machine. */
  session?: string;
  scope: Scope;
  startedAtMs: number;
  /** The call asked for a command in the background: nobody waits for its end, as for a server's. */
  isAsked?: true;
  /** The window stays listed when it has ended. */
  stays?: true;
  /** The window's end was told; what the command left behind may still run in it. */
  told?: true;
  /** Nothing runs in the window any more. */
  ended?: true;
}

interface Shared {
  /** The tables of windows of all sessions of pi. */
  tables: Set<ReadonlyMap<string, Window>>;
  /** Forked sessions, and the session whose windows they see. */
  forks: Map<string, string>;
  /** What was said of the settings: the same is not said again at each /new. */
  told: Set<string>;
  /** Each function gives the name of the execd of one session of pi, while one runs. */
  execds?: Set<() => string | undefined>;
}

const KEY = Symbol.for("pi-execd.windows");

/** What the copies in this process share. */
export function shared(): Shared {
  const all = globalThis as { [KEY]?: Shared };
  all[KEY] ??= { tables: new Set(), forks: new Map(), told: new Set() };
  return all[KEY];
}

/**
 * The functions that give the names of running execds; a copy of an older version has made no such
 * set.
 */
export function execds(): Set<() => string | undefined> {
  shared().execds ??= new Set();
  return shared().execds as Set<() => string | undefined>;
}
