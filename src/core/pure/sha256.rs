//! SHA-256 (FIPS 180-4), for the name of a file: small rather than fast. What checks signatures or
//! keeps secrets has no business with it.

/// The bytes of a block, of which a text is hashed one after the other.
const BLOCK: usize = 64;

/// The largest number whose `power`th power is at most `limit`; less than 2^41, whose cube still
/// fits.
const fn root(limit: u128, power: u32) -> u128 {
    let (mut found, mut bit) = (0, 1 << 40);
    while bit > 0 {
        let next: u128 = found | bit;
        if next.pow(power) <= limit {
            found = next;
        }
        bit >>= 1;
    }
    found
}

/// The first 32 bits behind the point of the roots of the first primes, which the standard makes
/// its constants of.
#[allow(clippy::cast_possible_truncation)] // The bits before the point are to go.
const fn roots<const N: usize>(power: u32) -> [u32; N] {
    let (mut all, mut at, mut number) = ([0; N], 0, 2);
    while at < N {
        let mut divisor = 2;
        while number % divisor != 0 {
            divisor += 1;
        }
        if divisor == number {
            all[at] = root(number << (32 * power), power) as u32;
            at += 1;
        }
        number += 1;
    }
    all
}

/// Of cube roots: one for each round.
const ROUNDS: [u32; BLOCK] = roots(3);
/// Of square roots: what the hash of nothing begins with.
const START: [u32; 8] = roots(2);

/// The SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = START;
    let blocks = bytes.chunks_exact(BLOCK);
    // The end: a bit that is set, zeros, and the length in bits.
    let mut last = [blocks.remainder(), &[0x80]].concat();
    last.resize((last.len() + 8).next_multiple_of(BLOCK) - 8, 0);
    last.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    blocks.chain(last.chunks_exact(BLOCK)).for_each(|block| add(&mut hash, block));
    let mut told = [0; 32];
    for (to, word) in told.chunks_exact_mut(4).zip(hash) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    told
}

/// Adds a block to a hash.
fn add(hash: &mut [u32; 8], block: &[u8]) {
    let mut words = [0_u32; BLOCK];
    for (word, from) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = from.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..BLOCK {
        let (early, late) = (words[at - 15], words[at - 2]);
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        let sum = words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]);
        words[at] = sum.wrapping_add(large);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *hash;
    for (word, round) in words.iter().zip(ROUNDS) {
        let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = e & f ^ !e & g;
        let sum = h.wrapping_add(mixed).wrapping_add(chosen);
        let sum = sum.wrapping_add(round).wrapping_add(*word);
        let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let other = mixed.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(sum));
        (d, c, b, a) = (c, b, a, sum.wrapping_add(other));
    }
    for (of, more) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *of = of.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_constants_are_those_of_the_standard() {
        assert_eq!((START[0], START[7]), (0x6a09_e667, 0x5be0_cd19));
        assert_eq!((ROUNDS[0], ROUNDS[63]), (0x428a_2f98, 0xc671_78f2));
    }

    #[test]
    fn texts_of_each_length_around_two_blocks_hash_as_another_program_says() {
        let text: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        for length in (0..=3 * BLOCK).chain([text.len() - 1, text.len()]) {
            let bytes = &text[..length];
            assert_eq!(sha256(bytes)[..], Sha256::digest(bytes)[..], "{length} bytes");
        }
    }
}
