//! Bytes of output looked at eight at a time, as a number. The release is linked for size, so the
//! compiler makes no vector code of a loop over bytes: what looks at each byte of a flood does it
//! this way.

/// How many bytes are looked at between two branches.
pub const BLOCK_BYTES: usize = 64;

/// The lowest bit of each byte, and the highest one, by which the functions here tell of a byte.
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;

/// Eight times the same byte.
#[inline]
pub const fn eight(byte: u8) -> u64 {
    LOW.wrapping_mul(byte as u64)
}

/// Which of eight bytes are below this one of ASCII, or the first one behind it.
#[inline]
pub const fn below(eight_bytes: u64, limit: u8) -> u64 {
    // No byte borrows from the next one: each has its highest bit set before.
    !((eight_bytes | HIGH).wrapping_sub(eight(limit)) | eight_bytes) & HIGH
}

/// Which of eight bytes are of ASCII, `first` or `last` or between them.
#[inline]
pub const fn among(eight_bytes: u64, first: u8, last: u8) -> u64 {
    below(eight_bytes, last + 1) & !below(eight_bytes, first)
}

/// Which of eight bytes are this one.
#[inline]
pub const fn equal(eight_bytes: u64, byte: u8) -> u64 {
    below(eight_bytes ^ eight(byte), 1)
}

/// Which of eight bytes are this one of ASCII, or one behind it.
#[inline]
pub const fn from(eight_bytes: u64, byte: u8) -> u64 {
    !below(eight_bytes, byte) & HIGH
}

/// The bytes of a block, eight at a time.
#[inline]
pub fn eights(block: &[u8]) -> impl Iterator<Item = u64> {
    block.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// Whether `which` tells of any byte of a block.
#[inline]
pub fn any(block: &[u8], which: impl Fn(u64) -> u64) -> bool {
    eights(block).fold(0, |any, bytes| any | which(bytes)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of eight bytes are told of.
    fn told(which: u64) -> [bool; 8] {
        which.to_ne_bytes().map(|byte| {
            assert!(byte == 0 || byte == 0x80);
            byte != 0
        })
    }

    #[test]
    fn each_byte_is_told_of_by_itself_whatever_stands_beside_it() {
        for beside in [0, 9, 0x7F, 0x80, 0xFF] {
            for byte in 0..=255 {
                for place in 0..8 {
                    let mut bytes = [beside; 8];
                    bytes[place] = byte;
                    let all = u64::from_ne_bytes(bytes);
                    for limit in [0, 1, 10, 0x20, 0x7F, 0x80] {
                        assert_eq!(told(below(all, limit)), bytes.map(|one| one < limit));
                        assert_eq!(told(from(all, limit)), bytes.map(|one| one >= limit));
                    }
                    for (first, last) in [(0, 0), (9, 10), (b'0', b'9'), (0, 0x7F), (0x7F, 0x7F)] {
                        let expected = bytes.map(|one| (first..=last).contains(&one));
                        assert_eq!(told(among(all, first, last)), expected);
                    }
                    for one in [0, 0x7F, 0xC2, 0xFF] {
                        assert_eq!(told(equal(all, one)), bytes.map(|byte| byte == one));
                    }
                }
            }
        }
    }
}
