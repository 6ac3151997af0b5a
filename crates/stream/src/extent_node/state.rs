//! What an extent node knows of its extents, as a pure state machine: entries go in, the next table or a refusal
//! comes out. The journal persists entries and tables; replaying the same entries gives the same table.
//!
//! What always holds: a length only grows, a frozen extent never changes again, an epoch never falls. The table is
//! the authority for lengths: bytes of an extent's file beyond its length do not exist.
//!
//! ```text
//! table  = varint(count) extent*          extent = u64 id, u64 epoch, u64 length, u8 flags (bit 0: frozen)
//! entry  = u8 tag, fields:
//!   1 append  u64 extent, u64 epoch, u64 offset, varint n, n bytes (encoded blocks)
//!   2 length  u64 extent, u64 epoch, u64 offset, varint n           (n bytes were written and synced in the file)
//!   3 create  u64 extent, u64 epoch
//!   4 fence   u64 extent, u64 epoch, u8 flags (bit 0: freeze)
//!   5 delete  u64 extent
//! ```

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch};
use base::codec::{DecodeError, Decoder, Encode};
use std::collections::BTreeMap;

/// One extent's durable facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentState {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) length: u64,
    pub(crate) frozen: bool,
}

/// All extents of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtentTable {
    pub(crate) extents: BTreeMap<ExtentId, ExtentState>,
}

/// One change to the table. `Append` borrows its bytes from the record that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    Append { extent: ExtentId, epoch: OwnerEpoch, offset: u64, blocks: &'a [u8] },
    Length { extent: ExtentId, epoch: OwnerEpoch, offset: u64, size: u64 },
    Create { extent: ExtentId, epoch: OwnerEpoch },
    Fence { extent: ExtentId, epoch: OwnerEpoch, freeze: bool },
    Delete { extent: ExtentId },
}

const FLAG_FROZEN: u8 = 1;

impl ExtentTable {
    /// The extent's facts, if an append with `epoch` may extend it.
    pub(crate) fn check_append(
        &self,
        extent: ExtentId,
        epoch: OwnerEpoch,
    ) -> Result<ExtentState, StreamError> {
        let state = *self.extents.get(&extent).ok_or(StreamError::NoExtent(extent))?;
        if epoch < state.epoch {
            return Err(StreamError::OldEpoch { extent, seen: state.epoch, given: epoch });
        }
        if state.frozen {
            return Err(StreamError::Sealed(extent));
        }
        Ok(state)
    }

    /// Applies one entry, or refuses it and changes nothing.
    pub(crate) fn apply(&mut self, entry: &Entry<'_>) -> Result<(), StreamError> {
        match *entry {
            Entry::Append { extent, epoch, offset, blocks } => {
                self.extend(extent, epoch, offset, blocks.len() as u64)
            }
            Entry::Length { extent, epoch, offset, size } => self.extend(extent, epoch, offset, size),
            Entry::Create { extent, epoch } => {
                if self.extents.contains_key(&extent) {
                    return Err(StreamError::Corrupt(format!("extent {extent} is created twice")));
                }
                self.extents.insert(extent, ExtentState { epoch, length: 0, frozen: false });
                Ok(())
            }
            Entry::Fence { extent, epoch, freeze } => {
                let state = self.extents.get_mut(&extent).ok_or(StreamError::NoExtent(extent))?;
                if epoch < state.epoch {
                    return Err(StreamError::OldEpoch { extent, seen: state.epoch, given: epoch });
                }
                state.epoch = epoch;
                state.frozen |= freeze;
                Ok(())
            }
            Entry::Delete { extent } => {
                self.extents.remove(&extent).map(|_| ()).ok_or(StreamError::NoExtent(extent))
            }
        }
    }

    fn extend(
        &mut self,
        extent: ExtentId,
        epoch: OwnerEpoch,
        offset: u64,
        size: u64,
    ) -> Result<(), StreamError> {
        let state = self.check_append(extent, epoch)?;
        if state.length != offset {
            return Err(StreamError::Corrupt(format!(
                "extent {extent}: an append at {offset} does not follow its length {}",
                state.length
            )));
        }
        let length = offset
            .checked_add(size)
            .ok_or_else(|| StreamError::Corrupt(format!("extent {extent}: length overflows")))?;
        self.extents.insert(extent, ExtentState { epoch, length, ..state });
        Ok(())
    }

    /// Appends the encoded table to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.extents.len() as u64);
        for (id, state) in &self.extents {
            out.put_u64_field(id.0);
            out.put_u64_field(state.epoch.0);
            out.put_u64_field(state.length);
            out.put_u8_field(if state.frozen { FLAG_FROZEN } else { 0 });
        }
    }

    /// Reads an encoded table.
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = decoder.varint("extent count")?;
        let mut extents = BTreeMap::new();
        for _ in 0..count {
            let id = ExtentId(decoder.u64("extent id")?);
            let epoch = OwnerEpoch(decoder.u64("extent epoch")?);
            let length = decoder.u64("extent length")?;
            let frozen = decoder.u8("extent flags")? & FLAG_FROZEN != 0;
            extents.insert(id, ExtentState { epoch, length, frozen });
        }
        Ok(ExtentTable { extents })
    }
}

