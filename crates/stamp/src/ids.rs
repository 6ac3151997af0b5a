//! Names that are unique without asking: whoever creates a thing names it after its own incarnation and a
//! counter.
//!
//! An incarnation is 128 random bits, drawn anew by each process and by each process that lost its lease. So
//! two processes never make the same name, and no name is ever made twice. What always holds: the text form
//! is lower-case hexadecimal of fixed width, and only that form is parsed.

use base::checksum::{crc64, crc64_suffix};
use base::codec::{DecodeError, Decoder, Encode};
use std::fmt;
use stream::{ExtentId, OwnerEpoch};
pub use stream::{Incarnation, Owner};

/// Bytes of a [`UniqueName`] in stored formats.
pub const UNIQUE_NAME_SIZE: usize = 24;
/// Hexadecimal digits of 128 bits.
const WIDE_DIGITS: usize = 32;
/// Hexadecimal digits of 64 bits.
const NARROW_DIGITS: usize = 16;

macro_rules! random_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }
    };
}

random_number! {
    /// One installation; drawn at its first start. In each part, document and backup.
    StampId
}
random_number! {
    /// One life of the metadata store; drawn anew by each restore. The prefix of every key, so that nothing
    /// that was under way to the former store can match.
    Generation
}

/// An incarnation and a number that it has not used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueName {
    /// The process that made the name.
    pub incarnation: Incarnation,
    /// Different for each name that it made.
    pub counter: u64,
}

impl UniqueName {
    /// Writes the name: 16 bytes of incarnation, 8 of counter, little-endian.
    pub fn encode(&self, out: &mut impl Encode) {
        out.put_raw(&self.incarnation.0.to_le_bytes());
        out.put_u64_field(self.counter);
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let incarnation = Incarnation(decode_wide(decoder, field)?);
        Ok(UniqueName { incarnation, counter: decoder.u64(field)? })
    }

    /// Reads the text form, `<32 digits>-<16 digits>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (incarnation, counter) = text.split_once('-')?;
        Some(UniqueName {
            incarnation: Incarnation(parse_wide(incarnation)?),
            counter: parse_narrow(counter)?,
        })
    }
}

impl fmt::Display for UniqueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.incarnation, self.counter)
    }
}

macro_rules! unique_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub UniqueName);

        impl $name {
            /// The name that `incarnation` makes with `counter`.
            pub fn new(incarnation: Incarnation, counter: u64) -> Self {
                $name(UniqueName { incarnation, counter })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unique_name! {
    /// An extent: a chain of parts in the object store.
    ExtentName
}
unique_name! {
    /// A stream of a range.
    StreamId
}
unique_name! {
    /// A range partition.
    RangeId
}
unique_name! {
    /// A committed change of a document. It is in the document, so that a reader sees which change was last.
    Mark
}

impl ExtentName {
    /// Its 64 bits, by which the layers above name it. Of the names of one incarnation no two have the same,
    /// because a CRC tells apart what differs in 64 neighbouring bits; of those of several two might, which
    /// who makes or reads names checks.
    pub fn short(&self) -> ExtentId {
        let mut bytes = Vec::with_capacity(UNIQUE_NAME_SIZE);
        self.0.encode(&mut bytes);
        ExtentId(crc64(&[&bytes]))
    }

    /// The one name of `incarnation` that has these 64 bits: places in bytes that come from elsewhere keep
    /// their meaning.
    pub fn of_short(incarnation: Incarnation, short: ExtentId) -> Self {
        // As `UniqueName::encode` has it: the counter is last.
        ExtentName::new(incarnation, crc64_suffix(&incarnation.0.to_le_bytes(), short.0))
    }
}

/// The epoch after `epoch`.
pub fn next_epoch(epoch: OwnerEpoch) -> OwnerEpoch {
    OwnerEpoch(epoch.0 + 1)
}

/// 16 bytes, little-endian.
pub(crate) fn decode_wide(decoder: &mut Decoder<'_>, field: &'static str) -> Result<u128, DecodeError> {
    let bytes = decoder.take(16, field)?;
    bytes.try_into().map(u128::from_le_bytes).map_err(|_| DecodeError(field))
}

/// 16 hexadecimal digits, lower case.
pub(crate) fn parse_narrow(text: &str) -> Option<u64> {
    is_hexadecimal(text, NARROW_DIGITS).then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// 32 hexadecimal digits, lower case.
pub(crate) fn parse_wide(text: &str) -> Option<u128> {
    is_hexadecimal(text, WIDE_DIGITS).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_incarnation_has_one_name_for_each_short_form(incarnation: u128, bits: u64) {
            let by = Incarnation(incarnation);
            prop_assert_eq!(ExtentName::of_short(by, ExtentId(bits)).short(), ExtentId(bits));
            let name = ExtentName::new(by, bits);
            prop_assert_eq!(ExtentName::of_short(by, name.short()), name);
        }
    }

    #[test]
    fn names_of_one_incarnation_have_different_short_forms() {
        let short = |counter| ExtentName::new(Incarnation(7), counter).short();
        let near: std::collections::BTreeSet<_> = (0..10_000).map(short).collect();
        assert_eq!(near.len(), 10_000);
        assert_ne!(short(1 << 63), short(1));
    }

    #[test]
    fn names_come_back_from_text_and_bytes() {
        for (incarnation, counter) in [(0, 0), (1, 2), (u128::MAX, u64::MAX), (0xab << 64, 7)] {
            let name = UniqueName { incarnation: Incarnation(incarnation), counter };
            assert_eq!(UniqueName::parse(&name.to_string()), Some(name));
            let mut bytes = Vec::new();
            name.encode(&mut bytes);
            assert_eq!(bytes.len(), UNIQUE_NAME_SIZE);
            assert_eq!(UniqueName::decode(&mut Decoder::new(&bytes), "name"), Ok(name));
        }
    }

    #[test]
    fn other_texts_are_no_names() {
        let name = UniqueName { incarnation: Incarnation(0xa), counter: 1 }.to_string();
        for text in [
            name.to_uppercase(),
            name.replace('-', "_"),
            name[1..].to_owned(),
            format!("{name}0"),
            name.replacen('0', "+", 1),
            String::new(),
        ] {
            assert_eq!(UniqueName::parse(&text), None, "{text}");
        }
    }
}
