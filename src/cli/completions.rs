//! `execd completions`: a script for a shell that completes execd's commands, flags and session
//! ids, made from the table of commands.

use std::fmt::Write as _;

use super::table::{COMMANDS, Command, Flag, SETTINGS, SIGNALS, Takes, Words};
use crate::front;
use crate::pure::order;
use crate::pure::text::shell_word::quoted;

/// Where ids come from, in all three shells.
const IDS: &str = "execd ls --ids 2>/dev/null";

/// The completions for a shell; `None` for one that is not known.
pub fn script(shell: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash()),
        "zsh" => Some(zsh()),
        "fish" => Some(fish()),
        _ => None,
    }
}

fn flags_of(command: &Command) -> impl Iterator<Item = &'static Flag> {
    let settings = if command.settings { SETTINGS } else { &[] };
    // A flag that means another thing to the command is the command's own.
    let (own, name) = (command.flags, command.name);
    let more = settings
        .iter()
        .filter(move |flag| name.is_empty() || !own.iter().any(|one| one.name == flag.name));
    own.iter().chain(more)
}

fn names() -> Vec<&'static str> {
    COMMANDS.iter().skip(1).map(|command| command.name).collect()
}

/// All flags, each name once, with what it takes.
fn all_flags() -> Vec<&'static Flag> {
    let mut all: Vec<&'static Flag> = COMMANDS.iter().flat_map(flags_of).collect();
    order::sort_by_key(&mut all, |flag| flag.name);
    all.dedup_by_key(|flag| flag.name);
    all
}

fn bash() -> String {
    // The word that is typed is $2: bash breaks @3 into two in COMP_WORDS, and nowhere else.
    let mut out = String::from(
        "# Completions for execd: source <(execd completions bash)\n_execd() {\n    local \
         current=$2 before=${COMP_WORDS[COMP_CWORD-1]} command= word at\n    COMPREPLY=()\n    \
         for ((at = 1; at < COMP_CWORD; at++)); do\n        word=${COMP_WORDS[at]}\n        \
         case $word in\n",
    );
    let _ = writeln!(out, "        {}) command=$word; break ;;", names().join(" | "));
    out.push_str("        esac\n    done\n    case $before in\n");
    for flag in all_flags() {
        let words = match flag.takes {
            Takes::Nothing => continue,
            Takes::Value(_) => "return ;;".to_owned(),
            Takes::Path(_) => "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); \
                               return ;;"
                .to_owned(),
            Takes::Choice(words) => format!(
                "COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;",
                words.join(" ")
            ),
        };
        let _ = writeln!(out, "    {}) {words}", flag.dashed());
    }
    out.push_str("    esac\n    local flags= words=\n    case $command in\n");
    for command in COMMANDS {
        let flags: Vec<String> = flags_of(command).map(Flag::dashed).collect();
        let words = match command.words {
            Words::None if command.name.is_empty() => names().join(" "),
            Words::None | Words::Program | Words::Text => String::new(),
            Words::Session => format!("$({IDS})"),
            Words::SessionAndSignal => format!("$({IDS}) {}", SIGNALS.join(" ")),
            Words::Method => front::names().join(" "),
            Words::OneOf(words) => words.join(" "),
        };
        let name = if command.name.is_empty() { "''" } else { command.name };
        let flags = flags.join(" ");
        let _ = writeln!(out, "    {name}) flags='{flags}' words=\"{words}\" ;;");
    }
    out.push_str(
        "    esac\n    case $current in\n    -*) COMPREPLY=($(compgen -W \"$flags\" -- \
         \"$current\")) ;;\n    *) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n    \
         esac\n    if [[ $command == run && $current != -* ]]; then\n        \
         COMPREPLY=($(compgen -c -- \"$current\"))\n    fi\n}\ncomplete -F _execd execd\n",
    );
    out
}

