//! `execd help`, and `--help` behind any command: texts made from the table of commands. One
//! command's fits a screen of 80 by 24; `--all` leaves nothing out, `--man` is a man page.

mod man;

use std::ffi::OsString;
use std::fmt::Write as _;

use super::arguments::Argument::{Flag, Word};
use super::arguments::{Arguments, Reason, text, unknown_command};
use super::table::{COMMANDS, Command, command};

/// What execd's own flags are called where a command's name is asked for.
const FLAGS: &str = "flags";
/// Columns of a screen, and where the second column of a list begins at most.
const COLUMNS: usize = 80;
const DOCS_AT_MOST: usize = 26;

/// What `execd help` is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The command; `None`: what commands there are.
    command: Option<&'static Command>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Screen,
    All,
    Man,
    Names,
}

/// Reads the words behind `help`.
pub fn parse(words: Vec<OsString>) -> Result<Asked, Reason> {
    let mut arguments = Arguments::of("help", words);
    let (mut name, mut form) = (Vec::new(), Form::Screen);
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => {
                form = match flag.as_str() {
                    "--all" => Form::All,
                    "--man" => Form::Man,
                    "--names" => Form::Names,
                    "-h" | "--help" => return Ok(Asked { command: command("help"), form }),
                    flag => return Err(arguments.unknown(flag)),
                }
            }
            Word(word) => name.push(text(word)?),
        }
    }
    // Names are listed, and man pages are called, with a dash in the place of a blank.
    let name = name.join(" ").replace('-', " ");
    let known = match name.as_str() {
        "" => None,
        FLAGS => command(""),
        name => Some(command(name).ok_or_else(|| unknown_command(name))?),
    };
    Ok(Asked { command: known, form })
}

/// The text that is asked for.
pub fn told(asked: Asked) -> String {
    match (asked.form, asked.command) {
        (Form::Screen, None) => overview(),
        (Form::Screen, Some(command)) => screen(command),
        (Form::All, Some(command)) => whole(command),
        (Form::All, None) => COMMANDS.iter().map(whole).collect::<Vec<_>>().join("\n"),
        (Form::Man, command) => man::page(command.unwrap_or(&COMMANDS[0])),
        (Form::Names, _) => {
            let named = COMMANDS.iter().skip(1).map(|one| one.name.replace(' ', "-") + "\n");
            named.collect()
        }
    }
}

/// The help of the command of that name, where it has one; else of execd.
pub fn of(name: &str) -> String {
    command(name).filter(|one| !one.name.is_empty()).map_or_else(overview, screen)
}

/// Which commands there are.
fn overview() -> String {
    let mut out = String::from("execd runs commands that you can come back to.\n\n");
    let at = "  execd completions  ".len();
    for one in COMMANDS.iter().filter(|one| !one.name.contains(' ')) {
        let flags = if one.name.is_empty() { " [FLAGS]" } else { "" };
        entry(&mut out, &format!("{}{flags}", one.called()), one.doc, at);
    }
    let run = command("run").map_or("", |run| run.examples[0]);
    let _ = writeln!(out, "\n  {run}\n  {}", COMMANDS[0].examples[0]);
    out
}

/// What fits a screen.
fn screen(command: &Command) -> String {
    let mut out = head(command);
    flags(&mut out, command, false);
    tail(&mut out, command);
    out
}

/// All that is known of a command but the flags of the settings, which execd itself has.
fn whole(command: &Command) -> String {
    let mut out = head(command);
    for paragraph in command.about.lines() {
        out.push('\n');
        wrapped(&mut out, "", paragraph, 0);
    }
    flags(&mut out, command, true);
    tail(&mut out, command);
    out
}

fn head(command: &Command) -> String {
    let mut out = format!("usage: {} {}\n", command.called(), command.usage);
    wrapped(&mut out, "", &sentence(command.doc), 0);
    out
}

