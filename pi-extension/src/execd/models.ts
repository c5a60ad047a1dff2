/**
 * What models read of execd's tools, by sets. Made by `npm run wire` from what `execd --describe
 * --for-models` prints: a change belongs into execd's table of methods.
 */
export const MODELS = {
  unified: {
    exec_command: {
      title: "Exec",
      description: "Runs a shell command in a session. Answers when it ends, when only your input "
        + "can move it on (state), or when yield_time_ms is over: then it goes on, and session_id "
        + "leads back to it. No output is lost between calls. Ends that no call waited for are "
        + "told once, as lines event:. Shows the last 2000 lines or 50 KiB.",
      logs: "log_path is a file with all of it: grep that (grep -a where a line log: says that "
        + "its beginning is gone).",
      synonyms: { command: "cmd", cwd: "workdir" },
      inputSchema: {
        type: "object",
        required: ["cmd"],
        properties: {
          cmd: { type: "string" },
          workdir: { type: "string", description: "{{workdir}}" },
          yield_time_ms: {
            type: "integer",
            description: "How long this call waits; it never ends the command. Default 10000, at "
              + "most 30000, with until or stop {{maxPollMs}}.",
          },
          until: {
            type: "object",
            description: "Ends the wait once one comes true: text, regex (in a line of output), "
              + "port (listens), http ({port, path}), input (true: it waits for input), idle_ms "
              + "(silent so long), tree_exit (true: all its processes are gone).",
          },
          stop: { type: "object", description: "The same, for signs of failure." },
          tty: {
            type: "boolean",
            description: "On a terminal. Only for what needs one: REPL, ssh, sudo, full screen.",
          },
          stdin: {
            type: "string",
            enum: ["pipe", "null"],
            description: "\"null\": empty. Default \"pipe\".",
          },
          on_exit: {
            type: "string",
            enum: ["none", "wake"],
            description: "\"wake\": a message tells you its end. Only if the user asks for that, "
              + "or nothing else is left to do; then end your turn.",
          },
          shell: { type: "string" },
          env: { type: "object", description: "null unsets." },
          cols: { type: "integer" },
          rows: { type: "integer" },
          name: { type: "string" },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
    write_stdin: {
      title: "Stdin",
      description: "Writes to a session, or polls it without chars. Shows the output that no call "
        + "has shown. chars has C escapes: \\n ends a line, \\r on a terminal; \\x03 is Ctrl-C, "
        + "\\x04 Ctrl-D, \\x1b[A arrow up.",
      synonyms: {
        data: "chars",
        input: "chars",
        timeout: "yield_time_ms",
        timeout_ms: "yield_time_ms",
      },
      inputSchema: {
        type: "object",
        required: ["session_id"],
        properties: {
          session_id: { type: "integer" },
          chars: { type: "string" },
          chars_b64: { type: "string", description: "Exact bytes." },
          eof: { type: "boolean", description: "Then closes stdin." },
          yield_time_ms: {
            type: "integer",
            description: "With input: default 250, at most 30000. Without, or with until or stop: "
              + "default 5000, at most {{maxPollMs}}.",
          },
          until: { type: "object", description: "As in exec_command." },
          stop: { type: "object" },
          yield_until: {
            type: "string",
            description: "A poll until 2026-07-21T18:30:00Z. Only if the user names a time, or "
              + "nothing else is left to do.",
          },
          resize: { type: "object", description: "First: {cols, rows}." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
    kill_session: {
      title: "Kill",
      description: "Ends all processes of a session, by SIGKILL after 2 s. Shows the rest of the "
        + "output.",
      inputSchema: {
        type: "object",
        required: ["session_id"],
        properties: {
          session_id: { type: "integer" },
          signal: { type: "string", description: "The first one. Default SIGTERM." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: false, readOnlyHint: false },
    },
    list_sessions: {
      title: "Sessions",
      description: "Lists the sessions; one that has ended, once.",
      inputSchema: { type: "object", properties: {} },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: true },
    },
    wait_for: {
      title: "Wait",
      description: "Waits for several sessions at once. Shows their output.",
      synonyms: { timeout: "timeout_ms", yield_time_ms: "timeout_ms" },
      inputSchema: {
        type: "object",
        properties: {
          session_ids: {
            type: "array",
            items: { type: "integer" },
            description: "Default: all that run.",
          },
          mode: {
            type: "string",
            enum: ["any", "all", "first_failure"],
            description: "Default \"any\".",
          },
          until: { type: "object", description: "As in exec_command. Default: their end." },
          stop: { type: "object" },
          timeout_ms: { type: "integer", description: "Default 30000, at most {{maxPollMs}}." },
          take: { type: "boolean", description: "false leaves their output unread." },
        },
      },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: true },
    },
  },
  more: {
    set_on_exit: {
      title: "On exit",
      description: "Arms (\"wake\") or disarms (\"none\") the message that tells you a session's "
        + "end.",
      inputSchema: {
        type: "object",
        required: ["session_id", "on_exit"],
        properties: {
          session_id: { type: "integer" },
          on_exit: { type: "string", enum: ["none", "wake"] },
        },
      },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: false },
    },
    resize_session: {
      title: "Resize",
      description: "Sets the size of a session's terminal; the program in it is told.",
      inputSchema: {
        type: "object",
        required: ["session_id", "cols", "rows"],
        properties: {
          session_id: { type: "integer" },
          cols: { type: "integer", description: "20 to 500." },
          rows: { type: "integer", description: "5 to 300." },
        },
      },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: false },
    },
  },
  stream: {
    bash_stream: {
      title: "Bash",
      description: "Runs a shell command. Answers when it ends, when only your input can move it "
        + "on, or when yieldMs is over: then it goes on, and sessionId leads back to it. No "
        + "output is lost between calls. Shows the last {{chars}} characters of stdout and of "
        + "stderr.",
      logs: "logPath is a file with all of it: grep that, or read parts with get_process_log.",
      synonyms: { cmd: "command", cwd: "workdir" },
      inputSchema: {
        type: "object",
        required: ["command"],
        properties: {
          command: { type: "string" },
          workdir: { type: "string", description: "{{workdir}}" },
          env: { type: "object", description: "null unsets." },
          yieldMs: {
            type: "integer",
            description: "How long this call waits; it never ends the command. Default "
              + "{{yieldMs}}, at most 120000, with until or stop 1800000.",
          },
          until: {
            type: "object",
            description: "Ends the wait once one comes true: text, regex (in a line of output), "
              + "port (listens), http ({port, path}), input (true: it waits for input), idleMs "
              + "(silent so long), treeExit (true).",
          },
          stop: { type: "object", description: "The same, for signs of failure." },
          stdinMode: {
            type: "string",
            enum: ["pipe", "pty", "null"],
            description: "\"null\": empty. \"pty\": a terminal, only for what needs one (REPL, "
              + "ssh, sudo). Default \"pipe\".",
          },
          timeoutMs: { type: "integer", description: "Ends the command after so long." },
          maxOutputChars: { type: "integer" },
          name: { type: "string" },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
    poll_process: {
      title: "Poll",
      description: "Shows what a process wrote since the last poll; once it has ended, how, and "
        + "the end of all its output.",
      inputSchema: {
        type: "object",
        required: ["sessionId"],
        properties: {
          sessionId: { type: "integer" },
          waitMs: { type: "integer", description: "Waits so long for its end. At most 1800000." },
          maxDrainMs: { type: "integer", description: "Waits so long for output. At most 120000." },
          until: { type: "object", description: "As in bash_stream." },
          stop: { type: "object" },
          killIf: {
            type: "string",
            enum: ["timeout", "always"],
            description: "\"timeout\": ends it after this wait; \"always\": at once.",
          },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: false, readOnlyHint: false },
    },
    kill_process: {
      title: "Kill",
      description: "Ends a process and all that it started. Shows its status and output.",
      inputSchema: {
        type: "object",
        required: ["sessionId"],
        properties: {
          sessionId: { type: "integer" },
          signal: { type: "string", description: "Default SIGKILL." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: false, readOnlyHint: false },
    },
    list_processes: {
      title: "Processes",
      description: "Lists what runs, then what has ended lately.",
      inputSchema: { type: "object", properties: {} },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: true },
    },
    get_process_log: {
      title: "Log",
      description: "Shows a part of a process's output as clean text, also of one that has ended, "
        + "and of what results have cut.",
      inputSchema: {
        type: "object",
        required: ["sessionId"],
        properties: {
          sessionId: { type: "integer" },
          offset: {
            type: "integer",
            description: "First byte; a negative one counts from the end.",
          },
          limit: { type: "integer", description: "Bytes. Default 30000, at most 150000." },
          stream: { type: "string", enum: ["stdout", "stderr"], description: "Only this one." },
        },
      },
      annotations: { destructiveHint: false, openWorldHint: false, readOnlyHint: true },
    },
    write_stdin: {
      title: "Stdin",
      description: "Writes to the stdin of a process and answers at once; poll_process shows what "
        + "came of it. data has no escapes of its own: a line ends with a newline, on a terminal "
        + "with a carriage return; there U+0003 is Ctrl-C.",
      inputSchema: {
        type: "object",
        required: ["sessionId"],
        properties: {
          sessionId: { type: "integer" },
          data: {
            anyOf: [{ type: "string" }, { type: "object" }],
            description: "Text, or {\"base64\": …}.",
          },
          eof: { type: "boolean", description: "Then closes stdin." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
  },
  bash: {
    bash: {
      title: "bash",
      description: "Runs a bash command. Shows the last {{bashContextLines}} lines or "
        + "{{maxOutputKb}}KB. What takes longer than its timeout goes on in a background window "
        + "(or is ended: timeoutAction).",
      synonyms: { cmd: "command" },
      inputSchema: {
        type: "object",
        required: ["command"],
        properties: {
          command: { type: "string" },
          name: { type: "string", description: "A label." },
          timeout: {
            type: "number",
            description: "Seconds. Default {{defaultTimeoutSeconds}}, at most "
              + "{{maxTimeoutSeconds}}.",
          },
          timeoutAction: {
            type: "string",
            enum: ["background", "kill"],
            description: "Default \"{{defaultTimeoutAction}}\".",
          },
          background: { type: "boolean", description: "From its start." },
          tty: {
            type: "boolean",
            description: "A terminal, for REPLs, prompts, editors: a person attaches and types. "
              + "Without one its input is empty. Default {{tty}}. server & gets SIGHUP there.",
          },
          pollInterval: {
            type: "number",
            description: "Seconds between reports of its output. Default {{defaultPollInterval}}.",
          },
          pollLines: { type: "integer", description: "Their lines. Default {{pollContextLines}}." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
    tmux: {
      title: "tmux",
      description: "Looks after the background windows of {{bashToolName}}.",
      inputSchema: {
        type: "object",
        required: ["action"],
        properties: {
          action: {
            type: "string",
            enum: ["list", "list-polls", "peek", "kill", "poll", "unpoll"],
            description: "list: the windows. list-polls: those with reports. peek: what is new of "
              + "its output. kill: ends all its processes. poll: reports of its output. unpoll: "
              + "no more reports.",
          },
          window: { type: "string", description: "Its id, like @123." },
          pollInterval: {
            type: "number",
            description: "Of poll: seconds. Default {{pollSeconds}}.",
          },
          pollLines: {
            type: "integer",
            description: "Of poll: lines. Default {{pollContextLines}}.",
          },
          all: { type: "boolean", description: "Of peek: old output too." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: false, readOnlyHint: false },
    },
  },
  agent: {
    agent_execute: {
      title: "Agent",
      description: "Has another agent (pi) do a task, with a context and tools of its own. "
        + "Answers with its last message, tokens and cost when it is done; a call that ends "
        + "before that has a run_id for agent_result, and the run goes on. Several may run at "
        + "once. A cancelled call ends its run.",
      inputSchema: {
        type: "object",
        required: ["prompt", "model"],
        properties: {
          prompt: {
            type: "string",
            description: "All that it needs to know: it sees nothing of this conversation.",
          },
          model: { type: "string", description: "provider/id. Ask the user, or pi --list-models." },
          workspace: { type: "string", description: "{{workdir}}" },
          allowed_tools: {
            type: "array",
            items: { type: "string" },
            description: "Of read, bash, edit, write and pi's others. [] is none.",
          },
          thinking: {
            type: "string",
            enum: ["off", "minimal", "low", "medium", "high", "xhigh", "max"],
          },
          session: {
            type: "string",
            description: "A file's path: keeps the conversation there, or goes on with it.",
          },
          timeout_ms: { type: "integer", description: "Ends the run. Default 600000." },
          max_cost_usd: { type: "number", description: "Ends the run." },
          wait_ms: {
            type: "integer",
            description: "How long this call waits; it never ends the run. 0 only starts it.",
          },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: true, readOnlyHint: false },
    },
    agent_result: {
      title: "Agent's result",
      description: "Waits for a run of agent_execute that goes on, and shows what it has come to.",
      inputSchema: {
        type: "object",
        required: ["run_id"],
        properties: {
          run_id: { type: "integer" },
          wait_ms: { type: "integer", description: "Default: until its end." },
          cancel: { type: "boolean", description: "Ends the run now." },
        },
      },
      annotations: { destructiveHint: true, openWorldHint: false, readOnlyHint: false },
    },
  },
} as const;
