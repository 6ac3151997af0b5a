//! An extent node's table of its extents, as a pure state machine: entries go in, the next table or a refusal
//! comes out. The journal persists entries and tables; replaying the same entries gives the same
//! table.
//!
//! What always holds: a length only grows, a frozen extent never changes again, an epoch never falls. The
//! table is the authority for lengths: bytes of an extent's file beyond its length do not exist. With each
//! append the digest of the extent goes on, so that it is there when the extent is frozen, and after a crash
//! without reading any extent.
//!
//! ```text
//! table  = varint(count) extent*
//! extent = u64 id, u64 epoch, u64 length, u8 flags, u64 digest if bit 1
//!   flags   bit 0: frozen, bit 1: the digest is known (from format 2 on),
//!           bit 2: its end is in doubt (from format 6 on)
//! entry  = u8 tag, fields:
//!   1 append  u64 extent, u64 epoch, u64 offset, varint n, n bytes (encoded blocks)
//!   2 length  u64 extent, u64 epoch, u64 offset, varint n   (n bytes were written and synced in the file)
//!   3 create  u64 extent, u64 epoch
//!   4 fence   u64 extent, u64 epoch, u8 flags (bit 0: freeze)
//!   5 delete  u64 extent
//!   6 length  as 2, u64 digest        (of the extent with those bytes; from format 2 on)
//!   7 accept  u64 extent              (its end is no longer in doubt; from format 6 on)
//! ```

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch};
use crate::sealed::{ExtentDigest, Seal};
use base::codec::{DecodeError, Decoder, Encode};
use std::collections::BTreeMap;

/// One extent's durable facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentState {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) length: u64,
    pub(crate) frozen: bool,
    /// Of all blocks below the length; `None`: the extent was begun before digests were kept.
    pub(crate) digest: Option<ExtentDigest>,
    /// The journal was damaged: acknowledged blocks may be missing behind the length. Such an extent is
    /// frozen.
    pub(crate) in_doubt: bool,
}

impl ExtentState {
    /// An extent without blocks.
    pub(crate) fn empty(epoch: OwnerEpoch) -> Self {
        let digest = Some(ExtentDigest::EMPTY);
        ExtentState { epoch, length: 0, frozen: false, digest, in_doubt: false }
    }

    /// What is fixed once it is frozen.
    pub(crate) fn sealed(&self) -> Seal {
        Seal { length: self.length, digest: self.digest }
    }
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
    Length { extent: ExtentId, epoch: OwnerEpoch, offset: u64, size: u64, digest: Option<ExtentDigest> },
    Create { extent: ExtentId, epoch: OwnerEpoch },
    Fence { extent: ExtentId, epoch: OwnerEpoch, freeze: bool },
    Delete { extent: ExtentId },
    AcceptEnd { extent: ExtentId },
}

