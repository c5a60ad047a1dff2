//! Tests of secret.rs.

use super::*;
use crate::pure::tests_random::Random;

const S: u64 = NS_PER_S;

fn veil(secrets: &[&str]) -> Veil {
    let mut veil = Veil::default();
    secrets.iter().for_each(|one| veil.add(one.as_bytes(), 0));
    veil
}

/// What others see of these pieces, and what is held back behind them.
fn through(veil: &mut Veil, pieces: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    let mut seen = Vec::new();
    for piece in pieces {
        let mut buffer = [veil.held(), piece].concat();
        let go = veil.mask(&mut buffer, 0);
        assert_eq!(veil.held(), &buffer[go..]);
        seen.extend_from_slice(&buffer[..go]);
    }
    (seen, veil.held().to_vec())
}

/// All at once, to the end of the output.
fn whole(secrets: &[&str], text: &str) -> String {
    let mut veil = veil(secrets);
    let (mut seen, held) = through(&mut veil, &[text.as_bytes()]);
    assert_eq!(veil.release(), held.len());
    seen.extend(held);
    String::from_utf8(seen).unwrap()
}

/// rule: protocol.md, Secrets: each line of a secret, and all of them together, is replaced in the
///   output byte for byte by `*`; line ends stay
#[test]
fn whatever_is_a_secret_becomes_asterisks() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["hunter2\n"], "you said hunter2, hunter2!", "you said *******, *******!"),
        (&["hunter2\r\n"], "hunter2\r\n", "*******\r\n"),
        (&["hunter2\r"], "hunter hunter", "hunter hunter"),
        // What is shorter than four bytes is no secret.
        (&["abc\n"], "abcabc", "abcabc"),
        (&["abcd"], "abcd", "****"),
        (&["\n"], "\n", "\n"),
        (&[""], "x", "x"),
        // Occurrences that overlap.
        (&["abab"], "xababab", "x******"),
        (&["aaaa"], "aaaaaa aaa", "****** aaa"),
        // One secret in another, and one that another one begins with.
        (&["pass", "password"], "password passwor", "******** ****wor"),
        (&["password", "word1"], "password1", "*********"),
        // Lines, and the whole where a line is short.
        (&["first\nsecond\n"], "second\r\nfirst", "******\r\n*****"),
        (&["ab\ncd\n"], "ab\r\ncd, ab\ncd, ab\rcd, abcd", "**\r\n**, **\n**, **\r**, abcd"),
        (&["ab\r\ncdef"], "ab\ncdef cdef", "**\n**** ****"),
        // Control characters as a terminal shows them.
        (&["p\u{3}ss"], "p^Css p\u{3}ss p^css", "***** **** p^css"),
        (&["\u{1b}abc\u{7f}"], "^[abc^?", "*******"),
        (&["p^Css"], "p^Css p\u{3}ss", "***** p\u{3}ss"),
        // The key for the end of the input is no part of it.
        (&["hunter2\u{4}"], "hunter2", "*******"),
        (&["pässwörd"], "pässwörd", "**********"),
    ];
    for (secrets, text, expected) in cases {
        assert_eq!(whole(secrets, text), *expected, "{secrets:?} {text:?}");
    }
}

/// rule: protocol.md, Secrets: however its reads cut it
#[test]
fn a_secret_is_found_wherever_pieces_are_cut() {
    let text = "a hunter2 hunter hunthunter2\r\nab\r\ncd^Cx\r\n.";
    let secrets = ["hunter2\n", "ab\ncd\u{3}x"];
    let expected = whole(&secrets, text);
    assert_eq!(expected, "a ******* hunter hunt*******\r\n**\r\n*****\r\n.");
    let bytes = text.as_bytes();
    for one in 0..=bytes.len() {
        for two in one..=bytes.len() {
            let pieces = [&bytes[..one], &bytes[one..two], &bytes[two..]];
            let (seen, held) = through(&mut veil(&secrets), &pieces);
            assert_eq!(String::from_utf8([seen, held].concat()).unwrap(), expected, "{one} {two}");
        }
    }
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(through(&mut veil(&secrets), &each).0, expected.as_bytes());
}

