//! Tests of clean text: a table for every rule, a naive terminal as a model, hostile input.

use super::*;
use crate::limits::{CLEAN_EDIT_CHARS, CLEAN_PADDING_CHARS, MAX_CURSOR_COLUMN, REDRAW_LINES};
use crate::pure::tests_random::random;

fn kept(head: &[u8], omitted_bytes: u64, tail: &[u8]) -> Kept {
    Kept { head: head.to_vec(), omitted_bytes, tail: tail.to_vec() }
}

/// The text of a whole stream in one call.
fn clean(bytes: &[u8]) -> String {
    Cleaner::new().call_text(&kept(bytes, 0, b""), "GAP", true)
}

fn check_table(table: &[(&str, &str)]) {
    for (input, expected) in table {
        assert_eq!(clean(input.as_bytes()), *expected, "{input:?}");
    }
}

#[test]
fn plain_text_stays_as_it_was_written() {
    check_table(&[
        ("", ""),
        ("a\tb  \n  trailing   ", "a\tb  \n  trailing   "),
        ("gr\u{fc}\u{df} \u{1f600} e\u{301}\u{a0}", "gr\u{fc}\u{df} \u{1f600} e\u{301}\u{a0}"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"),
        ("\r\n\r\n", "\n\n"),
    ]);
}

/// rule: unified-exec.md, Truncation, retention, text: Escape sequences and C0 but `\n` and `\t`
///   are taken out
#[test]
fn sequences_and_control_characters_are_taken_out() {
    check_table(&[
        ("\x1b[31mred\x1b[0m \x1b[1;38;2;1;2;3mx\x1b[m", "red x"),
        ("\x1b[38:5:3mx\x1b[4:3my", "xy"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("\x1b]0;caf\u{e9} \u{2713}\x07a", "a"),
        ("\x1bP1$r0m\x1b\\a\x1bPq\u{2713}#0~\x1b\\b", "ab"),
        ("\x1b_apc\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c", "abc"),
        ("\x1b(Ba\x1b)0b\x1b#8c\x1b%Gd", "abcd"),
        ("\x1b=a\x1b>b\x1bcc\x1bMd\x1b", "abcd"),
        ("\x1b[?25la\x1b[?1049hb\x1b[?2004lc\x1b[>4;1md\x1b[!pe\x1b[ qf", "abcdef"),
        ("\x1b]0;never ended\nnext\x1bPq#0\nlast\x1b_\n", "\nnext\nlast\n"),
        // A parameter byte in the wrong place: the whole sequence is ignored without a word.
        ("\x1b[3?1mx\x1b[ 1\u{e9}mz", "xz"),
        ("\x1b[31\x18x\x1b]0;t\x1ay\x1bPq\x18z", "xyz"),
        ("\x1b[3\x1b[1mx", "x"),
        ("\x1b[3\n1mx\x1b[\t1my", "\nx\ty"),
        ("a\0b\x07c\x0bd\x0ce\x0ef\x0fg\x7fh\x1ci", "abcdefghi"),
        ("a\u{80}b\u{9b}31mc\u{9f}d\u{a0}", "ab31mcd\u{a0}"),
        (
            "\x1b[99999999999999999999mx\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;\
             15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34Gy",
            "xy",
        ),
    ]);
}

/// rule: unified-exec.md, Truncation, retention, text: Invalid bytes become U+FFFD in `output`
#[test]
fn invalid_bytes_become_one_mark_per_maximal_part() {
    let samples: &[&[u8]] = &[
        b"\x80a\x9Bb\xBF",
        b"\xC2a\xC2\xC2\xA9\xC2",
        b"\xE2\x82\nx\xF0\x9F\x98y\xED\xA0\x80\xF4\x90",
        b"\xFF\xFE\xC0\xAF",
        b"ok\xE2\x82",
    ];
    for sample in samples {
        assert_eq!(clean(sample), String::from_utf8_lossy(sample), "{sample:x?}");
    }
    assert_eq!(clean(b"\xE2\x82\x1b[1mx\xC3\ry"), "yx\u{fffd}");
    assert_eq!(clean(b"\xC2\r\n\xE2\x82\x00a"), "\u{fffd}\n\u{fffd}a");
}

/// rule: unified-exec.md, Truncation, retention, text: `\r\n` is a newline
/// rule: unified-exec.md, Truncation, retention, text: `\r` is column 0 and later characters
///   overwrite
/// rule: unified-exec.md, Truncation, retention, text: `\b` is one left
/// rule: unified-exec.md, Truncation, retention, text: CSI K, 1K, 2K erase
/// rule: unified-exec.md, Truncation, retention, text: CSI C, D, G move
#[test]
fn edits_of_a_line_take_effect() {
    check_table(&[
        ("abc\rXYZW", "XYZW"),
        ("abcdef\x08\x08\x1b[0K", "abcd"),
        ("abc\x1b[3K", "abc"),
        ("abc\r\x1b[CX", "aXc"),
        ("abc\x1b[DX\x1b[2DYZ", "aYZ"),
        ("abc\x1b[99DX", "Xbc"),
        ("abc\x1b[GX\x1b[3GY\x1b[0GZ", "ZbY"),
        ("abc\x1b[5`x\x1b[2ay", "abc x  y"),
        ("abc\x1b[?K\r\x1b[?2Kx", "xbc"),
        // What readline sends.
        ("abcd\x08\x08\x08\x1b[P", "acd"),
        ("abcd\x1b[2G\x1b[9P", "a"),
        ("abcd\x1b[9G\x1b[P\x1b[@", "abcd"),
        ("abcd\x1b[2G\x1b[2@X", "aX bcd"),
        ("abcd\x1b[2G\x1b[9999@", "abcd"),
        ("abcd\x1b[2G\x1b[2X", "a  d"),
        ("abcd\x1b[2G\x1b[9X", "a"),
        // Cursor saved and restored around a spinner.
        ("go \x1b7|\x1b8/\x1b8-\x1b8done\n", "go done\n"),
        ("go \x1b[s10%\x1b[u20%", "go 20%"),
        ("abc\x1b8d\x1b[ue", "abcde"),
    ]);
}

/// rule: unified-exec.md, Truncation, retention, text: Cursor-up redraws within the last 50 lines
///   are applied
#[test]
fn redraws_of_the_lines_above_are_applied() {
    check_table(&[
        ("a\nb\nc\x1b[9A\rX\x1b[9B\rY", "X\nb\nY"),
        ("a\nb\nc\x1b[2FX\x1b[EY\x1b[EZ\x1b[EW", "X\nY\nZ\nW"),
        ("a\x1b[Eb", "a\nb"),
        ("a\x1b[Bb\x1b[2ec", "abc"),
        ("a\nbcd\nc\x1b[A\r\x1b[CX\x1b[0J\nnew", "a\nbX\nnew"),
        ("abc\x1b[1J\x1b[2J\x1b[3Jd", "abcd"),
        ("a\nb\x1b7\x1b[A\x1b[Jc\x1b8d", "ad"),
        ("x\n\x1b[s\n\x1b[2A\rT\x1b[uS", "T\nS\n"),
    ]);
    // A block of three bars, redrawn as docker and cargo do; lines before it stay.
    let mut input = String::from("pull\n1: 0%\n2: 0%\n3: 0%\n");
    for percent in 1..=100 {
        input +=
            &format!("\x1b[3A\r\x1b[2K1: {percent}%\n\x1b[2K2: {percent}%\n\x1b[2K3: {percent}%\n");
    }
    input += "ok\n";
    assert_eq!(clean(input.as_bytes()), "pull\n1: 100%\n2: 100%\n3: 100%\nok\n");
}

#[test]
fn the_cursor_goes_up_a_bounded_number_of_lines() {
    let lines: String = (0..200).map(|i| format!("{i}\n")).collect();
    let text = clean(format!("{lines}\x1b[9999AX").as_bytes());
    let changed = 200 - REDRAW_LINES;
    assert!(text.contains(&format!("\n{}\nX{}\n", changed - 1, &changed.to_string()[1..])));
    // The bound goes with the last line, also where lines come after the first redraw.
    let text = clean(format!("a\nb\x1b[AX\n\n{lines}\x1b[9999AY").as_bytes());
    assert!(text.starts_with("aX\nb\n0\n"), "{text}");
    assert!(text.contains(&format!("\n{}\nY{}\n", changed - 1, &changed.to_string()[1..])));
    // A saved place that went out of reach is forgotten.
    let text = clean(format!("a\x1b7\n{lines}\x1b8Y").as_bytes());
    assert_eq!(text, format!("a\n{lines}Y"));
}

#[test]
fn jumps_of_full_screen_programs_start_a_line() {
    check_table(&[
        ("\x1b[2J\x1b[Hhello", "hello"),
        ("one\x1b[2;1Htwo\x1b[3;5Hthree", "one\ntwo\n    three"),
        ("one\x1b[5dtwo\x1b[1fthree\r\x1b[Hfour", "one\ntwo\nthree\nfour"),
        ("a\nb\x1b[AX\x1b[HY", "aX\nb\nY"),
        ("a\nb\n\x1b[AX\x1b[HY", "a\nX\nY"),
        // apt's bar in the last row of the terminal.
        ("get\n\x1b7\x1b[30;0fProgress: 10%\x1b8unpack\n", "get\nProgress: 10%\nunpack\n"),
    ]);
    let screen = "\x1b[?1049h\x1b[H\x1b[2Jtop\r\n\x1b[Krow\r\n";
    let text = clean(screen.repeat(1000).as_bytes());
    assert_eq!(text, "top\nrow\n".repeat(1000));
}

/// rule: unified-exec.md, Truncation, retention, text: A new call starts with an empty line at
///   column 0
#[test]
fn a_new_call_starts_at_an_empty_line_and_goes_on_inside_of_sequences() {
    let mut cleaner = Cleaner::new();
    let mut call = |bytes: &[u8]| cleaner.call_text(&kept(bytes, 0, b""), "GAP", false);
    assert_eq!(call(b"10%\x1b[3"), "10%");
    assert_eq!(call(b"1m\r20%\xE2"), "20%");
    assert_eq!(call(b""), "");
    assert_eq!(call(b"\x82"), "");
    assert_eq!(call(b"\xAC\x1b]0;ti"), "\u{20ac}");
    assert_eq!(call(b"tle\x07\x08\x08X\r"), "X");
    assert_eq!(call(b"\n\x1b[5AY\xC2"), "Y\n");
    assert_eq!(call(b"\x85a\xC2"), "a");
    assert_eq!(call(b"\xA9\xE2\x82"), "\u{a9}");
    assert_eq!(call(b"b\xF0\x9F"), "\u{fffd}b");
    assert_eq!(cleaner.call_text(&kept(b"", 0, b""), "GAP", true), "\u{fffd}");
    assert_eq!(cleaner.call_text(&kept(b"\x1b[", 0, b""), "GAP", true), "");
    assert_eq!(cleaner.call_text(&kept(b"31m", 0, b""), "GAP", true), "31m");
}

/// rule: unified-exec.md, Truncation, retention, text: At the gap `output` has a line that tells
///   how much was omitted
/// rule: unified-exec.md, Truncation, retention, text: After a gap the parser is reset and the
///   broken first line dropped
#[test]
fn a_gap_has_a_line_of_its_own_and_a_clean_start_behind_it() {
    let table: &[(&[u8], &[u8], &str)] = &[
        (b"abc", b"ken\nwhole\n", "abc\nGAP\nwhole\n"),
        (b"", b"ken\nwhole", "GAP\nwhole"),
        (b"abc\r", b"x\n\x1b[9AX", "abc\nGAP\nX"),
        (b"a\nb\x1b[AX", b"x\ny", "aX\nb\nGAP\ny"),
        (b"abc\xE2\x82\x1b[3", b"\xAC\n1m", "abc\u{fffd}\nGAP\n1m"),
        (b"abc\xE2\x82", b"\xAC\xE2\x82\xACx", "abc\nGAP\n\u{20ac}x"),
        (b"abc", b"\x82\xACno newline", "abc\nGAP\nno newline"),
        (b"abc", b"\x80\x80\x80\x80x", "abc\nGAP\n\u{fffd}x"),
        (b"abc", b"", "abc\nGAP\n"),
    ];
    for (head, tail, expected) in table {
        let text = Cleaner::new().call_text(&kept(head, 7, tail), "GAP", false);
        assert_eq!(text, *expected, "{head:?} {tail:?}");
    }
    let mut cleaner = Cleaner::new();
    cleaner.call_text(&kept(b"", 1, b"x\ny\x1b[3"), "GAP", false);
    assert_eq!(cleaner.call_text(&kept(b"1mz", 0, b""), "GAP", false), "z");
}

/// rule: unified-exec.md, Truncation, retention, text: After a gap the parser is reset and the
///   broken first line dropped
#[test]
fn a_window_drops_its_broken_line() {
    assert_eq!(window_text(b"ken\nwhole\rW\n", true), "Whole\n");
    assert_eq!(window_text(b"ken\nwhole\xE2\x82", false), "ken\nwhole");
    assert_eq!(window_text(b"\xACno newline \x1b[1mx", true), "no newline x");
    assert_eq!(window_text(b"one line\n", true), "one line\n");
    assert_eq!(window_text(b"", true), "");
}

/// A terminal told the slow way: all lines as characters, every line in reach.
#[derive(Default)]
struct Model {
    lines: Vec<Vec<char>>,
    row: usize,
    col: usize,
}

impl Model {
    fn put(&mut self, character: char) {
        let line = &mut self.lines[self.row];
        while line.len() <= self.col {
            line.push(' ');
        }
        line[self.col] = character;
        self.col += 1;
    }

    fn apply(&mut self, token: &str) {
        let line = &mut self.lines[self.row];
        match token {
            "\n" => {
                self.row += 1;
                self.col = 0;
                if self.row == self.lines.len() {
                    self.lines.push(Vec::new());
                }
            }
            "\r" => self.col = 0,
            "\x08" | "\x1b[D" => self.col = self.col.saturating_sub(1),
            "\x1b[2C" => self.col += 2,
            "\x1b[4G" => self.col = 3,
            "\x1b[K" => line.truncate(self.col),
            "\x1b[1K" if self.col + 1 >= line.len() => line.clear(),
            "\x1b[1K" => line[..=self.col].fill(' '),
            "\x1b[2K" => line.clear(),
            "\x1b[A" => self.row = self.row.saturating_sub(1),
            "\x1b[3A" => self.row = self.row.saturating_sub(3),
            "\x1b[2B" => self.row = (self.row + 2).min(self.lines.len() - 1),
            "\x1b[2F" => (self.row, self.col) = (self.row.saturating_sub(2), 0),
            "\x1b[J" => {
                line.truncate(self.col);
                self.lines.truncate(self.row + 1);
            }
            "\x1b[P" if self.col < line.len() => drop(line.remove(self.col)),
            "\x1b[P" | "\x1b[1;31m" | "\x1b]0;t\u{e9}\x07" | "\x07" | "\x1b(B" | "\u{85}" => {}
            _ => token.chars().for_each(|character| self.put(character)),
        }
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| line.iter().collect()).collect();
        lines.join("\n")
    }
}

const TOKENS: &str = "a|bcd|\u{20ac}|\u{1f600}x|\u{a9}| |\t|a long piece of text, over a block|\n|\
    \n|\r|\x08|\x1b[D|\x1b[2C|\x1b[4G|\x1b[K|\x1b[1K|\x1b[2K|\x1b[A|\x1b[3A|\x1b[2B|\x1b[2F|\x1b[J|\
    \x1b[P|\x1b[1;31m|\x1b]0;t\u{e9}\x07|\x07|\x1b(B|\u{85}";

/// rule: unified-exec.md, Truncation, retention, text: Parser and open line live across reads and
///   calls
#[test]
fn random_edits_give_what_the_model_gives_however_they_are_cut() {
    let mut random = random(0xD1B5_4A32_D192_ED03);
    let tokens: Vec<&str> = TOKENS.split('|').collect();
    for round in 0..1_400 {
        let mut model = Model { lines: vec![Vec::new()], ..Model::default() };
        let mut bytes = Vec::new();
        // Rounds differ in which tokens they have, so that text without redraws occurs, too.
        let usable = 8 + random(tokens.len() - 7);
        for _ in 0..random(45) {
            let token = tokens[random(usable)];
            model.apply(token);
            bytes.extend_from_slice(token.as_bytes());
        }
        assert_eq!(clean(&bytes), model.text(), "round {round}: {:?}", str::from_utf8(&bytes));
        // The same in pieces of one call: nothing may depend on where reads end.
        let mut cleaner = Cleaner::new();
        let mut screen = Screen::below(String::new());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random(rest.len().min(9)));
            cleaner.feed(&mut screen, piece);
            rest = after;
        }
        assert_eq!(screen.into_text(), model.text(), "round {round} in pieces");
    }
}

