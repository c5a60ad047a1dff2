/**
 * The params of execd's methods. Made by `npm run wire` from what `execd --describe` prints: a
 * change belongs into execd's table of methods.
 */

/** a listener of the session answers a GET on loopback */
export type Http = {
  /** the path, which begins with / */
  path: string;
  /** where to ask; default any port of the session */
  port?: number | "any";
  /** the status that will do, or [lowest, highest]; default [200, 399] */
  status?: number | readonly number[];
};

/** the same fields as until, for what marks a failure: outcome "stopped" */
export type Stop = {
  /** with text or regex: which match counts, 1..1000000; default 1 */
  count?: number;
  /** a listener of the session answers a GET on loopback */
  http?: Http;
  /** with the idle time: true leaves the CPU time aside */
  idle_cpu?: boolean;
  /**
   * no output for so many milliseconds, and no CPU time used by the session's processes; clamped to
   * 1..3600000
   */
  idle_ms?: number;
  /** the session waits for input: true for any, or this kind */
  input?: boolean | "line" | "password" | "key";
  /** a process of the session listens on this TCP port; 0 or "any": on any port */
  port?: number | "any";
  /**
   * this pattern, or any of these, matches a line of the clean output; no look-around, no
   * back-references; (?i) and (?m) are allowed
   */
  regex?: string | readonly string[];
  /** this string, or any of these, stands in a line of the clean output */
  text?: string | readonly string[];
  /** true: everything that the session started has gone, not the shell alone */
  tree_exit?: boolean;
};

/** ends the wait when any of its fields comes true: outcome "matched" */
export type Until = {
  /** with text or regex: which match counts, 1..1000000; default 1 */
  count?: number;
  /** a listener of the session answers a GET on loopback */
  http?: Http;
  /** with the idle time: true leaves the CPU time aside */
  idle_cpu?: boolean;
  /**
   * no output for so many milliseconds, and no CPU time used by the session's processes; clamped to
   * 1..3600000
   */
  idle_ms?: number;
  /** the session waits for input: true for any, or this kind */
  input?: boolean | "line" | "password" | "key";
  /** a process of the session listens on this TCP port; 0 or "any": on any port */
  port?: number | "any";
  /**
   * this pattern, or any of these, matches a line of the clean output; no look-around, no
   * back-references; (?i) and (?m) are allowed
   */
  regex?: string | readonly string[];
  /** this string, or any of these, stands in a line of the clean output */
  text?: string | readonly string[];
  /** true: everything that the session started has gone, not the shell alone */
  tree_exit?: boolean;
};

/** gives the session's terminal this size first, as resize_session does */
export type Resize = {
  /** columns, clamped to 20..500 */
  cols: number;
  /** rows, clamped to 5..300 */
  rows: number;
};

/** what to write, taken literally: a string, or {"base64": "…"} for exact bytes */
export type Data = {
  base64: string;
};

/** the same fields as until, for what marks a failure: outcome "stopped" */
export type StopCamel = {
  /** with text or regex: which match counts, 1..1000000; default 1 */
  count?: number;
  /** a listener of the session answers a GET on loopback */
  http?: Http;
  /** with the idle time: true leaves the CPU time aside */
  idleCpu?: boolean;
  /**
   * no output for so many milliseconds, and no CPU time used by the session's processes; clamped to
   * 1..3600000
   */
  idleMs?: number;
  /** the session waits for input: true for any, or this kind */
  input?: boolean | "line" | "password" | "key";
  /** a process of the session listens on this TCP port; 0 or "any": on any port */
  port?: number | "any";
  /**
   * this pattern, or any of these, matches a line of the clean output; no look-around, no
   * back-references; (?i) and (?m) are allowed
   */
  regex?: string | readonly string[];
  /** this string, or any of these, stands in a line of the clean output */
  text?: string | readonly string[];
  /** true: everything that the session started has gone, not the shell alone */
  treeExit?: boolean;
};

/** ends the wait when any of its fields comes true: outcome "matched" */
export type UntilCamel = {
  /** with text or regex: which match counts, 1..1000000; default 1 */
  count?: number;
  /** a listener of the session answers a GET on loopback */
  http?: Http;
  /** with the idle time: true leaves the CPU time aside */
  idleCpu?: boolean;
  /**
   * no output for so many milliseconds, and no CPU time used by the session's processes; clamped to
   * 1..3600000
   */
  idleMs?: number;
  /** the session waits for input: true for any, or this kind */
  input?: boolean | "line" | "password" | "key";
  /** a process of the session listens on this TCP port; 0 or "any": on any port */
  port?: number | "any";
  /**
   * this pattern, or any of these, matches a line of the clean output; no look-around, no
   * back-references; (?i) and (?m) are allowed
   */
  regex?: string | readonly string[];
  /** this string, or any of these, stands in a line of the clean output */
  text?: string | readonly string[];
  /** true: everything that the session started has gone, not the shell alone */
  treeExit?: boolean;
};