fn zsh() -> String {
    // In a spec of _arguments (zshcompsys(1)) brackets and colons mean something.
    let plain = |text: &str| text.replace(['[', ']'], "").replace(':', ",");
    let spec = |flag: &Flag| {
        let head = format!("{}[{}]", flag.dashed(), plain(flag.doc));
        quoted(&match flag.takes {
            Takes::Nothing => head,
            Takes::Value(name) => format!("{head}:{name}: "),
            Takes::Path(name) => format!("{head}:{name}:_files"),
            Takes::Choice(words) => format!("{head}:word:({})", words.join(" ")),
        })
    };
    let mut out = String::from(
        "#compdef execd\n# Completions for execd: source <(execd completions zsh), or into a \
         file _execd on $fpath\n_execd_ids() {\n    local -a ids\n",
    );
    let _ = writeln!(out, "    ids=(${{(f)\"$({IDS})\"}})\n    compadd -a ids\n}}");
    out.push_str("_execd() {\n    local -a commands\n    commands=(\n");
    for command in COMMANDS.iter().skip(1) {
        let text = format!("{}:{}", command.name, plain(command.doc));
        let _ = writeln!(out, "        {}", quoted(&text));
    }
    out.push_str(
        "    )\n    local at command=\n    for ((at = 2; at < CURRENT; at++)); do\n        case \
         $words[at] in\n",
    );
    let _ = writeln!(out, "        ({}) command=$words[at]; break ;;", names().join("|"));
    out.push_str(
        "        esac\n    done\n    if [[ -n $command ]]; then\n        # From here on the \
         command is the program.\n        words=(\"${(@)words[at,-1]}\")\n        (( CURRENT -= \
         at - 1 ))\n    fi\n    case $command in\n",
    );
    for command in COMMANDS {
        let name = if command.name.is_empty() { "''" } else { command.name };
        let _ = writeln!(out, "    ({name})\n        _arguments \\");
        for flag in flags_of(command) {
            let _ = writeln!(out, "            {} \\", spec(flag));
        }
        let words = match command.words {
            Words::None if command.name.is_empty() => {
                "'1:command:{_describe command commands}'".to_owned()
            }
            Words::None | Words::Text => "'*: :()'".to_owned(),
            Words::Session => "'1:session:_execd_ids'".to_owned(),
            Words::SessionAndSignal => {
                format!("'1:session:_execd_ids' '2:signal:({})'", SIGNALS.join(" "))
            }
            Words::Method => format!("'1:method:({})'", front::names().join(" ")),
            Words::Program => "'(-)1:program:_command_names -e' '*:file:_files'".to_owned(),
            Words::OneOf(words) => format!("'1:word:({})'", words.join(" ")),
        };
        let _ = writeln!(out, "            {words}\n        ;;");
    }
    out.push_str("    esac\n}\ncompdef _execd execd\n");
    out
}

fn fish() -> String {
    let mut out = String::from("# Completions for execd: execd completions fish | source\n");
    let none = format!("'not __fish_seen_subcommand_from {}'", names().join(" "));
    out.push_str("complete -c execd -f\n");
    for command in COMMANDS.iter().skip(1) {
        let doc = quoted(command.doc);
        let _ = writeln!(out, "complete -c execd -n {none} -a {} -d {doc}", command.name);
    }
    for command in COMMANDS {
        let when = match command.name {
            "" => none.clone(),
            name => format!("'__fish_seen_subcommand_from {name}'"),
        };
        for flag in flags_of(command) {
            let kind = if flag.name.len() == 1 { "-s" } else { "-l" };
            let takes = match flag.takes {
                Takes::Nothing => String::new(),
                Takes::Value(_) => " -x".to_owned(),
                Takes::Path(_) => " -r -F".to_owned(),
                Takes::Choice(words) => format!(" -x -a {}", quoted(&words.join(" "))),
            };
            let doc = quoted(flag.doc);
            let _ =
                writeln!(out, "complete -c execd -n {when} {kind} {}{takes} -d {doc}", flag.name);
        }
        let words = match command.words {
            Words::None | Words::Text => continue,
            Words::Session => format!("-a '({IDS})'"),
            Words::SessionAndSignal => format!("-a '({IDS}) {}'", SIGNALS.join(" ")),
            Words::Method => format!("-a '{}'", front::names().join(" ")),
            Words::Program => "-a '(__fish_complete_command)'".to_owned(),
            Words::OneOf(words) => format!("-a '{}'", words.join(" ")),
        };
        let _ = writeln!(out, "complete -c execd -n {when} {words}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::table::SHELLS;
    use super::*;

    /// rule: attach.md, ls, tail, kill, completions: Completions for bash, zsh and fish are
    ///   generated from the table of commands
    #[test]
    fn every_command_and_flag_is_completed_in_every_shell() {
        for shell in SHELLS {
            let script = script(shell).expect("a known shell");
            for command in COMMANDS {
                assert!(script.contains(command.name), "{shell}: {}", command.name);
                for flag in flags_of(command) {
                    let named = script.contains(&flag.dashed())
                        || script.contains(&format!("-l {} ", flag.name))
                        || script.contains(&format!("-s {} ", flag.name));
                    assert!(named, "{shell}: {}", flag.name);
                }
            }
        }
        assert!(script("tcsh").is_none());
    }
}