/// rule: architecture.md, Bounds: No panics on input
#[test]
fn random_bytes_never_panic_and_do_not_depend_on_cuts() {
    let mut random = random(0xB492_B66F_BE98_F273);
    let alphabet = b"\x1b\x1b\x1b[[]PX_?;:0159ABCDEFGHJKPXm@su78hd\r\n\n\
        \x08\t\x18\x07\x7f\\\xE2\x82\xAC\xC2\x9B\xFFxy ";
    for _ in 0..7_000 {
        let bytes: Vec<u8> = (0..random(80)).map(|_| alphabet[random(alphabet.len())]).collect();
        let whole = clean(&bytes);
        assert!(!whole.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{bytes:x?}");
        let (head, tail) = bytes.split_at(random(bytes.len() + 1));
        assert_eq!(Cleaner::new().call_text(&kept(head, 0, tail), "GAP", true), whole);
        let gap = Cleaner::new().call_text(&kept(head, 9, tail), "GAP", false);
        assert!(gap.contains("GAP\n"));
        window_text(&bytes, true);
    }
}

#[test]
fn hostile_movement_stays_within_its_bounds() {
    let bound = |input: &str| 3 * input.len() + CLEAN_PADDING_CHARS;
    let far = "\x1b[4000Cx\n".repeat(100_000);
    let text = clean(far.as_bytes());
    assert!(text.len() <= bound(&far), "{}", text.len());
    assert!(text.lines().all(|line| line.len() <= MAX_CURSOR_COLUMN + 1));
    let farther = "\x1b[65535C\x1b[65535Cx".repeat(50_000);
    assert!(clean(farther.as_bytes()).len() <= bound(&farther));
    let long = format!("{}\x1b[2K x\x1b[1K", "y".repeat(400_000));
    assert!(clean(long.as_bytes()).len() <= bound(&long));
    let blanks = format!("ab\r{}", "\x1b[4096@".repeat(100_000));
    assert!(clean(blanks.as_bytes()).len() <= bound(&blanks));
}

/// The story: going up to a line made it editable anew, at the cost of its length and for free:
/// a long line and 1 MiB of "newline, up" held the loop for 15 s.
#[test]
fn going_up_to_a_long_line_again_and_again_is_paid_for() {
    // Each round goes up to the end of the line above, makes it the last one and writes there.
    let affordable = CLEAN_EDIT_CHARS / 60_000;
    let round = "\n\x1b[A\x1b[65535C\x1b[Ja";
    let text = clean(format!("{}{}", "L".repeat(60_000), round.repeat(2 * affordable)).as_bytes());
    let first = text.lines().next().unwrap_or_default();
    let written = first.len() - 60_000;
    assert!((1..=affordable).contains(&written), "{written} of {affordable}");
    // What can't be paid for is not done: from then on the text goes on below.
    assert!(text.lines().count() > 1 && text.ends_with('a'));
}

#[test]
fn an_idle_cleaner_is_small() {
    assert!(size_of::<Cleaner>() < 1024, "{}", size_of::<Cleaner>());
}
