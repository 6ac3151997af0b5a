//! Index blocks: for each row block of one part of a checkpoint, its last key and place.
//!
//! ```text
//! index = u8 kind (2, or 7 with overflows), varint count, entry*
//! entry = varint bytes shared with the key before, varint n, n bytes rest of the block's last key, location,
//!         [varint bytes of all its rows' overflows: in kind 7 only]
//! location = u64 extent, u64 offset, u32 payload length
//! ```

use super::abbreviated_keys::AbbreviatedKeys;
use crate::tree::metadata::{put_location, take_location};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::Location;

const KIND_INDEX: u8 = 2;
const KIND_INDEX_WITH_OVERFLOW: u8 = 7;

/// The last key of a block or part, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) last_key: Bytes,
    pub(crate) location: Location,
    /// Bytes of its rows' overflows, as they are stored.
    pub(crate) overflow_size_bytes: u64,
}

/// Encodes an index block.
pub(super) fn build(entries: &[IndexEntry]) -> Bytes {
    let mut out = Vec::new();
    let with_overflow = entries.iter().any(|entry| entry.overflow_size_bytes > 0);
    out.put_u8_field(if with_overflow { KIND_INDEX_WITH_OVERFLOW } else { KIND_INDEX });
    out.put_varint(entries.len() as u64);
    let mut before: &[u8] = &[];
    for entry in entries {
        let shared = before.iter().zip(&entry.last_key).take_while(|(a, b)| a == b).count();
        out.put_varint(shared as u64);
        out.put_bytes_field(&entry.last_key[shared..]);
        put_location(&mut out, entry.location);
        if with_overflow {
            out.put_varint(entry.overflow_size_bytes);
        }
        before = &entry.last_key;
    }
    out.into()
}

/// An index block read back.
#[derive(Clone, Debug)]
pub(crate) struct IndexBlock {
    pub(crate) entries: Vec<IndexEntry>,
    heads: AbbreviatedKeys,
    size_bytes: usize,
}

impl IndexBlock {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(payload);
        let with_overflow = match decoder.u8("index kind")? {
            KIND_INDEX => false,
            KIND_INDEX_WITH_OVERFLOW => true,
            _ => return Err(DecodeError("index kind")),
        };
        let count = decoder.varint("index count")?;
        let mut entries: Vec<IndexEntry> = Vec::new();
        let mut size_bytes = 0;
        for _ in 0..count {
            let shared = decoder.varint("index shared length")? as usize;
            let rest = decoder.bytes("index key")?;
            let before = entries.last().map_or(&[][..], |entry| &entry.last_key);
            let prefix = before.get(..shared).ok_or(DecodeError("index shared length"))?;
            let last_key = Bytes::from([prefix, rest].concat());
            // A walk would be led back by one that falls, and show rows twice.
            if entries.last().is_some_and(|before| before.last_key >= last_key) {
                return Err(DecodeError("index order"));
            }
            size_bytes += last_key.len() + size_of::<IndexEntry>() + AbbreviatedKeys::BYTES_PER_KEY;
            let location = take_location(&mut decoder)?;
            let overflow_size_bytes = if with_overflow { decoder.varint("overflows' bytes")? } else { 0 };
            entries.push(IndexEntry { last_key, location, overflow_size_bytes });
        }
        decoder.finish("index")?;
        let heads = AbbreviatedKeys::of(entries.len(), |at| &entries[at].last_key);
        Ok(IndexBlock { entries, heads, size_bytes })
    }

    /// Index of the first entry whose block can hold `key` or keys after it.
    pub(crate) fn first_at_or_after(&self, key: &[u8]) -> usize {
        self.heads.count_below(key, |at| &self.entries[at].last_key)
    }

    /// Whether all rows of the block numbered `at` are before `key`.
    pub(crate) fn ends_before(&self, at: usize, key: &[u8]) -> bool {
        self.heads.is_below(at, key, |at| &self.entries[at].last_key)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stream::ExtentId;

    proptest! {
        #[test]
        fn entries_come_back(
            keys in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..20), 0..30),
            overflows in 0u64..3,
        ) {
            let entries: Vec<_> = keys
                .into_iter()
                .enumerate()
                .map(|(at, key)| IndexEntry {
                    last_key: key.into(),
                    location: Location { extent: ExtentId(at as u64), offset: 7 * at as u64, len: at as u32 },
                    overflow_size_bytes: at as u64 * overflows,
                })
                .collect();
            prop_assert_eq!(IndexBlock::parse(&build(&entries)).unwrap().entries, entries);
        }

        #[test]
        fn keys_that_do_not_rise_are_refused(keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..4), 2..5)) {
            let location = Location { extent: ExtentId(1), offset: 0, len: 1 };
            let entry = |key: &Vec<u8>| IndexEntry { last_key: key.clone().into(), location, overflow_size_bytes: 0 };
            let entries: Vec<_> = keys.iter().map(entry).collect();
            prop_assert_eq!(IndexBlock::parse(&build(&entries)).is_ok(), keys.is_sorted_by(|a, b| a < b));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in any::<Vec<u8>>()) {
            let _ = IndexBlock::parse(&bytes);
            for kind in [KIND_INDEX, KIND_INDEX_WITH_OVERFLOW] {
                let _ = IndexBlock::parse(&[&[kind], bytes.as_slice()].concat());
            }
        }
    }
}
