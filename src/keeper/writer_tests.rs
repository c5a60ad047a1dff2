//! Tests of the logs and their books, against real files and a real full disk.

use super::*;
use crate::keeper::frames::{Head, ReadRange, Wanted};
use crate::limits::LOG_FRAME_BYTES;
use crate::pure::buffer::bound::Bounds;
use crate::sys::keeper_calls::testing::Tmpfs;
use crate::sys::log_files::ensure_private_dir;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ENOSPC: i32 = 28;
const EEXIST: i32 = 17;

fn writer(dir: &Path) -> Writer {
    Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds::default())
}

fn reopen(name: &str, total: u64, noted: u64) -> Reopen {
    let name = name.to_owned();
    Reopen { name, total, noted, ..Reopen::default() }
}

#[test]
fn a_log_that_cannot_be_created_counts_what_it_lacks() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = writer(temp.path());
    fs::write(temp.path().join("a"), "mine").unwrap();
    let refused = writer.open(1, "a");
    assert_eq!((refused.errno, refused.failing), (EEXIST, true));
    // The failure was told by the answer to Open: nothing new for each frame.
    assert_eq!(writer.data(1, Source::Output, b"12345"), None);
    assert_eq!(writer.sync(1, 1).missing, 5);
    // Another name: the gap is told of in front of the next byte.
    let opened = writer.open(1, "b");
    assert_eq!((opened.failing, opened.missing), (false, 5));
    let ack = writer.data(1, Source::Output, b"6").unwrap();
    assert_eq!((ack.kind, ack.logged, ack.missing), (AckKind::Recovered, 1, 5));
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"mine");
    assert_eq!(fs::read(temp.path().join("b")).unwrap(), b"\n[5 bytes were not logged]\n6");
}

/// The directory was held open for ever: logs went on in one that had been moved or deleted, and
/// replies named paths that were gone.
/// rule: architecture.md, The keeper: A log directory that was moved or deleted is made anew; no
///   path that is gone is named
#[test]
fn a_directory_that_is_gone_is_made_anew_and_no_path_that_is_gone_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let at = temp.path().canonicalize().unwrap().join("logs");
    ensure_private_dir(&at).unwrap();
    let mut writer = writer(&at);
    writer.open(1, "a");
    writer.data(1, Source::Output, b"1234");
    fs::rename(&at, temp.path().join("moved")).unwrap();
    assert!(writer.take_told().is_empty());
    let fresh = writer.open(2, "b");
    assert!(fresh.named && !fresh.failing && at.join("b").exists());
    let told = writer.take_told();
    assert_eq!(told.len(), 1, "the other log's path leads nowhere: {told:?}");
    assert_eq!((told[0].session, told[0].named, told[0].missing), (1, false, 4));
    writer.data(1, Source::Output, b"5");
    assert!(writer.sync(1, 1).named && at.join("a").exists());
    fs::remove_dir_all(&at).unwrap();
    fs::write(&at, "not ours to replace").unwrap();
    let refused = writer.sync(1, 2);
    assert_eq!((refused.named, refused.errno, refused.failing), (false, ENOENT, true));
    fs::remove_file(&at).unwrap();
    assert!(writer.open(3, "c").named && at.join("c").exists());
}

/// A log that ended for want of space stayed ended, whatever came back.
/// rule: architecture.md, The keeper: Space that comes back is used again, and the note is written
///   then
/// rule: logs.md, Full disks: When there is space again, the log goes on
#[test]
fn space_that_comes_back_is_used_and_the_note_is_written_then() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=1m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let fill = || fs::write(temp.path().join("ballast"), vec![0; 2048 * 1024]);
    let mut writer = writer(temp.path());
    writer.open(1, "a");
    assert!(fill().is_err());
    let full = writer.data(1, Source::Output, b"lost").unwrap();
    assert!(full.truncated && full.space && full.failing, "{full:?}");
    assert_eq!((full.errno, full.logged, full.missing, full.noted), (ENOSPC, 0, 4, 0));
    fs::write(temp.path().join("ballast"), vec![0; 1016 * 1024]).unwrap();
    let noted = writer.sync(1, 1);
    assert!(noted.truncated && noted.space && noted.noted > 0, "{noted:?}");
    fs::remove_file(temp.path().join("ballast")).unwrap();
    let back = writer.data(1, Source::Output, b"more").unwrap();
    assert!(!back.truncated && !back.space && !back.failing, "{back:?}");
    assert_eq!((back.logged, back.missing), (4, 4));
    let text = fs::read_to_string(temp.path().join("a")).unwrap();
    assert!(text.starts_with("\n[the log ends here: less than 1 GiB and 5 %"), "{text}");
    assert!(text.ends_with("\n[4 bytes were not logged]\nmore"), "{text}");
}

#[test]
fn books_that_cannot_be_true_give_numbers_and_no_panic() {
    let temp = tempfile::tempdir().unwrap();
    for known in [reopen("a", 0, 0), reopen("a", 3, u64::MAX), reopen("a", u64::MAX, 1)] {
        let ack = writer(temp.path()).reopen(1, &known);
        assert_eq!(ack.logged + ack.missing, known.total);
    }
}

