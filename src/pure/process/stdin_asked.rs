//! Whether a command whose stdin is /dev/null has asked that for input. A read of /dev/null leaves
//! no trace, so this is told by the command's words, and only where they leave no doubt
//! (bash.md, Programs that want a terminal).

use crate::limits::{STDIN_ASKED_COMMAND_BYTES, STDIN_ASKED_SHELLS_DEEP};

/// When a command has asked its stdin for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// When it has ended by itself.
    Always,
    /// When it has ended with exit status 0.
    IfDone,
}

/// A program that reads commands from its stdin when nothing else is asked of it.
struct Prompt {
    names: &'static [&'static str],
    /// Options of one letter that change nothing about that.
    flags: &'static str,
    /// Options of one letter that have an argument, and change nothing about that.
    with_argument: &'static str,
    /// How many other words change nothing about that.
    operands: usize,
}

const fn prompt(
    names: &'static [&'static str],
    flags: &'static str,
    with_argument: &'static str,
    operands: usize,
) -> Prompt {
    Prompt { names, flags, with_argument, operands }
}

const PROMPTS: [Prompt; 13] = [
    prompt(&["bash", "sh", "dash", "zsh", "ksh"], "il", "", 0),
    prompt(&["python", "python2", "python3", "pypy", "pypy3"], "bBdEiIOPqsSuv", "WX", 0),
    prompt(&["node", "nodejs"], "i", "", 0),
    prompt(&["irb", "perl", "ruby", "tclsh", "ipython", "ghci"], "", "", 0),
    prompt(&["lua", "luajit"], "i", "", 0),
    prompt(&["php"], "a", "", 0),
    prompt(&["julia"], "qi", "", 0),
    prompt(&["bc"], "lqsw", "", 0),
    prompt(&["dc"], "", "", 0),
    prompt(&["gdb"], "q", "", 1),
    prompt(&["sqlite3"], "", "", 1),
    prompt(&["psql"], "qwXn", "dhpU", 2),
    prompt(&["mysql", "mariadb"], "", "DhPu", 1),
];

/// Words behind which a shell may not come to its next command, or knows it by another meaning.
const LEAVERS: [&str; 22] = [
    ".", "alias", "break", "builtin", "command", "continue", "coproc", "enable", "env", "eval",
    "exec", "exit", "kill", "logout", "return", "set", "shopt", "source", "suspend", "time",
    "trap", "ulimit",
];
/// Words that begin what is no simple command.
const KEYWORDS: [&str; 18] = [
    "!", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "until", "while", "in",
];

/// How a command is joined to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    /// The command follows in any case.
    Then,
    /// The command follows where the one before it succeeded.
    And,
    /// The command follows where the one before it failed.
    Or,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Word {
    text: String,
    /// Something in it is replaced before the command sees it.
    expanded: bool,
    /// The word has quotes: with them an empty word is one too.
    quoted: bool,
}

#[derive(Debug)]
struct Simple {
    joined: Joined,
    words: Vec<Word>,
}

/// Takes a command that bash runs with stdin from /dev/null, and says when its end means that it
/// has asked that for input. `None`: that cannot be said.
pub fn asks(command: &str) -> Option<Asks> {
    asks_within(command, STDIN_ASKED_SHELLS_DEEP)
}

fn asks_within(command: &str, deep: usize) -> Option<Asks> {
    if command.len() > STDIN_ASKED_COMMAND_BYTES {
        return None;
    }
    let list = Reader::new(command).list()?;
    let last = list.len().checked_sub(1)?;
    let mut surely = true;
    for (place, simple) in list.iter().enumerate() {
        if simple.joined == Joined::Or {
            return None;
        }
        surely &= simple.joined == Joined::Then;
        let words = simple.command();
        match simple_asks(words, deep) {
            Some(Asks::Always) if surely => return Some(Asks::Always),
            // Where it was not come to, or has not done its work, the exit status says so.
            Some(_) if place == last => return Some(Asks::IfDone),
            _ => {}
        }
        let leaves = words
            .first()
            .is_some_and(|word| word.expanded || LEAVERS.contains(&word.text.as_str()));
        if leaves {
            return None;
        }
    }
    None
}

/// Says what [`asks`] says, of one command without the variables before it.
fn simple_asks(words: &[Word], deep: usize) -> Option<Asks> {
    let (program, rest) = words.split_first()?;
    if program.expanded {
        return None;
    }
    if program.text == "read" {
        return read_asks(rest).then_some(Asks::Always);
    }
    if rest.iter().any(|word| word.expanded) {
        return None;
    }
    let base = program.text.rsplit('/').next().unwrap_or_default();
    if let [option, command] = rest
        && base == "bash"
        && option.text == "-c"
    {
        return asks_within(&command.text, deep.checked_sub(1)?);
    }
    // python3.12 is python3.
    let unversioned = base.trim_end_matches(|c: char| c.is_ascii_digit());
    let family = unversioned.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(base);
    let prompt = PROMPTS.iter().find(|one| one.names.contains(&family))?;
    prompt.is_meant(rest).then_some(Asks::IfDone)
}

