/** Which windows belong to whom: the session of pi and the git repository they were started in. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { TmuxBashConfig } from "./keys.ts";
import { type Scope, shared } from "./shared.ts";

export type { Scope };

/** What is asked of pi's context. */
export interface ScopeContext {
  cwd?: string | undefined;
  sessionManager?: { getSessionId?: () => string } | undefined;
}

/** The scope of what `ctx` starts. */
export function scopeOf(ctx: ScopeContext): Scope {
  const cwd = resolve(ctx.cwd ?? process.cwd());
  const session = ctx.sessionManager?.getSessionId?.() ?? "";
  return {
    // A fork goes on with its parent's conversation, so it has its parent's windows.
    piSession: shared().forks.get(session) ?? session,
    gitRoot: gitRootOf(cwd) ?? cwd,
  };
}

/** Notes that a session is a fork of another one. */
export function noteFork(session: string, parentScope: string): void {
  if (session !== parentScope) shared().forks.set(session, parentScope);
}

/** The fields of `scope` by which `tmuxWindowScope` picks windows; all windows have them alike. */
export function filtersOf(
  scope: Scope,
  windowScope: TmuxBashConfig["tmuxWindowScope"],
): Partial<Scope> {
  if (windowScope === "all") return {};
  if (windowScope === "git-root") return { gitRoot: scope.gitRoot };
  return { piSession: scope.piSession };
}

/** Whether a window of this scope passes these filters. */
export function passes(scope: Scope, filters: Partial<Scope>): boolean {
  return (filters.piSession === undefined || filters.piSession === scope.piSession)
    && (filters.gitRoot === undefined || filters.gitRoot === scope.gitRoot);
}

/** The nearest directory at or above `dir` that has a `.git`; undefined outside of all. */
export function gitRootOf(dir: string): string | undefined {
  for (let at = resolve(dir); ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (at === dirname(at)) return undefined;
  }
}