/// rule: protocol.md, Secrets: only what may be the beginning of a secret is held back
#[test]
fn no_more_is_held_back_than_may_be_the_beginning_of_a_secret() {
    let cases = [
        ("Password: ", ""),
        ("$ ", ""),
        ("h", "h"),
        ("the hunt", "hunt"),
        ("hunter", "hunter"),
        ("hunter2", ""),
        ("hunthu", "hu"),
        ("hunter2hunter", "hunter"),
    ];
    for (text, expected) in cases {
        let (_, held) = through(&mut veil(&["hunter2\n"]), &[text.as_bytes()]);
        assert_eq!(String::from_utf8(held).unwrap(), expected, "{text}");
    }
    // What is masked for sure goes, although it may be the beginning of another one.
    let (seen, held) = through(&mut veil(&["pass", "password"]), &[b"pass"]);
    assert_eq!((seen.as_slice(), held.as_slice()), (&b"****"[..], &b""[..]));
    let (seen, held) = through(&mut veil(&["testtest"]), &[b"testtest", b"t"]);
    assert_eq!((seen.as_slice(), held.as_slice()), (&b"********"[..], &b"t"[..]));
}

/// rule: protocol.md, Secrets: the first three bytes go after 50 ms
#[test]
fn a_short_beginning_goes_after_a_moment_and_a_long_one_stays() {
    let held_ns = SECRET_HELD_MS * NS_PER_MS;
    let mut veil = veil(&["hunter2\n"]);
    let mut buffer = [0; 64];
    assert_eq!(veil.due_ns(), Some(SECRET_MASKED_S * S));
    through(&mut veil, &[b"> hun"]);
    assert_eq!(veil.due_ns(), Some(held_ns));
    assert_eq!(veil.let_go(&mut buffer, held_ns - 1), 0);
    assert_eq!(veil.let_go(&mut buffer, held_ns), 3);
    assert_eq!(&buffer[..3], b"hun");
    assert_eq!((veil.held(), veil.due_ns()), (&b""[..], Some(SECRET_MASKED_S * S)));
    // It goes on, however slowly: no byte of it is seen any more.
    for byte in [b"t", b"e", b"r"] {
        assert_eq!(through(&mut veil, &[byte]).0, b"");
        assert_eq!(veil.let_go(&mut buffer, 2 * held_ns), 0);
        assert_eq!(veil.due_ns(), Some(SECRET_MASKED_S * S));
    }
    assert_eq!(through(&mut veil, &[b"2\n"]).0, b"****\n");
}

/// rule: protocol.md, Secrets: for 60 s
#[test]
fn a_secret_is_forgotten_in_time() {
    let mut veil = veil(&["hunter2\n"]);
    let mut buffer = [0; 64];
    veil.add(b"hunt for more", 30 * S);
    through(&mut veil, &[b"a hunter"]);
    let due_ns = veil.due_ns().unwrap();
    assert_eq!(due_ns, 60 * S);
    assert_eq!(veil.let_go(&mut buffer, due_ns - 1), 0);
    // The other one is decided by what is held.
    assert_eq!(veil.let_go(&mut buffer, due_ns), 6);
    assert_eq!(&buffer[..6], b"hunter");
    assert_eq!(through(&mut veil, &[b"hunter2 hunt for more"]).0, b"hunter2 *************");
    assert_eq!((veil.due_ns(), veil.is_over()), (Some(90 * S), false));
    assert_eq!(veil.let_go(&mut buffer, 90 * S), 0);
    assert_eq!((veil.due_ns(), veil.is_over()), (None, true));
    assert_eq!(through(&mut veil, &[b"hunt for more"]).0, b"hunt for more");
}

/// rule: protocol.md, Secrets: The ninth is refused until the first is forgotten
#[test]
fn too_many_and_too_long_ones_are_refused() {
    let mut veil = Veil::default();
    for n in 0..SECRETS_MAX {
        let secret = format!("secret number {n}");
        assert_eq!(veil.refuses(secret.as_bytes(), 0), None);
        veil.add(secret.as_bytes(), n as u64 * S);
    }
    assert_eq!(veil.refuses(b"one more", 20 * S), Some(Refused::TooMany(60 * S)));
    assert_eq!(veil.refuses(b"one more", 60 * S), None);
    // The same one again begins anew, and what is too short takes no place.
    assert_eq!(veil.refuses(b"secret number 0", 20 * S), None);
    assert_eq!(veil.refuses(b"abc\n", 20 * S), None);
    veil.add(b"secret number 0", 20 * S);
    assert_eq!(veil.refuses(b"one more", 20 * S), Some(Refused::TooMany(61 * S)));
    assert_eq!(veil.refuses(&[b'x'; SECRET_BYTES_MAX], 90 * S), None);
    assert_eq!(veil.refuses(&[b'x'; SECRET_BYTES_MAX + 1], 90 * S), Some(Refused::TooLong));
    let lines = "line\n".repeat(SECRET_LINES_MAX + 1);
    assert_eq!(veil.refuses(lines.as_bytes(), 90 * S), Some(Refused::TooLong));
    assert_eq!(veil.refuses(&lines.as_bytes()[5..], 90 * S), None);
}

