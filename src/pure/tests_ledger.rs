//! The ledger against a naive model that keeps all events and a set of numbers for each reader.

use std::collections::BTreeSet;

use super::*;
use crate::limits::EVENTS_PER_REPLY;
use crate::pure::tests_random::random;

const READERS: usize = 3;
const SESSIONS: usize = 9;
const KINDS: [What; 5] = [What::Exited, What::Evicted, What::Killed, What::Wake, What::LogTrouble];

/// A reader, and what the model knows of it.
#[derive(Default)]
struct Reader {
    place: Place,
    /// The last event before its connection.
    since: u64,
    told: BTreeSet<u64>,
    /// The `next_after` of its last `events`.
    next_after: u64,
}

/// The ledger, all events that there ever were, and the readers.
#[derive(Default)]
struct World {
    ledger: Ledger,
    /// The session and the kind of each event; the first has the number 1.
    all: Vec<(u64, What)>,
    readers: Vec<Reader>,
}

impl World {
    fn push(&mut self, session: usize, what: What) {
        self.all.push((session as u64, what));
        assert_eq!(self.ledger.push(Event::new(what, session as u64, 0)), self.all.len() as u64);
    }

    fn gone(&self) -> u64 {
        (self.all.len() as u64).saturating_sub(EVENTS_KEPT as u64)
    }

    /// What the model says that a reader has not been told, of what is kept.
    fn untold(&self, reader: usize) -> Vec<u64> {
        let one = &self.readers[reader];
        let from = self.gone().max(one.since) + 1;
        (from..=self.all.len() as u64).filter(|n| !one.told.contains(n)).collect()
    }

    /// A reply that carries what is untold, as far as it has room.
    fn reply(&mut self, reader: usize) {
        let expected: Vec<u64> = self.untold(reader).into_iter().take(EVENTS_PER_REPLY).collect();
        let one = &mut self.readers[reader];
        let events = self.ledger.untold(&one.place).take(EVENTS_PER_REPLY);
        let carried: Vec<u64> = events.map(|event| event.n).collect();
        assert_eq!(carried, expected);
        for n in carried {
            self.ledger.tell(&mut one.place, n);
            assert!(one.told.insert(n), "{n} is told twice");
        }
    }

    /// A reply that tells the end of a session, or only the trouble of its log.
    fn tell_of(&mut self, reader: usize, session: usize, over: bool) {
        let fits: fn(What) -> bool = if over { |_| true } else { |what| what == What::LogTrouble };
        let one = &mut self.readers[reader];
        self.ledger.tell_of(&mut one.place, session as u64, fits);
        for (at, (of, what)) in self.all.iter().enumerate() {
            if *of == session as u64 && fits(*what) {
                one.told.insert(at as u64 + 1);
            }
        }
    }

    /// `events`: what is given and what is lost is all that there was.
    fn replay(&mut self, reader: usize, max: usize) {
        let gone = self.gone();
        let one = &mut self.readers[reader];
        let after = one.next_after;
        let given: Vec<u64> = self.ledger.after(after).take(max).map(|event| event.n).collect();
        let lost = self.ledger.lost(after);
        assert_eq!(lost, (after < gone).then_some([after + 1, gone]));
        let from = lost.map_or(after, |[_, last]| last) + 1;
        let to = self.all.len() as u64;
        assert_eq!(given, (from..=to).take(max).collect::<Vec<_>>());
        for n in given {
            self.ledger.tell(&mut one.place, n);
            one.told.insert(n);
            one.next_after = n;
        }
    }

    fn check(&self, reader: usize) {
        let Place { told, ahead } = &self.readers[reader].place;
        assert!(ahead.len() <= EVENTS_KEPT && ahead.is_sorted());
        assert!(ahead.first().is_none_or(|first| *first > told + 1));
        let untold = self.ledger.untold(&self.readers[reader].place);
        assert_eq!(untold.map(|event| event.n).collect::<Vec<_>>(), self.untold(reader));
    }
}

/// rule: protocol.md, Events: Each event is told to a client once at most by replies, and never
///   lost to one that asks for it by number
#[test]
fn each_event_is_told_once_at_most_and_never_lost_to_who_asks() {
    for seed in 0..14 {
        let mut number = random(seed);
        let mut world = World::default();
        world.readers.resize_with(READERS, Reader::default);
        for _ in 0..200 {
            let (reader, session) = (number(READERS), number(SESSIONS));
            match number(12) {
                // Exits, kills, evictions, wakes; sometimes very many at once.
                0..5 => {
                    let many = if number(40) == 0 { EVENTS_KEPT + number(200) } else { 1 };
                    (0..many).for_each(|_| world.push(session, KINDS[number(KINDS.len())]));
                }
                5..8 => world.reply(reader),
                8 => world.tell_of(reader, session, true),
                9 => world.tell_of(reader, session, false),
                10 => world.replay(reader, 1 + number(200)),
                // It vanishes, and comes back with the number that it knows.
                _ => {
                    let next_after = world.readers[reader].next_after;
                    let (place, since) = (world.ledger.reader(), world.ledger.last());
                    let told = BTreeSet::new();
                    world.readers[reader] = Reader { place, since, told, next_after };
                    world.replay(reader, usize::MAX);
                }
            }
            world.check(reader);
        }
        for reader in 0..READERS {
            while !world.untold(reader).is_empty() {
                world.reply(reader);
            }
            world.check(reader);
        }
    }
}

#[test]
fn a_reader_that_is_told_all_in_order_keeps_no_numbers() {
    let mut ledger = Ledger::default();
    let mut place = ledger.reader();
    for session in 0..3 * EVENTS_KEPT as u64 {
        ledger.push(Event::new(What::Exited, session, 0));
        ledger.tell_of(&mut place, session, |_| true);
        assert!(place.ahead.is_empty() && ledger.untold(&place).next().is_none());
    }
    assert_eq!(ledger.oldest(), Some(2 * EVENTS_KEPT as u64 + 1));
    ledger.tell(&mut place, ledger.last() + 1);
    assert_eq!(place, ledger.reader(), "what has not happened can't be told");
}
