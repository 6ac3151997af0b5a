//! Which place a bound of a range of keys means: often it is no whole row key.

use super::text::{TERMINATOR, take_text};
use super::{container_prefix, parse_row_key, partition_prefix};

/// What is known of a key's place: from the front on as much as its bytes have of a row key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStart {
    /// The storage account.
    pub account: Option<String>,
    /// The container by id.
    pub container_id: Option<u64>,
    /// The partition name.
    pub partition_name: Option<String>,
    /// The object inside the partition.
    pub object_name: Option<String>,
}

/// What a bound of a range of keys says: a row key, the successor of one, or the start or end of all keys
/// that share an account, a container or a partition name. Of other bytes it is what can be read from the
/// front on.
pub fn parse_key_start(bound: &[u8]) -> KeyStart {
    let mut rest = bound;
    let mut start = KeyStart { account: take_bound_text(&mut rest), ..KeyStart::default() };
    if start.account.is_some()
        && let Some((id, after)) = rest.split_first_chunk::<8>()
    {
        rest = after;
        start.container_id = Some(u64::from_be_bytes(*id));
        start.partition_name = take_bound_text(&mut rest);
        start.object_name = start.partition_name.as_ref().and_then(|_| take_bound_text(&mut rest));
    }
    start
}

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

/// A text, or the end of all keys that start with one: its terminator, and 1 more.
fn take_bound_text(rest: &mut &[u8]) -> Option<String> {
    take_text(rest).or_else(|| {
        let open = rest.strip_suffix(&[0, 2])?;
        *rest = &[];
        take_text(&mut [open, TERMINATOR].concat().as_slice())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyRange, RowKey};
    use bytes::Bytes;

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

    #[test]
    fn bounds_of_ranges_say_which_place_they_mean() {
        let start = |account: Option<&str>, id, partition: Option<&str>, object: Option<&str>| KeyStart {
            account: account.map(str::to_owned),
            container_id: id,
            partition_name: partition.map(str::to_owned),
            object_name: object.map(str::to_owned),
        };
        let key = RowKey::new("acct", 7, "p\0q", "r");
        let row = start(Some("acct"), Some(7), Some("p\0q"), Some("r"));
        let partition = start(Some("acct"), Some(7), Some("p"), None);
        let of_partition = KeyRange::partition("acct", 7, "p");
        let of_container = KeyRange::container("acct", 7);
        for (bound, expected) in [
            (key.as_bytes().clone(), row.clone()),
            (key.successor(), row),
            (of_partition.start, partition.clone()),
            (of_partition.end.unwrap(), partition),
            (of_container.start, start(Some("acct"), Some(7), None, None)),
            (of_container.end.unwrap(), start(Some("acct"), Some(8), None, None)),
            (Bytes::new(), KeyStart::default()),
            (Bytes::from_static(b"acct"), KeyStart::default()),
            (Bytes::from_static(b"acct\0\x02"), start(Some("acct"), None, None, None)),
        ] {
            assert_eq!(parse_key_start(&bound), expected, "{}", bound.escape_ascii());
        }
    }
}
