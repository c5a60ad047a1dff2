/**
 * Wakes: a session that was started with `on_exit: "wake"` ended and no call told it. Exactly one
 * message to the model says so; it has no output, only where to find it.
 */
import { oneLine } from "./render/safe.ts";

/** Sessions that end within this time of each other are told in one message. */
export const WAKE_GATHER_MS = 250;
/** More than these are not spelled out in one message. */
const WAKE_LINES_MAX = 10;
/** Tool results whose end is awaited; a host that never tells it must not make this grow. */
const DIRECT_MAX = 256;
const COMMAND_CELLS = 120;
const PATH_CELLS = 240;

/** What is told of one ended session. */
export interface Ended {
  session_id?: number;
  exit_code?: number;
  signal?: string;
  command?: string;
  cwd?: string;
  elapsed_ms?: number;
  log_path?: string;
  /** Why it is gone without an exit: execd itself ended. */
  lost?: string;
  /** No call can read its output any more: only the log has it. */
  unreadable?: true;
}

/** The message's `details`, for its renderer. */
export interface WakeDetails {
  sessions: Ended[];
}

export const WAKE_MESSAGE_TYPE = "unified-exec-completed";

/** Hands one message to pi; throws when pi doesn't take it. */
export type SendWake = (content: string, details: WakeDetails) => void;

export class Wakes {
  readonly #send: SendWake;
  readonly #onLost: (message: string) => void;
  readonly #armed = new Set<number>();
  readonly #direct = new Map<string, Ended[]>();
  #gathered: Ended[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #unsent: Ended[] = [];
  #holders: (() => void)[] = [];
  #closed = false;

  /** `onLost` tells people of a message that pi refused twice. */
  constructor(send: SendWake, onLost: (message: string) => void) {
    this.#send = send;
    this.#onLost = onLost;
  }

  /** Whether a wake is armed or on its way. */
  get isPending(): boolean {
    return this.#armed.size > 0 || this.#gathered.length > 0 || this.#unsent.length > 0;
  }

  arm(id: number): void {
    if (!this.#closed) this.#armed.add(id);
  }

  isArmed(id: number): boolean {
    return this.#armed.has(id);
  }

  disarm(id: number): void {
    if (this.#armed.delete(id) && !this.isPending) this.#release();
  }

  /** The daemon told the exit of a session by a wake. */
  onWake(ended: Ended): void {
    if (this.#closed) return;
    if (ended.session_id !== undefined) this.#armed.delete(ended.session_id);
    this.#gathered.push(ended);
    this.#gathering ??= setTimeout(() => this.#flush(), WAKE_GATHER_MS).unref();
  }

  /** A tool result told the exit in the wake's place; pi has still to finalise that result. */
  onDirect(toolCallId: string, ended: Ended): void {
    if (this.#closed) return;
    if (this.#direct.size >= DIRECT_MAX) this.#direct.clear();
    // An id may come twice; each end takes the oldest.
    this.#direct.set(toolCallId, [...(this.#direct.get(toolCallId) ?? []), ended]);
  }

  /** pi finalised a result: as an error, the model did not get the exit from it. */
  onToolEnd(toolCallId: string, isError: boolean): void {
    const [ended, ...others] = this.#direct.get(toolCallId) ?? [];
    if (others.length > 0) this.#direct.set(toolCallId, others);
    else this.#direct.delete(toolCallId);
    if (ended && isError) this.onWake({ ...ended, unreadable: true });
  }

  /** pi is settled: what it refused before is sent once more. */
  onSettled(): void {
    const again = this.#unsent;
    this.#unsent = [];
    if (again.length > 0) this.#deliver(again, true);
  }

  /** Resolves when a wake was delivered, when none is armed any more, or when `over` aborts. */
  hold(over: AbortSignal): Promise<void> {
    if (!this.isPending || over.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        over.removeEventListener("abort", done);
        this.#holders = this.#holders.filter((other) => other !== done);
        resolve();
      };
      over.addEventListener("abort", done, { once: true });
      this.#holders.push(done);
    });
  }

  /** Takes wakes again after close(). */
  open(): void {
    this.#closed = false;
  }

  /** Forgets everything and takes no more: a wake must never reach another session. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#gathered = [];
    this.#unsent = [];
    this.#armed.clear();
    this.#direct.clear();
    this.#release();
  }

  #flush(): void {
    this.#gathering = undefined;
    const ended = this.#gathered;
    this.#gathered = [];
    if (ended.length > 0) this.#deliver(ended, false);
  }

  #deliver(ended: Ended[], last: boolean): void {
    try {
      this.#send(wakeText(ended), { sessions: ended.map(bounded) });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (last) this.#onLost(`could not tell the model that ${names(ended)} ended: ${why}`);
      else this.#unsent.push(...ended);
    }
    this.#release();
  }

  #release(): void {
    for (const done of this.#holders.splice(0)) done();
  }
}

/** The message's text: bounded facts, one line a session, and what to do with them. */
export function wakeText(ended: Ended[]): string {
  const shown = ended.slice(0, WAKE_LINES_MAX).map(line);
  const more = ended.length - shown.length;
  if (more > 0) shown.push(`… and ${more} more; list_sessions shows them`);
  const what = ended.length === 1 ? "a background session" : `${ended.length} background sessions`;
  const readable = ended.some(({ lost, unreadable }) => !lost && !unreadable);
  return [`unified-exec: ${what} ended:`, ...shown, readable ? READ_IT : READ_LOG].join("\n");
}

const READ_IT = "Unread output comes with one empty write_stdin to the session_id, which answers "
  + "at once; the log has all of it.";
const READ_LOG = "Its output is in the log.";

function line(ended: Ended): string {
  const facts = bounded(ended);
  const parts = [
    facts.session_id === undefined ? undefined : `session_id=${facts.session_id}`,
    facts.exit_code === undefined ? undefined : `exit_code=${facts.exit_code}`,
    facts.signal === undefined ? undefined : `signal=${facts.signal}`,
    facts.lost === undefined ? undefined : `lost: ${facts.lost}`,
    facts.elapsed_ms === undefined ? undefined : `elapsed=${seconds(facts.elapsed_ms)}`,
    facts.command === undefined ? undefined : `command: ${facts.command}`,
    facts.cwd === undefined ? undefined : `cwd: ${facts.cwd}`,
    facts.log_path === undefined ? undefined : `log_path: ${facts.log_path}`,
  ];
  return `- ${parts.filter(Boolean).join(" · ")}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)}s`;
}

function bounded(ended: Ended): Ended {
  const cut = { ...ended };
  if (cut.command !== undefined) cut.command = oneLine(cut.command, COMMAND_CELLS);
  if (cut.cwd !== undefined) cut.cwd = oneLine(cut.cwd, PATH_CELLS);
  if (cut.lost !== undefined) cut.lost = oneLine(cut.lost, PATH_CELLS);
  if (cut.log_path !== undefined) cut.log_path = oneLine(cut.log_path, PATH_CELLS);
  return cut;
}

function names(ended: Ended[]): string {
  return ended.map(({ session_id }) => `session ${session_id ?? "?"}`).join(", ");
}