impl<'a> Entry<'a> {
    /// Appends the encoded entry to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Entry::Append { extent, epoch, offset, blocks } => {
                put_append_header(out, extent, epoch, offset, blocks.len());
                out.extend_from_slice(blocks);
            }
            Entry::Length { extent, epoch, offset, size } => {
                out.put_u8_field(2);
                out.put_u64_field(extent.0);
                out.put_u64_field(epoch.0);
                out.put_u64_field(offset);
                out.put_varint(size);
            }
            Entry::Create { extent, epoch } => {
                out.put_u8_field(3);
                out.put_u64_field(extent.0);
                out.put_u64_field(epoch.0);
            }
            Entry::Fence { extent, epoch, freeze } => {
                out.put_u8_field(4);
                out.put_u64_field(extent.0);
                out.put_u64_field(epoch.0);
                out.put_u8_field(u8::from(freeze));
            }
            Entry::Delete { extent } => {
                out.put_u8_field(5);
                out.put_u64_field(extent.0);
            }
        }
    }

    /// Reads the next entry.
    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let tag = decoder.u8("entry tag")?;
        let extent = ExtentId(decoder.u64("entry extent")?);
        if tag == 5 {
            return Ok(Entry::Delete { extent });
        }
        let epoch = OwnerEpoch(decoder.u64("entry epoch")?);
        match tag {
            1 => {
                let offset = decoder.u64("entry offset")?;
                Ok(Entry::Append { extent, epoch, offset, blocks: decoder.bytes("entry blocks")? })
            }
            2 => {
                let offset = decoder.u64("entry offset")?;
                Ok(Entry::Length { extent, epoch, offset, size: decoder.varint("entry size")? })
            }
            3 => Ok(Entry::Create { extent, epoch }),
            4 => Ok(Entry::Fence { extent, epoch, freeze: decoder.u8("entry flags")? != 0 }),
            _ => Err(DecodeError("entry tag")),
        }
    }
}

/// The fields of an append entry before its blocks, for a writer that encodes the blocks in place.
pub(crate) fn put_append_header(
    out: &mut Vec<u8>,
    extent: ExtentId,
    epoch: OwnerEpoch,
    offset: u64,
    blocks_len: usize,
) {
    out.put_u8_field(1);
    out.put_u64_field(extent.0);
    out.put_u64_field(epoch.0);
    out.put_u64_field(offset);
    out.put_varint(blocks_len as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    const E: ExtentId = ExtentId(9);

    fn table() -> ExtentTable {
        let mut table = ExtentTable::default();
        table.apply(&Entry::Create { extent: E, epoch: OwnerEpoch(2) }).unwrap();
        table.apply(&Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 0, blocks: b"12345" }).unwrap();
        table
    }

    #[test]
    fn refusals_change_nothing() {
        let before = table();
        let refused = [
            (Entry::Append { extent: E, epoch: OwnerEpoch(1), offset: 5, blocks: b"x" }, "old epoch"),
            (Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 6, blocks: b"x" }, "gap"),
            (Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 4, size: 1 }, "overlap"),
            (
                Entry::Append { extent: ExtentId(1), epoch: OwnerEpoch(2), offset: 0, blocks: b"x" },
                "no extent",
            ),
            (Entry::Create { extent: E, epoch: OwnerEpoch(2) }, "twice"),
            (Entry::Fence { extent: E, epoch: OwnerEpoch(1), freeze: true }, "old fence"),
        ];
        for (entry, why) in refused {
            let mut after = before.clone();
            assert!(after.apply(&entry).is_err(), "{why}");
            assert_eq!(after, before, "{why}");
        }
    }

    #[test]
    fn a_fence_stops_the_former_owner_and_a_freeze_everyone() {
        let mut table = table();
        table.apply(&Entry::Fence { extent: E, epoch: OwnerEpoch(3), freeze: false }).unwrap();
        assert!(matches!(table.check_append(E, OwnerEpoch(2)), Err(StreamError::OldEpoch { .. })));
        assert!(table.check_append(E, OwnerEpoch(3)).is_ok());
        table.apply(&Entry::Fence { extent: E, epoch: OwnerEpoch(3), freeze: true }).unwrap();
        assert_eq!(table.check_append(E, OwnerEpoch(4)), Err(StreamError::Sealed(E)));
    }

    #[test]
    fn tables_and_entries_come_back() {
        let table = table();
        let mut out = Vec::new();
        table.encode(&mut out);
        assert_eq!(ExtentTable::decode(&mut Decoder::new(&out)), Ok(table));
        let entries = [
            Entry::Append { extent: E, epoch: OwnerEpoch(7), offset: 1 << 40, blocks: b"abc" },
            Entry::Length { extent: E, epoch: OwnerEpoch(7), offset: 5, size: 1 << 33 },
            Entry::Create { extent: E, epoch: OwnerEpoch(7) },
            Entry::Fence { extent: E, epoch: OwnerEpoch(7), freeze: true },
            Entry::Delete { extent: E },
        ];
        let mut out = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut out));
        let mut decoder = Decoder::new(&out);
        for entry in entries {
            assert_eq!(Entry::decode(&mut decoder), Ok(entry));
        }
        assert!(decoder.is_empty());
    }
}
