//! Parts of a session's output, read from its log.

use super::*;
use std::fs;

fn wanted(from: i64, to: u64, max_bytes: u64) -> Wanted {
    Wanted { only: None, from, to, max_bytes, total: None }
}

/// rule: logs.md, Full disks: A log that somebody appends to after its session has ended has that
///   session's output, and nothing that stands behind it is told
#[test]
fn what_a_plain_log_has_beyond_its_output_is_not_told() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("a"), "0123456789").unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let asked = Wanted { total: Some(4), ..wanted(1, u64::MAX, 100) };
    let found = read(&dir, "a", &asked).unwrap();
    assert_eq!(told(&found), (1, 4, (1, 1), "123".to_owned()));
    assert_eq!((found.head.log_from, found.head.known_total), (0, 4));
    // Of one stream of several it is not known which bytes are its own.
    let one = Wanted { only: Some(Source::Errors), ..asked };
    assert_eq!(read(&dir, "a", &one), Err(ENOENT));
}

/// What is said of a range: from, to, the gap and its text.
fn told(found: &Range) -> (u64, u64, (u64, u64), String) {
    let Head { from, to, gap, .. } = found.head;
    (from, to, gap, String::from_utf8(found.bytes.clone()).unwrap())
}

/// A log of a session that is over, whose beginning was given back to the disk.
#[test]
fn a_hole_at_the_beginning_is_a_gap_and_no_nuls() {
    use std::os::unix::fs::FileExt;
    let temp = tempfile::tempdir().unwrap();
    let file = fs::File::create(temp.path().join("a")).unwrap();
    file.write_all_at(b"0123456789", 1 << 20).unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let size = (1 << 20) + 10;
    for (from, expected) in [
        (0, (1 << 20, size, (0, 1 << 20), "0123456789")),
        (1 << 20, (1 << 20, size, (1 << 20, 1 << 20), "0123456789")),
        (-3, (size - 3, size, (size - 3, size - 3), "789")),
    ] {
        let asked = wanted(from, u64::MAX, 100);
        let found = read(&dir, "a", &asked).unwrap();
        let (from, to, gap, text) = expected;
        assert_eq!(told(&found), (from, to, gap, text.to_owned()), "{asked:?}");
        assert_eq!((found.head.log_from, found.head.known_total), (1 << 20, size));
    }
    let inside = read(&dir, "a", &wanted(7, 90, 100)).unwrap();
    assert_eq!(told(&inside), (90, 90, (7, 90), String::new()));
}

/// rule: logs.md, Full disks: An index that is damaged or gone costs the separation of the streams,
///   never the bytes
#[test]
fn a_log_with_an_index_that_makes_no_sense_is_read_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("a"), "0123456789").unwrap();
    fs::write(temp.path().join("a.index"), "nonsense").unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let asked = Wanted { total: Some(10), ..wanted(2, u64::MAX, 100) };
    assert!(has_broken_index(&dir, "a"));
    assert_eq!(told(&read(&dir, "a", &asked).unwrap()), (2, 10, (2, 2), "23456789".to_owned()));
    let one = Wanted { only: Some(Source::Errors), total: Some(4), ..wanted(0, u64::MAX, 100) };
    assert_eq!(read(&dir, "a", &one), Err(ENOENT), "whose they are nobody can tell");
    // One of which the disk took nothing.
    fs::write(temp.path().join("a.index"), "").unwrap();
    assert!(!has_broken_index(&dir, "a"));
    let found = read(&dir, "a", &Wanted { total: Some(15), ..asked }).unwrap();
    assert_eq!(told(&found).3, "23456789");
    let behind = read(&dir, "a", &Wanted { total: Some(15), ..wanted(10, u64::MAX, 100) }).unwrap();
    assert_eq!(told(&behind), (15, 15, (10, 15), String::new()));
}
