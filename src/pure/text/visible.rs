//! Text of others on a person's screen or before a model: a character that would act on a terminal,
//! or change what is seen of the text around it, is shown as its code.

use std::fmt::Write as _;

/// Whether a character is not seen but acts: control characters, those that turn the direction of
/// text, and those without a width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    let hidden = |c: char| is_hidden(c) && !stays(c);
    if !text.chars().any(hidden) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // A String takes everything.
        let _ = match c {
            c if !hidden(c) => {
                out.push(c);
                Ok(())
            }
            '\n' => write!(out, "\\n"),
            '\0'..='\u{ff}' => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    out
}

/// On one line: newlines are shown too.
pub fn one_line(text: &str) -> String {
    shown(text, |_| false)
}

/// On as many lines as it has.
pub fn lines(text: &str) -> String {
    shown(text, |c| matches!(c, '\n' | '\t'))
}

/// Most characters of a name behind an id.
const NAME_CHARS: usize = 60;

/// The name of a session as it stands behind the id, with the blank before it; nothing for none,
/// and for one that the command beside it begins with.
pub fn name(name: Option<&str>, command: &str) -> String {
    let shown = |name: &str| one_line(name).chars().take(NAME_CHARS).collect::<String>();
    let name = name.filter(|name| !command.starts_with(name));
    name.map(|name| format!(" {}", shown(name))).unwrap_or_default()
}

/// JSON text with escapes in the place of such characters, which only its strings can have.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // A String takes everything.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names passed what turns the direction of text, `ls --json` the one-character CSI, and the
    /// line of a command in `tmux peek` its escape sequences.
    /// rule: attach.md, Several clients: Nothing that is listed acts on a terminal or hides
    #[test]
    fn what_acts_on_a_terminal_or_hides_is_shown_as_what_it_is() {
        for (text, shown) in [
            ("make -j2 äöü 漢 😀", "make -j2 äöü 漢 😀"),
            ("a\x1b[2J\x07", "a\\x1b[2J\\x07"),
            ("a\u{9b}31m\x7f", "a\\x9b31m\\x7f"),
            ("user\u{202e}gpj.sh\u{2066}\u{200f}", "user\\u{202e}gpj.sh\\u{2066}\\u{200f}"),
            ("ad\u{200b}min\u{feff}\u{ad}\u{e0041}", "ad\\u{200b}min\\u{feff}\\xad\\u{e0041}"),
            ("two\nlines\tx", "two\\nlines\\x09x"),
        ] {
            assert_eq!(one_line(text), shown);
        }
        assert_eq!(lines("two\nlines\tx\r\x1b"), "two\nlines\tx\\x0d\\x1b");
        let value = serde_json::json!({"name": "\u{9b}x\u{202e}\u{e0041}\n"});
        let text = json(&format!("{value:#}"));
        assert!(text.contains("\\u009bx\\u202e\\udb40\\udc41\\n"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)));
    }
}
