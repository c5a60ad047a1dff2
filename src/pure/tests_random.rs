//! Numbers for unit tests that try many inputs: the same ones at each run (xorshift).

/// A generator that begins at this seed, which is not 0.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number, below this one.
    pub fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, bound: N) -> N {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bound = bound.try_into().ok().expect("a bound above 0");
        N::try_from((self.0 >> 11) % bound).ok().expect("a number below the bound")
    }
}

/// The same as a function of the bound.
pub fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut numbers = Random(seed);
    move |bound| numbers.below(bound)
}
