//! Man pages (man(7)) from the table of commands: `execd(1)`, `execd-run(1)` and so on.

use std::fmt::Write as _;

use super::super::table::{COMMANDS, Command, Flag, Takes};
use super::{sentence, wrapped};

/// The page of a command, or of execd itself, which has the settings too.
pub fn page(command: &Command) -> String {
    let title = command.called().replace(' ', "-");
    // There is no date: two builds of one source are the same.
    let mut out = format!(
        ".TH {} 1 \"\" \"execd {}\" \"\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
        roff(&title.to_ascii_uppercase()),
        env!("CARGO_PKG_VERSION"),
        roff(&title),
        roff(command.doc),
        roff(&command.called()),
        roff(command.usage),
    );
    out.push_str(".SH DESCRIPTION\n");
    fill(&mut out, &sentence(command.doc));
    for paragraph in command.about.lines() {
        out.push_str(".PP\n");
        fill(&mut out, paragraph);
    }
    let whole = command.name.is_empty();
    if whole {
        out.push_str(".SH COMMANDS\n");
        for one in &COMMANDS[1..] {
            let page = roff(&one.called().replace(' ', "-"));
            let _ = writeln!(out, ".TP\n\\fB{page}\\fR(1)\n{}", roff(one.doc));
        }
    }
    out.push_str(".SH OPTIONS\n");
    for flag in command.own_flags() {
        option(&mut out, flag);
    }
    if !whole {
        let too = if command.settings { ".PP\nThe options of \\fBexecd\\fR(1) too.\n" } else { "" };
        let help = ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint help\n";
        let _ = write!(out, "{help}{too}");
    }
    let status = sentence(command.status.trim_end_matches('.'));
    out.push_str(".SH EXIT STATUS\n");
    fill(&mut out, &status);
    out.push_str(".SH EXAMPLES\n.nf\n");
    for example in command.examples {
        let _ = writeln!(out, "{}", roff(example));
    }
    let other = if whole { ["timeout", "script"] } else { ["execd", "timeout"] };
    let [one, other] = other.map(|name| format!("\\fB{name}\\fR(1)"));
    let _ = writeln!(out, ".fi\n.SH SEE ALSO\n{one}, {other}");
    out
}

fn option(out: &mut String, flag: &Flag) {
    let letter = flag.letter.map_or_else(String::new, |letter| format!("\\fB\\-{letter}\\fR, "));
    let value = match flag.takes {
        Takes::Nothing => String::new(),
        Takes::Value(name) | Takes::Path(name) => format!(" \\fI{}\\fR", roff(name)),
        Takes::Signal => " \\fISIG\\fR".to_owned(),
        Takes::Choice(words) => format!(" {}", roff(&words.join("|"))),
    };
    let name = roff(&flag.dashed());
    let _ = writeln!(out, ".TP\n{letter}\\fB{name}\\fR{value}");
    fill(out, flag.doc);
}

/// A paragraph, in lines as man(7) wants them.
fn fill(out: &mut String, text: &str) {
    wrapped(out, "", &roff(text), 0);
}

/// A text as roff takes it: no line of it is a request, also when it is broken at blanks, and what
/// stands for another sign in roff (groff_char(7)) is itself.
fn roff(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '.' if out.is_empty() || out.ends_with(' ') => out.push_str("\\&."),
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '"' => out.push_str("\\(dq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            letter => out.push(letter),
        }
    }
    out
}
