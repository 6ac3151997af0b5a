//! Index blocks: for each row block of one part of a checkpoint, its last key and place.
//!
//! ```text
//! index = u8 kind (2), varint count, entry*
//! entry = varint bytes shared with the key before, varint n, n bytes rest of the block's last key, location
//! location = u64 extent, u64 offset, u32 payload length
//! ```

use super::key_heads::KeyHeads;
use crate::metadata::{put_location, take_location};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::Location;

const KIND_INDEX: u8 = 2;

/// The last key of a block or part, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) last_key: Bytes,
    pub(crate) location: Location,
}

/// Encodes an index block.
pub(super) fn build(entries: &[IndexEntry]) -> Bytes {
    let mut out = Vec::new();
    out.put_u8_field(KIND_INDEX);
    out.put_varint(entries.len() as u64);
    let mut before: &[u8] = &[];
    for entry in entries {
        let shared = before.iter().zip(&entry.last_key).take_while(|(a, b)| a == b).count();
        out.put_varint(shared as u64);
        out.put_bytes_field(&entry.last_key[shared..]);
        put_location(&mut out, entry.location);
        before = &entry.last_key;
    }
    out.into()
}

/// An index block read back.
#[derive(Clone, Debug)]
pub(crate) struct IndexBlock {
    pub(crate) entries: Vec<IndexEntry>,
    heads: KeyHeads,
    size_bytes: usize,
}

impl IndexBlock {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(payload);
        if decoder.u8("index kind")? != KIND_INDEX {
            return Err(DecodeError("index kind"));
        }
        let count = decoder.varint("index count")?;
        let mut entries: Vec<IndexEntry> = Vec::new();
        let mut size_bytes = 0;
        for _ in 0..count {
            let shared = decoder.varint("index shared length")? as usize;
            let rest = decoder.bytes("index key")?;
            let before = entries.last().map_or(&[][..], |entry| &entry.last_key);
            let prefix = before.get(..shared).ok_or(DecodeError("index shared length"))?;
            let last_key = Bytes::from([prefix, rest].concat());
            size_bytes += last_key.len() + size_of::<IndexEntry>() + KeyHeads::BYTES_PER_KEY;
            entries.push(IndexEntry { last_key, location: take_location(&mut decoder)? });
        }
        decoder.finish("index")?;
        let heads = KeyHeads::of(entries.len(), |at| &entries[at].last_key);
        Ok(IndexBlock { entries, heads, size_bytes })
    }

    /// Index of the first entry whose block can hold `key` or keys after it.
    pub(crate) fn first_at_or_after(&self, key: &[u8]) -> usize {
        self.heads.count_below(key, |at| &self.entries[at].last_key)
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
        fn entries_come_back(keys in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..20), 0..30)) {
            let entries: Vec<_> = keys
                .into_iter()
                .enumerate()
                .map(|(at, key)| IndexEntry {
                    last_key: key.into(),
                    location: Location { extent: ExtentId(at as u64), offset: 7 * at as u64, len: at as u32 },
                })
                .collect();
            prop_assert_eq!(IndexBlock::parse(&build(&entries)).unwrap().entries, entries);
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in any::<Vec<u8>>()) {
            let _ = IndexBlock::parse(&bytes);
            let _ = IndexBlock::parse(&[&[KIND_INDEX], bytes.as_slice()].concat());
        }
    }
}
