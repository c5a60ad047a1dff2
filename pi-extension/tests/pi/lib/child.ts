/**
 * A pi started with pipes: its lines as records, its stderr, its end.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { piCommand } from "./paths.ts";
import type { Scratch } from "./scratch.ts";
import { Journal, PATIENCE_MS } from "./waiting.ts";

/** How a process ended. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A line of JSON with the time of its reading. */
export interface Line {
  type: string;
  at: number;
}

/** A running pi whose stdout is read line by line. */
export class PiChild<T extends Line> {
  readonly journal = new Journal<T>();
  readonly ended: Promise<Ending>;
  readonly startedAt = Date.now();
  readonly #child: ChildProcess;
  #stderr = "";

  constructor(place: Scratch, args: string[], env: Record<string, string>, withStdin: boolean) {
    const [program, ...first] = piCommand();
    this.#child = spawn(program, [...first, ...args], {
      cwd: place.cwd,
      env,
      stdio: [withStdin ? "pipe" : "ignore", "pipe", "pipe"],
    });
    this.#readLines();
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    this.ended = this.#watchEnd();
    place.atEnd(async () => {
      this.signal("SIGKILL");
      await this.ended;
    });
  }

  /** pi's process id. */
  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("pi did not start");
    return this.#child.pid;
  }

  /** What pi has written to stderr so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Sends pi a signal; nothing happens if it has ended. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Writes one record to pi's stdin. */
  write(record: object): void {
    this.#child.stdin?.write(`${JSON.stringify(record)}\n`);
  }

  /** Ends pi's stdin. */
  endInput(): void {
    this.#child.stdin?.end();
  }

  /** Waits until pi has ended, and fails if that takes longer than is reasonable. */
  async end(patienceMs = PATIENCE_MS): Promise<Ending> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`pi still runs after ${patienceMs} ms\n${this.#stderr}`)),
        patienceMs,
      );
    });
    try {
      return await Promise.race([this.ended, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lines end at LF only: U+2028 is an ordinary character in JSON. */
  #readLines(): void {
    let rest = "";
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
    });
  }

  #take(line: string): void {
    if (line.trim() === "") return;
    this.journal.push({ ...(JSON.parse(line) as T), at: Date.now() });
  }

  #watchEnd(): Promise<Ending> {
    return new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        this.journal.end(`pi ended (code ${code}, signal ${signal})\n${this.#stderr}`);
        resolve({ code, signal });
      });
    });
  }
}