const FLAG_FROZEN: u8 = 1;
const FLAG_DIGEST: u8 = 2;
const FLAG_IN_DOUBT: u8 = 4;

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
                let state = self.check_extend(extent, epoch, offset, blocks.len() as u64)?;
                let digest =
                    state.digest.map(|digest| digest.then_blocks(extent, offset, blocks)).transpose()?;
                self.extents.insert(extent, ExtentState { digest, ..state });
                Ok(())
            }
            Entry::Length { extent, epoch, offset, size, digest } => {
                let state = self.check_extend(extent, epoch, offset, size)?;
                let digest = state.digest.and(digest);
                self.extents.insert(extent, ExtentState { digest, ..state });
                Ok(())
            }
            Entry::Create { extent, epoch } => {
                if self.extents.contains_key(&extent) {
                    return Err(StreamError::Corrupt(format!("extent {extent} is created twice")));
                }
                self.extents.insert(extent, ExtentState::empty(epoch));
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
            Entry::AcceptEnd { extent } => {
                let state = self.extents.get_mut(&extent).ok_or(StreamError::NoExtent(extent))?;
                state.in_doubt = false;
                Ok(())
            }
        }
    }

    /// The extent's facts with `size` more bytes, still with the digest of those before.
    fn check_extend(
        &self,
        extent: ExtentId,
        epoch: OwnerEpoch,
        offset: u64,
        size: u64,
    ) -> Result<ExtentState, StreamError> {
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
        Ok(ExtentState { epoch, length, ..state })
    }

    /// The entries that make this table the `next` one, which has longer extents or lacks some; `None`: it
    /// differs otherwise.
    pub(crate) fn changes_to(&self, next: &ExtentTable) -> Option<Vec<Entry<'static>>> {
        let mut changes = Vec::new();
        for (&extent, before) in &self.extents {
            match next.extents.get(&extent) {
                None => changes.push(Entry::Delete { extent }),
                Some(after) if after == before => {}
                Some(&ExtentState { epoch, length, digest, .. }) => {
                    let (offset, size) = (before.length, length.checked_sub(before.length)?);
                    changes.push(Entry::Length { extent, epoch, offset, size, digest });
                }
            }
        }
        let mut changed = self.clone();
        let applied = changes.iter().try_for_each(|change| changed.apply(change));
        (applied.is_ok() && changed == *next).then_some(changes)
    }

    /// The table as format 1 knew it.
    pub(crate) fn without_digests(&self) -> Self {
        let extents = self.extents.iter().map(|(id, state)| (*id, ExtentState { digest: None, ..*state }));
        ExtentTable { extents: extents.collect() }
    }

    /// Appends the encoded table to `out`.
    pub(crate) fn encode(&self, out: &mut impl Encode) {
        out.put_varint(self.extents.len() as u64);
        for (id, state) in &self.extents {
            out.put_u64_field(id.0);
            out.put_u64_field(state.epoch.0);
            out.put_u64_field(state.length);
            let frozen = if state.frozen { FLAG_FROZEN } else { 0 };
            let digest = if state.digest.is_some() { FLAG_DIGEST } else { 0 };
            let in_doubt = if state.in_doubt { FLAG_IN_DOUBT } else { 0 };
            out.put_u8_field(frozen | digest | in_doubt);
            state.digest.iter().for_each(|digest| out.put_u64_field(digest.0));
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
            let flags = decoder.u8("extent flags")?;
            if flags & !(FLAG_FROZEN | FLAG_DIGEST | FLAG_IN_DOUBT) != 0 {
                return Err(DecodeError("extent flags"));
            }
            let digest = if flags & FLAG_DIGEST != 0 { Some(decoder.u64("extent digest")?) } else { None };
            let (frozen, digest) = (flags & FLAG_FROZEN != 0, digest.map(ExtentDigest));
            let in_doubt = flags & FLAG_IN_DOUBT != 0;
            extents.insert(id, ExtentState { epoch, length, frozen, digest, in_doubt });
        }
        Ok(ExtentTable { extents })
    }
}

impl<'a> Entry<'a> {
    /// Appends the encoded entry to `out`.
    pub(crate) fn encode(&self, out: &mut impl Encode) {
        match *self {
            Entry::Append { extent, epoch, offset, blocks } => {
                put_append_header(out, extent, epoch, offset, blocks.len());
                out.put_raw(blocks);
            }
            Entry::Length { extent, epoch, offset, size, digest } => {
                out.put_u8_field(if digest.is_some() { 6 } else { 2 });
                out.put_u64_field(extent.0);
                out.put_u64_field(epoch.0);
                out.put_u64_field(offset);
                out.put_varint(size);
                digest.iter().for_each(|digest| out.put_u64_field(digest.0));
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
            Entry::AcceptEnd { extent } => {
                out.put_u8_field(7);
                out.put_u64_field(extent.0);
            }
        }
    }

    /// Reads the next entry.
    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let tag = decoder.u8("entry tag")?;
        let extent = ExtentId(decoder.u64("entry extent")?);
        match tag {
            5 => return Ok(Entry::Delete { extent }),
            7 => return Ok(Entry::AcceptEnd { extent }),
            _ => {}
        }
        let epoch = OwnerEpoch(decoder.u64("entry epoch")?);
        match tag {
            1 => {
                let offset = decoder.u64("entry offset")?;
                Ok(Entry::Append { extent, epoch, offset, blocks: decoder.bytes("entry blocks")? })
            }
            2 | 6 => {
                let offset = decoder.u64("entry offset")?;
                let size = decoder.varint("entry size")?;
                let digest = if tag == 6 { Some(decoder.u64("entry digest")?) } else { None };
                Ok(Entry::Length { extent, epoch, offset, size, digest: digest.map(ExtentDigest) })
            }
            3 => Ok(Entry::Create { extent, epoch }),
            4 => Ok(Entry::Fence { extent, epoch, freeze: decoder.u8("entry flags")? != 0 }),
            _ => Err(DecodeError("entry tag")),
        }
    }
}

