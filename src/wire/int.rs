//! Whole numbers, as JSON writes them.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// A whole number from JSON; what does not fit 64 bits is taken as the nearest that does,
/// because every integer of the protocol is clamped or looked up anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Int(pub i64);

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Int;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_i64<E>(self, value: i64) -> Result<Int, E> {
                Ok(Int(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Int, E> {
                Ok(Int(i64::try_from(value).unwrap_or(i64::MAX)))
            }
            #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted.
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Int, E> {
                if value.fract() == 0.0 {
                    Ok(Int(value as i64))
                } else {
                    Err(E::custom("not a whole number"))
                }
            }
        }
        from.deserialize_any(Whole)
    }
}

impl Int {
    /// The number clamped into `[low, high]`.
    pub fn clamped(self, low: u64, high: u64) -> u64 {
        u64::try_from(self.0).unwrap_or(0).clamp(low, high)
    }

    /// The same for small numbers: a terminal's rows and columns.
    pub fn clamped_u16(self, (low, high): (u16, u16)) -> u16 {
        u16::try_from(self.clamped(u64::from(low), u64::from(high))).unwrap_or(high)
    }
}
