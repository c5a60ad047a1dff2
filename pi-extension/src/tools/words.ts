/** The words in which a family speaks of itself and of its tools. */
import type { Voice } from "../pi/ui.ts";

/** What a family says to people, and to the model where a call fails. */
export interface FamilyWords extends Voice {
  /** The error of a call once pi's session is ending. */
  shuttingDown: string;
  /** The error of a call that was cancelled before execd was asked for anything. */
  notSent: string;
  /** What may have become of a call whose cancel is not answered, and where to look. */
  noAnswer: string;
}

const NOT_SENT = "cancelled before execd was asked for anything: nothing was done";

export const UNIFIED_WORDS: FamilyWords = {
  speaker: "execd",
  shuttingDown: "unified-exec: shutting down",
  list: "list_sessions",
  notSent: NOT_SENT,
  noAnswer: "It may still do what it was asked for: list_sessions shows what runs once it answers "
    + "again.",
  hint:
    "Use list_sessions for a fresh inventory, write_stdin to poll/drive, or kill_session to stop.",
};

export const STREAM_WORDS: FamilyWords = {
  speaker: "execd",
  shuttingDown: "bash_stream: shutting down",
  list: "list_processes",
  notSent: NOT_SENT,
  noAnswer: "It may still do what it was asked for: list_processes shows what runs once it answers "
    + "again.",
  hint: "Use list_processes for a fresh inventory, poll_process to poll, write_stdin to drive, "
    + "or kill_process to stop.",
};

export const BASH_WORDS: FamilyWords = {
  speaker: "execd",
  shuttingDown: "bash: shutting down",
  list: "tmux list",
  // pi's own bash says it in these words.
  notSent: "Command aborted",
  noAnswer: "As soon as it goes on, it ends a command in the foreground; tmux list then shows those "
    + "in the background.",
  hint: "Use tmux list for a fresh inventory, tmux peek to look, or tmux kill to stop.",
};
