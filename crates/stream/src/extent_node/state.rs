//! An extent node's table of its extents, as a pure state machine: entries go in, the next table or a refusal
//! comes out. The journal persists entries and tables; replaying the same entries gives the same
//! table.
//!
//! What always holds: a length only grows, a frozen extent never changes again, an epoch never falls. The
//! table is the authority for lengths: bytes of an extent's file beyond its length do not exist. With each
//! append the digest of the extent goes on, so that it is there when the extent is frozen, and after a crash
//! without reading any extent.
//!
//! Appends have the epoch only: who appends is compared with the extent's owner before the entry is written,
//! and one that is newer is made the owner by a fence in front of its append.
//!
//! ```text
//! table  = varint(count) extent*
//! extent = u64 id, u64 epoch, u64 length, u8 flags, u64 digest if bit 1, 16 bytes incarnation if bit 3,
//!          varint number of such incarnations before it if bit 4
//!   flags   bit 0: frozen, bit 1: the digest is known (from format 2 on),
//!           bit 2: its end is in doubt (from format 6 on),
//!           bit 3: its owner has an incarnation (from format 7 on),
//!           bit 4: it is one of those before in the table, which stands there only once
//! entry  = u8 tag, fields:
//!   1 append  u64 extent, u64 epoch, u64 offset, varint n, n bytes (encoded blocks)
//!   2 length  u64 extent, u64 epoch, u64 offset, varint n   (n bytes were written and synced in the file)
//!   3 create  u64 extent, u64 epoch  (up to format 6)
//!   4 fence   u64 extent, u64 epoch, u8 flags (bit 0: freeze; up to format 6)
//!   5 delete  u64 extent
//!   6 length  as 2, u64 digest        (of the extent with those bytes; from format 2 on)
//!   7 accept  u64 extent              (its end is no longer in doubt; from format 6 on)
//!   8 create  u64 extent, owner       (see `owner.rs`; from format 7 on)
//!   9 fence   u64 extent, owner, u8 flags
//! ```

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch};
use crate::owner::{Incarnation, Owner};
use crate::sealed::{ExtentDigest, Seal};
use base::codec::{DecodeError, Decoder, Encode};
use std::collections::BTreeMap;

/// One extent's durable facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentState {
    pub(crate) owner: Owner,
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
    pub(crate) fn empty(owner: Owner) -> Self {
        let digest = Some(ExtentDigest::EMPTY);
        ExtentState { owner, length: 0, frozen: false, digest, in_doubt: false }
    }

    /// An error if an append of `owner` may not extend it.
    pub(crate) fn check_append(&self, extent: ExtentId, owner: Owner) -> Result<(), StreamError> {
        if !owner.may_act_after(&self.owner) {
            return Err(StreamError::old_epoch(extent, self.owner, owner));
        }
        if self.frozen { Err(StreamError::Sealed(extent)) } else { Ok(()) }
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
    Create { extent: ExtentId, owner: Owner },
    Fence { extent: ExtentId, owner: Owner, freeze: bool },
    Delete { extent: ExtentId },
    AcceptEnd { extent: ExtentId },
}

const FLAG_FROZEN: u8 = 1;
const FLAG_DIGEST: u8 = 2;
const FLAG_IN_DOUBT: u8 = 4;
const FLAG_INCARNATION: u8 = 8;
const FLAG_INCARNATION_BEFORE: u8 = 16;
const FLAGS: u8 = FLAG_FROZEN | FLAG_DIGEST | FLAG_IN_DOUBT | FLAG_INCARNATION | FLAG_INCARNATION_BEFORE;

