/**
 * What becomes of a call that fails: its one message for the model, and its details, which pi asks
 * for at `tool_result`, since it keeps of what a tool throws the message alone.
 */
import { ClientClosed, NotSent } from "../execd/client.ts";
import { DaemonGone, NamedError, NoAnswer, RpcError } from "../execd/daemon.ts";
import { stripControls } from "../text/safe.ts";
import { isObject, messageOf } from "../text/values.ts";
import type { News } from "./updates.ts";
import type { FamilyWords } from "./words.ts";

/** The most failed calls whose result pi has not made yet: a host may never ask. */
const FAILURES_MAX = 256;

/** execd has ended, or fallen silent, during a call: what that had shown by then is told with it. */
export class CutOff extends NamedError {
  override readonly name = "CutOff";
  /** Why there is no answer. */
  readonly why: Error;
  readonly shown: News;

  constructor(why: Error, shown: News) {
    super(why.message);
    this.why = why;
    this.shown = shown;
  }
}

/** A command has failed, and its family's results are errors then; `details` are what they say. */
export class CommandFailed extends NamedError {
  override readonly name = "CommandFailed";
  readonly details: object;

  constructor(text: string, details: object) {
    super(text);
    this.details = details;
  }
}

/** What `error` becomes where a call had shown `shown`: what was seen is not lost with execd. */
export function withShown(error: unknown, shown: News | undefined): unknown {
  const isCutOff = error instanceof DaemonGone || error instanceof NoAnswer;
  return isCutOff && shown ? new CutOff(error, shown) : error;
}

/** The details of the calls that have failed, by their ids, until pi makes their results. */
export class Failures {
  readonly #details = new Map<string, object>();

  note(callId: string, details: object): void {
    this.#details.delete(callId);
    this.#details.set(callId, details);
    const [oldest] = this.#details.keys();
    if (this.#details.size > FAILURES_MAX && oldest !== undefined) this.#details.delete(oldest);
  }

  /** pi makes the result of a call: gives the details of an error that has none. */
  onResult(
    { toolCallId, isError, details }: { toolCallId: string; isError: boolean; details?: unknown },
  ): { details: object } | undefined {
    const own = this.#details.get(toolCallId);
    this.#details.delete(toolCallId);
    // An extension before this one may have made something else of it.
    const isBare = !isObject(details) || Object.keys(details).length === 0;
    return own && isError && isBare ? { details: own } : undefined;
  }
}

/** Whether the message of a failed call says that execd is gone. */
export function tellsOfLoss(error: unknown): boolean {
  return whyOf(error) instanceof DaemonGone;
}

/** Whether nobody knows what has become of a call: what it has started may run. */
export function isUnanswered(error: unknown): boolean {
  return whyOf(error) instanceof NoAnswer;
}

function whyOf(error: unknown): unknown {
  return error instanceof CutOff ? error.why : error;
}

/** The one clear message that a failed call gives the model. */
export function failureText(error: unknown, words: FamilyWords): string {
  const { shuttingDown } = words;
  if (error instanceof ClientClosed) return shuttingDown;
  if (error instanceof NotSent) return words.notSent;
  if (error instanceof RpcError && error.reason === "shutting_down") return shuttingDown;
  if (error instanceof CutOff) return cutOffText(error, words);
  if (error instanceof DaemonGone) {
    return `${error.message}. Its sessions are gone; the next call starts a fresh execd.`;
  }
  if (error instanceof NoAnswer) return `${error.message}. ${words.noAnswer}`;
  return messageOf(error);
}

/** With where all of the output is, and the end of it that the call had shown. */
function cutOffText({ why: failure, shown }: CutOff, words: FamilyWords): string {
  const { output = "", log_path, logPath, far } = shown;
  const path = log_path ?? logPath;
  const where = far === true ? "log_path on the machine where it ran" : "log_path";
  const log = typeof path === "string" ? `\n${where}: ${path}` : "";
  const id = failure instanceof NoAnswer ? idLine(shown) : "";
  const why = `${failureText(failure, words)}${id}${log}`;
  const text = stripControls(output).trim();
  if (text === "") return why;
  return words.outputFirst ? `${text}\n\n${why}` : `${why}\n---\n${text}`;
}

/** The session that perhaps goes on, as its family names it. */
function idLine({ session_id, sessionId }: News): string {
  if (session_id !== undefined) return `\nsession_id: ${String(session_id)}`;
  return sessionId === undefined ? "" : `\nsessionId: ${String(sessionId)}`;
}
