//! Parts of a session's output, read from its log.

use super::*;
use std::fs;

fn wanted(from: i64, to: u64, max_bytes: u64) -> Wanted {
    Wanted { only: None, from, to, max_bytes, lines: 0, lead: false, total: None }
}

#[test]
fn a_plain_log_is_read_by_its_offsets() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("a"), "0123456789").unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let end = u64::MAX;
    for (asked, from, text) in [
        (wanted(0, end, 100), 0, "0123456789"),
        (wanted(3, end, 4), 3, "3456"),
        (wanted(-4, end, 3), 6, "678"),
        (wanted(-40, 2, 3), 0, "01"),
        (wanted(10, end, 3), 10, ""),
        (wanted(99, end, 3), 10, ""),
        (Wanted { lead: true, ..wanted(3, 6, 100) }, 2, "2345"),
        (Wanted { lead: true, ..wanted(0, 1, 100) }, 0, "0"),
    ] {
        let found = read(&dir, "a", &asked).unwrap();
        let to = from + text.len() as u64;
        let head =
            Head { from, to, next_offset: to, gap: found.head.gap, log_from: 0, known_total: 10 };
        assert_eq!((found.head, found.bytes.as_slice()), (head, text.as_bytes()), "{asked:?}");
        assert_eq!(found.head.gap.0, found.head.gap.1);
    }
}

#[test]
fn of_a_log_that_is_gone_all_is_a_gap() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    assert_eq!(read(&dir, "a", &wanted(0, 10, 10)), Err(ENOENT));
    let found = read(&dir, "a", &Wanted { total: Some(50), ..wanted(-20, u64::MAX, 5) }).unwrap();
    let Head { from, to, next_offset, gap, log_from, .. } = found.head;
    assert_eq!((from, to, next_offset, gap, log_from), (50, 50, 50, (30, 50), 50));
    assert!(found.bytes.is_empty());
}
