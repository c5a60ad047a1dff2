//! Tests of the log writer's loop, over real pipes, and of its flags.

use super::frames::{
    AckDecoder, AckKind, Head, ReadRange, Wanted as Part, push_data_header, push_open,
    push_read_range,
};
use super::*;
use crate::limits::{LOG_FRAME_BYTES, LOG_RANGE_ANSWER_BYTES};
use crate::pure::buffer::bound::Bounds;
use crate::pure::buffer::source::Source;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;
use std::io::{PipeReader, Read, Write, pipe};
use std::os::fd::AsRawFd;

/// execd's end of the pipe of answers.
struct Answers {
    ack: PipeReader,
    acks: AckDecoder,
}

impl Answers {
    fn next_ack(&mut self) -> Ack {
        loop {
            let mut byte = [0];
            self.ack.read_exact(&mut byte).unwrap();
            if let Some(ack) = self.acks.next(&mut byte.as_slice()).unwrap() {
                return ack;
            }
        }
    }

    /// The bytes behind a record.
    fn behind(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while self.acks.is_behind() {
            let mut byte = [0];
            self.ack.read_exact(&mut byte).unwrap();
            all.extend_from_slice(self.acks.behind(&mut byte.as_slice()));
        }
        all
    }
}

/// rule: bash-stream.md, The stream family: get_process_log: the keeper reads the log
#[test]
fn a_range_comes_with_what_was_handed_over_before_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let ((log_read, log), (ack, ack_write)) = (pipe().unwrap(), pipe().unwrap());
    let keeper = std::thread::spawn(move || {
        let pipes = (log_read.as_raw_fd(), ack_write.as_raw_fd());
        Keeper::new(pipes, Writer::new(Ok(dir), Bounds::default())).serve()
    });
    let mut running = Answers { ack, acks: AckDecoder::default() };
    let (mut out, text) = (Vec::new(), b"0123456789".repeat(200_000));
    push_open(&mut out, 1, "a");
    for bytes in text.chunks(LOG_FRAME_BYTES) {
        push_data_header(&mut out, 1, Source::Output, bytes.len());
        out.extend_from_slice(bytes);
    }
    let asked = |token, from, max_bytes| {
        let (only, to, total) = (None, u64::MAX, None);
        let wanted = Part { only, from, to, max_bytes, total };
        ReadRange { token, wanted, name: "a".to_owned() }
    };
    let all = (1, 1 << 50, 1, LOG_RANGE_ANSWER_BYTES);
    let wanted = [(0, 10, 0, 10), (7, 9, 7, 9), (-8, 100, 1_999_992, 8), all];
    for (token, &(from, most, _, _)) in wanted.iter().enumerate() {
        push_read_range(&mut out, &asked(token as u64, from, most));
    }
    let gone = ReadRange { name: "b".to_owned(), ..asked(9, 0, 1) };
    push_read_range(&mut out, &gone);
    // The pipe holds less than all of that: it is written while the answers are read.
    let mut writer = log.try_clone().unwrap();
    let writes = std::thread::spawn(move || writer.write_all(&out).unwrap());
    assert_eq!(running.next_ack().kind, AckKind::Opened);
    for (token, &(_, _, from, length)) in wanted.iter().enumerate() {
        let ack = running.next_ack();
        assert_eq!((ack.kind, ack.token, ack.errno), (AckKind::Range, token as u64, 0));
        let bytes = running.behind();
        assert_eq!(bytes.len() as u64, ack.missing);
        let mut rest = bytes.as_slice();
        let head = Head::take(&mut rest).unwrap();
        assert_eq!((head.from, head.to), (from, from + length), "{token}");
        assert_eq!(head.known_total, 2_000_000);
        assert!(rest == &text[head.from as usize..head.to as usize], "range {token}");
    }
    let missing = running.next_ack();
    assert_eq!((missing.token, missing.errno, missing.missing), (9, ENOENT, 0));
    writes.join().unwrap();
    drop(log);
    keeper.join().unwrap().unwrap();
}

#[test]
fn flags_are_read_or_refused() {
    let parse = |line: &str| parse(line.split_whitespace().map(OsString::from));
    let flags = parse(
        "--keeper --log-dir /x --log-keep-days 0 --log-max-bytes 9 --execd-pid 42 --instance 0af",
    )
    .unwrap();
    assert_eq!(flags.log_dir, Some(Wanted::Given("/x".into())));
    assert_eq!((flags.keep_days, flags.bounds.max_bytes, flags.execd_pid), (0, Some(9), 42));
    assert_eq!(flags.instance, "0af");
    let flags = parse("--no-log --execd-pid 42 --instance 0").unwrap();
    assert!(flags.log_dir.is_none() && !flags.guards);
    assert!(parse("--keeper --execd-pid 42 --instance 0 --guard").unwrap().guards);
    for line in [
        "--execd-pid 42 --instance 0",
        "--guard --instance 0",
        "--no-log --execd-pid 42",
        "--no-log --execd-pid 42 --instance x",
        "--no-log --execd-pid x --instance 0",
        "--no-log --execd-pid 42 --instance 0 more",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
