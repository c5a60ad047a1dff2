/** The words in which a surface speaks of itself and of its tools. */
export interface SurfaceWords {
  /** Stands before notices to people. */
  speaker: string;
  /** The error of a call once pi's session is ending. */
  shuttingDown: string;
  /** The tool that lists what runs. */
  list: string;
  /** The last line of the widget after /tree: which tools to go on with. */
  hint: string;
}

export const UNIFIED_WORDS: SurfaceWords = {
  speaker: "unified-exec",
  shuttingDown: "unified-exec: shutting down",
  list: "list_sessions",
  hint:
    "Use list_sessions for a fresh inventory, write_stdin to poll/drive, or kill_session to stop.",
};

export const STREAM_WORDS: SurfaceWords = {
  speaker: "unified-exec",
  shuttingDown: "bash_stream: shutting down",
  list: "list_processes",
  hint: "Use list_processes for a fresh inventory, poll_process to poll, write_stdin to drive, "
    + "or kill_process to stop.",
};

export const BASH_WORDS: SurfaceWords = {
  speaker: "bash",
  shuttingDown: "bash: shutting down",
  list: "tmux list",
  hint: "Use tmux list for a fresh inventory, tmux peek to look, or tmux kill to stop.",
};
