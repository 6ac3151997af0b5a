//! A checkpoint's root: what it holds and where its parts are. The metadata stream refers to it by location.
//!
//! A part is an index block with its filter; together they cover some thousands of row blocks' keys.
//!
//! ```text
//! root = u8 kind (4), u8 format (1), varint rows, varint deleted rows, varint bytes of rows, varint bytes stored,
//!        u64 lowest version, u64 highest version, varint n, n bytes first key, varint part count, part*
//! part = varint n, n bytes last key, location of the index block, location of the filter
//! ```

use crate::key::KeyRange;
use crate::tree::metadata::{put_location, take_location};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::Location;

const KIND_ROOT: u8 = 4;
const FORMAT: u8 = 1;

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Root {
    /// Rows, deleted ones included.
    pub(crate) row_count: u64,
    pub(crate) deleted_count: u64,
    /// Bytes of keys and values.
    pub(crate) row_bytes: u64,
    /// Bytes of the appended blocks, without this one, and of overflows that a merge has left where they
    /// were.
    pub(crate) stored_bytes: u64,
    pub(crate) lowest_version: u64,
    pub(crate) highest_version: u64,
    pub(crate) first_key: Bytes,
    pub(crate) parts: Vec<Part>,
}

/// One part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) last_key: Bytes,
    pub(crate) index: Location,
    pub(crate) filter: Location,
}

impl Root {
    /// The highest key.
    pub(crate) fn last_key(&self) -> &Bytes {
        self.parts.last().map_or(&self.first_key, |part| &part.last_key)
    }

    /// Whether all its rows are of `range`.
    pub(crate) fn lies_in(&self, range: &KeyRange) -> bool {
        range.contains(&self.first_key) && range.contains(self.last_key())
    }

    /// Whether rows of `range` may be in it.
    pub(crate) fn overlaps(&self, range: &KeyRange) -> bool {
        range.end.as_ref().is_none_or(|end| self.first_key < end) && range.start <= self.last_key()
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8_field(KIND_ROOT);
        out.put_u8_field(FORMAT);
        for number in [self.row_count, self.deleted_count, self.row_bytes, self.stored_bytes] {
            out.put_varint(number);
        }
        out.put_u64_field(self.lowest_version);
        out.put_u64_field(self.highest_version);
        out.put_bytes_field(&self.first_key);
        out.put_varint(self.parts.len() as u64);
        for part in &self.parts {
            out.put_bytes_field(&part.last_key);
            put_location(&mut out, part.index);
            put_location(&mut out, part.filter);
        }
        out.into()
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(payload);
        if decoder.u8("root kind")? != KIND_ROOT || decoder.u8("root format")? != FORMAT {
            return Err(DecodeError("root kind"));
        }
        let mut root = Root {
            row_count: decoder.varint("row count")?,
            deleted_count: decoder.varint("deleted count")?,
            row_bytes: decoder.varint("row bytes")?,
            stored_bytes: decoder.varint("stored bytes")?,
            lowest_version: decoder.u64("lowest version")?,
            highest_version: decoder.u64("highest version")?,
            first_key: Bytes::copy_from_slice(decoder.bytes("first key")?),
            parts: Vec::new(),
        };
        for _ in 0..decoder.varint("part count")? {
            let last_key = decoder.bytes("part key")?;
            // A search would pass over rows that are there.
            if root.parts.last().is_some_and(|before| *before.last_key >= *last_key) {
                return Err(DecodeError("part order"));
            }
            root.parts.push(Part {
                last_key: Bytes::copy_from_slice(last_key),
                index: take_location(&mut decoder)?,
                filter: take_location(&mut decoder)?,
            });
        }
        decoder.finish("root")?;
        // It would seem to have nothing in ranges where it has rows.
        if root.parts.first().is_some_and(|part| part.last_key < root.first_key) {
            return Err(DecodeError("first key"));
        }
        Ok(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stream::ExtentId;

    proptest! {
        #[test]
        fn roots_come_back(numbers: [u64; 6], first: Vec<u8>, parts in prop::collection::btree_map(any::<Vec<u8>>(), any::<(u64, u32)>(), 0..5)) {
            let place = |at: u64, len| Location { extent: ExtentId(at), offset: at ^ 1, len };
            let [row_count, deleted_count, row_bytes, stored_bytes, lowest_version, highest_version] = numbers;
            let parts = parts.into_iter().map(|(key, (at, len))| Part { last_key: key.into(), index: place(at, len), filter: place(!at, len) }).collect();
            let parts: Vec<Part> = parts;
            let first = Bytes::from(first);
            let first_key = parts.first().map_or(first.clone(), |part| first.min(part.last_key.clone()));
            let root = Root { row_count, deleted_count, row_bytes, stored_bytes, lowest_version, highest_version, first_key, parts };
            prop_assert_eq!(Root::decode(&root.encode()), Ok(root));
        }

        #[test]
        fn parts_that_do_not_rise_are_refused(keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..4), 0..5)) {
            let place = Location { extent: ExtentId(1), offset: 0, len: 1 };
            let part = |key: &Vec<u8>| Part { last_key: key.clone().into(), index: place, filter: place };
            let root = Root { parts: keys.iter().map(part).collect(), ..Root::default() };
            prop_assert_eq!(Root::decode(&root.encode()).is_ok(), keys.is_sorted_by(|a, b| a < b));
        }

        #[test]
        fn a_first_key_behind_the_first_part_is_refused(first in prop::collection::vec(0u8..3, 0..4), last in prop::collection::vec(0u8..3, 0..4)) {
            let place = Location { extent: ExtentId(1), offset: 0, len: 1 };
            let parts = vec![Part { last_key: last.clone().into(), index: place, filter: place }];
            let root = Root { first_key: first.clone().into(), parts, ..Root::default() };
            prop_assert_eq!(Root::decode(&root.encode()).is_ok(), first <= last);
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in any::<Vec<u8>>()) {
            let _ = Root::decode(&bytes);
            let _ = Root::decode(&[&[KIND_ROOT, FORMAT], bytes.as_slice()].concat());
        }
    }
}
