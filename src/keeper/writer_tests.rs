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

fn writer(dir: &Path, max_bytes: Option<u64>) -> Writer {
    Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds { max_bytes, ..Bounds::default() })
}

fn reopen(name: &str, total: u64, noted: u64) -> Reopen {
    let name = name.to_owned();
    Reopen { name, total, noted, ..Reopen::default() }
}

#[test]
fn writes_what_comes_and_acks_a_sync() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = writer(temp.path(), None);
    let opened = writer.open(1, "a");
    assert_eq!((opened.kind, opened.errno, opened.failing), (AckKind::Opened, 0, false));
    assert_eq!(writer.data(1, Source::Output, b"one\n"), None);
    assert_eq!(writer.data(1, Source::Output, b"two"), None);
    let ack = writer.sync(1, 77);
    assert_eq!((ack.kind, ack.token, ack.logged), (AckKind::Synced, 77, 7));
    assert_eq!((ack.missing, ack.noted, ack.truncated), (0, 0, false));
    writer.close(1);
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"one\ntwo");
    let unknown = writer.sync(1, 78);
    assert_eq!((unknown.token, unknown.errno, unknown.failing), (78, ENOENT, true));
    assert_eq!(writer.data(1, Source::Output, b"late"), None);
}

#[test]
fn a_log_that_cannot_be_created_counts_what_it_lacks() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = writer(temp.path(), None);
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

#[test]
fn a_missing_directory_is_trouble_and_no_end() {
    let mut writer = Writer::new(Err(13), Bounds::default());
    let ack = writer.open(1, "a");
    assert_eq!((ack.errno, ack.failing), (13, true));
    assert_eq!(writer.data(1, Source::Output, b"x"), None);
    assert_eq!(writer.reopen(1, &reopen("a", 10, 0)).missing, 10);
}

/// rule: architecture.md, The keeper: A deleted log is log trouble
#[test]
fn a_deleted_log_is_noticed() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = writer(temp.path(), None);
    writer.open(1, "a");
    writer.data(1, Source::Output, b"1234");
    fs::remove_file(temp.path().join("a")).unwrap();
    writer.data(1, Source::Output, b"5");
    let ack = writer.sync(1, 1);
    assert_eq!((ack.errno, ack.failing, ack.logged, ack.missing), (ENOENT, true, 0, 5));
    assert!(!ack.named);
    // What comes later is logged anew, behind a line of what is gone.
    writer.data(1, Source::Output, b"6");
    let ack = writer.sync(1, 2);
    assert_eq!((ack.logged, ack.missing, ack.named, ack.failing), (1, 5, true, false));
    let text = fs::read(temp.path().join("a")).unwrap();
    assert_eq!(text, b"\n[5 bytes were not logged]\n6");
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
    let mut writer = writer(&at, None);
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
#[test]
fn space_that_comes_back_is_used_and_the_note_is_written_then() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=1m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let fill = || fs::write(temp.path().join("ballast"), vec![0; 2048 * 1024]);
    let mut writer = writer(temp.path(), None);
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

/// rule: architecture.md, The keeper: A new keeper is told all live sessions and appends after a
///   line `[N bytes were not logged]`
#[test]
fn new_keepers_go_on_and_say_what_is_missing() {
    let temp = tempfile::tempdir().unwrap();
    let mut first = writer(temp.path(), None);
    first.open(1, "a");
    first.data(1, Source::Output, b"12345");
    drop(first);
    // Three bytes were lost in the pipe of the first keeper.
    let mut second = writer(temp.path(), None);
    let ack = second.reopen(1, &reopen("a", 8, 0));
    assert_eq!((ack.logged, ack.missing, ack.noted), (5, 3, 27));
    assert_eq!(second.data(1, Source::Output, b"9"), None);
    drop(second);
    // Nothing was lost: no further line.
    let mut third = writer(temp.path(), None);
    let ack = third.reopen(1, &reopen("a", 9 + 3, 27));
    assert_eq!((ack.logged, ack.missing), (6, 6));
    drop(third);
    let text = fs::read_to_string(temp.path().join("a")).unwrap();
    let lines = "12345\n[3 bytes were not logged]\n9\n[6 bytes were not logged]\n";
    assert_eq!(text, lines);
}

