/**
 * An execd on pipes: requests and answers as JSON lines, notifications as they came.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { execdBinary } from "./paths.ts";
import { processesOf } from "./processes.ts";
import type { LiveProcess } from "./processes.ts";
import type { Scratch } from "./scratch.ts";
import { Journal, PATIENCE_MS } from "./waiting.ts";

/** A line of execd: an answer with an id, or a notification with a method. */
export interface WireLine {
  id?: number | null;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
  method?: string;
  params?: Record<string, unknown>;
}

const EXECD = /^\S*\/execd( |$)/;

/** What runs of a test beside its execd. */
export function startedBy(place: Scratch): LiveProcess[] {
  return processesOf(place.tag).filter((one) => !EXECD.test(one.command));
}

/** A running execd. */
export class Execd {
  readonly journal = new Journal<WireLine>();
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #lastId = 0;
  #stderr = "";

  constructor(place: Scratch, env: Record<string, string> = {}, args: string[] = []) {
    this.#child = spawn(execdBinary(), args, {
      cwd: place.cwd,
      env: { ...place.plainEnvironment(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#readLines();
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    // It may be gone, killed by the test, when the last request is written.
    this.#child.stdin?.on("error", () => {});
    this.ended = new Promise((resolve) => {
      this.#child.once("close", (code) => {
        this.journal.end(`execd ended (code ${code})\n${this.#stderr}`);
        resolve(code);
      });
    });
    place.atEnd(async () => {
      this.#child.kill("SIGKILL");
      await this.ended;
    });
  }

  /** Its process id. */
  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("execd did not start");
    return this.#child.pid;
  }

  /** What it has written to stderr so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Sends a request and gives its id. */
  send(method: string, params: object = {}): number {
    const id = ++this.#lastId;
    this.#child.stdin?.write(`${JSON.stringify({ id, method, params })}\n`);
    return id;
  }

  /** Waits for the answer to a request, whatever it is. */
  answer(id: number, patienceMs = PATIENCE_MS): Promise<WireLine> {
    const matches = (line: WireLine) => line.method === undefined && line.id === id;
    return this.journal.waitFor(`the answer to request ${id}`, matches, 0, patienceMs);
  }

  /** Waits for the result of a request; an error fails. */
  async result(id: number, patienceMs?: number): Promise<Record<string, unknown>> {
    const { result, error } = await this.answer(id, patienceMs);
    if (result === undefined) throw new Error(`request ${id} failed: ${JSON.stringify(error)}`);
    return result;
  }

  /** Asks and waits for the result. */
  call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    return this.result(this.send(method, params));
  }

  /** Ends its stdin and waits for its end. */
  async quit(): Promise<number | null> {
    this.#child.stdin?.end();
    return this.ended;
  }

  #readLines(): void {
    let rest = "";
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.journal.push(JSON.parse(line) as WireLine);
    });
  }
}
