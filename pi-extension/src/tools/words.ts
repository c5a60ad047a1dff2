/** The words in which a family speaks of its tools. */
/** What a family says to the model where a call fails. */
export interface FamilyWords {
  /** The error of a call once pi's session is ending. */
  shuttingDown: string;
  /** The error of a call that was cancelled before execd was asked for anything. */
  notSent: string;
  /** What may have become of a call whose cancel is not answered, and where to look. */
  noAnswer: string;
  /** What is wrong stands below the output, as pi's own bash has it: its rows show the end. */
  outputFirst?: true;
}

const NOT_SENT = "cancelled before execd was asked for anything: nothing was done";

export const UNIFIED_WORDS: FamilyWords = {
  shuttingDown: "unified-exec: shutting down",
  notSent: NOT_SENT,
  noAnswer: "It may still do what it was asked for: list_sessions shows what runs once it answers "
    + "again.",
};

export const STREAM_WORDS: FamilyWords = {
  shuttingDown: "bash_stream: shutting down",
  notSent: NOT_SENT,
  noAnswer: "It may still do what it was asked for: list_processes shows what runs once it answers "
    + "again.",
};

export const BASH_WORDS: FamilyWords = {
  shuttingDown: "bash: shutting down",
  outputFirst: true,
  // pi's own bash says it in these words.
  notSent: "Command aborted",
  noAnswer: "As soon as it goes on, it ends a command in the foreground; tmux list then shows those "
    + "in the background.",
};
