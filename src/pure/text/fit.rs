//! Lines that fit a terminal's width: cut, or broken between words. Widths are those that terminals
//! give: two columns for a wide character, none for a combining one.

/// Characters that take two columns: East Asian ones and emoji, by their ranges.
const WIDE: [(char, char); 14] = [
    ('\u{1100}', '\u{115f}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{33ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{a000}', '\u{a4cf}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe4f}'),
    ('\u{ff00}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{1f300}', '\u{1f64f}'),
    ('\u{1f680}', '\u{1faff}'),
    ('\u{20000}', '\u{3fffd}'),
];

/// Columns of a character.
fn columns_of(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        c if WIDE.iter().any(|(first, last)| (*first..=*last).contains(&c)) => 2,
        _ => 1,
    }
}

/// Columns of a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// As many bytes of a text as fit these columns.
fn fitting(text: &str, most: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += columns_of(c);
        if used > most {
            return at;
        }
    }
    text.len()
}

/// The beginning of a line, with `more` behind it where the line is longer than these columns.
pub fn cut(line: &str, most: usize, more: &str) -> String {
    if columns(line) <= most {
        return line.to_owned();
    }
    let room = most.saturating_sub(columns(more));
    format!("{}{more}", line[..fitting(line, room)].trim_end())
}

/// A text as lines of these columns, broken between words; a longer word is broken where the line
/// ends. Lines behind the first begin with `indent`.
pub fn wrapped(text: &str, most: usize, indent: &str) -> Vec<String> {
    let most = most.max(columns(indent) + 2);
    let mut lines = Vec::new();
    let mut line = String::new();
    // The line has nothing but its indent.
    let mut blank = true;
    for mut word in text.split(' ').filter(|word| !word.is_empty()) {
        let needed = usize::from(!blank) + columns(word);
        if !blank && columns(&line) + needed > most {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            blank = true;
        }
        while columns(&line) + columns(word) > most && blank {
            let (head, rest) = word.split_at(fitting(word, most - columns(&line)));
            line.push_str(head);
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            word = rest;
        }
        if !blank {
            line.push(' ');
        }
        line.push_str(word);
        blank = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: agent.md, execd agent: Lines are cut or broken at the terminal's width
    #[test]
    fn lines_are_cut_and_broken_at_a_width() {
        assert_eq!(cut("make test", 9, "…"), "make test");
        assert_eq!(cut("make tests", 9, "…"), "make tes…");
        assert_eq!(cut("make tests", 9, "..."), "make t...");
        assert_eq!(cut("漢字漢字", 7, "…"), "漢字漢…");
        assert_eq!(wrapped("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrapped("one two", 80, "  "), ["one two"]);
        assert_eq!(wrapped("a abcdefghij k", 6, "  "), ["a", "  abcd", "  efgh", "  ij k"]);
        assert_eq!(wrapped("漢字漢字", 5, ""), ["漢字", "漢字"]);
        assert_eq!(wrapped("", 5, "  "), [""]);
        // A width that no text fits is none.
        assert_eq!(wrapped("ab", 0, "  "), ["ab"]);
        for width in 1..40 {
            for line in wrapped("The quick brown 漢字 fox jumps-over-it-all again", width, "  ") {
                assert!(columns(&line) <= width.max(4), "{width}: {line:?}");
            }
        }
    }
}
