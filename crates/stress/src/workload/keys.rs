//! Keys as text, whose order is that of the numbers behind them.
//!
//! ```text
//! PartitionKey   p500000000              p, and the number of the partition
//! RowKey         1000000000042           the number of the row
//!                1000000000042-0000001f  a new row behind it, of that number in hexadecimal
//! blob           1000000000042           like a row
//! ```
//!
//! Numbers begin in the middle, so that keys can fall as well as rise. What always holds: different keys have
//! different texts, and texts are ordered as (partition, row, suffix) are.

use std::fmt::Write;

/// The number of the first row that is loaded.
pub(crate) const FIRST_ROW: u64 = 1_000_000_000_000;
/// The number of the partition of that row.
pub(crate) const FIRST_PARTITION: u64 = 500_000_000;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) partition: u64,
    pub(crate) row: u64,
    pub(crate) suffix: Option<u64>,
}

impl Key {
    /// Replaces the text by the `PartitionKey`.
    pub(crate) fn write_partition(&self, text: &mut String) {
        text.clear();
        // Writing to a string does not fail.
        let _ = write!(text, "p{:09}", self.partition);
    }

    /// Replaces the text by the `RowKey`, or the blob's name.
    pub(crate) fn write_row(&self, text: &mut String) {
        text.clear();
        let _ = write!(text, "{:013}", self.row);
        if let Some(suffix) = self.suffix {
            let _ = write!(text, "-{suffix:08x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(key: &Key) -> (String, String) {
        let (mut partition, mut row) = ("former".to_owned(), "former".to_owned());
        key.write_partition(&mut partition);
        key.write_row(&mut row);
        (partition, row)
    }

    #[test]
    fn keys_are_written() {
        let key = Key { partition: FIRST_PARTITION, row: FIRST_ROW + 42, suffix: None };
        assert_eq!(texts(&key), ("p500000000".to_owned(), "1000000000042".to_owned()));
        let behind = Key { suffix: Some(31), ..key };
        assert_eq!(texts(&behind).1, "1000000000042-0000001f");
    }

    proptest! {
        #[test]
        fn texts_are_ordered_as_keys_are(
            a in (FIRST_PARTITION - 3..FIRST_PARTITION + 3, FIRST_ROW - 3..FIRST_ROW + 3, prop::option::of(0..20u64)),
            b in (FIRST_PARTITION - 3..FIRST_PARTITION + 3, FIRST_ROW - 3..FIRST_ROW + 3, prop::option::of(0..20u64)),
        ) {
            let key = |(partition, row, suffix)| Key { partition, row, suffix };
            prop_assert_eq!(texts(&key(a)).cmp(&texts(&key(b))), key(a).cmp(&key(b)));
        }
    }
}
