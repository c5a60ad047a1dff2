/** A stub of pi with only what the extension may count on, and helpers for processes. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import type { ExtensionAPI, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { KillResult, WaitResult } from "../../src/execd/wire-results.ts";
import factory from "../../src/index.ts";

/** The binary under test. */
export const EXECD = process.env.EXECD_TEST_BIN
  ?? resolve(import.meta.dirname, "..", "..", "..", "target", "release", "execd");
assert.ok(existsSync(EXECD), `${EXECD} is missing: cargo build --release --locked`);
process.env.EXECD_BIN = EXECD;
/** Marks every process that this test file starts, directly or not. */
const TAG = `EXECD_TEST_TAG=unit-${process.pid}`;
process.env.EXECD_TEST_TAG = TAG.slice(TAG.indexOf("=") + 1);

/** The fields of details that tests look at; what is missing fails their assertions. */
export type Details = Required<WaitResult & KillResult> & {
  restart_note?: string;
  output_at: [number, number];
};

export interface Result {
  content: { type: string; text: string }[];
  details: Details;
}

type Handler = (event: object, ctx: object) => unknown;

/** What a test can see and set of the stub. */
export class Pi {
  readonly tools = new Map<string, ToolDefinition>();
  readonly handlers = new Map<string, Handler[]>();
  readonly commands = new Map<string, (args: string, ctx: object) => Promise<void>>();
  readonly completions = new Map<string, (prefix: string) => { value: string; description?: string }[] | null>();
  readonly flags: Record<string, unknown> = {};
  readonly notices: string[] = [];
  readonly statuses: (string | undefined)[] = [];
  /** The statuses that are there, by their keys. */
  readonly footer = new Map<string, string>();
  active = ["read", "bash", "edit"];
  /** What an extension is given. */
  readonly api: ExtensionAPI;
  /** Fields of the context beside the minimal ui. */
  readonly ctx: Record<string, unknown>;

  /** `extra`: what this host has beyond the minimum. */
  constructor(extra: object = {}, ctx: object = {}) {
    this.ctx = {
      ui: {
        notify: (text: string) => this.notices.push(text),
        setStatus: (key: string, text: string | undefined) => {
          this.statuses.push(text);
          if (text === undefined) this.footer.delete(key);
          else this.footer.set(key, text);
        },
      },
      cwd: process.cwd(),
      ...ctx,
    };
    const api = {
      registerTool: (tool: ToolDefinition) => this.tools.set(tool.name, tool),
      on: (event: string, handler: Handler) => {
        this.handlers.set(event, [...(this.handlers.get(event) ?? []), handler]);
      },
      registerCommand: (name: string, command: Record<string, never>) => {
        this.commands.set(name, command.handler as never);
        this.completions.set(name, command.getArgumentCompletions as never);
      },
      registerShortcut: () => {},
      registerFlag: () => {},
      registerMessageRenderer: () => {},
      getFlag: (name: string) => this.flags[name],
      getActiveTools: () => this.active,
      setActiveTools: (names: string[]) => {
        this.active = names;
      },
      ...extra,
    };
    this.api = api as unknown as ExtensionAPI;
    factory(this.api);
  }

  async emit(event: string, payload: object = {}): Promise<void> {
    for (const handler of this.handlers.get(event) ?? []) {
      await handler({ type: event, ...payload }, this.ctx);
    }
  }

  start(): Promise<void> {
    return this.emit("session_start", { reason: "startup" });
  }

  shutdown(): Promise<void> {
    return this.emit("session_shutdown", { reason: "quit" });
  }

  /** Calls a tool as pi does. */
  async call(
    name: string,
    params: object = {},
    options: { signal?: AbortSignal; onUpdate?: (update: Result) => void; id?: string } = {},
  ): Promise<Result> {
    const tool = this.tools.get(name);
    assert.ok(tool, `${name} is registered`);
    const prepared = tool.prepareArguments ? tool.prepareArguments(params) : params;
    const result = await tool.execute(
      options.id ?? "call_1",
      prepared as never,
      options.signal,
      options.onUpdate as never,
      this.ctx as never,
    );
    return result as unknown as Result;
  }
}

/** The text that the model reads. */
export function textOf(result: Result): string {
  return result.content.map((part) => part.text).join("\n");
}

/** The output alone, which stands in the text and nowhere else. */
export function outputOf(result: Result): string {
  const { output_at: [from, to] } = result.details;
  return textOf(result).slice(from, to);
}

/** Resolves when `check` gives something true; fails after `ms`. */
export async function until<T>(check: () => T, what: string, ms = 30_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const value = check();
    if (value) return value;
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

/** Pids of this file's processes whose command line, with blanks between, has `part`. */
export function processesWith(part: string): number[] {
  return readdirSync("/proc").map(Number).filter((pid) => pid > 0 && pid !== process.pid
    && wordsOf(pid, "cmdline").join(" ").includes(part) && wordsOf(pid, "environ").includes(TAG));
}

/**
 * The first of them, as soon as there is one: in the middle of an exec a process has no command
 * line for a moment.
 */
export function runs(part: string): Promise<number> {
  return until(() => processesWith(part)[0] ?? 0, `a process like ${part}`);
}

/** What /proc says of a process, word by word; nothing where it has ended. */
function wordsOf(pid: number, file: "cmdline" | "environ"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** The parent of `pid`; 0 where there is no such process. */
export function parentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[1]);
  } catch {
    return 0;
  }
}

/** Kills with SIGKILL; never, for want of a pid, the own process group. */
export function kill(pid: number | undefined): void {
  assert.ok(pid !== undefined && pid > 1, `a process to kill, not ${pid}`);
  process.kill(pid, "SIGKILL");
}