/** whose a window is, and whose tmux sees */
export type Scope = {
  /** the git root of its directory */
  gitRoot?: string;
  /** pi's session, any word that names it */
  piSession?: string;
};

/** the caller's settings */
export type Context = {
  /** names the log although nothing was cut; default false */
  alwaysShowOutputFilePath?: boolean;
  /** with @123 for the window; default "execd attach @123"; "": not told */
  attachCommand?: string;
  /** false keeps windows that have ended listed; default true */
  autoCloseWindowsOnCompletion?: boolean;
  /** lines of bash's text; default 2000 */
  bashContextLines?: number;
  /** lines of a completion; default 20 */
  completedContextLines?: number;
  /** working directory; default execd's own */
  cwd?: string;
  /** where no timeout is given; default 30 */
  defaultTimeoutSeconds?: number;
  /** the command is shown from behind the last line that is this; default "# SHIM_END" */
  displayCommandStartMarker?: string;
  /** variables to set (a string) or to unset (null) */
  env?: Record<string, string | null>;
  /** bytes of any text; default 51200 */
  maxOutputBytes?: number;
  /** no timeout is longer; default 60 */
  maxTimeoutSeconds?: number;
  /** characters of a name; default 30 */
  maxWindowNameLength?: number;
  /** shortest interval of polls for a model; default 10 */
  minimumPollIntervalSeconds?: number;
  /** lines of a peek; default 2000 */
  peekContextLines?: number;
  /** lines of a poll; default 30 */
  pollContextLines?: number;
  /** "model" (default), or "display": only what has changed */
  pollDelivery?: "model" | "display";
  /** whose a window is, and whose tmux sees */
  scope?: Scope;
  /** a line before the command, which no text shows */
  shellCommandPrefix?: string;
  /** run as SHELLPATH -c; default bash */
  shellPath?: string;
  /** the actions that texts name; default list, peek, kill */
  tmuxEnabledActions?: readonly string[];
  /** as texts call it; default "tmux" */
  tmuxToolName?: string;
  /** gives the command a terminal of 120 × 30; default false */
  tty?: boolean;
  /** pause between progress; default 250 */
  updateIntervalMs?: number;
  /** of {{nameOrCommand}}, {{name}}, {{command}}; default "{{nameOrCommand}}" */
  windowNameTemplate?: string;
  /** which windows tmux sees; default: those with each string of scope that is given */
  windowScope?: "pi-session" | "git-root" | "all";
};

