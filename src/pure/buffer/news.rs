//! News that everybody is told, for those who have no room for them at the moment.
//!
//! News are kept once for all readers who lag behind, within bounds on their number and their bytes
//! (protocol.md, A slow reader). What goes over a bound is only counted for the readers who have
//! not been told it, except what is meant for one reader alone: that is never lost.

use std::collections::VecDeque;

/// Bytes of the texts of such news that are kept; what is more is only counted.
const NEWS_KEPT_BYTES: usize = 1024 * 1024;

/// News of sessions that clients without room have not been told: so many are kept for them.
const NEWS_KEPT_COUNT: usize = 1_024;

/// Something that everybody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Whether something has ended; else something has started.
    pub ended: bool,
    /// What is told.
    pub text: Vec<u8>,
    /// The reader who is told it in other words, and the words.
    pub own: Option<(u64, Vec<u8>)>,
}

impl Item {
    /// What this reader is told.
    pub fn text_for(&self, reader: u64) -> &[u8] {
        match &self.own {
            Some((whose, text)) if *whose == reader => text,
            _ => &self.text,
        }
    }

    fn bytes(&self) -> usize {
        self.text.len() + self.own.as_ref().map_or(0, |(_, text)| text.len())
    }
}

/// How far a reader has been told, and what it has missed for good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The number of the next item to tell.
    next: u64,
    /// How many starts are only counted.
    started: u64,
    /// How many ends.
    ended: u64,
    /// What is meant for this reader alone.
    own: Vec<Vec<u8>>,
}

/// What is told instead of items that were not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// How many starts.
    pub started: u64,
    /// How many ends.
    pub ended: u64,
    /// The texts of those ends that are meant for this reader alone.
    pub own: Vec<Vec<u8>>,
}

impl Told {
    /// Whether items were not kept for this reader.
    pub fn has_missed(&self) -> bool {
        self.started + self.ended > 0 || !self.own.is_empty()
    }

    /// Takes what this reader has missed, to tell it.
    pub fn take_missed(&mut self) -> Missed {
        Missed {
            started: std::mem::take(&mut self.started),
            ended: std::mem::take(&mut self.ended),
            own: std::mem::take(&mut self.own),
        }
    }
}

/// The items that somebody has not been told yet.
#[derive(Clone, Debug, Default)]
pub struct News {
    kept: VecDeque<Item>,
    /// The number of the first that is kept; the others follow.
    first: u64,
    bytes: usize,
}

impl News {
    /// A reader from now on: what was before is not its affair.
    pub fn reader(&self) -> Told {
        Told { next: self.end(), ..Told::default() }
    }

    /// The number of the next item.
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Whether this reader was told everything.
    pub fn is_told(&self, told: &Told) -> bool {
        told.next == self.end() && !told.has_missed()
    }

    /// The next item for a reader.
    pub fn next_for(&self, told: &Told) -> Option<&Item> {
        let at = usize::try_from(told.next.checked_sub(self.first)?).ok()?;
        self.kept.get(at)
    }

    /// This reader was told one more item.
    pub fn advance(&self, told: &mut Told) {
        told.next = (told.next + 1).min(self.end());
    }

    /// Adds an item. Those who are to be told it come for it by [`Self::next_for`].
    pub fn push(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.kept.push_back(item);
    }