/// The fields of an append entry before its blocks, for a writer that encodes the blocks in place.
pub(crate) fn put_append_header(
    out: &mut impl Encode,
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
    use crate::block::put_block;
    use base::random::splitmix64;

    const E: ExtentId = ExtentId(9);

    /// One encoded block of 5 bytes at the offset, 37 bytes in all.
    fn block_at(offset: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_block(&mut out, E, offset, b"12345");
        out
    }

    fn table() -> ExtentTable {
        let mut table = ExtentTable::default();
        table.apply(&Entry::Create { extent: E, epoch: OwnerEpoch(2) }).unwrap();
        table
            .apply(&Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 0, blocks: &block_at(0) })
            .unwrap();
        table
    }

    #[test]
    fn longer_extents_and_missing_ones_are_what_entries_can_say() {
        let before = table();
        let state = before.extents[&E];
        let longer = ExtentState { length: 99, digest: Some(ExtentDigest(7)), ..state };
        let length =
            Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 37, size: 62, digest: longer.digest };
        for (next, expected) in [
            (Some(state), Some(vec![])),
            (Some(longer), Some(vec![length])),
            (None, Some(vec![Entry::Delete { extent: E }])),
            (Some(ExtentState { length: 36, ..state }), None),
            (Some(ExtentState { frozen: true, ..state }), None),
            (Some(ExtentState { frozen: true, ..longer }), None),
            (Some(ExtentState { in_doubt: true, ..longer }), None),
        ] {
            let next = ExtentTable { extents: next.map(|state| (E, state)).into_iter().collect() };
            assert_eq!(before.changes_to(&next), expected, "{next:?}");
        }
        assert_eq!(ExtentTable::default().changes_to(&before), None, "one that the journal does not know");
        let frozen = ExtentTable { extents: [(E, ExtentState { frozen: true, ..state })].into() };
        let longer = ExtentTable { extents: [(E, ExtentState { frozen: true, ..longer })].into() };
        assert_eq!(frozen.changes_to(&longer), None, "a frozen one does not grow");
    }

    #[test]
    fn refusals_change_nothing() {
        let before = table();
        let (next, gap, elsewhere) = (block_at(37), block_at(38), block_at(0));
        fn append(extent: ExtentId, epoch: u64, offset: u64, blocks: &[u8]) -> Entry<'_> {
            Entry::Append { extent, epoch: OwnerEpoch(epoch), offset, blocks }
        }
        let refused = [
            (append(E, 1, 37, &next), "old epoch"),
            (append(E, 2, 38, &gap), "gap"),
            (Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 36, size: 1, digest: None }, "overlap"),
            (append(ExtentId(1), 2, 0, &next), "no extent"),
            (append(E, 2, 37, b"x"), "no block"),
            (append(E, 2, 37, &next[..36]), "half a block"),
            (append(E, 2, 37, &elsewhere), "a block of another place"),
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

    /// Appends of either kind, encoded, cut off by a new segment now and then: the digest is that of the
    /// whole content, and the freeze reports it.
    #[test]
    fn the_digest_is_carried_on_through_whatever_happens() {
        let owner = OwnerEpoch(2);
        for seed in 0..50 {
            let mut state = seed;
            let mut random = |bound: u64| splitmix64(&mut state) % bound;
            let mut table = ExtentTable::default();
            table.apply(&Entry::Create { extent: E, epoch: owner }).unwrap();
            let mut content = Vec::new();
            for _ in 0..random(20) {
                let offset = content.len() as u64;
                for _ in 0..1 + random(3) {
                    let (at, payload) = (content.len() as u64, vec![random(256) as u8; random(50) as usize]);
                    put_block(&mut content, E, at, &payload);
                }
                let blocks = &content[offset as usize..];
                let entry = if random(2) == 0 {
                    Entry::Append { extent: E, epoch: owner, offset, blocks }
                } else {
                    let before = table.extents[&E].digest;
                    let digest = before.map(|digest| digest.then_blocks(E, offset, blocks).unwrap());
                    Entry::Length { extent: E, epoch: owner, offset, size: blocks.len() as u64, digest }
                };
                let mut encoded = Vec::new();
                entry.encode(&mut encoded);
                table.apply(&Entry::decode(&mut Decoder::new(&encoded)).unwrap()).unwrap();
                if random(4) == 0 {
                    let mut encoded = Vec::new();
                    table.encode(&mut encoded);
                    table = ExtentTable::decode(&mut Decoder::new(&encoded)).unwrap();
                }
            }
            table.apply(&Entry::Fence { extent: E, epoch: owner, freeze: true }).unwrap();
            let whole = ExtentDigest::EMPTY.then_blocks(E, 0, &content).unwrap();
            let expected = Seal { length: content.len() as u64, digest: Some(whole) };
            assert_eq!(table.extents[&E].sealed(), expected, "seed {seed}");
        }
    }

    /// Once unknown, a digest stays so: a guess would name healthy data damaged.
    #[test]
    fn an_extent_of_format_1_gets_no_digest() {
        let mut table = table().without_digests();
        table
            .apply(&Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 37, blocks: &block_at(37) })
            .unwrap();
        let digest = Some(ExtentDigest(7));
        table
            .apply(&Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 74, size: 40, digest })
            .unwrap();
        assert_eq!(table.extents[&E].sealed(), Seal { length: 114, digest: None });
        // And a length of format 1 ends what was known.
        let mut table = self::table();
        assert!(table.extents[&E].digest.is_some());
        table
            .apply(&Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 37, size: 40, digest: None })
            .unwrap();
        assert_eq!(table.extents[&E].digest, None);
        let mut encoded = Vec::new();
        table.encode(&mut encoded);
        assert_eq!(ExtentTable::decode(&mut Decoder::new(&encoded)), Ok(table));
        // Flags of a later format are no flags of this one.
        encoded[25] = 8;
        assert!(ExtentTable::decode(&mut Decoder::new(&encoded)).is_err());
    }

    #[test]
    fn tables_and_entries_come_back() {
        let table = table();
        let mut out = Vec::new();
        table.encode(&mut out);
        assert_eq!(ExtentTable::decode(&mut Decoder::new(&out)), Ok(table));
        let entries = [
            Entry::Append { extent: E, epoch: OwnerEpoch(7), offset: 1 << 40, blocks: b"abc" },
            Entry::Length { extent: E, epoch: OwnerEpoch(7), offset: 5, size: 1 << 33, digest: None },
            Entry::Length {
                extent: E,
                epoch: OwnerEpoch(7),
                offset: 5,
                size: 1 << 33,
                digest: Some(ExtentDigest(u64::MAX)),
            },
            Entry::Create { extent: E, epoch: OwnerEpoch(7) },
            Entry::Fence { extent: E, epoch: OwnerEpoch(7), freeze: true },
            Entry::Delete { extent: E },
            Entry::AcceptEnd { extent: E },
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
