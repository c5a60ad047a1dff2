/**
 * The contract of a family of tools: what the session of pi asks of it. Which families there are is
 * said in index.ts and nowhere else.
 */
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { SeenRunning } from "../execd/sessions.ts";
import type { SessionInfo } from "../execd/wire-results.ts";
import type { Beginning, Kept } from "../pi/handover.ts";
import type { Awaited } from "../pi/hold.ts";
import type { HostContext } from "../pi/host.ts";
import type { Inbox } from "../pi/inbox.ts";
import type { ToolContext } from "./context.ts";
import type { FamilyWords } from "./words.ts";

/** What a family sees of the session of pi that it is made for. */
export interface FamilyContext extends ToolContext {
  /** Tells the model of what has ended. */
  readonly inbox: Inbox;
}

/** Makes a family for one session of pi. */
export type MakeFamily = (context: FamilyContext) => Family;

/** A family of tools and how it is put into pi. */
export interface Family {
  readonly name: string;
  readonly words: FamilyWords;
  /** The tool in whose favour pi's own bash leaves the active tools; absent where bash stays. */
  readonly replacesBash?: string;
  /**
   * One of the family's tools may have the name of pi's own bash, which then is out of reach: the
   * family is registered only once an execd has answered. Its texts are made anew at each start.
   */
  readonly ownsBash?: true;
  /** What the family has beside its tools and outlives a session of pi. */
  readonly lasting?: Lasting;
  /** The names of its tools. When another extension has one of them, all of them step aside. */
  tools(): readonly string[];
  /** Makes the definitions of its tools. */
  define(): ToolDefinition[];
}

/**
 * The part of a family that has sessions of its own, which may outlive pi's: the windows of bash.
 * This part is there, and is told of everything, also where the family's tools were not asked for.
 */
export interface Lasting {
  /** Whether something is to be told to any session of pi. */
  readonly hasReports: boolean;
  /** The flags of execd that its settings ask for. */
  flags(isRemote: boolean): string[];
  /** Reads its settings and says what is wrong with them; `reason` is why pi's session begins. */
  readSettings(reason: string): void;
  /** pi's session begins; `kept` is what the session before it has handed on. */
  open(event: Beginning, ctx: HostContext, kept: Kept | undefined): void;
  /** pi's session ends, and what runs in its foreground with it; resolves when that is gone. */
  close(): Promise<void>;
  /** Gives what outlives pi's session, and has none of it any more. */
  handOn(): Kept;
  /** pi ends, after execd has: nothing is left to tell. */
  end(): void;
  /** A notification of execd that is about no request. */
  onNotification(method: string, params: unknown): void;
  /** A reply of execd. */
  onReply(result: Record<string, unknown>): void;
  /** execd is gone, with all its sessions. */
  lost(why: string): void;
  /**
   * Notes what is known now; the function that it gives takes execd's list of sessions as of then.
   */
  mend(): (listed: ReadonlyMap<number, SessionInfo>) => void;
  /** The sessions of its own that run in the background, as people see them. */
  seen(nowMs: number): SeenRunning[];
  /** The sessions that run and whose end is waited for. */
  awaited(): Awaited[];
  /** How many sessions of its own run. */
  readonly running: number;
}