impl Prompt {
    /// Whether its arguments leave it reading commands from stdin.
    fn is_meant(&self, arguments: &[Word]) -> bool {
        let mut operands = 0;
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let Some(options) = word.text.strip_prefix('-') else {
                operands += 1;
                continue;
            };
            if options.is_empty() {
                return false;
            }
            let mut letters = options.chars();
            while let Some(letter) = letters.next() {
                if self.with_argument.contains(letter) {
                    if letters.as_str().is_empty() && words.next().is_none() {
                        return false;
                    }
                    break;
                }
                if !self.flags.contains(letter) {
                    return false;
                }
            }
        }
        operands <= self.operands
    }
}

/// Whether bash's `read` with these words reads stdin.
fn read_asks(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next_if(|word| word.text.starts_with('-')) {
        let mut letters = word.text[1..].chars();
        if word.expanded || letters.as_str().is_empty() {
            return false;
        }
        while let Some(letter) = letters.next() {
            let takes = match letter {
                'e' | 'r' | 's' => continue,
                'a' | 'd' | 'i' | 'n' | 'N' | 'p' | 't' => letters.as_str(),
                _ => return false,
            };
            let (argument, expanded) = match takes {
                "" => match words.next() {
                    Some(next) => (next.text.as_str(), next.expanded),
                    None => return false,
                },
                rest => (rest, false),
            };
            let some = argument.parse::<f64>().ok().is_some_and(|number| number > 0.0);
            let fits = match letter {
                // What is asked for is no input, or nothing at all.
                'n' | 'N' | 't' => some && !expanded,
                'a' => is_name(argument) && !expanded,
                _ => true,
            };
            if !fits {
                return false;
            }
            break;
        }
    }
    words.all(|word| !word.expanded && is_name(&word.text))
}

/// Whether this is the name of a variable.
fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Simple {
    /// Its words behind the variables that are set for it.
    fn command(&self) -> &[Word] {
        let sets = |word: &Word| word.text.split_once('=').is_some_and(|(name, _)| is_name(name));
        let first = self.words.iter().position(|word| !sets(word));
        &self.words[first.unwrap_or(self.words.len())..]
    }
}

/// Reads a list of simple commands; what is more than that is not read at all.
struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    list: Vec<Simple>,
    words: Vec<Word>,
    word: Option<Word>,
    joined: Joined,
    /// The next word is where output goes.
    redirects: bool,
}

impl<'a> Reader<'a> {
    fn new(command: &'a str) -> Self {
        Self {
            rest: command.chars().peekable(),
            list: Vec::new(),
            words: Vec::new(),
            word: None,
            joined: Joined::Then,
            redirects: false,
        }
    }