/// A line of the table as a sentence.
fn sentence(doc: &str) -> String {
    // Texts of the table are ASCII: case by Unicode's tables would add 13 KB to execd.
    let (first, rest) = doc.split_at(1);
    [&first.to_ascii_uppercase(), rest, "."].concat()
}

fn flags(out: &mut String, command: &Command, all: bool) {
    let shown = command.own_flags().into_iter().filter(|flag| all || !flag.rare);
    let rows: Vec<(String, &str)> = shown.map(|flag| (flag.shown(), flag.doc)).collect();
    let widest = rows.iter().map(|(flag, _)| flag.chars().count() + 4).max();
    let at = widest.unwrap_or(0).min(DOCS_AT_MOST);
    if !rows.is_empty() {
        out.push('\n');
    }
    for (flag, doc) in rows {
        entry(out, &flag, doc, at);
    }
    let name = if command.name.is_empty() { FLAGS } else { command.name };
    let left_out = !all && command.own_flags().iter().any(|flag| flag.rare);
    let more = if left_out { format!(" execd help --all {name}") } else { String::new() };
    let of_execd = command.settings && !command.name.is_empty();
    let too = if of_execd { " execd help flags" } else { "" };
    if left_out || of_execd {
        let and = if left_out && of_execd { "," } else { "" };
        let _ = writeln!(out, "  More flags:{more}{and}{too}");
    }
}

fn tail(out: &mut String, command: &Command) {
    out.push('\n');
    wrapped(out, "Exit status: ", command.status, 2);
    let [one, other] = command.examples;
    let _ = writeln!(out, "\n  {one}\n  {other}");
}

/// A row of a list: what it is, and what it does in the column beside it.
fn entry(out: &mut String, what: &str, doc: &str, at: usize) {
    let what = format!("  {what}");
    if what.chars().count() + 2 > at {
        let _ = writeln!(out, "{what}");
        wrapped(out, &" ".repeat(at), doc, at);
    } else {
        wrapped(out, &format!("{what:<at$}"), doc, at);
    }
}

/// A text behind a beginning, with later lines moved in so far.
fn wrapped(out: &mut String, begin: &str, text: &str, later: usize) {
    out.push_str(begin);
    let mut used = begin.chars().count();
    for (at, word) in text.split(' ').enumerate() {
        let wide = word.chars().count();
        if at > 0 && used + 1 + wide > COLUMNS {
            let _ = write!(out, "\n{}", " ".repeat(later));
            used = later;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += wide;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::table::names;
    use super::*;

    /// Rows of a screen, less the one where the shell asks for the next command.
    const ROWS: usize = 23;

    fn fits(text: &str) {
        let rows = text.lines().count();
        assert!(rows <= ROWS, "{rows} rows:\n{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS && line == line.trim_end(), "{line:?}");
        }
    }

    /// rule: cli.md, Help: `execd --help` fits a screen
    #[test]
    fn the_overview_fits_a_screen_and_names_every_command() {
        let text = overview();
        fits(&text);
        for name in names() {
            assert!(text.contains(&format!("\n  execd {name} ")), "{name}");
        }
    }

    /// rule: cli.md, Help: `execd help run`, `execd run --help` tell that command alone with two
    ///   examples
    #[test]
    fn the_help_of_each_command_fits_a_screen_and_the_whole_has_every_flag() {
        for command in COMMANDS {
            let screen = screen(command);
            fits(&screen);
            let whole = whole(command);
            for flag in command.flags {
                let shown = whole.contains(&format!("  {}", flag.shown()));
                assert!(shown, "{}: {}", command.name, flag.name);
                assert_eq!(screen.contains(&flag.shown()), !flag.rare, "{}", flag.name);
            }
            for text in [&screen, &whole] {
                let examples = command.examples.map(|one| format!("\n  {one}\n"));
                assert!(examples.iter().all(|one| text.contains(one)), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            }
        }
    }
}
