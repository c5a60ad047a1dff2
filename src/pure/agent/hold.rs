//! Text that is told piece by piece, with a secret masked that comes in several pieces: what may
//! be its beginning is held back until it is known to be none (agent.md, Keys).

use std::borrow::Cow;

use super::mask::{Form, Secret};
use crate::limits::{AGENT_HOLDS_MAX, AGENT_SECRET_HINT_BYTES};

/// Which block a delta belongs to: text or thinking, and its place in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Whether it is thinking.
    pub thinking: bool,
    /// Its contentIndex.
    pub index: u64,
}

/// The end of what came of a block.
#[derive(Clone, Copy, Debug)]
struct Hold {
    block: Block,
    /// So many of its last bytes are as the secret begins.
    begun_bytes: usize,
    /// So many of these were told, since another block came between.
    told_bytes: usize,
}

/// What is held back of each block.
#[derive(Debug, Default)]
pub struct Holds {
    secret: Option<Secret>,
    holds: Vec<Hold>,
}

impl Holds {
    /// Nothing is held back; without a secret nothing ever will be.
    pub fn new(secret: Option<Secret>) -> Self {
        Self { secret, holds: Vec::new() }
    }

    /// Takes more of a block's text, and gives what may be told of the block now.
    pub fn take<'a>(&mut self, block: Block, text: &'a str) -> Cow<'a, str> {
        let Some(secret) = &self.secret else { return Cow::Borrowed(text) };
        let at = self.holds.iter().position(|hold| hold.block == block);
        let hold = at.map(|at| self.holds.swap_remove(at));
        let (begun_bytes, told_bytes) =
            hold.map_or((0, 0), |one| (one.begun_bytes, one.told_bytes));
        let mut joined = [secret.beginning(begun_bytes), text].concat().into_bytes();
        let (length, open) = secret.hide(&mut joined, Form::Plain);
        if open < length {
            let told_bytes = told_bytes.saturating_sub(open);
            self.holds.push(Hold { block, begun_bytes: length - open, told_bytes });
        }
        joined.truncate(open);
        // The secret is ASCII, so all of these are boundaries of characters.
        let text = String::from_utf8(joined.split_off(told_bytes.min(open)));
        Cow::Owned(text.unwrap_or_default())
    }

    /// A block has ended: gives what was held back of the block, which is no secret.
    pub fn end(&mut self, block: Block) -> String {
        let at = self.holds.iter().position(|hold| hold.block == block);
        at.map(|at| self.holds.swap_remove(at)).map_or_else(String::new, |hold| self.held(hold))
    }

    /// Any block has ended: gives what was held back of one, until there is none.
    pub fn end_one(&mut self) -> Option<(Block, String)> {
        let hold = (!self.holds.is_empty()).then(|| self.holds.remove(0))?;
        Some((hold.block, self.held(hold)))
    }

    /// Something else comes than more of `block`. Pi ends blocks only when the whole message has
    /// come, so the end of another block, which may never go on, is told now, in its order. Only
    /// so much of it is told as is no help to guess the secret. Gives the next such end.
    pub fn hint(&mut self, block: Option<Block>) -> Option<(Block, String)> {
        if self.holds.len() > AGENT_HOLDS_MAX {
            return self.end_one();
        }
        let secret = self.secret.as_ref()?;
        let most_bytes = AGENT_SECRET_HINT_BYTES.min(secret.bytes() / 4);
        let hold = self.holds.iter_mut().find(|hold| {
            let other = Some(hold.block) != block;
            other && hold.begun_bytes <= most_bytes && hold.told_bytes < hold.begun_bytes
        })?;
        let text = secret.beginning(hold.begun_bytes)[hold.told_bytes..].to_owned();
        hold.told_bytes = hold.begun_bytes;
        Some((hold.block, text))
    }

    fn held(&self, hold: Hold) -> String {
        let secret = self.secret.as_ref();
        let text = secret.map_or("", |secret| secret.beginning(hold.begun_bytes));
        text[hold.told_bytes.min(text.len())..].to_owned()
    }
}
