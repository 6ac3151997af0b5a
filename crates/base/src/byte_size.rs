//! Sizes in messages, as people read them.

use std::fmt;

/// Bytes that show themselves in the largest binary unit that they are a whole number of, and else in bytes,
/// with about how many KiB, MiB or GiB that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| self.0 >= *size) else {
            return write!(f, "{} bytes", self.0);
        };
        match UNITS.into_iter().find(|(size, _)| self.0.is_multiple_of(*size)) {
            Some((whole, unit)) => write!(f, "{} {unit}", self.0 / whole),
            None => write!(f, "{} bytes ({:.1} {unit})", self.0, self.0 as f64 / size as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn sizes_are_whole_or_told_twice() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1 << 20, "1 MiB"),
            (1536 << 10, "1536 KiB"),
            (5 << 30, "5 GiB"),
            (17_123_456, "17123456 bytes (16.3 MiB)"),
            (1500, "1500 bytes (1.5 KiB)"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }
}
