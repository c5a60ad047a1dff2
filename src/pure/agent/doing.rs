//! What a run does, in a line: the last of its text, or the tool that it has called.

use super::Told;
use crate::limits::{AGENT_DOING_BYTES, AGENT_SHOWN_CHARS};
use crate::pure::text::visible::one_line;

/// The last line of what a client is told of a run.
#[derive(Clone, Debug, Default)]
pub struct Doing(String);

impl Doing {
    /// Takes an event.
    pub fn note(&mut self, told: &Told<'_>) {
        match told.event {
            "text" => self.read_on(told.delta.unwrap_or_default()),
            "tool_use" => {
                let input = told.input.map_or("", |input| input.get());
                self.call(told.name.unwrap_or_default(), input);
            }
            _ => {}
        }
    }

    /// Takes a call of a tool.
    pub fn call(&mut self, name: &str, input: &str) {
        self.0.clear();
        for part in [name, " ", input] {
            self.0.extend(part.chars().take(AGENT_SHOWN_CHARS));
        }
        // Text that follows is another line.
        self.0.push('\n');
    }

    /// Takes more of a text that comes in pieces.
    pub fn read_on(&mut self, delta: &str) {
        for piece in delta.split_inclusive('\n') {
            if self.0.ends_with('\n') {
                // A blank line says less than the one before it.
                if piece.trim().is_empty() {
                    continue;
                }
                self.0.clear();
            }
            let (text, end) = piece.strip_suffix('\n').map_or((piece, ""), |text| (text, "\n"));
            let room = AGENT_DOING_BYTES.saturating_sub(self.0.len());
            self.0.push_str(&text[..text.floor_char_boundary(room)]);
            self.0.push_str(end);
        }
    }

    /// The line, with nothing in it that acts on a terminal.
    pub fn line(&self) -> String {
        one_line(self.0.trim()).chars().take(AGENT_SHOWN_CHARS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(deltas: &[&str]) -> String {
        let mut doing = Doing::default();
        deltas.iter().for_each(|delta| doing.read_on(delta));
        doing.line()
    }

    #[test]
    fn it_is_the_last_line_of_the_text_that_is_not_blank() {
        assert_eq!(after(&[]), "");
        assert_eq!(after(&["I lo", "ok."]), "I look.");
        assert_eq!(after(&["I look.\nThere", " is\n\n", "  \n"]), "There is");
        assert_eq!(after(&["I look.\n", "\n", "Done"]), "Done");
        assert_eq!(after(&["a\u{1b}[2Jb"]), "a\\x1b[2Jb");
    }

    #[test]
    fn it_is_the_tool_that_was_called_until_there_is_text_again() {
        let mut doing = Doing::default();
        doing.read_on("I look");
        let input = serde_json::value::RawValue::from_string(r#"{"command":"ls"}"#.to_owned());
        let input = input.expect("JSON");
        doing.note(&Told {
            event: "tool_use",
            name: Some("bash"),
            input: Some(&input),
            ..Told::default()
        });
        assert_eq!(doing.line(), r#"bash {"command":"ls"}"#);
        doing.note(&Told { event: "thinking", delta: Some("hm"), ..Told::default() });
        assert_eq!(doing.line(), r#"bash {"command":"ls"}"#);
        doing.note(&Told { event: "text", delta: Some("\n\nTwo"), ..Told::default() });
        assert_eq!(doing.line(), "Two");
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_than_its_bound() {
        let mut doing = Doing::default();
        for _ in 0..1_000 {
            doing.read_on(&"é".repeat(1_000));
        }
        assert!(doing.0.len() <= AGENT_DOING_BYTES);
        assert_eq!(doing.line().chars().count(), AGENT_SHOWN_CHARS);
        doing.read_on("\nNext");
        assert_eq!(doing.line(), "Next");
    }
}