    /// Lets go of what all `readers` (with their numbers) were told, and of what goes over the
    /// bounds: those who were not told it get the count.
    pub fn trim<'a>(&mut self, readers: impl Iterator<Item = (u64, &'a mut Told)>) {
        let mut readers: Vec<(u64, &mut Told)> = readers.collect();
        let slowest = readers.iter().map(|(_, told)| told.next).min().unwrap_or(self.end());
        while self.first < slowest
            || self.kept.len() > NEWS_KEPT_COUNT
            || self.bytes > NEWS_KEPT_BYTES
        {
            let Some(item) = self.kept.pop_front() else { return };
            self.bytes -= item.bytes();
            for (number, told) in readers.iter_mut().filter(|(_, told)| told.next == self.first) {
                told.next += 1;
                match &item.own {
                    Some((whose, text)) if *whose == *number => told.own.push(text.clone()),
                    _ if item.ended => told.ended += 1,
                    _ => told.started += 1,
                }
            }
            self.first += 1;
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: u64, own: Option<u64>) -> Item {
        let own = own.map(|whose| (whose, format!("own {number}").into_bytes()));
        Item { ended: number % 2 == 1, text: format!("item {number}").into_bytes(), own }
    }

    /// Everything that a reader can be told now.
    fn read(news: &News, told: &mut Told) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(item) = news.next_for(told) {
            all.push(String::from_utf8_lossy(item.text_for(7)).into_owned());
            news.advance(told);
        }
        all
    }

    /// rule: attach.md, Several clients: News of sessions wait for a client's room, bounded,
    ///   counted beyond, wakes never lost; stdin's client costs a bounded memory
    #[test]
    fn each_reader_is_told_everything_once_in_order_however_late() {
        let mut news = News::default();
        let mut all = [news.reader(), news.reader()];
        for number in 0..3 {
            news.push(item(number, (number == 1).then_some(7)));
            assert_eq!(read(&news, &mut all[0]).len(), 1);
            news.trim((7..).zip(&mut all));
        }
        assert!(news.is_told(&all[0]) && !news.is_told(&all[1]));
        assert_eq!(read(&news, &mut all[1]), ["item 0", "own 1", "item 2"]);
        news.trim((7..).zip(&mut all));
        assert!(news.is_told(&all[1]) && news.bytes == 0 && news.next_for(&all[1]).is_none());
        // Who comes later is told what comes later.
        let mut late = news.reader();
        assert!(news.is_told(&late));
        news.push(item(3, None));
        assert_eq!(read(&news, &mut late), ["item 3"]);
    }

    /// rule: attach.md, Several clients: News of sessions wait for a client's room, bounded,
    ///   counted beyond, wakes never lost; stdin's client costs a bounded memory
    #[test]
    fn what_is_too_much_is_counted_and_what_is_for_one_alone_is_kept() {
        let mut news = News::default();
        let mut all = [news.reader(), news.reader()];
        let count = NEWS_KEPT_COUNT as u64 * 3;
        for number in 0..count {
            news.push(item(number, (number == 5).then_some(8)));
            news.trim((7..).zip(&mut all));
            assert!(news.kept.len() <= NEWS_KEPT_COUNT);
        }
        let lost = count - NEWS_KEPT_COUNT as u64;
        let halves = |missed: &Missed| (missed.started, missed.ended);
        let missed = [all[0].take_missed(), all[1].take_missed()];
        assert_eq!(halves(&missed[0]), (lost / 2, lost / 2));
        assert_eq!(halves(&missed[1]), (lost / 2, lost / 2 - 1));
        assert_eq!(missed[1].own, [b"own 5".to_vec()]);
        let rest = read(&news, &mut all[0]);
        assert_eq!(rest.first(), Some(&format!("item {lost}")));
        assert_eq!(rest.len(), NEWS_KEPT_COUNT);
        assert!(news.is_told(&all[0]) && !news.is_told(&all[1]));
    }

    /// rule: attach.md, Several clients: News of sessions wait for a client's room, bounded,
    ///   counted beyond, wakes never lost; stdin's client costs a bounded memory
    #[test]
    fn long_texts_are_bounded_by_their_bytes() {
        let mut news = News::default();
        let mut all = [news.reader()];
        for _ in 0..100 {
            news.push(Item { ended: true, text: vec![b'x'; NEWS_KEPT_BYTES / 10], own: None });
            news.trim((7..).zip(&mut all));
            assert!(news.bytes <= NEWS_KEPT_BYTES);
        }
        assert_eq!(all[0].take_missed(), Missed { ended: 90, ..Missed::default() });
        // One that is too long alone is counted.
        news.push(Item { ended: false, text: vec![b'x'; NEWS_KEPT_BYTES + 1], own: None });
        news.trim((7..).zip(&mut all));
        assert_eq!(news.bytes, 0);
        assert_eq!(all[0].take_missed(), Missed { ended: 10, started: 1, own: Vec::new() });
        // Nobody lags: nothing is kept.
        news.push(item(0, None));
        news.trim(std::iter::empty());
        assert_eq!(news.bytes, 0);
    }
}
