//! The places inside of lines at which pages have ended: where a reader goes on that polls, so that
//! nothing is left out there (logs.md, Reading).

use std::collections::VecDeque;

/// Places inside of lines at which pages have ended that are remembered.
const READ_PLACES_MAX: usize = 1_024;

/// The last places that were handed out, each once; nothing is held while nobody reads.
#[derive(Debug, Default)]
pub struct HandedOut(VecDeque<(u64, u64)>);

impl HandedOut {
    /// A page of a session has ended here.
    pub fn note(&mut self, session: u64, offset: u64) {
        if self.has(session, offset) {
            return;
        }
        if self.0.len() >= READ_PLACES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((session, offset));
    }

    /// Whether a page of a session has ended here, as far as that is remembered.
    pub fn has(&self, session: u64, offset: u64) -> bool {
        self.0.contains(&(session, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_places_are_remembered_each_once() {
        let mut places = HandedOut::default();
        assert_eq!(places.0.capacity(), 0, "nothing is held while nobody reads");
        places.note(1, 7);
        for offset in 0..READ_PLACES_MAX as u64 - 1 {
            places.note(2, offset);
            places.note(2, offset);
        }
        assert!(places.has(1, 7) && places.has(2, 0) && !places.has(1, 8) && !places.has(3, 7));
        places.note(3, 7);
        assert!(!places.has(1, 7) && places.has(2, 0) && places.has(3, 7));
        assert_eq!(places.0.len(), READ_PLACES_MAX);
    }
}
