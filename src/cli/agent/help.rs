//! The help of `execd agent`, which fits a screen: `execd --help` has the flags of all commands.

/// What is printed.
pub const TEXT: &str = "\
Runs the coding agent pi on a task: its text on stdout, what it does on stderr.

  execd agent --model P/M [FLAGS] PROMPT      - as PROMPT reads it from stdin

  --model P/M             provider/id of the model
  --tools A,B             only these tools; --no-tools: none at all
  --workspace DIR         where pi works (here)
  --thinking LEVEL        off, minimal, low, medium, high, xhigh or max
  --session ID            go on with this session of pi (none is kept)
  --system-prompt TEXT    put before the prompt
  --append-system-prompt TEXT   put behind pi's own system prompt instead
  --extension PATH, -e    load this extension too; may be repeated
  --env K=V               set a variable for pi; may be repeated
  --extra-arg A           one more argument of pi; may be repeated
  --timeout TIME          end it after so long: 600s, 10m, 500ms (600s)
  --idle-timeout TIME     end it after such a silence (180s)
  --first-event-timeout TIME   end it when the model does not begin (30s)
  --max-cost USD          end it when it has cost more; 0: none (no limit)
  --max-tokens N          end it when it has used more; 0: none (no limit)
  --any-model             go on when another model answers than was asked
  --isolate               give pi an agent directory of its own for this run;
                          --keep-agent-dir: and do not remove it
  --pi PATH               the pi to run ($EXECD_PI, else pi on the PATH)
  --min-version V         the oldest pi to run (0.70.0)
  --label TEXT            told in each event and in the result
  --log FILE              put pi's raw stream and stderr into FILE
  -v                      show what the model thinks
  --json                  print events and result as JSON, one a line
  --keep-events           with --json: pi's raw events in the result too
  --health                start no run: say whether pi is there, and which

Exit status: 0 success, 1 failure, 2 refused and nothing run, 124 timeout,
  130 Ctrl-C or another cancel, 128+N when signal N ended it.

  execd agent --model anthropic/claude-haiku-4-5 --max-cost 0.50 'Fix the test'
  git diff | execd agent --model openai/gpt-4o --no-tools --json - > run.ndjson

Flags of execd itself (--no-log, --log-dir, ...): execd --help; docs/agent.md
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::COMMANDS;

    /// rule: agent.md, execd agent: Its help fits a screen and has the exit statuses
    #[test]
    fn the_help_of_the_agent_has_every_flag_and_fits_a_screen() {
        let agent = COMMANDS.iter().find(|command| command.name == "agent").expect("a command");
        let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words: Vec<&str> = TEXT.split(|c| !part(c)).collect();
        for flag in agent.flags {
            assert!(words.contains(&flag.dashed().as_str()), "{}", flag.name);
        }
        assert!(TEXT.lines().count() <= 45, "{} lines", TEXT.lines().count());
        for line in TEXT.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for status in ["0 success", "1 failure", "2 refused", "124 timeout", "130 Ctrl-C", "128+N"]
        {
            assert!(TEXT.contains(status), "{status}");
        }
    }
}
