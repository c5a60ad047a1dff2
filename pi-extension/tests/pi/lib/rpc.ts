/**
 * pi in rpc mode: commands, responses, events, and the requests of extensions to the user.
 */
import { PiChild } from "./child.ts";
import type { Ending } from "./child.ts";
import { customMessages, isToolEnd, said, toolEnds } from "./events.ts";
import type { PiEvent, PiMessage, ToolEnd } from "./events.ts";
import { piArguments } from "./scratch.ts";
import type { PiOptions, Scratch } from "./scratch.ts";

/** One line of pi in rpc mode: an event, a response, or a request to the user. */
export interface RpcRecord extends PiEvent {
  id?: string;
  command?: string;
  success?: boolean;
  error?: string;
  data?: Record<string, unknown>;
  method?: string;
  notifyType?: string;
  statusKey?: string;
  statusText?: string;
  widgetKey?: string;
  widgetLines?: string[];
  title?: string;
  options?: string[];
}

/** A notice to the user. */
export interface Notice {
  text: string;
  kind: string;
}

/** The wire of rpc names both a notice's text and a message's body `message`. */
type NotifyRecord = Omit<RpcRecord, "message"> & { message?: string };

/** A pi in rpc mode. */
export class Rpc {
  readonly #pi: PiChild<RpcRecord>;
  #commands = 0;

  constructor(place: Scratch, options: PiOptions) {
    const args = ["--mode", "rpc", ...piArguments(options)];
    this.#pi = new PiChild<RpcRecord>(place, args, place.environment(options), true);
  }

  /** Everything pi said so far. */
  get records(): readonly RpcRecord[] {
    return this.#pi.journal.records;
  }

  /** A position: what comes after it is new. */
  mark(): number {
    return this.records.length;
  }

  get pid(): number {
    return this.#pi.pid;
  }

  get stderr(): string {
    return this.#pi.stderr;
  }

  /** Sends pi a signal. */
  signal(signal: NodeJS.Signals): void {
    this.#pi.signal(signal);
  }

  /** The first record at or after `from` that matches, now or when it comes. */
  waitFor(
    what: string,
    matches: (record: RpcRecord) => boolean,
    from = 0,
    patienceMs?: number,
  ): Promise<RpcRecord> {
    return this.#pi.journal.waitFor(what, matches, from, patienceMs);
  }

  /** Sends a command and gives its response; a refusal is an error. */
  async command(type: string, fields: Record<string, unknown> = {}): Promise<RpcRecord> {
    const id = `command-${++this.#commands}`;
    this.#pi.write({ id, type, ...fields });
    const response = await this.waitFor(
      `the response to ${type}`,
      (record) => record.type === "response" && record.id === id,
    );
    if (response.success !== true) throw new Error(`${type} was refused: ${response.error}`);
    return response;
  }

  /** Sends a prompt without waiting for more than its acceptance. */
  async say(message: string, fields: Record<string, unknown> = {}): Promise<void> {
    await this.command("prompt", { message, ...fields });
  }

  /** Sends a prompt and waits until pi has settled after it. */
  async prompt(message: string): Promise<void> {
    const from = this.mark();
    await this.say(message);
    await this.settled(from);
  }

  /** Waits until pi settles, after the position `from`. */
  async settled(from: number): Promise<void> {
    await this.waitFor("pi to settle", (record) => record.type === "agent_settled", from);
  }

  /** Waits for the end of a call of this tool, after the position `from`. */
  async toolEnd(name: string, from = 0): Promise<ToolEnd> {
    const record = await this.waitFor(`the end of ${name}`, isToolEnd(name), from);
    const [end] = toolEnds([record]);
    if (end === undefined) throw new Error("a tool's end that is none");
    return end;
  }

  /** The ends of all tool calls so far, or of those of one tool. */
  toolEnds(name?: string): ToolEnd[] {
    return toolEnds(this.records, name);
  }

  /** What the model said so far. */
  said(): string[] {
    return said(this.records);
  }

  /** The custom messages of this type so far. */
  custom(customType: string): PiMessage[] {
    return customMessages(this.records, customType);
  }

  /** The notices to the user so far, after the position `from`. */
  notices(from = 0): Notice[] {
    return this.records
      .slice(from)
      .filter((record) => record.method === "notify")
      .map((record) => ({ text: noticeText(record), kind: record.notifyType ?? "info" }));
  }

  /** Waits for a notice that matches. */
  async notice(pattern: RegExp, from = 0): Promise<Notice> {
    const record = await this.waitFor(
      `a notice like ${pattern}`,
      (one) => one.method === "notify" && pattern.test(noticeText(one)),
      from,
    );
    return { text: noticeText(record), kind: record.notifyType ?? "info" };
  }

  /** Waits until the status of this key is set to a text that matches; undefined: taken away. */
  status(key: string, pattern: RegExp | undefined, from = 0): Promise<RpcRecord> {
    return this.waitFor(
      `the status ${key} ${pattern ?? "to vanish"}`,
      (record) =>
        record.method === "setStatus" &&
        record.statusKey === key &&
        (pattern === undefined
          ? record.statusText === undefined
          : pattern.test(record.statusText ?? "")),
      from,
    );
  }

  /** Waits until the widget of this key has lines, or (false) is taken away. */
  widget(key: string, shown: boolean, from = 0): Promise<RpcRecord> {
    return this.waitFor(
      `the widget ${key} to ${shown ? "appear" : "vanish"}`,
      (record) =>
        record.method === "setWidget" &&
        record.widgetKey === key &&
        (record.widgetLines !== undefined) === shown,
      from,
    );
  }

  /**
   * Runs a command that asks the user to choose; `choose` answers, undefined for Esc. `then` is the
   * answer to a second question.
   */
  async choose(
    command: string,
    choose: (options: string[]) => string | undefined,
    then?: string,
  ): Promise<string[]> {
    const from = this.mark();
    const accepted = this.say(command);
    const ask = async (after: number) =>
      this.waitFor("a choice", (one) => one.method === "select", after);
    const question = await ask(from);
    const options = question.options ?? [];
    const value = choose(options);
    const answer = value === undefined ? { cancelled: true } : { value };
    const mark = this.mark();
    this.#pi.write({ type: "extension_ui_response", id: question.id, ...answer });
    if (then !== undefined) {
      const { id } = await ask(mark);
      this.#pi.write({ type: "extension_ui_response", id, value: then });
    }
    await accepted;
    return options;
  }

  /** Ends pi by ending its stdin, as a client does. */
  async quit(): Promise<Ending & { elapsedMs: number }> {
    const start = Date.now();
    this.#pi.endInput();
    const ending = await this.#pi.end();
    return { ...ending, elapsedMs: Date.now() - start };
  }

  /** Waits for pi's end. */
  end(patienceMs?: number): Promise<Ending> {
    return this.#pi.end(patienceMs);
  }
}

function noticeText(record: RpcRecord): string {
  return (record as unknown as NotifyRecord).message ?? "";
}
