//! The record of an execd's sessions on disk: should execd be killed together with its guard and
//! its log writer, the next execd of this user finds in it whom nobody has ended.
//!
//! A header of `HEADER_BYTES` (what it is, the boot's id), then slots of a guard record each, whose
//! last eight bytes hold the time of its last change in clock ticks since boot. A slot whose
//! session is over begins with a zero byte.

use super::frames::{GUARD_RECORD_BYTES, GuardEvent, GuardRecord, push_guard_add};
use super::guard::Guard;
use crate::sys::record_files::{self, Owner, RecordFile};
use crate::sys::{host, proc};
use std::collections::BTreeMap;

/// Bytes before the first slot.
const HEADER_BYTES: usize = 64;
/// Where a slot has the time of its last change.
const CHANGED_AT: usize = GUARD_RECORD_BYTES - 8;

/// The writing side.
#[derive(Debug)]
pub struct Record {
    instance: String,
    execd_pid: i32,
    /// None: nothing has been recorded yet, or it cannot be written.
    file: Option<RecordFile>,
    slots: Vec<Option<GuardRecord>>,
    slot_of: BTreeMap<i32, usize>,
    free: Vec<usize>,
    changed: Vec<usize>,
}

impl Record {
    /// The record of the execd that is our parent. There is no file until there is a session.
    pub fn new(instance: &str, execd_pid: i32) -> Record {
        Record {
            instance: instance.to_owned(),
            execd_pid,
            file: None,
            slots: Vec::new(),
            slot_of: BTreeMap::new(),
            free: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// Takes in one word of execd; [`Self::write`] puts it on the disk.
    pub fn note(&mut self, event: GuardEvent) {
        match event {
            GuardEvent::Add(record) => {
                let known = self.slot_of.get(&record.sid).copied();
                let slot = known.or_else(|| self.free.pop()).unwrap_or(self.slots.len());
                if slot == self.slots.len() {
                    self.slots.push(None);
                }
                self.slots[slot] = Some(record);
                self.slot_of.insert(record.sid, slot);
                self.changed.push(slot);
            }
            GuardEvent::Remove(sid) => {
                if let Some(slot) = self.slot_of.remove(&sid) {
                    self.slots[slot] = None;
                    self.free.push(slot);
                    self.changed.push(slot);
                }
            }
            GuardEvent::Goodbye => {}
        }
    }

    /// Writes what has changed. Where that cannot be done there is no record, and all else goes
    /// on: it is for the rarest of ends.
    pub fn write(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        let now_ticks = proc::boot_ticks_now();
        let slot_bytes = |slot: &usize| encode(self.slots[*slot], now_ticks);
        match &self.file {
            _ if changed.is_empty() => {}
            Some(file) => {
                let put = |slot: &usize| {
                    let offset = HEADER_BYTES + slot * GUARD_RECORD_BYTES;
                    file.put(offset as u64, &slot_bytes(slot))
                };
                if changed.iter().try_for_each(put).is_err() {
                    // Made anew with the next change.
                    self.file = None;
                }
            }
            None => {
                let Some(mut bytes) = record_files::boot_id().map(|boot| header(&boot)) else {
                    return;
                };
                (0..self.slots.len()).for_each(|slot| bytes.extend(slot_bytes(&slot)));
                self.file = Owner::parent(self.execd_pid, &self.instance)
                    .and_then(|owner| RecordFile::create(&owner, &bytes));
            }
        }
    }

    /// Removes the record: nobody is left to be ended.
    pub fn delete(&mut self) {
        if let Some(file) = self.file.take() {
            file.delete();
        }
    }
}

fn header(boot_id: &str) -> Vec<u8> {
    let text = format!("execd-guard 1 {boot_id}");
    format!("{text:<width$.width$}\n", width = HEADER_BYTES - 1).into_bytes()
}

fn encode(record: Option<GuardRecord>, now_ticks: u64) -> [u8; GUARD_RECORD_BYTES] {
    let mut bytes = Vec::with_capacity(GUARD_RECORD_BYTES);
    if let Some(record) = record {
        push_guard_add(&mut bytes, record);
    }
    let mut slot = [0; GUARD_RECORD_BYTES];
    slot.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    slot[CHANGED_AT..].copy_from_slice(&now_ticks.to_le_bytes());
    slot
}

/// The sessions of a record of this boot, and when it was last changed; None for any other.
fn decode(bytes: &[u8], boot_id: &str) -> Option<(Vec<GuardEvent>, u64)> {
    let slots = bytes.strip_prefix(header(boot_id).as_slice())?;
    let (mut sessions, mut last_ticks) = (Vec::new(), 0);
    for slot in slots.as_chunks::<GUARD_RECORD_BYTES>().0 {
        let ticks = slot[CHANGED_AT..].first_chunk().map_or(0, |ticks| u64::from_le_bytes(*ticks));
        last_ticks = last_ticks.max(ticks);
        if slot[0] != 0 {
            sessions.extend(GuardEvent::decode(slot).ok());
        }
    }
    Some((sessions, last_ticks))
}

/// Ends what is left of the sessions of all execds of this user that are gone, and removes their
/// records. Who does not die of SIGKILL now does so later: the record has done its work. One that
/// cannot be read, or whose sessions cannot be looked for (for want of descriptors or memory),
/// stays for the next execd.
pub fn end_what_is_left() {
    let Some(boot_id) = record_files::boot_id() else { return };
    for left in record_files::left_behind() {
        let Ok(bytes) = left.read() else { continue };
        let dealt_with = match decode(&bytes, &boot_id) {
            Some((sessions, last_ticks)) => {
                let mut guard = Guard::of_record(&left.owner.instance, host::pid(), last_ticks);
                sessions.into_iter().for_each(|event| guard.take(event));
                guard.hung_up()
            }
            // Of an earlier boot, or no record.
            None => true,
        };
        if dealt_with {
            left.delete();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(sid: i32) -> GuardEvent {
        GuardEvent::Add(GuardRecord { sid, start_ticks: 7, session: 1, whole: sid == 3 })
    }

    /// rule: architecture.md, Ending a session: Killed together with its helpers: the next execd of
    ///   the user ends what is left, before it answers
    #[test]
    fn what_is_recorded_is_read_back_in_this_boot_only() {
        let mut record = Record::new("abc", 1);
        for sid in 2..6 {
            record.note(session(sid));
        }
        record.note(GuardEvent::Remove(4));
        record.note(GuardEvent::Remove(2));
        record.note(session(9));
        record.note(session(4));
        let mut bytes = header("some-boot");
        assert_eq!(bytes.len(), HEADER_BYTES);
        for (slot, ticks) in record.slots.iter().zip(100..) {
            bytes.extend(encode(*slot, ticks));
        }
        let (mut sessions, last_ticks) = decode(&bytes, "some-boot").unwrap();
        sessions.sort_by_key(|event| matches!(event, GuardEvent::Add(one) if one.sid > 4));
        assert_eq!((sessions.len(), last_ticks), (4, 103));
        for sid in [3, 4, 5, 9] {
            assert!(sessions.contains(&session(sid)), "{sid} in {sessions:?}");
        }
        assert_eq!(decode(&bytes, "other-boot"), None);
        assert_eq!(decode(b"", "some-boot"), None);
        // A slot that was cut, or makes no sense, is left out.
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(decode(cut, "some-boot").unwrap().0.len(), 3);
        bytes[HEADER_BYTES] = 77;
        assert_eq!(decode(&bytes, "some-boot").unwrap().0.len(), 3);
    }
}