impl ExtentTable {
    /// The extent's facts, if an append of `owner` may extend it.
    pub(crate) fn check_append(&self, extent: ExtentId, owner: Owner) -> Result<ExtentState, StreamError> {
        let state = *self.extents.get(&extent).ok_or(StreamError::NoExtent(extent))?;
        state.check_append(extent, owner)?;
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
            Entry::Create { extent, owner } => {
                if self.extents.contains_key(&extent) {
                    return Err(StreamError::Corrupt(format!("extent {extent} is created twice")));
                }
                self.extents.insert(extent, ExtentState::empty(owner));
                Ok(())
            }
            Entry::Fence { extent, owner, freeze } => {
                let state = self.extents.get_mut(&extent).ok_or(StreamError::NoExtent(extent))?;
                if !owner.may_act_after(&state.owner) {
                    return Err(StreamError::old_epoch(extent, state.owner, owner));
                }
                state.owner = owner;
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
        let state = *self.extents.get(&extent).ok_or(StreamError::NoExtent(extent))?;
        // In journals of former formats appends raise epochs.
        let owner = match epoch == state.owner.epoch {
            true => state.owner,
            false => Owner::of_epoch(epoch),
        };
        state.check_append(extent, owner)?;
        if state.length != offset {
            return Err(StreamError::Corrupt(format!(
                "extent {extent}: an append at {offset} does not follow its length {}",
                state.length
            )));
        }
        let length = offset
            .checked_add(size)
            .ok_or_else(|| StreamError::Corrupt(format!("extent {extent}: length overflows")))?;
        Ok(ExtentState { owner, length, ..state })
    }

    /// The entries that make this table the `next` one, which has longer extents or lacks some; `None`: it
    /// differs otherwise.
    pub(crate) fn changes_to(&self, next: &ExtentTable) -> Option<Vec<Entry<'static>>> {
        let mut changes = Vec::new();
        for (&extent, before) in &self.extents {
            match next.extents.get(&extent) {
                None => changes.push(Entry::Delete { extent }),
                Some(after) if after == before => {}
                Some(&ExtentState { owner, length, digest, .. }) => {
                    let (offset, size) = (before.length, length.checked_sub(before.length)?);
                    let epoch = owner.epoch;
                    if owner != before.owner {
                        changes.push(Entry::Fence { extent, owner, freeze: false });
                    }
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
        let mut incarnations: BTreeMap<Incarnation, u64> = BTreeMap::new();
        for (id, state) in &self.extents {
            out.put_u64_field(id.0);
            out.put_u64_field(state.owner.epoch.0);
            out.put_u64_field(state.length);
            let frozen = if state.frozen { FLAG_FROZEN } else { 0 };
            let digest = if state.digest.is_some() { FLAG_DIGEST } else { 0 };
            let in_doubt = if state.in_doubt { FLAG_IN_DOUBT } else { 0 };
            let incarnation = state.owner.incarnation;
            let before = incarnations.get(&incarnation).copied();
            let flag = match before {
                _ if incarnation == Incarnation::UNKNOWN => 0,
                Some(_) => FLAG_INCARNATION_BEFORE,
                None => FLAG_INCARNATION,
            };
            out.put_u8_field(frozen | digest | in_doubt | flag);
            state.digest.iter().for_each(|digest| out.put_u64_field(digest.0));
            match before {
                _ if incarnation == Incarnation::UNKNOWN => {}
                Some(at) => out.put_varint(at),
                None => {
                    out.put_raw(&incarnation.0.to_le_bytes());
                    incarnations.insert(incarnation, incarnations.len() as u64);
                }
            }
        }
    }

    /// Reads an encoded table.
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = decoder.varint("extent count")?;
        let (mut extents, mut incarnations) = (BTreeMap::new(), Vec::new());
        for _ in 0..count {
            let id = ExtentId(decoder.u64("extent id")?);
            let epoch = OwnerEpoch(decoder.u64("extent epoch")?);
            let length = decoder.u64("extent length")?;
            let flags = decoder.u8("extent flags")?;
            if flags & !FLAGS != 0 {
                return Err(DecodeError("extent flags"));
            }
            let digest = if flags & FLAG_DIGEST != 0 { Some(decoder.u64("extent digest")?) } else { None };
            let (frozen, digest) = (flags & FLAG_FROZEN != 0, digest.map(ExtentDigest));
            let in_doubt = flags & FLAG_IN_DOUBT != 0;
            let incarnation = match flags & (FLAG_INCARNATION | FLAG_INCARNATION_BEFORE) {
                0 => Incarnation::UNKNOWN,
                FLAG_INCARNATION => {
                    incarnations.push(Incarnation::decode(decoder, "extent incarnation")?);
                    incarnations[incarnations.len() - 1]
                }
                FLAG_INCARNATION_BEFORE => {
                    let at = decoder.varint("extent incarnation")?;
                    let before = usize::try_from(at).ok().and_then(|at| incarnations.get(at));
                    *before.ok_or(DecodeError("extent incarnation"))?
                }
                _ => return Err(DecodeError("extent flags")),
            };
            let owner = Owner { incarnation, epoch };
            extents.insert(id, ExtentState { owner, length, frozen, digest, in_doubt });
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
            Entry::Create { extent, owner } => {
                out.put_u8_field(8);
                out.put_u64_field(extent.0);
                owner.encode(out);
            }
            Entry::Fence { extent, owner, freeze } => {
                out.put_u8_field(9);
                out.put_u64_field(extent.0);
                owner.encode(out);
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
            8 => return Ok(Entry::Create { extent, owner: Owner::decode(decoder, "entry owner")? }),
            9 => {
                let owner = Owner::decode(decoder, "entry owner")?;
                return Ok(Entry::Fence { extent, owner, freeze: decoder.u8("entry flags")? != 0 });
            }
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
            3 => Ok(Entry::Create { extent, owner: Owner::of_epoch(epoch) }),
            4 => {
                let owner = Owner::of_epoch(epoch);
                Ok(Entry::Fence { extent, owner, freeze: decoder.u8("entry flags")? != 0 })
            }
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
mod tests;
