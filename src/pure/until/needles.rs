//! Literals of which a match of a regex must have one, and a quick search for them: most of output
//! has none, and then the automaton need not run (waits.md, What it costs).

use memchr::memmem::Finder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::limits::{REGEX_AMONG_MAX, REGEX_NEEDLES_MAX, REGEX_RUN_BYTES};
use crate::pure::text::eights::{BLOCK_BYTES, among, any, eight, eights, equal};

/// A byte of a literal, and the bit in which it may differ: that of the other case, or none.
type Letter = (u8, u8);
/// The bit between the cases of ASCII.
const CASE: u8 = 0x20;

/// Looks for one literal.
#[derive(Debug)]
pub(super) enum Needle {
    /// As it stands.
    Exact(Box<Finder<'static>>),
    /// In any case.
    Folded(Folded),
}

impl Needle {
    fn new(letters: &[Letter]) -> Self {
        if letters.iter().all(|(_, fold)| *fold == 0) {
            let bytes: Vec<u8> = letters.iter().map(|(byte, _)| *byte).collect();
            return Needle::Exact(Box::new(Finder::new(&bytes).into_owned()));
        }
        Needle::Folded(Folded::new(letters))
    }

    /// Where it stands first in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        match self {
            Needle::Exact(finder) => finder.find(text),
            Needle::Folded(folded) => folded.find(text),
        }
    }
}

/// The literals of a regex: a match has at least one of them. None where there are no good ones.
pub(super) fn needles(hir: &Hir) -> Vec<Needle> {
    let chosen = required(hir).filter(|set| score(set) > 0).unwrap_or_default();
    chosen.iter().map(|letters| Needle::new(letters)).collect()
}

/// So many bytes of a class follow one another in each match of a regex: `[0-9]{12}`.
#[derive(Debug)]
pub(super) struct Run {
    class: [bool; 256],
    length: usize,
}

impl Run {
    /// The longest of those that a match must have, where one is long enough to be worth it.
    pub(super) fn required(hir: &Hir) -> Option<Self> {
        match hir.kind() {
            HirKind::Capture(capture) => Self::required(&capture.sub),
            HirKind::Concat(parts) => {
                parts.iter().filter_map(Self::required).max_by_key(|run| run.length)
            }
            HirKind::Repetition(repetition) => {
                let length = usize::try_from(repetition.min).ok()?;
                let class = bytes_of(&repetition.sub).filter(|_| length >= REGEX_RUN_BYTES);
                class.map(|class| Self { class, length })
            }
            _ => None,
        }
    }

    /// Where the first one begins. Each has a byte at one of the places that are looked at: they
    /// are as far apart as it is long, and where there is none the bytes between are left out.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let mut begin = 0;
        // What is known to be of the class, from `begin` on.
        let mut known = 0;
        loop {
            let window = text.get(begin..begin + self.length)?;
            match window[known..].iter().rposition(|byte| !self.class[usize::from(*byte)]) {
                None => return Some(begin),
                Some(last) => {
                    let behind = known + last + 1;
                    (begin, known) = (begin + behind, self.length - behind);
                }
            }
        }
    }
}

/// Bytes of which each match of a regex has one: `[x-z]`. Where a text has none of them, nothing
/// in it matches, whatever else it has.
#[derive(Debug)]
pub(super) struct Among {
    /// The first byte of each range, and the last one.
    ranges: Vec<(u8, u8)>,
}

impl Among {
    /// Those that a match must have, the one of fewest bytes first.
    pub(super) fn required(hir: &Hir) -> Vec<Self> {
        let mut all = Vec::new();
        Self::gather(hir, &mut all);
        all.sort_by_key(|one| one.count());
        all.truncate(REGEX_AMONG_MAX);
        all
    }

    fn gather(hir: &Hir, all: &mut Vec<Self>) {
        match hir.kind() {
            HirKind::Literal(literal) => {
                let first = literal.0.first().filter(|byte| byte.is_ascii());
                all.extend(first.map(|byte| Self { ranges: vec![(*byte, *byte)] }));
            }
            HirKind::Class(Class::Unicode(class)) if class.is_ascii() => {
                let ranges = class.ranges().iter().map(|range| {
                    let ends = [range.start(), range.end()].map(|end| u8::try_from(end).ok());
                    ends[0].zip(ends[1])
                });
                let ranges: Option<Vec<(u8, u8)>> = ranges.collect();
                all.extend(ranges.map(|ranges| Self { ranges }));
            }
            HirKind::Capture(capture) => Self::gather(&capture.sub, all),
            HirKind::Repetition(repetition) if repetition.min > 0 => {
                Self::gather(&repetition.sub, all);
            }
            HirKind::Concat(parts) => parts.iter().for_each(|part| Self::gather(part, all)),
            _ => {}
        }
    }

    fn count(&self) -> usize {
        self.ranges.iter().map(|(first, last)| usize::from(last - first) + 1).sum()
    }

