//! The commit log's format: one append block of the log stream is one group of operations.
//!
//! ```text
//! group     = u8 format (1), operation*
//! operation = u64 row version, varint count, change*
//! change    = u8 kind: 1 put:    varint n, n bytes row key, varint m, m bytes value
//!                      2 delete: varint n, n bytes row key
//! ```
//!
//! Versions rise from operation to operation over the whole log. An append that failed may still be in the
//! log and its operations may follow again: a replay skips versions that are not higher than the last one
//! seen.

use crate::key::RowKey;
use crate::operation::{RowChange, RowVersion};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;

const FORMAT: u8 = 1;
const KIND_PUT: u8 = 1;
const KIND_DELETE: u8 = 2;
/// Bytes of a number of variable length, at most.
const VARINT_SIZE_MAX: usize = 10;

/// Starts a group in an empty buffer.
pub(crate) fn start_group(out: &mut Vec<u8>) {
    out.put_u8_field(FORMAT);
}

/// Adds an operation's changes to a group.
pub(crate) fn put_operation(out: &mut Vec<u8>, version: RowVersion, changes: &[RowChange]) {
    out.put_u64_field(version.0);
    out.put_varint(changes.len() as u64);
    for change in changes {
        match change {
            RowChange::Put { key, value } => {
                out.put_u8_field(KIND_PUT);
                out.put_bytes_field(key.as_bytes());
                out.put_bytes_field(value);
            }
            RowChange::Delete { key } => {
                out.put_u8_field(KIND_DELETE);
                out.put_bytes_field(key.as_bytes());
            }
        }
    }
}

/// Bytes that an operation with these changes takes in a group, at most.
pub(crate) fn operation_size_bytes_max(changes: &[RowChange]) -> usize {
    let change_size = |change: &RowChange| match change {
        RowChange::Put { key, value } => 1 + 2 * VARINT_SIZE_MAX + key.as_bytes().len() + value.len(),
        RowChange::Delete { key } => 1 + VARINT_SIZE_MAX + key.as_bytes().len(),
    };
    8 + VARINT_SIZE_MAX + changes.iter().map(change_size).sum::<usize>()
}

/// Reads a group back.
pub(crate) fn parse_group(group: &[u8]) -> Result<Vec<(RowVersion, Vec<RowChange>)>, DecodeError> {
    let mut decoder = Decoder::new(group);
    if decoder.u8("commit log format")? != FORMAT {
        return Err(DecodeError("commit log format"));
    }
    let mut operations = Vec::new();
    while !decoder.is_empty() {
        let version = RowVersion(decoder.u64("row version")?);
        let count = decoder.varint("change count")?;
        let mut changes = Vec::new();
        for _ in 0..count {
            let kind = decoder.u8("change kind")?;
            let key = RowKey::from_bytes(Bytes::copy_from_slice(decoder.bytes("row key")?));
            changes.push(match kind {
                KIND_PUT => {
                    RowChange::Put { key, value: Bytes::copy_from_slice(decoder.bytes("row value")?) }
                }
                KIND_DELETE => RowChange::Delete { key },
                _ => return Err(DecodeError("change kind")),
            });
        }
        operations.push((version, changes));
    }
    Ok(operations)
}

/// The keys of the rows that a group changes, and with which versions. Of an empty one, in which no operation
/// is yet, none.
pub(crate) fn rows_of(group: &[u8]) -> Result<Vec<(RowVersion, Bytes)>, DecodeError> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let rows = |(version, changes): (RowVersion, Vec<RowChange>)| {
        changes.into_iter().map(move |change| (version, change.key().as_bytes().clone()))
    };
    Ok(parse_group(group)?.into_iter().flat_map(rows).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change() -> impl Strategy<Value = RowChange> {
        (".{0,8}", prop::option::of(prop::collection::vec(any::<u8>(), 0..50))).prop_map(|(name, value)| {
            let key = RowKey::new("acct", 5, "p", &name);
            match value {
                Some(value) => RowChange::Put { key, value: value.into() },
                None => RowChange::Delete { key },
            }
        })
    }

    proptest! {
        #[test]
        fn groups_come_back(operations in prop::collection::vec((any::<u64>(), prop::collection::vec(change(), 0..4)), 0..5)) {
            let mut out = Vec::new();
            start_group(&mut out);
            let operations: Vec<_> = operations.into_iter().map(|(version, changes)| (RowVersion(version), changes)).collect();
            for (version, changes) in &operations {
                let before = out.len();
                put_operation(&mut out, *version, changes);
                prop_assert!(out.len() - before <= operation_size_bytes_max(changes));
            }
            let key = |change: &RowChange| change.key().as_bytes().clone();
            let rows = operations.iter().flat_map(|(version, changes)| changes.iter().map(move |change| (*version, key(change))));
            prop_assert_eq!(rows_of(&out), Ok(rows.collect()));
            prop_assert_eq!(rows_of(&[]), Ok(Vec::new()));
            prop_assert_eq!(parse_group(&out), Ok(operations));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in any::<Vec<u8>>()) {
            let _ = parse_group(&bytes);
            let _ = parse_group(&[&[FORMAT], bytes.as_slice()].concat());
        }
    }
}
