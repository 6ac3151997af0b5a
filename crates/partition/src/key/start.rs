//! Which place a bound of a range of keys means: often it is no whole row key.

use super::text::{TERMINATOR, take_text};

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