    fn has(&self, byte: u8) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&byte))
    }

    /// Where the first one stands.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let mut from = 0;
        for block in text.chunks_exact(BLOCK_BYTES) {
            if self.ranges.iter().any(|(first, last)| any(block, |all| among(all, *first, *last))) {
                break;
            }
            from += BLOCK_BYTES;
        }
        text[from..].iter().position(|byte| self.has(*byte)).map(|at| from + at)
    }
}

/// The bytes of a class of ASCII.
fn bytes_of(hir: &Hir) -> Option<[bool; 256]> {
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else { return None };
    let mut bytes = [false; 256];
    for range in class.ranges() {
        let (first, last) = (u8::try_from(range.start()).ok()?, u8::try_from(range.end()).ok()?);
        bytes[usize::from(first)..=usize::from(last)].fill(true);
    }
    class.is_ascii().then_some(bytes)
}

/// How much a set of literals is worth: the length of its shortest, less for each one more.
fn score(set: &[Vec<Letter>]) -> usize {
    let worth = |letters: &Vec<Letter>| match letters.as_slice() {
        // A single letter, digit or blank stands in every line.
        [(byte, _)] if byte.is_ascii_alphanumeric() || *byte == b' ' => 0,
        letters => 16 * letters.len().min(8),
    };
    set.iter().map(worth).min().unwrap_or(0).saturating_sub(2 * (set.len().max(1) - 1))
}

/// The best set of literals of which each match has one.
fn required(hir: &Hir) -> Option<Vec<Vec<Letter>>> {
    match hir.kind() {
        HirKind::Literal(_) | HirKind::Class(_) => Some(vec![letters(hir)?]),
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(parts) => best_of(parts),
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.append(&mut required(part)?);
            }
            (all.len() <= REGEX_NEEDLES_MAX).then_some(all)
        }
        _ => None,
    }
}

/// The best set of a sequence, of which each part is required. Letters that follow one another
/// are one literal.
fn best_of(parts: &[Hir]) -> Option<Vec<Vec<Letter>>> {
    let mut sets = Vec::new();
    let mut run = Vec::new();
    for part in parts {
        match (letters(part), part.kind()) {
            (Some(mut more), _) => run.append(&mut more),
            // What takes no room does not part two letters.
            (None, HirKind::Look(_)) => {}
            (None, _) => {
                sets.push(vec![std::mem::take(&mut run)]);
                sets.extend(required(part));
            }
        }
    }
    sets.push(vec![run]);
    sets.retain(|set| set.iter().all(|letters| !letters.is_empty()));
    sets.into_iter().max_by_key(|set| score(set))
}

/// The letters of a part that is nothing else.
fn letters(hir: &Hir) -> Option<Vec<Letter>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.iter().map(|byte| (*byte, 0)).collect()),
        HirKind::Class(Class::Unicode(class)) => match class.ranges() {
            [upper, lower]
                if upper.start() == upper.end()
                    && lower.start() == lower.end()
                    && lower.start().is_ascii_lowercase()
                    && upper.start() == lower.start().to_ascii_uppercase() =>
            {
                Some(vec![(u8::try_from(lower.start()).ok()?, CASE)])
            }
            _ => None,
        },
        _ => None,
    }
}

/// A literal of which letters may be of either case.
#[derive(Debug)]
pub(super) struct Folded {
    letters: Vec<Letter>,
    /// Three places in it, the rarest letters: what is compared first.
    places: [usize; 3],
}

impl Folded {
    fn new(letters: &[Letter]) -> Self {
        // Letters of English text from the frequent to the rare; what is none of them is rarer.
        const FREQUENT: &[u8] = b" etaoinsrhldcumfpgwybvkxjqz";
        let rarity = |place: &usize| {
            let byte = letters[*place].0;
            FREQUENT.iter().position(|one| *one == byte).unwrap_or(FREQUENT.len())
        };
        let mut places: Vec<usize> = (0..letters.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(rarity(place)));
        let place = |rank: usize| places[rank.min(places.len() - 1)];
        Folded { letters: letters.to_vec(), places: [place(0), place(1), place(2)] }
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        let last = text.len().checked_sub(self.letters.len())?;
        let [a, b, c] = self.places.map(|place| {
            let (byte, fold) = self.letters[place];
            (&text[place..place + last + 1], byte, eight(fold))
        });
        let mut from = 0;
        while from + BLOCK_BYTES <= last + 1 {
            let [x, y, z] = [&a, &b, &c].map(|(there, byte, fold)| {
                let block = &there[from..from + BLOCK_BYTES];
                eights(block).map(move |bytes| equal(bytes | fold, *byte))
            });
            let hits = x.zip(y).zip(z).map(|((x, y), z)| x & y & z);
            let any = hits.fold(0, |any, hits| any | hits) != 0;
            if any && let Some(at) = self.check(text, from, from + BLOCK_BYTES) {
                return Some(at);
            }
            from += BLOCK_BYTES;
        }
        self.check(text, from, last + 1)
    }

    /// Compares at each of these places.
    fn check(&self, text: &[u8], from: usize, to: usize) -> Option<usize> {
        (from..to).find(|at| {
            let here = &text[*at..at + self.letters.len()];
            here.iter().zip(&self.letters).all(|(byte, (letter, fold))| byte | fold == *letter)
        })
    }
}
