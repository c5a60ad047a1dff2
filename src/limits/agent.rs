//! Bounds of agent_execute and of the stream of pi (agent.md, Limits).

/// Runs of pi that go on at once.
pub const RUNNING_AGENTS_MAX: usize = 64;
/// A run of pi is ended after this, unless the call says otherwise.
pub const AGENT_TIMEOUT_MS: u64 = 600_000;
/// A shorter timeout of a run is refused: pi does not even start within it, and most often the
/// number was meant to be seconds.
pub const AGENT_TIMEOUT_MIN_MS: i64 = 100;
/// Bytes of the label of a run.
pub const AGENT_LABEL_MAX_BYTES: usize = 1024;
/// A run of pi is ended when no event came for this long, unless the call says otherwise.
pub const AGENT_IDLE_TIMEOUT_MS: u64 = 180_000;
/// A run of pi is ended when the model's first event took longer, unless the call says otherwise.
pub const AGENT_FIRST_EVENT_TIMEOUT_MS: u64 = 30_000;
/// How long pi may take to exit after its last agent_end.
pub const AGENT_EXIT_MS: u64 = 10_000;
/// How much longer each run that starts at the same time makes the start of pi: about two seconds
/// of a processor's time, which may be one for all of them.
pub const AGENT_STARTING_MS: u64 = 2_000;
/// How long `pi --version` may take.
pub const AGENT_VERSION_MS: u64 = 5_000;
/// How long `pi --help` may take, which reads settings and catalogues of models first.
pub const AGENT_HELP_MS: u64 = 10_000;
/// How much longer either may take for runs that need the answer, for as long as it has waited for
/// a processor: where sixty runs start at once, each with an execd of its own, all of them ask.
pub const AGENT_STARVED_MAX_MS: u64 = 60_000;
/// Names of tools that are taken from what `pi --help` prints.
pub const AGENT_TOOLS_MAX: usize = 256;
/// Bytes of a version, and of what was said in its place, that are told.
pub const AGENT_VERSION_BYTES: usize = 200;
/// How long it is remembered what a program of pi has told of itself: an upgrade is noticed then.
pub const AGENT_VERSION_KEPT_MS: u64 = 60_000;
/// Programs whose version and tools are remembered.
pub const AGENT_VERSIONS_MAX: usize = 64;
/// A longer prompt goes through a file: an argument is 128 KiB at most, and pi's other
/// arguments need room too.
pub const AGENT_PROMPT_ARG_BYTES: usize = 100 * 1024;
/// Bytes of the SHA-256 of a text in the name of that file.
pub const AGENT_PROMPT_HASH_BYTES: usize = 4;
/// Bytes of a file of the agent directory that a run's own directory has a copy of.
pub const AGENT_DIR_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Names in an agent directory that are linked to, and in the place of all of them that are looked
/// at.
pub const AGENT_DIR_NAMES: usize = 4_096;
/// Names that are tried for an agent directory or a prompt before there is none.
pub const AGENT_DIR_TRIES: usize = 1_024;
/// How often a file of JSON is read that somebody just writes, and the pause between.
pub const AGENT_DIR_READS: usize = 10;
/// See [`AGENT_DIR_READS`].
pub const AGENT_DIR_READ_PAUSE_MS: u64 = 20;
/// A shorter api_key is not looked for in what pi writes.
pub const AGENT_SECRET_MIN_BYTES: usize = 8;
/// A longer one is refused.
pub const AGENT_SECRET_MAX_BYTES: usize = 4_096;
/// How much of an api_key's beginning, and never more than a quarter of the key, is told as the end
/// of a text when it is not known yet whether the key goes on.
pub const AGENT_SECRET_HINT_BYTES: usize = 16;
/// Blocks of a message whose last bytes may be the beginning of an api_key at once.
pub const AGENT_HOLDS_MAX: usize = 64;
/// Bytes of pi's stderr that are kept for its error.
pub const AGENT_STDERR_BYTES: usize = 4 * 1024;
/// Bytes of a run's raw output that no unified-exec call has told.
pub const AGENT_UNREAD_BYTES: usize = 64 * 1024;
/// Characters of an argument, or of an event, where people see it in a line.
pub const AGENT_SHOWN_CHARS: usize = 160;
/// Bytes of the line of text that a run has told last.
pub const AGENT_DOING_BYTES: usize = 1024;
/// Results that are kept of runs whose request was answered before their end.
pub const AGENT_RESULTS_KEPT: usize = 64;
/// Bytes of all of them, but for the newest.
pub const AGENT_RESULTS_BYTES: usize = 32 * 1024 * 1024;
/// Tools at once whose names `execd agent` remembers to say which one runs.
pub const AGENT_SHOWN_TOOLS: usize = 64;
/// Bytes of what the model thinks that `execd agent -v` shows as a line at most.
pub const AGENT_THINKING_LINE_BYTES: usize = 4 * 1024;
/// Milliseconds between two lines of `execd agent` that say how long the run takes.
pub const AGENT_STATUS_MS: u64 = 1_000;
/// Milliseconds between two looks of `execd agent --log` at a log that is still written.
pub const AGENT_LOG_LOOK_MS: u64 = 20;
/// Bytes of such lines that `execd agent` holds back until stdout has what came before.
pub const AGENT_NOTES_BYTES: usize = 64 * 1024;
/// Bytes of a request of agent_execute besides its params, at most.
pub const AGENT_ENVELOPE_BYTES: usize = 128;
/// Longest line of pi's stream that is kept; of a longer one only the type is read.
pub const AGENT_LINE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// First bytes of a line that are looked at to know whether the others are needed, and that have
/// the type of one that is too long.
pub const AGENT_HEAD_BYTES: usize = 4 * 1024;
/// A line that is kept has at most this much room more than it takes.
pub const AGENT_LINE_STEP_BYTES: usize = 512 * 1024;
/// Text of one event of an agent.
pub const AGENT_DELTA_BYTES: usize = 64 * 1024;
/// Blocks of one message whose texts are told where no deltas came of them.
pub const AGENT_BLOCKS: u64 = 4_096;
/// Text of an assistant that its result has, and that is told of one line.
pub const AGENT_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Output of one tool call that is told; the same for the JSON of its input.
pub const AGENT_TOOL_OUTPUT_BYTES: usize = 256 * 1024;
/// Nesting of a tool's input that is told, and of a raw event that is kept: what is around them
/// must fit below MAX_JSON_DEPTH.
pub const AGENT_JSON_DEPTH: usize = 100;
/// Raw events that are kept for a result.
pub const AGENT_EVENTS_BYTES: usize = 8 * 1024 * 1024;
/// What is kept of event types and fields that are not known: the JSON that they make.
pub const AGENT_DRIFT_BYTES: usize = 64 * 1024;
/// What an entry of them takes besides its name and value: colon, comma, and a count of 20 digits.
pub const AGENT_DRIFT_ENTRY_BYTES: usize = 22;
/// What is kept of one value of such a field.
pub const AGENT_DRIFT_VALUE_BYTES: usize = 1024;
/// Names of tools that are counted apart.
pub const AGENT_TOOL_NAMES: usize = 256;
/// Tool calls of one turn, and running ones, that are remembered by their ids.
pub const AGENT_TOOL_IDS: usize = 4_096;
/// Bytes of a name or an id that pi gives.
pub const AGENT_NAME_BYTES: usize = 256;
/// Bytes of an error's text.
pub const AGENT_ERROR_BYTES: usize = 16 * 1024;
/// Bytes of a paragraph that says why a run failed.
pub const AGENT_CAUSE_BYTES: usize = 2 * 1024;
/// Objects in such a text that are read for their message.
pub const AGENT_BODIES: usize = 8;
/// How deep such a message may be inside of others: JSON in a text in JSON.
pub const AGENT_BODY_LEVELS: usize = 6;
/// A longer line of stderr may be source code.
pub const AGENT_SOURCE_BYTES: usize = 200;
