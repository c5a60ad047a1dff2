//! Where the logs are, as far as the keeper has said it. Choosing the directory is left to the
//! keeper, so that execd touches no disk.

use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Hand, KeeperLink};
use crate::keeper::frames::Ack;
use crate::limits::NS_PER_MS;
use crate::sys::log_place::Wanted;
use crate::sys::{clock, poll};

/// The log directory.
#[derive(Debug)]
pub enum Place {
    /// Nothing is logged (`--no-log`).
    Off,
    /// The keeper has not said yet: its disk may stand still.
    Unknown,
    /// Logs are in this directory.
    At(PathBuf),
    /// None can be had, for this reason.
    Refused(String),
}

impl Place {
    /// The directory, once it is known.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::At(path) => Some(path),
            _ => None,
        }
    }

    /// Why there is none.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

/// The keeper's flags for this directory.
pub fn flags_of(wanted: Option<&Wanted>) -> Result<Vec<CString>, String> {
    let (name, path) = match wanted {
        None => return Ok(vec![c"--no-log".to_owned()]),
        Some(Wanted::Given(path)) => (c"--log-dir", path),
        Some(Wanted::Default(path)) => (c"--default-log-dir", path),
    };
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| "NUL in a setting")?;
    Ok(vec![name.to_owned(), path])
}

/// What people are told where no directory can be had.
pub fn no_logs(reason: &str) -> String {
    format!("no logs are written: log {reason}")
}

impl KeeperLink {
    /// Takes in what the keeper says of the log directory.
    pub(crate) fn take_place(&mut self, ack: &Ack, bytes: Vec<u8>) {
        if ack.failing {
            let reason = String::from_utf8_lossy(&bytes).into_owned();
            self.place_note.get_or_insert_with(|| no_logs(&reason));
            self.place = Place::Refused(reason);
            return;
        }
        let mut parts = bytes.splitn(2, |byte| *byte == 0);
        let path = PathBuf::from(OsStr::from_bytes(parts.next().unwrap_or_default()));
        if let Some(note) = parts.next() {
            self.place_note = Some(String::from_utf8_lossy(note).into_owned());
        }
        // A keeper that follows goes on in the same directory.
        if let Ok(flags) = flags_of(Some(&Wanted::Given(path.clone()))) {
            self.plan.place = flags;
        }
        self.place = Place::At(path);
    }

    /// People are to be told this of the directory.
    pub fn tell_of_place(&mut self, note: Option<String>) {
        self.place_note = note;
    }

    /// What people are to be told of the directory, once.
    pub fn take_place_note(&mut self) -> Option<String> {
        self.place_note.take()
    }

    /// Where logs go.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Waits for the keeper's word on the directory, at most `wait_ms`. False: the keeper is gone.
    pub fn await_place(&mut self, buffer: &mut [u8], wait_ms: u64) -> bool {
        let until_ns = clock::now_ns() + wait_ms * NS_PER_MS;
        let mut changed = Vec::new();
        while matches!(self.place, Place::Unknown) {
            let Hand::Process(Some(keeper)) = &self.hand else { return true };
            if clock::now_ns() >= until_ns {
                break;
            }
            if poll::is_readable(keeper.acks.as_raw_fd(), Some(until_ns))
                && !self.take_acks(buffer, &mut changed)
            {
                return false;
            }
        }
        true
    }
}