/** The params of each method. */
export interface MethodParams {
  /**
   * Runs a command in a session. Answers when it has exited and its output has ended, or when
   * yield_time_ms is over; then session_id names the running session.
   */
  exec_command: {
    /** the command, run as SHELL -c CMD */
    cmd: string;
    /** columns of the terminal, clamped to 20..500; default 120 */
    cols?: number;
    /** a line before the command, which no text shows */
    command_prefix?: string;
    /** variables to set (a string) or to unset (null) */
    env?: Record<string, string | null>;
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** the cap of a poll in ms; default execd's own (1800000) */
    max_empty_poll_ms?: number;
    /** a label for lists; 1 KiB at most */
    name?: string;
    /** "wake" sends a notification when the session ends and no call observed it */
    on_exit?: "none" | "wake";
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    on_impossible?: "answer" | "wait";
    /** gives output unprocessed instead of clean text */
    raw_output?: boolean;
    /** rows of the terminal, clamped to 5..300; default 30 */
    rows?: number;
    /** the shell, looked up on PATH; default bash */
    shell?: string;
    /** the command's stdin: "pipe" (default) or "null"; a terminal has its own */
    stdin?: "pipe" | "null";
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: Stop;
    /** sends progress notifications while waiting */
    stream?: boolean;
    /** runs the command on a pseudo-terminal; default false */
    tty?: boolean;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: Until;
    /**
     * true: the wait ends also when the session's terminal is asked for a password, as with until
     * {"input":"password"}, and is no longer for that; default false
     */
    until_password?: boolean;
    /** working directory; default execd's own, against which a relative one is resolved */
    workdir?: string;
    /**
     * how long to wait, clamped to 250..30000 ms, with until or stop to 5000 ms..cap of a poll;
     * default 10000
     */
    yield_time_ms?: number;
  };
  /**
   * Writes to a session's stdin, or polls it when there is nothing to write; answers like
   * exec_command.
   */
  write_stdin: {
    /** text to write; C-style escapes are decoded (\x03, \n) */
    chars?: string;
    /** exact bytes to write, in base64 */
    chars_b64?: string;
    /** closes stdin after the bytes; on a terminal in canonical mode sends its end-of-file */
    eof?: boolean;
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** the cap of a poll in ms; default execd's own (1800000) */
    max_empty_poll_ms?: number;
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    on_impossible?: "answer" | "wait";
    /** gives output unprocessed instead of clean text */
    raw_output?: boolean;
    /** gives the session's terminal this size first, as resize_session does */
    resize?: Resize;
    /**
     * the bytes are a secret: they are written only while the terminal does not show what is typed;
     * default false
     */
    secret?: boolean;
    /** the session to write to or to poll */
    session_id: number;
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: Stop;
    /** sends progress notifications while waiting */
    stream?: boolean;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: Until;
    /**
     * true: the wait ends also when the session's terminal is asked for a password, as with until
     * {"input":"password"}, and is no longer for that; default false
     */
    until_password?: boolean;
    /**
     * how long to wait: with input 250..30000 ms (default 250), a poll, and with until or stop,
     * 5000 ms..cap (default 5000)
     */
    yield_time_ms?: number;
    /** polls until this moment (RFC 3339 UTC, 2026-07-21T18:30:00Z) instead */
    yield_until?: string;
  } | {
    /** what to write, taken literally: a string, or {"base64": "…"} for exact bytes */
    data?: string | Data;
    /** closes stdin after the bytes */
    eof?: boolean;
    /**
     * the bytes are a secret: they are written only while the terminal does not show what is typed;
     * default false
     */
    secret?: boolean;
    /** the process */
    sessionId: number;
  };
  /**
   * Ends everything in a session: the signal, and SIGKILL 2 s later if anything is left. Answers
   * when all are gone.
   */
  kill_session: {
    /** a person asks, not whoever started the session: killed_by says it */
    by?: "execd kill" | "the user";
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** the session to end; an unknown one answers {found: false}, a negative one an error */
    session_id: number;
    /** a name, with or without SIG, in any case, or a number; default SIGTERM */
    signal?: string | number;
  };
  /** Lists the sessions by id. An exited one is reported once and then removed. */
  list_sessions: {
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** removes nothing and uses up no wake; default false */
    peek?: boolean;
  };
  /**
   * Arms or disarms a wake: a session_exited notification with wake: true, sent once, if no call
   * observed the exit. Answers {found, status}.
   */
  set_on_exit: {
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** "wake" arms, "none" disarms */
    on_exit: "none" | "wake";
    /** the session */
    session_id: number;
  };
  /**
   * Sets the size of a session's terminal; the program gets SIGWINCH. While clients are attached,
   * the newest of their sizes holds.
   */
  resize_session: {
    /** columns, clamped to 20..500 */
    cols: number;
    /** rows, clamped to 5..300 */
    rows: number;
    /** the session, started with tty: true */
    session_id: number;
  };
  /**
   * Waits for several sessions at once: for one of them, for all, or for the first that fails.
   * Without until it waits for their exits.
   */
  wait_for: {
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /** "compact": the header, or the text, has only lines that tell something; default "full" */
    header?: "full" | "compact";
    /** the cap of a poll in ms; default execd's own (1800000) */
    max_empty_poll_ms?: number;
    /**
     * "any" (default): one of them is enough; "all": each of them; "first_failure": the first that
     * does not exit with 0, else all
     */
    mode?: "any" | "all" | "first_failure";
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    on_impossible?: "answer" | "wait";
    /** the sessions, of any family; "all": every one that list_sessions has */
    session_ids: readonly number[] | "all";
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: Stop;
    /** sends progress notifications while waiting */
    stream?: boolean;
    /** false leaves the output, and the exits, to later calls; default true */
    take?: boolean;
    /** how long to wait, clamped to 0 ms..cap of a poll; default 30000 */
    timeout_ms?: number;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: Until;
    /**
     * true: the wait ends also when the session's terminal is asked for a password, as with until
     * {"input":"password"}, and is no longer for that; default false
     */
    until_password?: boolean;
  };
  /**
   * Runs a command with stdout and stderr apart and its output live. Answers when it has ended, or
   * when yieldMs is over: then poll_process goes on with it.
   */
  bash_stream: {
    /** the command, run as bash -c COMMAND */
    command: string;
    /** a line before the command, which no text shows */
    commandPrefix?: string;
    /** variables to set (a string) or to unset (null) */
    env?: Record<string, string | null>;
    /** characters of each text of a reply, clamped to 1..150000; default 30000 */
    maxOutputChars?: number;
    /** a label for lists; 1 KiB at most */
    name?: string;
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    onImpossible?: "answer" | "wait";
    /** the shell, looked up on PATH; default bash */
    shell?: string;
    /**
     * "pipe" (default); "pty": a terminal, with one stream, where what the shell leaves behind gets
     * SIGHUP when the shell ends; "null": /dev/null, so that what reads it is at its end
     */
    stdinMode?: "pipe" | "pty" | "null";
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: StopCamel;
    /** sends its output as it comes; default true */
    stream?: boolean;
    /** true: password_asked tells when its terminal is asked for a password; default false */
    tellPassword?: boolean;
    /** ends the process after so many ms */
    timeoutMs?: number;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: UntilCamel;
    /** working directory; default execd's own, against which a relative one is resolved */
    workdir?: string;
    /**
     * how long to wait, clamped to 1000..120000 ms, with until or stop to 1000..1800000; default
     * 60000
     */
    yieldMs?: number;
  };
  /**
   * What a process wrote since the last call, or how it ended. One that has ended can be polled
   * again, with the same answer, until its time to live is over.
   */
  poll_process: {
    /**
     * ends all of it: at once ("always"), or if it has not ended when this call's wait is over
     * ("timeout"), which output then does not end
     */
    killIf?: "timeout" | "always";
    /**
     * how long to wait for output or the end, up to 120000 ms, with until or stop up to 1800000;
     * default 0
     */
    maxDrainMs?: number;
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    onImpossible?: "answer" | "wait";
    /** the process */
    sessionId: number;
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: StopCamel;
    /** true: password_asked tells when its terminal is asked for a password; default false */
    tellPassword?: boolean;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: UntilCamel;
    /**
     * how long to wait for the end, whatever output comes, up to 1800000 ms; default 0, with until
     * or stop 60000
     */
    waitMs?: number;
  };
  /** Sends a signal to everything of a process and gives its final status, as poll_process does. */
  kill_process: {
    /** the process */
    sessionId: number;
    /** a name, with or without SIG, in any case, or a number; default SIGKILL */
    signal?: string | number;
  };
  /** Lists what runs, then what has ended, newest first. Takes nothing away. */
  list_processes: Record<string, never>;
  /**
   * A page of a process's output, by byte offset; nextOffset leads to the next one. It takes
   * nothing away.
   */
  get_process_log: {
    /** "base64" gives exact bytes; default "utf8" */
    encoding?: "utf8" | "base64";
    /** bytes, clamped to 4..150000; default 30000 */
    limit?: number;
    /** first byte; negative: from the end; default 0 */
    offset?: number;
    /** the process */
    sessionId: number;
    /** only this stream; default both, in the order in which they came */
    stream?: "stdout" | "stderr";
  };
  /**
   * Runs a command and answers with its output, as pi's bash does. What takes longer than timeout
   * goes on in a background window, whose end is reported by window_exited.
   */
  bash: {
    /** runs in the background from its start */
    background?: boolean;
    /** the command, run as bash -c COMMAND */
    command: string;
    /** the caller's settings */
    context?: Context;
    /** the window's name; default: the command's */
    name?: string;
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    onImpossible?: "answer" | "wait";
    /** seconds between reports of its output, once it runs in the background; 0: none */
    pollInterval?: number;
    /** lines of each; default 30 */
    pollLines?: number;
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: StopCamel;
    /** sends progress while it waits */
    stream?: boolean;
    /** true: password_asked tells when its terminal is asked for a password; default false */
    tellPassword?: boolean;
    /** foreground seconds, more than 0; default 30, at most 60 */
    timeout?: number;
    /** what happens then: it goes on in the background (default), or is ended */
    timeoutAction?: "background" | "kill";
    /**
     * gives it a terminal, for what asks for input; what the shell leaves behind on it gets SIGHUP
     * when the shell ends; default context.tty
     */
    tty?: boolean;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: UntilCamel;
  };
  /** Lists, shows, ends and polls background windows of bash. */
  tmux: {
    /** what to do */
    action: "list" | "list-polls" | "peek" | "kill" | "poll" | "unpoll";
    /** of peek: everything, not only what is new to this client, at most 5 KiB; default false */
    all?: boolean;
    /** the caller's settings */
    context?: Context;
    /** of poll: seconds, more than 0 */
    pollInterval?: number;
    /** of poll: lines; default 30 */
    pollLines?: number;
    /** the window: "@3", or "3" */
    window?: string;
  };
  /**
   * Runs pi on a task: agent_event notifications as it goes on, one result with text, tokens and
   * cost at its end.
   */
  agent_execute: {
    /** tools by name, in any case; absent: pi's own defaults, empty: none at all */
    allowed_tools?: readonly string[];
    /** handed to pi in its provider's variable, or in a file of its own; shown nowhere */
    api_key?: string;
    /** hands system_prompt to pi's --append-system-prompt instead */
    append_system_prompt?: boolean;
    /** variables to set (a string) or to unset (null) */
    env?: Record<string, string | null>;
    /** extensions to load, by path */
    extensions?: readonly string[];
    /** further arguments of pi, before the prompt */
    extra_args?: readonly string[];
    /**
     * it is ended when the model's first event took more ms; where more runs start at once there is
     * more time; default 30000
     */
    first_event_timeout_ms?: number;
    /** it is ended when no event came for so many ms and no tool runs; default 180000 */
    idle_timeout_ms?: number;
    /** run: pi has an agent directory of its own for this run; default shared */
    isolation?: "shared" | "run";
    /** keeps that directory, and the result says where it is */
    keep_agent_dir?: boolean;
    /** keeps pi's raw events for the result */
    keep_events?: boolean;
    /** told again in each event and in the result; 1 KiB at most */
    label?: string;
    /** it is ended when it has cost more; 0: it may cost nothing, absent: no limit */
    max_cost_usd?: number;
    /**
     * it is ended when input, cache writes and output are more tokens; 0: none may be used, absent:
     * no limit
     */
    max_tokens?: number;
    /** an older pi is not started, nor one that tells no version; default 0.70.0 */
    min_version?: string;
    /** provider/id, as pi's --model takes it; pi's own default is google */
    model: string;
    /** pi's path, or its name on the PATH; default $EXECD_PI, else pi */
    pi_path?: string;
    /** the task */
    prompt: string;
    /** its log has pi's stream as pi wrote it, in place of its events; not with api_key */
    raw_log?: boolean;
    /** the pi session to go on with, by its id; absent: none is kept */
    session?: string;
    /** sends its events as they come; default true */
    stream?: boolean;
    /**
     * false: another model than the one asked for may answer; default true: then the run is ended
     */
    strict_model?: boolean;
    /** put before the prompt, with a blank line between them */
    system_prompt?: string;
    /** how much the model thinks */
    thinking?: "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
    /** the run is ended after so many ms, 100 at least; default 600000 */
    timeout_ms?: number;
    /**
     * answers after so many ms at the latest: the run goes on, and agent_result has what it comes
     * to; default: at its end
     */
    wait_ms?: number;
    /** working directory; default execd's own, against which a relative one is resolved */
    workspace?: string;
  };
  /**
   * Waits for the result of a run of agent_execute that was answered before its end; one that has
   * ended is told at once.
   */
  agent_result: {
    /** ends the run: the result says what it has cost until then */
    cancel?: boolean;
    /** the run, as agent_execute has answered it: the id of its session */
    run_id: number;
    /** sends its events as they come, where no older request waits for the run; default false */
    stream?: boolean;
    /** answers after so many ms at the latest, and the run goes on; default: at its end */
    wait_ms?: number;
  };
  /** Runs pi --version, 5 s at most: whether pi is there, and which. */
  agent_health: {
    /** an older pi is not ok, nor one that tells no version; default 0.70.0 */
    min_version?: string;
    /** pi's path, or its name on the PATH; default $EXECD_PI, else pi */
    pi_path?: string;
  };
  /** What the executor behind agent_execute can do, and where its costs come from. */
  agent_capabilities: Record<string, never>;
  /**
   * Attaches this client to a session: attach_output notifications bring its last 64 KiB and then
   * all that comes, attach_ended its end. Again: once more from the start.
   */
  attach_session: {
    /** columns of the client's terminal, clamped to 20..500; the newest size wins */
    cols?: number;
    /**
     * the output comes from this byte on, as far as it is kept; default: the start of a line in the
     * last 64 KiB
     */
    from?: number;
    /** false: a program on a terminal is not made to draw its screen anew; default true */
    redraw?: boolean;
    /** its rows, clamped to 5..300 */
    rows?: number;
    /** the session */
    session_id: number;
  };
  /** Writes bytes straight to a session's terminal, or to its stdin; {session_id}. */
  attach_input: {
    /** the bytes in base64, as they were typed */
    data_b64: string;
    /** closes stdin after the bytes; for sessions on pipes (a terminal gets the key) */
    eof?: boolean;
    /**
     * the bytes are a secret: they are written only while the terminal does not show what is typed;
     * default false
     */
    secret?: boolean;
    /** the session */
    session_id: number;
  };
  /**
   * Ends attach_session: the session goes on, in the size that it had before; {session_id,
   * detached}.
   */
  detach_session: {
    /** the session; one that this client is not attached to is no error */
    session_id: number;
  };
  /**
   * Reads any part of a session's output by its offsets, of whatever family, also when the session
   * has ended and left every list. It takes nothing away.
   */
  read_output: {
    /** true: the reply carries the events that this client was not told yet; default false */
    events?: boolean;
    /**
     * first byte; negative: from the end; default max_bytes before the end, or with a wait the end
     * at the call
     */
    from?: number;
    /** the last so many lines before to, within max_bytes; clamped to 1..1000000 */
    lines?: number;
    /** bytes of output, clamped to 4..1048576; default 65536 */
    max_bytes?: number;
    /**
     * "answer" ends a wait that nothing but input can end any more; "wait" waits on; default that
     * of --on-impossible (answer)
     */
    on_impossible?: "answer" | "wait";
    /** the session */
    session_id: number;
    /** the same fields as until, for what marks a failure: outcome "stopped" */
    stop?: Stop;
    /** only this stream, where the two are apart; offsets count its bytes; default both */
    stream?: "stdout" | "stderr";
    /** the byte behind the last; default the end of the output */
    to?: number;
    /** ends the wait when any of its fields comes true: outcome "matched" */
    until?: Until;
    /** "clean" (default) text, "raw" text with escape sequences, or "b64": exact bytes */
    view?: "clean" | "raw" | "b64";
    /**
     * how long to wait for output at or behind from, or for until and stop; clamped to 0 ms..cap of
     * a poll; default 0, with until or stop 5000
     */
    yield_time_ms?: number;
  };
  /**
   * Ends the wait of the pending request with that id: it answers at once with what it has; its
   * session lives on.
   */
  cancel: {
    /**
     * of a request that has started a command: "interrupt" sends it SIGINT, "kill" SIGTERM and 2 s
     * later SIGKILL; the request answers when the command has ended, or 3 s later
     */
    end?: "interrupt" | "kill";
    /** the id of the pending request, as it was sent on this connection */
    id: string | number | null;
    /** of bash: its command is not ended, it goes on in the background; default false */
    leave?: boolean;
    /** why, for whoever reads the answer: one line of at most 200 bytes */
    reason?: string;
    /** the answer is looked at: it takes the output so far, also that of a poll; default false */
    take?: boolean;
  };
  /**
   * What has happened to sessions: exits, evictions, kills, wakes, trouble of logs, each with a
   * number. Gives those behind a number, or waits for the next one.
   */
  events: {
    /** the number behind which events are told; default 0: all that are kept */
    after?: number;
    /** how many at most, clamped to 1..1024; default 100 */
    max?: number;
    /** true: at once, and nothing counts as told by it; default false */
    peek?: boolean;
    /**
     * true: at once those that no reply has told this client yet, with text: their lines for
     * models; default false
     */
    untold?: boolean;
    /** how long to wait for one where there is none, clamped to 0..300000; default 0 */
    wait_ms?: number;
  };
  /**
   * Gives no session that starts from now on an id up to this one: for a client that goes on with a
   * conversation in which such ids are named.
   */
  reserve_session_ids: {
    /** the highest id that is reserved, 0 to 9007199254740991 (2^53 - 1) */
    up_to: number;
  };
  /** Answers {} at once. */
  ping: Record<string, never>;
  /** Name, version, pid, protocol revision, limits in force, counts and counters. */
  server_info: Record<string, never>;
  /**
   * Ends every session (SIGTERM, 1 s, SIGKILL), answers {ended: [{session_id, pid, command}]}, then
   * execd exits 0.
   */
  shutdown: Record<string, never>;
}

/** A method of execd. */
export type Method = keyof MethodParams;
