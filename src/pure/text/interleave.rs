//! A text that two others make up, line by line, without a second copy of their lines.
//!
//! A finished session of the stream family is asked again for stdout, stderr and both in order of
//! arrival, and may keep little (architecture.md, Bounds): what arrived
//! is mostly whole lines of the one stream or the other, so that a bit a line tells the order.

/// How a text is made of the last lines of two others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interleaving {
    /// What stands before the lines that were found in the others, as it is.
    head: String,
    /// For each line, from the last one up, whether it is the second text's.
    bits: Vec<u8>,
    lines: usize,
}

/// Takes the last line, with its newline, off `text`.
fn last_line<'a>(text: &mut &'a str) -> Option<&'a str> {
    let line = text.split_inclusive('\n').next_back()?;
    *text = &text[..text.len() - line.len()];
    Some(line)
}

impl Interleaving {
    /// How `whole` is made of the last lines of `first` and `second`. Takes time linear in them
    /// and memory for what of `whole` is found in neither.
    pub fn new(whole: &str, first: &str, second: &str) -> Self {
        let (mut left, mut sources) = (whole, [first, second]);
        let mut made = Self::default();
        let mut turn = 0;
        loop {
            let mut before = left;
            let Some(line) = last_line(&mut before) else { break };
            // Where both have the line, the source goes on that had the one below it.
            let found = [turn, 1 - turn].into_iter().find(|source| {
                last_line(&mut { sources[*source] }).is_some_and(|theirs| theirs == line)
            });
            let Some(source) = found else { break };
            last_line(&mut sources[source]);
            (left, turn) = (before, source);
            made.push(source);
        }
        left.clone_into(&mut made.head);
        made.bits.shrink_to_fit();
        made
    }

    fn push(&mut self, source: usize) {
        if self.lines.is_multiple_of(8) {
            self.bits.push(0);
        }
        if let (1, Some(last)) = (source, self.bits.last_mut()) {
            *last |= 1 << (self.lines % 8);
        }
        self.lines += 1;
    }

    /// The whole, from the two texts it was made of.
    pub fn text(&self, first: &str, second: &str) -> String {
        let mut sources = [first, second];
        let mut lines = Vec::with_capacity(self.lines + 1);
        for at in 0..self.lines {
            let bits = self.bits.get(at / 8).copied().unwrap_or_default();
            let source = usize::from(bits >> (at % 8) & 1);
            lines.extend(last_line(&mut sources[source]));
        }
        lines.push(&self.head);
        lines.reverse();
        lines.concat()
    }

    /// Bytes of heap that this owns.
    pub fn heap_bytes(&self) -> usize {
        self.head.capacity() + self.bits.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    #[test]
    fn a_bit_a_line_tells_the_order() {
        let (out, err) = ("one\nthree\nfour\n", "two\nfive\n");
        let whole = "one\ntwo\nthree\nfour\nfive\n";
        let made = Interleaving::new(whole, out, err);
        assert_eq!((made.head.as_str(), made.lines, made.bits.len()), ("", 5, 1));
        assert_eq!(made.text(out, err), whole);
    }

    /// rule: architecture.md, Bounds: A finished job keeps at most 64 KiB in memory
    #[test]
    fn any_whole_comes_back_from_any_two_texts() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut below = |bound: u64| random.below(bound);
        for _ in 0..700 {
            let mut texts = [String::new(), String::new(), String::new()];
            for _ in 0..below(30) {
                let line = ["a\n", "ä\n", "\n", "bb\n", "c"][usize::try_from(below(5)).unwrap()];
                texts[usize::try_from(below(2)).unwrap()].push_str(line);
                if below(8) > 0 {
                    texts[2].push_str(line);
                }
            }
            let [first, second, whole] = &texts;
            let made = Interleaving::new(whole, first, second);
            assert_eq!(&made.text(first, second), whole, "{texts:?}");
        }
    }
}
