//! Keys and bounds of ranges as people write them: for logs, and for reports of damage.
//!
//! Why: encoded keys are not legible. What always holds: any bytes have a description; it shows as many parts
//! of a row key as the bytes have.

use super::cut::parse_cut_key;
use super::{KeyRange, KeyStart, container_prefix, parse_container_prefix, parse_row_key, partition_prefix};

/// The first key and the one behind the last, apart; `None`: there is no bound.
pub(crate) fn describe_bounds(range: &KeyRange) -> (Option<String>, Option<String>) {
    let start = (!range.start.is_empty()).then(|| describe_key(&range.start));
    (start, range.end.as_deref().map(describe_key))
}

/// The first key and the one behind the last.
pub(crate) fn describe_range(range: &KeyRange) -> String {
    let (start, end) = describe_bounds(range);
    format!("{} to {}", start.as_deref().unwrap_or("the first"), end.as_deref().unwrap_or("the last"))
}

/// The start of a key whose end may have been cut off.
pub(crate) fn describe_start(key: &[u8]) -> String {
    let (start, is_cut) = parse_cut_key(key);
    match (start, is_cut) {
        (
            KeyStart {
                account: Some(account),
                container_id: Some(id),
                partition_name: Some(name),
                object_name,
            },
            true,
        ) => {
            let object = object_name.map(|name| format!(", {name:?}")).unwrap_or_default();
            format!("({account}, {id}, {name:?}{object}…)")
        }
        _ if key.is_empty() => "the first".to_owned(),
        _ => describe_key(key),
    }
}

/// A key, or the start or successor of one.
fn describe_key(key: &[u8]) -> String {
    let whole = key.strip_suffix(&[0]).and_then(parse_row_key).or_else(|| parse_row_key(key));
    if let Some(parts) = whole {
        return format!(
            "({}, {}, {:?}, {:?})",
            parts.account, parts.container_id, parts.partition_name, parts.object_name
        );
    }
    // The start of a partition name: the same with an empty object name.
    let with_object = [key, &[0, 1]].concat();
    if partition_prefix(key) == Some(key)
        && let Some(parts) = parse_row_key(&with_object)
    {
        return format!("({}, {}, {:?})", parts.account, parts.container_id, parts.partition_name);
    }
    match container_prefix(key).and_then(parse_container_prefix) {
        Some((account, id)) => format!("({account}, {id}, …)"),
        None => format!("{}", key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use bytes::Bytes;

    #[test]
    fn keys_are_written_with_their_parts() {
        let key = RowKey::new("acct", 7, "p", "r");
        assert_eq!(describe_key(key.as_bytes()), "(acct, 7, \"p\", \"r\")");
        assert_eq!(describe_key(&key.successor()), "(acct, 7, \"p\", \"r\")");
        assert_eq!(describe_key(&KeyRange::partition("acct", 7, "p").start), "(acct, 7, \"p\")");
        assert_eq!(describe_key(&KeyRange::container("acct", 7).start), "(acct, 7, …)");
        assert_eq!(describe_start(key.as_bytes()), "(acct, 7, \"p\", \"r\")");
        assert_eq!(describe_start(&key.as_bytes()[..key.as_bytes().len() - 1]), "(acct, 7, \"p\", \"r\"…)");
        assert_eq!(describe_start(&KeyRange::partition("acct", 7, "p").start), "(acct, 7, \"p\")");
        assert_eq!(describe_start(&KeyRange::container("acct", 7).start), "(acct, 7, …)");
        assert_eq!((describe_start(b""), describe_start(b"acct")), ("the first".into(), "acct".into()));
        let all = KeyRange { start: Bytes::new(), end: None };
        assert_eq!(describe_range(&all), "the first to the last");
    }
}