/// rule: protocol.md, Secrets: the expected echo of a secret is that of its asterisks
#[test]
fn its_echo_is_expected_as_it_is_seen_and_nothing_prints_it() {
    assert_eq!(masked(b"hunter2\r"), b"*******\r");
    assert_eq!(masked(b"abc\n"), b"abc\n");
    assert_eq!(masked(b"user\npw\n"), b"****\n**\n");
    assert_eq!(format!("{:?}", veil(&["hunter2"])), "Veil");
}

/// All texts that a form may be shown as.
fn shown(form: &[u8]) -> Vec<Vec<u8>> {
    let Some((first, rest)) = form.split_first() else { return vec![Vec::new()] };
    let rest = if form.starts_with(b"\r\n") { &rest[1..] } else { rest };
    let ways: Vec<Vec<u8>> = match first {
        b'\r' | b'\n' => vec![b"\r\n".to_vec(), b"\n".to_vec(), b"\r".to_vec()],
        byte if byte.is_ascii_control() => vec![vec![*byte], vec![b'^', byte ^ 0x40]],
        byte => vec![vec![*byte]],
    };
    let behind = shown(rest);
    ways.iter().flat_map(|way| behind.iter().map(|one| [way.as_slice(), one].concat())).collect()
}

/// Which bytes of a text belong to which occurrence, found by trying all of them everywhere.
fn occurrences(text: &[u8], secrets: &[Vec<u8>]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    for secret in secrets {
        for form in forms_of(secret).into_iter().flat_map(|form| shown(&secret[form])) {
            let at = text.windows(form.len()).enumerate().filter(|(_, part)| *part == form);
            all.extend(at.map(|(at, _)| at..at + form.len()));
        }
    }
    all
}

/// rule: protocol.md, Secrets: each line of a secret, and all of them together, is replaced in the
///   output byte for byte by `*`; line ends stay
#[test]
fn the_same_as_all_occurrences_of_a_whole_text_at_random_cuts_and_moments() {
    let mut random = Random(0x5ec7);
    let letters = b"aaabbc\r\n\x03^C";
    for round in 0..4_000 {
        let text_of = |random: &mut Random, bytes: usize| -> Vec<u8> {
            (0..bytes).map(|_| letters[random.below(letters.len())]).collect()
        };
        let mut veil = Veil::default();
        let mut secrets = Vec::new();
        for _ in 0..1 + random.below(3) {
            let bytes = 3 + random.below(5);
            let secret = text_of(&mut random, bytes);
            veil.add(&secret, 0);
            secrets.push(secret);
        }
        let mut text = text_of(&mut random, 60);
        for _ in 0..3 {
            let one = secrets[random.below(secrets.len())].clone();
            let at = random.below(text.len());
            text.splice(at..at, one);
        }
        let lets_go = round % 2 == 1;
        let (mut out, mut rest, mut now_ns) = (Vec::new(), text.as_slice(), 0);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((1 + random.below(7)).min(rest.len()));
            rest = behind;
            let mut buffer = [veil.held(), piece].concat();
            let go = veil.mask(&mut buffer, now_ns);
            out.extend_from_slice(&buffer[..go]);
            if lets_go && random.below(2) == 0 {
                now_ns += SECRET_HELD_MS * NS_PER_MS;
                let go = veil.let_go(&mut buffer, now_ns);
                out.extend_from_slice(&buffer[..go]);
            }
        }
        out.extend_from_slice(veil.held());
        assert_eq!(out.len(), text.len());
        let all = occurrences(&text, &secrets);
        for (at, (was, is)) in text.iter().zip(&out).enumerate() {
            let covered = all.iter().any(|one| one.contains(&at)) && !is_line_end(*was);
            // What went before it was known is among the first three bytes of an occurrence.
            let early = all.iter().any(|one| (one.start..one.start + 3).contains(&at));
            let expected = if covered { MASK } else { *was };
            let fits = *is == expected || (lets_go && early && is == was);
            assert!(fits, "{round} {at} {secrets:?}\n{text:?}\n{out:?}");
        }
    }
}
