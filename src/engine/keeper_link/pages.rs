//! Pages of logs: the keeper is asked for them, or they are read here with `--no-keeper`. Which
//! request is asked for when is left to `engine/pages/line.rs`.

use super::{Hand, KeeperLink};
use crate::keeper::frames::{Ack, ReadPage, push_read_page};

impl KeeperLink {
    /// Asks for a page of a log; [`Self::take_pages`] gives it when it has come. False when
    /// there is nobody to ask.
    pub fn ask_page(&mut self, wanted: &ReadPage) -> bool {
        match &mut self.hand {
            Hand::Process(Some(_)) => push_read_page(self.staging.buffer(), wanted),
            Hand::Process(None) => return false,
            // Behind what is queued, as with a keeper.
            Hand::Inline(_) => self.pages_to_read.push_back(wanted.clone()),
        }
        true
    }

    /// Reads the pages that wait for it here.
    pub(crate) fn read_pages(&mut self) {
        if let Hand::Inline(writer) = &mut self.hand {
            self.pages.extend(self.pages_to_read.drain(..).map(|wanted| writer.page(&wanted)));
        }
    }

    /// The pages that have come: what is said of each, and its bytes.
    pub fn take_pages(&mut self) -> Vec<(Ack, Vec<u8>)> {
        std::mem::take(&mut self.pages)
    }
}
