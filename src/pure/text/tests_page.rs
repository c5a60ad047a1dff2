//! Pages of outputs that grow, and where they begin and end.

use super::*;
use crate::pure::tests_random::random;

/// The text of a whole output.
fn whole(bytes: &[u8], shown: Shown) -> String {
    text(bytes.to_vec(), shown, true)
}

/// Reads `output` by pages of at most `most` bytes while it grows to these lengths, each page from
/// where the one before ended; gives the texts put together.
fn polled(output: &[u8], lengths: &[usize], most: usize, shown: Shown) -> String {
    let (mut at, mut all) = (0, String::new());
    for (n, length) in lengths.iter().enumerate() {
        let over = n + 1 == lengths.len();
        loop {
            let end = (*length).min(at + most);
            let behind = match (end < *length, over) {
                (true, _) => Behind::More,
                (false, true) => Behind::Nothing,
                (false, false) => Behind::Later,
            };
            let before = &output[at.saturating_sub(3)..at];
            let found = Found { before, bytes: &output[at..end], goes_on: true, behind };
            let page = part(&found, shown);
            assert_eq!(page.from, 0, "nothing is left out");
            all += &text(found.bytes[..page.to].to_vec(), shown, behind == Behind::Nothing);
            at += page.to;
            if page.to == 0 || at == *length {
                assert!(page.to > 0 || behind != Behind::More, "each page leads on");
                break;
            }
        }
    }
    assert_eq!(at, output.len());
    all
}

const PIECES: &str = "a;line\n;crlf\r\n;ä;漢;😀\n;\x1b[31mred\x1b[0m;\x1b]0,a title\x07;\
    \x1b]8,,http://x\x1b\\;prompt> ;\x1b[K;\n";

/// rule: logs.md, Reading: Pages put together are the whole, however the output came
#[test]
fn pages_of_a_growing_output_put_together_are_the_text_of_the_whole() {
    let mut below = random(11);
    let pieces: Vec<&str> = PIECES.split(';').collect();
    for _ in 0..1_000 {
        let output: String = (0..below(60)).map(|_| pieces[below(pieces.len())]).collect();
        let output = output.as_bytes();
        let mut lengths: Vec<usize> = (0..below(8)).map(|_| below(output.len() + 1)).collect();
        lengths.push(output.len());
        lengths.sort_unstable();
        for shown in [Shown::Clean, Shown::Raw] {
            // A page holds any one sequence: what is longer is given in pieces, as text.
            let most = 24 + below(100);
            let got = polled(output, &lengths, most, shown);
            assert_eq!(got, whole(output, shown), "{shown:?} {most} {lengths:?}");
        }
    }
}

#[test]
fn a_page_that_begins_anywhere_leaves_what_began_before_to_the_page_before() {
    let begins = |before: &str, bytes: &[u8], shown| {
        let behind = Behind::Later;
        part(&Found { before: before.as_bytes(), bytes, goes_on: false, behind }, shown).from
    };
    assert_eq!(begins("abc", b"d\nef\n", Shown::Clean), 2);
    assert_eq!(begins("ab\n", b"d\nef\n", Shown::Clean), 0);
    assert_eq!(begins("", b"d\nef\n", Shown::Clean), 2, "behind a gap");
    assert_eq!(begins("abc", b"def", Shown::Clean), 0, "it is all there is");
    assert_eq!(begins("abc", b"def\n", Shown::Clean), 0, "it is all there is");
    assert_eq!(begins("abc", b"d\nef\n", Shown::Raw), 0);
    let han = "漢x".as_bytes();
    let before = |at: usize| Found {
        before: &han[..at],
        bytes: &han[at..],
        goes_on: false,
        behind: Behind::Later,
    };
    assert_eq!(part(&before(1), Shown::Raw).from, 2);
    assert_eq!(part(&before(2), Shown::Raw).from, 1);
    assert_eq!(part(&before(3), Shown::Raw).from, 0);
    assert_eq!(part(&before(2), Shown::Exact).from, 0);
}

#[test]
fn a_page_ends_at_the_end_of_a_line_where_more_follows() {
    let length = |bytes: &[u8], behind, shown| {
        let found = Found { before: b"", bytes, goes_on: true, behind };
        part(&found, shown).to
    };
    assert_eq!(length(b"a\nb", Behind::More, Shown::Clean), 2);
    assert_eq!(length(b"a\nb", Behind::Later, Shown::Clean), 3, "a prompt, say");
    assert_eq!(length(b"a\nb", Behind::More, Shown::Raw), 3);
    assert_eq!(length(b"abc", Behind::More, Shown::Clean), 3, "a line in pieces");
    assert_eq!(length(b"ab\x1b[3", Behind::More, Shown::Clean), 2);
    assert_eq!(length(b"\x1b[33", Behind::More, Shown::Clean), 4, "a page leads on");
    assert_eq!(length(b"\x1b[33", Behind::Later, Shown::Clean), 0);
    assert_eq!(length(b"\x1b[33", Behind::Nothing, Shown::Clean), 4);
    assert_eq!(length(b"ab\xe2\x82", Behind::Later, Shown::Raw), 2);
    assert_eq!(length(b"ab\xe2\x82", Behind::Later, Shown::Exact), 4);
}

#[test]
fn the_last_lines_are_found_whether_the_last_one_is_closed_or_not() {
    let last = |bytes: &'static [u8], lines| &bytes[last_lines(bytes, lines)..];
    assert_eq!(last(b"a\nb\nc\n", 2), b"b\nc\n");
    assert_eq!(last(b"a\nb\nc", 2), b"b\nc");
    assert_eq!(last(b"a\nb\nc", 9), b"a\nb\nc");
    assert_eq!(last(b"a\n\n", 1), b"\n");
    assert_eq!(last(b"", 1), b"");
    assert_eq!(last(b"a", 0), b"");
}