#[test]
fn books_stay_right_over_restarts_that_lose_something() {
    let temp = tempfile::tempdir().unwrap();
    let (mut total, mut noted, mut logged) = (0, 0, 0);
    for round in 1..=20_u64 {
        let mut writer = writer(temp.path(), None);
        let ack = writer.reopen(1, &reopen("a", total, noted));
        assert_eq!((ack.logged, ack.logged + ack.missing), (logged, total), "round {round}");
        let ack = writer.sync(1, 1);
        noted = ack.noted;
        writer.data(1, Source::Output, b"seen");
        logged += 4;
        total += 4 + round;
    }
    // A log that has vanished begins again, whatever execd knew about it.
    fs::remove_file(temp.path().join("a")).unwrap();
    let ack = writer(temp.path(), None).reopen(1, &reopen("a", total, noted));
    assert_eq!((ack.logged, ack.missing), (0, total));
    assert_eq!(fs::metadata(temp.path().join("a")).unwrap().len(), ack.noted);
    // Books that cannot be true give numbers, not a panic.
    for known in [reopen("a", 0, 0), reopen("a", 3, u64::MAX), reopen("a", u64::MAX, 1)] {
        let ack = writer(temp.path(), None).reopen(1, &known);
        assert_eq!(ack.logged + ack.missing, known.total);
    }
}

#[test]
fn a_reopened_log_that_was_truncated_stays_so() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("a"), "123").unwrap();
    let mut writer = writer(temp.path(), None);
    let ack = writer.reopen(1, &Reopen { truncated: true, ..reopen("a", 9, 0) });
    assert_eq!((ack.truncated, ack.missing, ack.noted), (true, 6, 0));
    assert_eq!(writer.data(1, Source::Output, b"456"), None);
    writer.close(1);
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"123");
}

/// rule: architecture.md, The keeper: `--log-max-bytes`: the log ends with a line saying so,
///   replies carry `log_truncated: true`
#[test]
fn the_largest_size_holds_exactly_the_first_bytes() {
    for (pieces, last) in [(&[&b"12345678"[..], b"90abc"][..], "3"), (&[b"1234567890", b"a"], "1")]
    {
        let temp = tempfile::tempdir().unwrap();
        let mut writer = writer(temp.path(), Some(10));
        writer.open(1, "a");
        assert_eq!(writer.data(1, Source::Output, pieces[0]), None);
        let ack = writer.data(1, Source::Output, pieces[1]).unwrap();
        assert_eq!((ack.kind, ack.truncated, ack.failing), (AckKind::Truncated, true, false));
        assert_eq!((ack.logged, ack.missing.to_string().as_str()), (10, last));
        assert_eq!(writer.data(1, Source::Output, b"more"), None);
        assert!(writer.sync(1, 1).truncated);
        writer.close(1);
        let text = fs::read(temp.path().join("a")).unwrap();
        assert_eq!(&text[..10], b"1234567890");
        assert_eq!(&text[10..], b"\n[the log ends here: --log-max-bytes is 10]\n");
    }
}

