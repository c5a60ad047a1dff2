//! Opening the log directory: the keeper does it, for a disk may stand still, and tells execd which
//! directory it is. Which one is taken, src/sys/log_place.rs decides.

use super::frames::{Ack, AckKind};
use super::writer::Writer;
use crate::pure::buffer::bound::Bounds;
use crate::sys::io::ENOENT;
use crate::sys::log_place::{Wanted, find};
use std::os::unix::ffi::OsStrExt;

/// What execd is told of the directory: a record, and the bytes behind it.
pub type Told = (Ack, Vec<u8>);

/// A writer of logs in the directory that is wanted, and what to tell of it; without one (with
/// `--no-log`) each Open is refused, though none should come.
pub fn open(wanted: Option<&Wanted>, bounds: Bounds) -> (Writer, Option<Told>) {
    let Some(wanted) = wanted else { return (Writer::new(Err(ENOENT), bounds), None) };
    let found = find(wanted);
    let bytes = match &found {
        Ok(place) => {
            let mut bytes = place.dir.path().as_os_str().as_bytes().to_vec();
            if let Some(note) = &place.note {
                bytes.push(0);
                bytes.extend_from_slice(note.as_bytes());
            }
            bytes
        }
        Err(reason) => reason.as_bytes().to_vec(),
    };
    let (missing, failing) = (bytes.len() as u64, found.is_err());
    let ack = Ack { missing, failing, ..Ack::of(AckKind::Place) };
    let dir = found.map(|place| place.dir).map_err(|_| ENOENT);
    (Writer::new(dir, bounds), Some((ack, bytes)))
}
