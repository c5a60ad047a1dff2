/** What other extensions may import: `pi-execd/core`. */
import { isAbsolute } from "node:path";
import { readConfig, type TmuxBashConfig } from "./bash/config.ts";
import {
  type Scope,
  type ScopeContext,
  filtersOf,
  gitRootOf,
  passes,
  scopeOf,
} from "./bash/scope.ts";
import { execds, shared } from "./bash/shared.ts";

export type { TmuxBashConfig } from "./bash/config.ts";

/** The key of the status that tells the number of background windows that run: `2`. */
export { BACKGROUND_STATUS_KEY as backgroundBashStatusKey } from "./bash/status.ts";

/** Which windows an extension sees, and from where. */
export interface TmuxBashContext {
  cwd: string;
  /** Undefined outside of a git repository. */
  gitRoot: string | undefined;
  /**
   * What stands in the place of a tmux session: the name of pi's execd, `execd-4242`. `execd attach`
   * takes it, alone or with a window: `execd-4242:@3`. Undefined while none runs on this machine.
   */
  session: string | undefined;
  scope: Scope;
  windowScope: TmuxBashConfig["tmuxWindowScope"];
  /** The fields of a window's scope that have to be these. */
  filters: Partial<Scope>;
}

/** A background window. */
export interface BashWindow {
  /** `@3`, as the tools name it. */
  id: string;
  /** The number of its session. */
  index: number;
  title: string;
  /** The name of the execd that it runs in, where that is on this machine. */
  session?: string;
  /** The file with its whole output; absent where there is none. */
  outputFile?: string;
}

/** The settings of tmux-bash.jsonc; what is missing or wrong there has its default. */
export function loadTmuxBashConfig(): TmuxBashConfig {
  return readConfig().config;
}

/** The windows that `ctx` sees with these settings. */
export function resolveTmuxBashContext(
  ctx: ScopeContext,
  options: Pick<TmuxBashConfig, "tmuxWindowScope"> = loadTmuxBashConfig(),
): TmuxBashContext {
  const scope = scopeOf(ctx);
  const windowScope = options.tmuxWindowScope;
  const cwd = ctx.cwd !== undefined && isAbsolute(ctx.cwd) ? ctx.cwd : process.cwd();
  const filters = filtersOf(scope, windowScope);
  const session = [...execds()].map((name) => name()).find((name) => name !== undefined);
  return { cwd, gitRoot: gitRootOf(cwd), session, scope, windowScope, filters };
}

/** The background windows of that context, by number. */
export function listBashWindows(context: Pick<TmuxBashContext, "filters">): BashWindow[] {
  return [...shared().tables]
    .flatMap((table) => [...table.values()])
    .filter(({ scope }) => passes(scope, context.filters))
    .map(({ window, name, logPath, far, session }) => ({
      id: window,
      index: Number(window.slice(1)),
      title: name,
      ...(session !== undefined && { session }),
      ...(logPath !== undefined && far !== true && { outputFile: logPath }),
    }))
    .sort((a, b) => a.index - b.index);
}