/// The free space was looked at after each 8 MiB: a log filled a smaller disk to the last byte.
/// rule: logs.md, Full disks: it is never the log that fills a disk to the last byte
/// rule: architecture.md, The keeper: Logging stops when the file system has too little free
#[test]
fn logs_on_a_small_disk_stop_before_it_is_full() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=4m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let mut writer = writer(temp.path());
    for session in 1..=3 {
        writer.open(session, &format!("{session}"));
    }
    let frame = [b'x'; LOG_FRAME_BYTES];
    for _ in 0..64 {
        for session in 1..=3 {
            writer.data(session, Source::Output, &frame);
        }
    }
    for session in 1..=3 {
        let ack = writer.sync(session, 1);
        assert!(ack.truncated && ack.space && ack.errno == 0, "{ack:?}");
    }
    // There is room for others.
    fs::write(temp.path().join("more"), vec![0; 16 * 1024]).unwrap();
    writer.close_all();
}

fn bounded(dir: &Path) -> Writer {
    let bounds = Bounds { keep_bytes: Some(1 << 20), ..Bounds::default() };
    Writer::new(Ok(LogDir::open(dir).unwrap()), bounds)
}

/// rule: architecture.md, The keeper: Where the kept part of a log begins stands in each
///   acknowledgement
#[test]
fn what_a_log_loses_to_its_bound_is_told_once_a_step_and_to_the_next_writer() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = bounded(temp.path());
    writer.open(1, "a");
    let (piece, mut total, mut told) = (vec![b'x'; LOG_FRAME_BYTES / 2], 0, Vec::new());
    for _ in 0..96 {
        told.extend(writer.data(1, Source::Output, &piece));
        total += piece.len() as u64;
    }
    assert!(told.iter().all(|ack| ack.kind == AckKind::Trimmed), "{told:?}");
    // 2 MiB are gone by now; a step of 64 KiB less what is spare goes at a time.
    assert!((40..=46).contains(&told.len()), "{} times", told.len());
    assert!(told.is_sorted_by(|a, b| a.from < b.from && a.from_output < b.from_output));
    let synced = writer.sync(1, 1);
    let last = told.last().unwrap();
    assert_eq!((synced.from, synced.from_output), (last.from, last.from_output));
    assert_eq!((synced.logged, synced.missing, synced.noted), (total, 0, 0));
    let size = fs::metadata(temp.path().join("a")).unwrap().len();
    assert_eq!(size, total, "a byte that is gone counts as logged, and no place changes");

    // The next writer is told, and takes nothing for lost.
    let known =
        Reopen { from: synced.from, from_output: synced.from_output, ..reopen("a", total, 0) };
    let mut next = bounded(temp.path());
    let ack = next.reopen(1, &known);
    assert_eq!((ack.from, ack.from_output), (synced.from, synced.from_output));
    assert_eq!((ack.logged, ack.missing, ack.failing), (total, 0, false));
    // Or finds out, where the one before could not say so.
    let ack = bounded(temp.path()).reopen(1, &reopen("a", total, 0));
    assert_eq!((ack.from, ack.from_output, ack.missing), (synced.from, synced.from_output, 0));
}

/// rule: unified-exec.md, Logs: The index of a log loses what tells of its lost beginning
#[test]
fn the_index_of_a_bounded_log_takes_no_more_for_what_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = bounded(temp.path());
    writer.open(1, "a");
    let (mut from, mut largest) = (0, 0);
    for n in 0..400_000_u64 {
        let source = if n % 2 == 0 { Source::Output } else { Source::Errors };
        from = writer.data(1, source, &[b'x'; 12]).map_or(from, |ack| ack.from_output);
        if n % 1_000 == 999 {
            writer.write_indexes();
            let index = fs::metadata(temp.path().join("a.index")).unwrap();
            largest = largest.max(index.blocks() * 512);
        }
    }
    // An eighth, a sixteenth of that, and what is written at a time.
    assert!(largest < (1 << 20) / 6, "the index takes {largest} bytes");
    let index = fs::metadata(temp.path().join("a.index")).unwrap();
    assert!(index.len() > 300_000, "it tells of all that there was: {}", index.len());
    // What it still tells is right: from where on the log is kept, in either stream.
    let [mine, theirs] = [Source::Output, Source::Errors].map(|only| {
        let (only, to, max_bytes) = (Some(only), u64::MAX, 24);
        let wanted = Wanted { only, from: -24, to, max_bytes, total: None };
        writer.range(&ReadRange { token: 1, wanted, name: "a".to_owned() }).1
    });
    for part in [mine, theirs] {
        let mut rest = part.as_slice();
        assert_eq!(Head::take(&mut rest).unwrap().known_total, 2_400_000);
        assert_eq!(rest, [b'x'; 24]);
    }
    let size = fs::metadata(temp.path().join("a")).unwrap().len();
    assert!(from > 0 && size - from <= (1 << 20) + (64 << 10), "{from} of {size}");
}

#[test]
fn the_facts_of_a_closed_log_are_written_before_it_is_read() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = writer(temp.path());
    let (name, meta) = ("execd-1-ab12cd34.log", temp.path().join("execd-1-ab12cd34.meta"));
    writer.open(1, name);
    writer.data(1, Source::Output, b"one\n");
    writer.facts(1, b"{}".to_vec());
    writer.close(1);
    assert!(!meta.exists(), "they wait until there is nothing else to do");
    let (only, from, to, max_bytes) = (None, 0, u64::MAX, 9);
    let wanted = Wanted { only, from, to, max_bytes, total: Some(4) };
    let (ack, _) = writer.range(&ReadRange { token: 1, wanted, name: name.to_owned() });
    assert_eq!((ack.errno, fs::read(&meta).unwrap()[0]), (0, b'{'));
}
