//! What is left of a row key whose end was cut off: sketches keep the starts of keys only.

use super::start::{KeyStart, parse_key_start};
use super::text::TERMINATOR;
use super::{container_prefix, parse_row_key, partition_prefix};

/// What the start of a key says, whose end may have been cut off anywhere, and whether its last text goes on
/// perhaps.
pub(crate) fn parse_cut_key(key: &[u8]) -> (KeyStart, bool) {
    /// What a cut leaves of a character or of an encoded byte at most.
    const SPLIT_SIZE_BYTES_MAX: usize = 3;
    let is_whole = [partition_prefix(key), container_prefix(key)].contains(&Some(key));
    if is_whole || parse_row_key(key).is_some() {
        return (parse_key_start(key), false);
    }
    let start_without = |cut: usize| {
        let open = key.get(..key.len().checked_sub(cut)?)?;
        let start = parse_key_start(&[open, TERMINATOR].concat());
        (start.partition_name.is_some() && (partition_prefix(open).is_none() || start.object_name.is_some()))
            .then_some(start)
    };
    match (0..=SPLIT_SIZE_BYTES_MAX).find_map(start_without) {
        Some(start) => (start, true),
        None => (parse_key_start(key), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;

    #[test]
    fn a_key_that_was_cut_says_what_is_left_of_it() {
        let key = RowKey::new("acct", 7, "p\0é€", "row");
        let bytes = key.as_bytes();
        let partition = crate::key::partition_prefix(bytes).map_or(0, <[u8]>::len);
        let texts = |len: usize| {
            let (start, is_cut) = parse_cut_key(&bytes[..len]);
            assert_eq!((start.account.as_deref(), start.container_id), (Some("acct"), Some(7)), "{len}");
            (start.partition_name, start.object_name, is_cut)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts(bytes.len()), (some("p\0é€"), some("row"), false));
        assert_eq!(texts(bytes.len() - 1), (some("p\0é€"), some("row"), true));
        assert_eq!(texts(bytes.len() - 3), (some("p\0é€"), some("ro"), true));
        assert_eq!(texts(partition), (some("p\0é€"), None, false));
        assert_eq!(texts(partition - 1), (some("p\0é€"), None, true));
        assert_eq!(texts(partition - 3), (some("p\0é"), None, true), "half a character");
        assert_eq!(texts(partition - 6), (some("p\0"), None, true));
        assert_eq!(texts(partition - 8), (some("p"), None, true), "half an encoded byte");
        assert_eq!(texts(14), (None, None, false));
        for len in 0..14 {
            assert!(parse_cut_key(&bytes[..len]).0.partition_name.is_none(), "{len}");
        }
    }
}