#[test]
fn a_full_disk_is_counted_and_told_of_when_there_is_room_again() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=1m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let at = |name: &str| temp.path().join(name);
    let mut writer = writer(temp.path(), None);
    writer.open(1, "a");
    let frame = [b'x'; LOG_FRAME_BYTES];
    assert_eq!(writer.data(1, Source::Output, &frame), None);
    // Somebody else takes all but 96 KiB, before the free space is looked at again.
    fs::write(at("ballast"), vec![0; (1024 - 64 - 96) * 1024]).unwrap();
    let acks: Vec<Ack> = (0..11).filter_map(|_| writer.data(1, Source::Output, &frame)).collect();
    assert_eq!(acks.len(), 1, "{acks:?}");
    let trouble = acks[0];
    assert_eq!((trouble.kind, trouble.errno), (AckKind::Trouble, ENOSPC));
    assert!(trouble.failing && trouble.missing > 0 && trouble.noted == 0);
    let ack = writer.sync(1, 1);
    assert_eq!(ack.logged + ack.missing, 12 * frame.len() as u64);
    assert_eq!(ack.logged, fs::metadata(at("a")).unwrap().len());

    // A log that begins on a full disk ends at once, with an ack if not with a line.
    writer.open(2, "b");
    let truncated = writer.data(2, Source::Output, b"x").unwrap();
    assert_eq!((truncated.kind, truncated.missing), (AckKind::Truncated, 1));

    fs::remove_file(at("ballast")).unwrap();
    let recovered = writer.data(1, Source::Output, b"again").unwrap();
    assert_eq!((recovered.kind, recovered.failing), (AckKind::Recovered, false));
    assert_eq!((recovered.errno, recovered.missing), (ENOSPC, ack.missing));
    assert_eq!(writer.data(1, Source::Output, b"!"), None);
    writer.close_all();
    let text = fs::read(at("a")).unwrap();
    let tail = format!("xx\n[{} bytes were not logged]\nagain!", ack.missing);
    assert!(text.ends_with(tail.as_bytes()));
    assert_eq!(text.len() as u64, recovered.logged + 1 + recovered.noted);
}

/// The free space was looked at after each 8 MiB: a log filled a smaller disk to the last byte.
/// rule: logs.md, Full disks: it is never the log that fills a disk to the last byte
#[test]
fn logs_on_a_small_disk_stop_before_it_is_full() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=4m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let mut writer = writer(temp.path(), None);
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

#[test]
fn a_gap_at_the_end_is_told_of_at_the_close() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=1m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let mut writer = writer(temp.path(), None);
    writer.open(1, "a");
    // The free space is looked at with the first byte; after that only ENOSPC tells.
    writer.data(1, Source::Output, b"x");
    let _ = fs::write(temp.path().join("ballast"), vec![0; 1024 * 1024]);
    writer.data(1, Source::Output, &[b'x'; 8192]);
    let ack = writer.sync(1, 1);
    assert!(ack.failing && ack.missing > 0, "{ack:?}");
    fs::remove_file(temp.path().join("ballast")).unwrap();
    writer.close(1);
    let tail = format!("x\n[{} bytes were not logged]\n", ack.missing);
    assert!(fs::read(temp.path().join("a")).unwrap().ends_with(tail.as_bytes()));
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

/// rule: unified-exec.md, Logs: A log that somebody has made shorter begins anew
#[test]
fn a_log_that_was_made_shorter_lacks_all_that_it_had() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = bounded(temp.path());
    writer.open(1, "a");
    writer.data(1, Source::Output, &[b'x'; 5_000]);
    fs::File::options().write(true).open(temp.path().join("a")).unwrap().set_len(7).unwrap();
    let ack = writer.sync(1, 1);
    assert_eq!((ack.missing, ack.logged, ack.failing, ack.named), (5_000, 0, true, true));
    assert_eq!((ack.from, ack.from_output), (0, 5_000));
    let ack = writer.data(1, Source::Output, b"more").unwrap();
    assert_eq!((ack.kind, ack.missing, ack.logged), (AckKind::Recovered, 5_000, 4));
    let text = fs::read(temp.path().join("a")).unwrap();
    assert_eq!(text, b"\n[5000 bytes were not logged]\nmore");
    // One that is written to by others is longer, and goes on.
    fs::write(temp.path().join("a"), [&text[..], b"theirs"].concat()).unwrap();
    assert!(!writer.sync(1, 2).failing);
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
    let mut writer = writer(temp.path(), None);
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
