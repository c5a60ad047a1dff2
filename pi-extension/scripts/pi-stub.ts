/**
 * As much of pi as two extensions for commands touch while their tools run, so that both are called
 * in the same way and nothing of pi's own is timed. What pi lends them is the real thing.
 */
import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

const LENT = /^@earendil-works\/pi-|^typebox$/;

/** Lets Node load an extension that is installed elsewhere, with the packages that are here. */
export function lendPackages(): void {
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, LENT.test(specifier) ? { ...context, parentURL: import.meta.url } : context),
    load(url, context, next) {
      // Node itself does not strip types of what lies in node_modules.
      if (!url.endsWith(".ts")) return next(url, context);
      const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8"));
      return { format: "module", source, shortCircuit: true };
    },
  });
}

/** What a call came to. */
export interface Told {
  text: string;
  /** Whether the tool threw, which pi shows the model as an error. */
  threw: boolean;
  ms: number;
}

type Handler = (event: object, ctx: object) => unknown;
interface Tool {
  name: string;
  prepareArguments?(params: object): object;
  execute(id: string, params: object, signal: AbortSignal | undefined, onUpdate: () => void,
    ctx: object): Promise<{ content: { text?: string }[] }>;
}

/** An extension in the stub. */
export class Stub {
  /** The messages that it has sent to the model by itself. */
  readonly messages: string[] = [];
  /** Whether a message of the user waits for the end of the call. */
  hasPending = false;
  readonly #tools = new Map<string, Tool>();
  readonly #handlers = new Map<string, Handler[]>();
  readonly #ctx: object;
  #calls = 0;

  private constructor(cwd: string) {
    const nothing = () => {};
    const theme = { fg: (_: string, text: string) => text, bold: (text: string) => text };
    const ui = new Proxy({}, { get: (_, name) => (name === "theme" ? theme : nothing) });
    this.#ctx = {
      ui, cwd, mode: "tui", hasUI: true, isIdle: () => true,
      hasPendingMessages: () => this.hasPending,
      sessionManager: { getBranch: () => [], getEntries: () => [] },
    };
  }

  /** Loads an extension and begins a session of pi. */
  static async load(file: string, cwd: string): Promise<Stub> {
    const stub = new Stub(cwd);
    const { default: factory } = await import(file) as { default: (pi: object) => unknown };
    await factory(stub.#api());
    await stub.emit("session_start", { reason: "startup" });
    return stub;
  }

  /** Tells the extension of something. */
  async emit(event: string, data: object = {}): Promise<void> {
    for (const handler of this.#handlers.get(event) ?? []) {
      await handler({ type: event, ...data }, this.#ctx);
    }
  }

  /** Calls a tool as pi does, and tells the extension afterwards that its result was taken. */
  async call(name: string, params: object, signal?: AbortSignal): Promise<Told> {
    const toolCallId = `call-${++this.#calls}`;
    const start = performance.now();
    let text = "";
    let threw = false;
    try {
      const tool = this.#tools.get(name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      const prepared = tool.prepareArguments?.(params) ?? params;
      const result = await tool.execute(toolCallId, prepared, signal, () => {}, this.#ctx);
      text = result.content.map((part) => part.text ?? "").join("");
    } catch (error) {
      threw = true;
      text = error instanceof Error ? error.message : String(error);
    }
    const ms = performance.now() - start;
    const told = { toolCallId, toolName: name, isError: threw, result: { content: [] } };
    await this.emit("tool_execution_end", told);
    return { text, threw, ms };
  }

  #api(): object {
    const nothing = () => {};
    const own = {
      on: (event: string, handler: Handler) => {
        this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]);
      },
      registerTool: (tool: Tool) => this.#tools.set(tool.name, tool),
      getFlag: () => undefined,
      getActiveTools: () => [...this.#tools.keys()],
      getAllTools: () => [...this.#tools.values()],
      sendMessage: ({ content }: { content: unknown }) => {
        this.messages.push(String(content));
      },
      events: { on: nothing, emit: nothing },
    };
    return new Proxy(own, { get: (api, name) => Reflect.get(api, name) ?? nothing });
  }
}
