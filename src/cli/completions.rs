//! `execd completions`: a script for a shell that completes execd's commands, flags and session
//! ids, made from the table of commands.

use std::fmt::Write as _;

use super::table::{COMMANDS, Command, Flag, SIGNALS, Takes, Words, command, names};
use crate::pure::text::shell_word::quoted;
use crate::server::front;

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

/// What can stand behind a command.
fn words_of(command: &Command) -> String {
    match command.words {
        Words::None if command.name.is_empty() => joined(),
        Words::None | Words::Program | Words::Text => String::new(),
        Words::Session => format!("$({IDS})"),
        Words::SessionAndSignal => format!("$({IDS}) {}", SIGNALS.join(" ")),
        Words::Method => front::names().join(" "),
        Words::OneOf(words) => words.join(" "),
        Words::Command => format!("{} flags", joined()),
    }
}

/// The commands of one word.
fn joined() -> String {
    names().collect::<Vec<_>>().join(" ")
}

/// The commands of two words, in quotes.
fn doubles() -> Vec<String> {
    let two = |command: &&Command| command.name.contains(' ');
    COMMANDS.iter().filter(two).map(|command| quoted(command.name)).collect()
}

/// The words that a flag's value is one of.
fn values(takes: Takes) -> Option<String> {
    match takes {
        Takes::Nothing | Takes::Value(_) | Takes::Path(_) => None,
        Takes::Signal => Some(SIGNALS.join(" ")),
        Takes::Choice(words) => Some(words.join(" ")),
    }
}

/// A flag as it is typed: its letter too.
fn spellings(flag: &Flag) -> Vec<String> {
    let letter = flag.letter.map(|letter| format!("-{letter}"));
    letter.into_iter().chain([flag.dashed()]).collect()
}

