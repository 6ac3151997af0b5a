//! The order of keys: by UTF-16 code units, which is the service's.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Both parts of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) partition: String,
    pub(crate) row: String,
}

impl Key {
    pub(crate) fn new(partition: impl Into<String>, row: impl Into<String>) -> Self {
        Key { partition: partition.into(), row: row.into() }
    }

    /// Becomes another key, in the same memory.
    pub(crate) fn replace(&mut self, partition: &str, row: &str) {
        partition.clone_into(&mut self.partition);
        row.clone_into(&mut self.row);
    }

    /// Compares with a key in parts.
    pub(crate) fn cmp_parts(&self, partition: &str, row: &str) -> Ordering {
        text_cmp(&self.partition, partition).then_with(|| text_cmp(&self.row, row))
    }
}

/// Compares texts by their UTF-16 code units. It is the order of the UTF-8 bytes, except that characters
/// above U+FFFF come before those from U+E000.
pub(crate) fn text_cmp(one: &str, other: &str) -> Ordering {
    let rank = |byte: u8| if matches!(byte, 0xee | 0xef) { byte + 0x10 } else { byte };
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let differing = one.iter().zip(other).find(|(one, other)| one != other);
    match differing {
        Some((one, other)) => rank(*one).cmp(&rank(*other)),
        None => one.len().cmp(&other.len()),
    }
}

/// The first text behind another one that a key may be: control characters are in no key.
pub(crate) fn next_text(text: &str) -> String {
    format!("{text} ")
}

/// Whether a text compares the same by code units and by code points with any other: services may do either.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().all(|character| character < '\u{e000}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_utf16(one in "[a\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}", other: String) {
            let of = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
            prop_assert_eq!(text_cmp(&one, &other), of(&one).cmp(&of(&other)));
            let reversed: String = one.chars().rev().collect();
            prop_assert_eq!(text_cmp(&one, &reversed), of(&one).cmp(&of(&reversed)));
            if is_plain(&one) {
                prop_assert_eq!(text_cmp(&one, &other), one.cmp(&other));
            }
        }
    }
}
