//! What a background window is called, and which part of its command is shown.

use crate::pure::text::visible::is_hidden;

/// Where a command's first word ends.
const WORD_ENDS: [char; 3] = ['|', ';', '&'];

/// The part of a command that is shown: what follows the last line that is the marker, where
/// there is one; an empty marker turns this off.
pub fn shown_command<'a>(command: &'a str, marker: &str) -> &'a str {
    let marker = marker.trim();
    if marker.is_empty() {
        return command;
    }
    let mut rest = None;
    let mut end = 0;
    for line in command.split_inclusive('\n') {
        end += line.len();
        if line.trim() == marker {
            rest = Some(&command[end..]);
        }
    }
    // A command that ends with its marker would be shown as nothing at all.
    rest.map(str::trim_start).filter(|rest| !rest.is_empty()).unwrap_or(command)
}

/// The base name of a command's first word.
pub fn command_name(shown: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || WORD_ENDS.contains(&c);
    let first = shown.trim_start().split(ends).next().unwrap_or_default();
    let base = first.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if base.is_empty() { "shell" } else { base }
}

/// A window's name: the template with `{{nameOrCommand}}`, `{{name}}` and `{{command}}` replaced,
/// on one line, cut to `max_chars` characters.
pub fn window_name(shown: &str, name: Option<&str>, template: &str, max_chars: usize) -> String {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let value = |variable: &str| match variable {
        "nameOrCommand" => Some(name.unwrap_or_else(|| command_name(shown))),
        "name" => Some(name.unwrap_or_default()),
        "command" => Some(shown),
        _ => None,
    };
    let filled = fill(template, value);
    let made = one_line(&filled, max_chars);
    if made.is_empty() {
        one_line(name.unwrap_or_else(|| command_name(shown)), max_chars)
    } else {
        made
    }
}

/// A template with its `{{variables}}` replaced; one that is not known stays as it is.
fn fill<'a>(template: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        out.push_str(before);
        let found = behind.split_once("}}");
        match found.and_then(|(variable, after)| Some((value(variable.trim())?, after))) {
            Some((text, after)) => {
                out.push_str(text);
                rest = after;
            }
            None => {
                out.push_str("{{");
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A text on one line without control characters and what is not seen, cut to `max_chars`
/// characters.
fn one_line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let mut chars = 0;
    // What has no width takes no place either: it does not part a word.
    let text: String = text.chars().filter(|c| c.is_control() || !is_hidden(*c)).collect();
    let visible = |c: &char| !c.is_control() && !c.is_whitespace();
    for word in text.split(|c: char| !visible(&c)).filter(|word| !word.is_empty()) {
        for c in (chars > 0).then_some(' ').into_iter().chain(word.chars()) {
            if chars == max_chars {
                out.truncate(out.trim_end().len());
                return out;
            }
            out.push(c);
            chars += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "# SHIM_END";

    #[test]
    fn the_shown_command_starts_after_the_last_marker() {
        for (command, marker, shown) in [
            ("make", MARKER, "make"),
            ("a=1\n# SHIM_END\nmake\ntest", MARKER, "make\ntest"),
            ("x\n# SHIM_END\ny\n  # SHIM_END  \n\n  make", MARKER, "make"),
            ("echo '# SHIM_END' x\nmake", MARKER, "echo '# SHIM_END' x\nmake"),
            ("x\n# SHIM_END\n", MARKER, "x\n# SHIM_END\n"),
            ("x\n# SHIM_END\nmake", "", "x\n# SHIM_END\nmake"),
            ("x\nCUT\nmake", "CUT", "make"),
        ] {
            assert_eq!(shown_command(command, marker), shown, "{command:?} {marker:?}");
        }
    }

    /// rule: bash.md, bash and tmux: Names: base name of the first word, 30 characters, template;
    ///   the marker
    #[test]
    fn a_name_is_the_base_name_of_the_first_word() {
        for (command, name) in [
            ("pnpm test", "pnpm"),
            ("/usr/bin/python3 -m http.server", "python3"),
            ("./run.sh; echo", "run.sh"),
            ("make|tee x", "make"),
            ("sleep&", "sleep"),
            ("  \n cargo build", "cargo"),
            ("bin/ x", "bin"),
            ("/", "shell"),
            ("| x", "shell"),
            ("A=1 make", "A=1"),
        ] {
            assert_eq!(command_name(command), name, "{command:?}");
        }
    }

    /// rule: bash.md, bash and tmux: Names: base name of the first word, 30 characters, template;
    ///   the marker
    #[test]
    fn templates_are_filled_and_names_are_cut() {
        let default = "{{nameOrCommand}}";
        for (command, name, template, max, expected) in [
            ("pnpm dev", None, default, 30, "pnpm"),
            ("pnpm dev", Some("dev-server"), default, 30, "dev-server"),
            ("pnpm dev", Some("  "), default, 30, "pnpm"),
            ("pnpm dev", Some("web"), "{{ name }}: {{command}}", 30, "web: pnpm dev"),
            ("pnpm dev", None, "{{name}}", 30, "pnpm"),
            ("pnpm dev", None, "", 30, "pnpm"),
            ("pnpm dev", None, "{{what}} {{nameOrCommand}} {{", 30, "{{what}} pnpm {{"),
            ("a\nb\tc\x1b[31m", None, "{{command}}", 30, "a b c [31m"),
            ("x", Some("äöü-äöü"), default, 5, "äöü-ä"),
            ("x", Some("ab cd"), default, 3, "ab"),
            ("x", Some(&"n".repeat(50)), default, 30, &"n".repeat(30)),
            ("x", Some("{{command}}"), default, 30, "{{command}}"),
            ("x", Some("ev\u{200b}il\u{202e}gpj"), default, 30, "evilgpj"),
        ] {
            assert_eq!(window_name(command, name, template, max), expected, "{command:?}");
        }
    }
}
