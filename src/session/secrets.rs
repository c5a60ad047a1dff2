//! Secrets that a session was given as input: each of its streams masks them (protocol.md,
//! Secrets).

use super::Session;
use crate::pure::text::secret::{Refused, Veil};

impl Session {
    /// Why these bytes can't be a secret of the session now.
    pub fn refuses_secret(&self, bytes: &[u8], now_ns: u64) -> Option<Refused> {
        match &self.output.veil {
            Some(veil) => veil.refuses(bytes, now_ns),
            None => Veil::default().refuses(bytes, now_ns),
        }
    }

    /// From now on the output shows asterisks in place of these bytes.
    pub fn hide(&mut self, bytes: &[u8], now_ns: u64) {
        for stream in std::iter::once(&mut self.output).chain(&mut self.errors) {
            stream.veil.get_or_insert_default().add(bytes, now_ns);
            // Whole pages of a pipe would be passed on unseen.
            stream.flooding = false;
        }
    }

    /// When output that was held back is to be let go, or a secret forgotten.
    pub fn secrets_due_ns(&self) -> Option<u64> {
        let of = |stream: &super::Output| stream.veil.as_ref().and_then(|veil| veil.due_ns());
        [of(&self.output), self.errors.as_ref().and_then(of)].into_iter().flatten().min()
    }
}
