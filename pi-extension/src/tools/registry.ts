/**
 * Which families are registered with pi, and when: those that were asked for, whose names are free.
 * What a family does is its own affair.
 */
import type { Client } from "../execd/client.ts";
import type { Host } from "../pi/host.ts";
import type { AskedTools, Settings } from "../pi/settings.ts";
import type { Ui } from "../pi/ui.ts";
import type { Family } from "./family.ts";

/** What the registry sees of the session of pi. */
interface RegistryContext {
  readonly host: Host;
  readonly execd: Client;
  readonly settings: Settings;
  readonly ui: Ui;
}

export class Registry {
  readonly #context: RegistryContext;
  readonly #families: ReadonlyMap<string, Family>;
  /** The names of the tools that this extension has given to pi. */
  readonly #ours = new Set<string>();
  #registered: Family[] = [];
  /** Families that are registered once an execd has answered. */
  #later: Family[] = [];
  /** From pi's session_start on each tool draws itself, ours or another extension's. */
  #hasBegun = false;

  constructor(context: RegistryContext, families: Family[]) {
    this.#context = context;
    this.#families = new Map(families.map((family) => [family.name, family]));
  }

  /** The families whose tools pi has. */
  get registered(): readonly Family[] {
    return this.#registered;
  }

  /** Whether a tool of this name may have been one of ours. */
  isOurs(toolName: string): boolean {
    return [...this.#families.values()].some((family) => family.tools().includes(toolName));
  }

  /** Whether the family was asked for. */
  isAskedFor({ name }: Family): boolean {
    return this.#asked.names.includes(name);
  }

  get #asked(): AskedTools {
    return this.#context.settings.tools;
  }

  /**
   * In the factory: the tools of these families, which the session of pi before this one had, can
   * be drawn from now on. As tools they would clash there with those of an extension that has come
   * meanwhile, so only their renderers are given to pi. An older pi takes no renderer without its
   * tool; of bash it draws its own rows.
   */
  takeOver(names: string[]): void {
    const { host } = this.#context;
    const before = names.map((name) => this.#families.get(name)).filter((one) => one !== undefined);
    if (typeof host.registerToolRenderer !== "function") {
      for (const family of before) if (!family.ownsBash) this.#giveTools(family);
      return;
    }
    const tools = before.flatMap((family) => family.define());
    const renderers = new Map(tools.map((tool) => [tool.name, tool]));
    host.registerToolRenderer((name, next) =>
      (this.#hasBegun ? undefined : renderers.get(name)) ?? next());
  }

  /** pi's session begins: its tools draw their own rows from now on. */
  begin(): void {
    this.#hasBegun = true;
  }

  /**
   * Registers the families that were asked for and whose names are free; gives whether there are
   * any.
   */
  register(): boolean {
    const { ui } = this.#context;
    const { names: asked, where } = this.#asked;
    const unknown = asked.filter((name) => !this.#families.has(name));
    if (unknown.length > 0) {
      ui.warn(`unknown tools ${unknown.join(", ")} in ${where}; `
        + `there are: ${[...this.#families.keys()].join(", ")}`);
    }
    const known = asked.map((name) => this.#families.get(name)).filter((one) => one !== undefined);
    const taken = this.#compatible(known);
    this.#later = taken.filter((family) => this.#mustWait(family));
    this.#registered = taken.filter((family) => !this.#later.includes(family))
      .filter((family) => this.#register(family));
    // What is meant for another machine must not run on this one while that is slow, or is down.
    if (this.#context.execd.isRemote) this.#takeBashAway();
    return this.#registered.length + this.#later.length > 0;
  }

  /**
   * An execd has answered: the families that have waited for that are registered, and pi's own bash
   * goes.
   */
  onExecd(): void {
    const later = this.#later.splice(0).filter((family) => this.#register(family));
    this.#registered.push(...later);
    this.#takeBashAway();
  }

  /**
   * Whether pi's own bash has to stay until execd has answered. Where commands belong on another
   * machine an error is better than one that runs on this one.
   */
  #mustWait(family: Family): boolean {
    const { host, execd } = this.#context;
    const canWait = typeof host.getAllTools === "function";
    return canWait && family.ownsBash === true && !execd.isRemote && !execd.isRunning;
  }

  /** Of families that have a tool of the same name, the one that was asked for first. */
  #compatible(asked: Family[]): Family[] {
    const taken: Family[] = [];
    for (const family of asked) {
      const names = family.tools();
      const shares = (name: string) => names.includes(name);
      const rival = taken.find((other) => other.tools().some(shares));
      if (!rival) taken.push(family);
      else {
        const both = rival.tools().filter(shares).join(", ");
        this.#context.ui.warn(`${rival.name} and ${family.name} both have ${both}; ${rival.name}, `
          + `which stands first in ${this.#asked.where}, is used`);
      }
    }
    return taken;
  }

  #register(family: Family): boolean {
    const taken = this.#takenNames(family);
    if (taken.length > 0) {
      this.#context.ui.warn(`another extension has ${taken.join(", ")}; its tools are used, not `
        + "execd's");
      return false;
    }
    this.#giveTools(family);
    return true;
  }

  #giveTools(family: Family): void {
    for (const tool of family.define()) {
      if (this.#ours.has(tool.name) && !family.ownsBash) continue;
      this.#ours.add(tool.name);
      this.#context.host.registerTool(tool);
    }
  }

  #takenNames(family: Family): string[] {
    const names = family.tools();
    const others = this.#context.host.getAllTools?.() ?? [];
    return others
      .filter(({ name, sourceInfo }) => {
        // pi's own bash is there to be replaced, by a family that has one.
        const isPisBash = name === "bash" && sourceInfo?.source === "builtin";
        return !(isPisBash && family.ownsBash);
      })
      .map(({ name }) => name)
      .filter((name) => names.includes(name) && !this.#ours.has(name));
  }

  /**
   * Takes pi's own bash from the active tools, where a tool of ours is there in its place: a user
   * may have left that out, and another extension's bash (a sandbox, say) is not pi's.
   */
  #takeBashAway(): void {
    const { host, settings } = this.#context;
    if (settings.keepsBash) return;
    const inItsPlace = this.#registered.flatMap(({ replacesBash }) => replacesBash ?? []);
    if (inItsPlace.length === 0) return;
    const active = host.getActiveTools();
    const all = host.getAllTools?.();
    const bash = all?.find(({ name }) => name === "bash");
    if (all && !inItsPlace.some((name) => active.includes(name))) return;
    if (bash && bash.sourceInfo?.source !== "builtin") return;
    const others = active.filter((name) => name !== "bash");
    if (others.length < active.length) host.setActiveTools(others);
  }
}