fn bash() -> String {
    // The word that is typed is $2: bash breaks @3 into two in COMP_WORDS, and nowhere else.
    let mut out = String::from(
        "# Completions for execd: source <(execd completions bash)\n_execd() {\n    local \
         current=$2 before=${COMP_WORDS[COMP_CWORD-1]} command= word at\n    COMPREPLY=()\n    \
         for ((at = 1; at < COMP_CWORD; at++)); do\n        word=${COMP_WORDS[at]}\n        \
         case $word in\n",
    );
    let _ = writeln!(out, "        {}) command=$word; break ;;", joined().replace(' ', " | "));
    out.push_str("        esac\n    done\n    if ((at + 1 < COMP_CWORD)); then\n");
    out.push_str("        case \"$command ${COMP_WORDS[at+1]}\" in\n");
    let two = doubles().join(" | ");
    let _ = writeln!(out, "        {two}) command+=\" ${{COMP_WORDS[at+1]}}\" ;;\n        esac");
    out.push_str("    fi\n    case \"$command $before\" in\n");
    for command in COMMANDS {
        for flag in command.all_flags() {
            let words = match (flag.takes, values(flag.takes)) {
                (_, Some(words)) => {
                    format!("COMPREPLY=($(compgen -W '{words}' -- \"$current\")); return ;;")
                }
                (Takes::Path(_), _) => "compopt -o filenames; COMPREPLY=($(compgen -f -- \
                                        \"$current\")); return ;;"
                    .to_owned(),
                (Takes::Nothing, _) => continue,
                _ => "return ;;".to_owned(),
            };
            // Words are offered for no other command's flag of the same name.
            for spelling in spellings(flag) {
                let _ = writeln!(out, "    '{} {spelling}') {words}", command.name);
            }
        }
    }
    out.push_str("    esac\n    local flags= words=\n    case $command in\n");
    for command in COMMANDS {
        let flags: Vec<String> = command.all_flags().into_iter().flat_map(spellings).collect();
        let (name, flags) = (quoted(command.name), flags.join(" "));
        let words = words_of(command);
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

/// A flag in a spec of _arguments (zshcompsys(1)), where brackets and colons mean something.
fn zsh_spec(flag: &Flag) -> String {
    let value = match (flag.takes, values(flag.takes)) {
        (_, Some(words)) => format!(":word:({words})"),
        (Takes::Value(name), _) => format!(":{name}: "),
        (Takes::Path(name), _) => format!(":{name}:_files"),
        _ => String::new(),
    };
    let text = format!("[{}]{value}", zsh_plain(flag.doc));
    let both = spellings(flag);
    if both.len() == 1 {
        return quoted(&format!("{}{text}", both[0]));
    }
    format!("{}{{{}}}{}", quoted(&format!("({})", both.join(" "))), both.join(","), quoted(&text))
}

fn zsh_plain(text: &str) -> String {
    text.replace(['[', ']'], "").replace(':', ",")
}

fn zsh() -> String {
    let mut out = String::from(
        "#compdef execd\n# Completions for execd: source <(execd completions zsh), or into a \
         file _execd on $fpath\n_execd_ids() {\n    local -a ids\n",
    );
    let _ = writeln!(out, "    ids=(${{(f)\"$({IDS})\"}})\n    compadd -a ids\n}}");
    out.push_str("_execd() {\n    local -a commands\n    commands=(\n");
    for command in names().filter_map(command) {
        let text = format!("{}:{}", command.name, zsh_plain(command.doc));
        let _ = writeln!(out, "        {}", quoted(&text));
    }
    out.push_str(
        "    )\n    local at command=\n    for ((at = 2; at < CURRENT; at++)); do\n        case \
         $words[at] in\n",
    );
    let _ = writeln!(out, "        ({}) command=$words[at]; break ;;", joined().replace(' ', "|"));
    out.push_str(
        "        esac\n    done\n    if (( at + 1 < CURRENT )); then\n        case \"$command \
         $words[at+1]\" in\n",
    );
    let two = doubles().join("|");
    let _ = writeln!(out, "        ({two}) (( at++ )); command+=\" $words[at]\" ;;");
    out.push_str(
        "        esac\n    fi\n    if [[ -n $command ]]; then\n        # From here on the \
         command is the program.\n        words=(\"${(@)words[at,-1]}\")\n        (( CURRENT -= \
         at - 1 ))\n    fi\n    case $command in\n",
    );
    for command in COMMANDS {
        let _ = writeln!(out, "    ({})\n        _arguments \\", quoted(command.name));
        for flag in command.all_flags() {
            let _ = writeln!(out, "            {} \\", zsh_spec(flag));
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
            Words::Method | Words::OneOf(_) | Words::Command => {
                format!("'1:word:({})'", words_of(command))
            }
            Words::Program => "'(-)1:program:_command_names -e' '*:file:_files'".to_owned(),
        };
        let _ = writeln!(out, "            {words}\n        ;;");
    }
    // As a file on $fpath it is the body of the function that is asked for candidates.
    out.push_str(
        "    esac\n}\nif [[ $funcstack[1] == _execd ]]; then\n    _execd \"$@\"\nelse\n    compdef \
         _execd execd\nfi\n",
    );
    out
}

fn fish() -> String {
    let mut out = String::from(
        "# Completions for execd: execd completions fish | source\nfunction __execd_is\n    set -l \
         words (commandline -opc)\n    for at in (seq 2 (count $words))\n        contains -- \
         $words[$at] ",
    );
    let _ = writeln!(out, "{}; or continue", joined());
    out.push_str(
        "        set -l named $words[$at]\n        set -l next (math $at + 1)\n        if contains \
         -- \"$named $words[$next]\" ",
    );
    let _ = writeln!(out, "{}", doubles().join(" "));
    out.push_str(
        "            set named \"$named $words[$next]\"\n        end\n        test \"$named\" = \
         \"$argv\"\n        return\n    end\n    test -z \"$argv\"\nend\ncomplete -c execd -f\n",
    );
    for command in names().filter_map(command) {
        let doc = quoted(command.doc);
        let _ = writeln!(out, "complete -c execd -n __execd_is -a {} -d {doc}", command.name);
    }
    for command in COMMANDS {
        let when = quoted(format!("__execd_is {}", command.name).trim_end());
        for flag in command.all_flags() {
            let letter = flag.letter.map_or_else(String::new, |letter| format!("-s {letter} "));
            let kind = if flag.name.len() == 1 { "-s" } else { "-l" };
            let takes = match (flag.takes, values(flag.takes)) {
                (_, Some(words)) => format!(" -x -a {}", quoted(&words)),
                (Takes::Path(_), _) => " -r -F".to_owned(),
                (Takes::Value(_), _) => " -x".to_owned(),
                _ => String::new(),
            };
            let (name, doc) = (flag.name, quoted(flag.doc));
            let _ =
                writeln!(out, "complete -c execd -n {when} {letter}{kind} {name}{takes} -d {doc}");
        }
        let words = match command.words {
            Words::None | Words::Text => continue,
            Words::Session => format!("-a '({IDS})'"),
            Words::SessionAndSignal => format!("-a '({IDS}) {}'", SIGNALS.join(" ")),
            Words::Program => "-F -a '(__fish_complete_command)'".to_owned(),
            Words::Method | Words::OneOf(_) | Words::Command => {
                format!("-a {}", quoted(&words_of(command)))
            }
        };
        let _ = writeln!(out, "complete -c execd -n {when} {words}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sets of `execd mcp` were offered for the tools of pi.
    #[test]
    fn words_are_offered_for_no_other_commands_flag_of_the_same_name() {
        let completed = |command: &str, flag: &str| -> String {
            let words = format!(
                "COMP_WORDS=(execd {command} {flag} ''); COMP_CWORD=3; _execd execd '' {flag}\n\
                 echo \"${{COMPREPLY[@]}}\""
            );
            let code = format!("{}\n{words}", bash());
            let run = std::process::Command::new("bash").args(["-c", &code]).output();
            String::from_utf8_lossy(&run.expect("bash runs").stdout).trim().to_owned()
        };
        assert_eq!(completed("mcp", "--tools"), "unified more stream bash agent");
        assert_eq!(completed("agent", "--tools"), "");
        assert!(completed("agent", "--thinking").contains("medium"));
        assert!(completed("kill", "-s").contains("TERM"), "a letter too");
    }
}
