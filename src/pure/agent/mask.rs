//! A secret that a stream may hold is made unreadable, also where the pieces of the stream cut it
//! (agent.md, Keys).

/// What each byte of the secret becomes.
const MASK: u8 = b'*';

/// A secret, and how much of it the stream's last bytes may be the beginning of.
#[derive(Clone, Debug)]
pub struct Mask {
    secret: Box<[u8]>,
    held: usize,
}

impl Mask {
    /// Masks this secret, which is not empty.
    pub fn new(secret: &[u8]) -> Self {
        Self { secret: secret.into(), held: 0 }
    }

    /// The bytes that were held back: they come before the next piece.
    pub fn held(&self) -> &[u8] {
        &self.secret[..self.held]
    }

    /// Masks the secret in a piece of the stream that begins with what was held back. Gives how
    /// many of its bytes may be passed on; those behind them are held back.
    pub fn mask(&mut self, piece: &mut [u8]) -> usize {
        let secret = &*self.secret;
        let Some(&first) = secret.first() else { return piece.len() };
        let mut from = 0;
        while let Some(found) = memchr::memchr(first, &piece[from..]) {
            let at = from + found;
            from = at + 1;
            if piece[at..].starts_with(secret) {
                from = at + secret.len();
                piece[at..from].fill(MASK);
            }
        }
        // Only what is not masked already may be its beginning.
        let most = secret.len().min(piece.len() + 1);
        self.held = (1..most).rev().find(|&held| piece.ends_with(&secret[..held])).unwrap_or(0);
        piece.len() - self.held
    }

    /// The stream has ended: what was held back is no secret.
    pub fn release(&mut self) -> usize {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    /// The whole stream at once.
    fn naive(stream: &[u8], secret: &[u8]) -> Vec<u8> {
        let mut out = stream.to_vec();
        let mut at = 0;
        while at + secret.len() <= out.len() {
            if out[at..].starts_with(secret) {
                out[at..at + secret.len()].fill(MASK);
                at += secret.len();
            } else {
                at += 1;
            }
        }
        out
    }

    /// rule: agent.md, agent_execute, params: api_key is masked in command, lists and logs
    #[test]
    fn a_secret_is_masked_however_it_is_cut() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        for _ in 0..20_000 {
            let secret: Vec<u8> =
                (0..1 + random.below(4)).map(|_| b"ab"[random.below(2)]).collect();
            let stream: Vec<u8> = (0..random.below(40)).map(|_| b"abc"[random.below(3)]).collect();
            let mut mask = Mask::new(&secret);
            let mut out = Vec::new();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(random.below(rest.len().min(6)) + 1);
                rest = later;
                let mut piece = [mask.held(), now].concat();
                let given = mask.mask(&mut piece);
                assert_eq!(&piece[given..], mask.held());
                out.extend_from_slice(&piece[..given]);
            }
            out.extend_from_slice(mask.held());
            assert_eq!(out, naive(&stream, &secret), "{stream:?} {secret:?}");
        }
    }

    #[test]
    fn what_only_looks_like_its_beginning_is_given_at_the_end() {
        let mut mask = Mask::new(b"secret");
        let mut piece = *b"a sec";
        assert_eq!(mask.mask(&mut piece), 2);
        assert_eq!(mask.held(), b"sec");
        assert_eq!((mask.release(), mask.held()), (3, &b""[..]));
    }
}
