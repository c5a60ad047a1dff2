//! Numbers for tests that try many inputs: the same ones at each run (splitmix64). The tests in
//! tests/ take them from this file too.

/// A generator that begins at this seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number, below this one.
    pub fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, bound: N) -> N {
        let bound = bound.try_into().ok().expect("a bound above 0");
        N::try_from(self.bits() % bound).ok().expect("a number below the bound")
    }
}

/// The same as a function of the bound.
pub fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut numbers = Random(seed);
    move |bound| numbers.below(bound)
}