    fn list(mut self) -> Option<Vec<Simple>> {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' => self.end_word(),
                '\n' if self.words.is_empty() && self.word.is_none() => {}
                '\n' | ';' => self.end_command(Joined::Then)?,
                '&' | '|' => {
                    self.rest.next_if_eq(&c)?;
                    self.end_command(if c == '&' { Joined::And } else { Joined::Or })?;
                }
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '>' => self.redirect()?,
                '<' | '(' | ')' | '`' => return None,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    c => self.literal(c),
                },
                '\'' => loop {
                    self.quoted();
                    match self.rest.next()? {
                        '\'' => break,
                        c => self.literal(c),
                    }
                },
                '"' => self.double_quoted()?,
                '$' => self.expansion()?,
                '*' | '?' | '[' | ']' | '{' | '}' | '~' => {
                    self.literal(c);
                    self.current().expanded = true;
                }
                c => self.literal(c),
            }
        }
        self.end_word();
        if !self.words.is_empty() {
            self.end_command(Joined::Then)?;
        }
        // Behind `&&` something has to follow.
        let open = self.joined != Joined::Then || self.redirects;
        (!open).then_some(self.list)
    }

    fn current(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn literal(&mut self, c: char) {
        self.current().text.push(c);
    }

    fn quoted(&mut self) {
        self.current().quoted = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.redirects) {
            return;
        }
        self.words.push(word);
    }

    fn end_command(&mut self, next: Joined) -> Option<()> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let first = words.first().filter(|_| !self.redirects)?;
        let keyword = !first.quoted && KEYWORDS.contains(&first.text.as_str());
        if keyword || first.text.starts_with(['{', '}']) {
            return None;
        }
        self.list.push(Simple { joined: self.joined, words });
        self.joined = next;
        Some(())
    }

    /// Output that goes elsewhere. The number before it is a descriptor: 1 or 2.
    fn redirect(&mut self) -> Option<()> {
        match self.word.take() {
            Some(word) if !word.quoted && ["1", "2"].contains(&word.text.as_str()) => {}
            Some(word) if word.text.bytes().all(|byte| byte.is_ascii_digit()) => return None,
            other => {
                self.word = other;
                self.end_word();
            }
        }
        self.rest.next_if(|c| ['>', '&', '|'].contains(c));
        // Two in a row: the first leads nowhere.
        let first = !std::mem::replace(&mut self.redirects, true);
        first.then_some(())
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.quoted();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.expansion()?,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.literal(c),
                    c => {
                        self.literal('\\');
                        self.literal(c);
                    }
                },
                c => self.literal(c),
            }
        }
    }

    /// A variable; anything else that `$` begins may run commands, or end the shell.
    fn expansion(&mut self) -> Option<()> {
        let name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let braced = self.rest.next_if_eq(&'{').is_some();
        let special = |c: &char| "?#@*!$-".contains(*c);
        let mut any = self.rest.next_if(|c| name(c) || special(c)).is_some();
        while any && self.rest.next_if(name).is_some() {}
        if braced {
            any &= self.rest.next_if_eq(&'}').is_some();
        }
        if any {
            self.current().expanded = true;
            return Some(());
        }
        let plain = self.rest.peek().is_none_or(|c| c.is_whitespace() || *c == '"');
        (plain && !braced).then(|| self.literal('$'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    /// rule: bash.md, bash and tmux: A background start whose first second ends in EOF of an
    ///   interactive program says that it wanted input, and nothing where that is not known
    #[test]
    fn what_asks_stdin_for_input_is_known_by_its_words() {
        for command in [
            "read x",
            "read -p 'Continue? [y/N] ' answer",
            "read -rsp \"Password: \" word; echo",
            "read -n1 -p \"Sure, $USER? \" key",
            "read -t 5 x",
            "read",
            "echo hello; read -p 'Name: ' name; echo \"hi $name\" > out.txt 2>&1",
            "cd app\n# ask\nread -p x y\nmake -j\n",
            "A=1 read x",
            "read x || exit 1",
            "read x && make",
        ] {
            assert_eq!(asks(command), Some(Asks::Always), "{command:?}");
        }
        for command in [
            "python3 -q",
            "python3",
            "/usr/bin/python3.12 -qu 2>&1",
            "PYTHONUNBUFFERED=1 python -W ignore -i",
            "cd ~/app && node",
            "make; node -i",
            "psql -h localhost -p5432 shop",
            "sqlite3 my.db",
            "gdb -q ./a.out",
            "bash",
            "bash -c 'cd x && python3 -q'",
            "cd x && read -p 'Go on? ' y",
        ] {
            assert_eq!(asks(command), Some(Asks::IfDone), "{command:?}");
        }
        assert_eq!(asks("bash -c \"read -p 'x? ' y; echo \\$y\""), Some(Asks::Always));
    }

    /// rule: bash.md, bash and tmux: A background start whose first second ends in EOF of an
    ///   interactive program says that it wanted input, and nothing where that is not known
    #[test]
    fn what_leaves_a_doubt_asks_nothing() {
        for command in [
            "",
            "true",
            "python3 -c 'print(1)'",
            "python3 -V",
            "python3 --version",
            "python3 x.py",
            "python3 -",
            "python3 $ARGS",
            "python3 < x.py",
            "echo 1 | python3",
            "python3 | cat",
            "python3 &",
            "python3; true",
            "(python3)",
            "if true; then python3; fi",
            "python3 <<EOF\nprint(1)\nEOF",
            "! python3",
            "false || python3",
            "exit 0; python3",
            "exec true; read x",
            "set -e; false; read x",
            "source env; read x",
            "cd app && . x",
            "zsh -c 'read -p x'",
            "$CMD; read x",
            "alias read=true; read x",
            "read x < file",
            "read x <<< y",
            "while read x; do :; done",
            "read() { :; }; read x",
            "read -u 3 x",
            "read -t 0 x",
            "read -n 0 x",
            "read -q x",
            "read 1x",
            "read $x",
            "read x; if",
            "read x &&",
            "read x;;",
            "read 'x",
            "read \"$(cat)\"",
            "read x `y`",
            "echo ${x:?}; read x",
            "echo $'x'; read x",
            "grep -q read x",
            "echo read",
            "node x.js",
            "node -e 1",
            "node --version",
            "psql -c 'select 1'",
            "psql -l",
            "sqlite3 my.db 'select 1'",
            "bash x.sh",
            "bash -c 'bash -c \"bash -c read\"'",
            "3>x read y",
            "{ read x; }",
            "read x >",
            "read x > > y",
        ] {
            assert_eq!(asks(command), None, "{command:?}");
        }
        assert_eq!(asks(&format!("read x; echo {}", "y".repeat(8_192))), None);
    }

    /// rule: bash.md, bash and tmux: A background start whose first second ends in EOF of an
    ///   interactive program says that it wanted input, and nothing where that is not known
    #[test]
    fn no_text_is_too_strange_to_be_read() {
        let pieces = ["read ", "x", "'", "\"", "\\", "$", "{", "}", "&&", ";", ">", "\n", "é", "#"];
        let mut below = random(1);
        for _ in 0..2_000 {
            let mut text = String::new();
            for _ in 0..12 {
                text.push_str(pieces[below(pieces.len())]);
            }
            let _ = asks(&text);
        }
    }
}
