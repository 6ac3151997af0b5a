//! Adds the entries of a segment to a table of extents, also where records are missing between them.
//!
//! What always holds: as long as no record is missing, an entry that does not follow the table is an error.
//! Behind a gap each entry is accepted without that check, and an extent that takes appends stays in doubt
//! until an entry has its length: appends to it may have been lost.

use super::layout::KIND_GROUP;
use crate::error::StreamError;
use crate::extent_node::state::{Entry, ExtentState, ExtentTable};
use crate::ids::{ExtentId, OwnerEpoch};
use crate::owner::Owner;
use crate::record::Record;
use base::codec::Decoder;
use bytes::Bytes;
use std::collections::BTreeSet;

/// A table, and what was added to it.
#[derive(Debug, Default)]
pub(crate) struct TableReplay {
    pub(crate) table: ExtentTable,
    /// Journaled bytes that may be missing in their extents' files, in order.
    pub(crate) appends: Vec<(ExtentId, u64, Bytes)>,
    /// Extents that may have had appends that are lost.
    pub(crate) in_doubt: BTreeSet<ExtentId>,
    /// Records are missing.
    is_behind_gap: bool,
}

impl TableReplay {
    /// Begins with this table.
    pub(crate) fn new(table: ExtentTable) -> Self {
        TableReplay { table, ..TableReplay::default() }
    }

    /// Records are missing here.
    pub(crate) fn gap(&mut self) {
        self.is_behind_gap = true;
        let open = self.table.extents.iter().filter(|(_, state)| !state.frozen);
        self.in_doubt.extend(open.map(|(extent, _)| *extent));
    }

    /// Adds the entries of a group.
    pub(crate) fn add(&mut self, record: &Record) -> Result<(), StreamError> {
        let malformed = |error: base::codec::DecodeError| StreamError::Corrupt(format!("journal: {error}"));
        let mut decoder = Decoder::new(&record.body);
        if decoder.u8("kind").map_err(malformed)? != KIND_GROUP {
            return Err(StreamError::Corrupt("journal: a record is of an unknown kind".to_owned()));
        }
        while !decoder.is_empty() {
            let entry = Entry::decode(&mut decoder).map_err(malformed)?;
            if self.is_behind_gap {
                self.take_at_its_word(&entry)?;
            } else {
                let failed = |error: StreamError| StreamError::Corrupt(format!("journal: {error}"));
                self.table.apply(&entry).map_err(failed)?;
            }
            if let Entry::Append { extent, offset, blocks, .. } = entry {
                self.appends.push((extent, offset, record.body.slice_ref(blocks)));
            }
        }
        Ok(())
    }

    fn take_at_its_word(&mut self, entry: &Entry<'_>) -> Result<(), StreamError> {
        match *entry {
            Entry::Append { extent, epoch, offset, blocks } => {
                let state = self.extend_to(extent, epoch, offset);
                let digest =
                    state.digest.map(|digest| digest.then_blocks(extent, offset, blocks)).transpose()?;
                state.digest = digest;
                state.length = offset.saturating_add(blocks.len() as u64);
            }
            Entry::Length { extent, epoch, offset, size, digest } => {
                let state = self.extend_to(extent, epoch, offset);
                state.digest = digest;
                state.length = offset.saturating_add(size);
            }
            Entry::Create { extent, owner } => {
                self.table.extents.entry(extent).or_insert_with(|| ExtentState::empty(owner));
                self.in_doubt.remove(&extent);
            }
            Entry::Fence { extent, owner, freeze } => {
                // It says nothing of the length.
                let state = self.known(extent, owner);
                state.owner = state.owner.max_epoch(owner);
                state.frozen |= freeze;
            }
            Entry::AcceptEnd { extent } => {
                if let Some(state) = self.table.extents.get_mut(&extent) {
                    state.in_doubt = false;
                }
            }
            Entry::Delete { extent } => {
                self.table.extents.remove(&extent);
                self.in_doubt.remove(&extent);
            }
        }
        Ok(())
    }

    /// The extent as it was when something was added at `offset`.
    fn extend_to(&mut self, extent: ExtentId, epoch: OwnerEpoch, offset: u64) -> &mut ExtentState {
        let is_new = !self.table.extents.contains_key(&extent);
        self.in_doubt.remove(&extent);
        let state =
            self.table.extents.entry(extent).or_insert_with(|| ExtentState::empty(Owner::of_epoch(epoch)));
        state.owner = state.owner.max_epoch(Owner::of_epoch(epoch));
        if state.length != offset || (is_new && offset > 0) {
            state.length = offset;
            state.digest = None;
        }
        state
    }

    /// The extent; an unknown one was made in the gap.
    fn known(&mut self, extent: ExtentId, owner: Owner) -> &mut ExtentState {
        let in_doubt = &mut self.in_doubt;
        self.table.extents.entry(extent).or_insert_with(|| {
            in_doubt.insert(extent);
            ExtentState::empty(owner)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::put_block;
    use crate::record::{RecordBuilder, read_at};
    use crate::sealed::ExtentDigest;
    use base::codec::Encode;

    const EPOCH: OwnerEpoch = OwnerEpoch(1);

    fn record(entries: &[Entry<'_>]) -> Record {
        let mut body = RecordBuilder::new();
        body.body().put_u8_field(KIND_GROUP);
        entries.iter().for_each(|entry| entry.encode(body.body()));
        read_at(&body.finish(1, 1).bytes, 0, 1, 1).unwrap()
    }

    fn block(extent: u64, offset: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_block(&mut out, ExtentId(extent), offset, b"12345");
        out
    }

    /// Extents 1 to 3 have a block each, 3 is frozen.
    fn before() -> TableReplay {
        let mut replayed = TableReplay::default();
        for id in 1..4 {
            let (extent, blocks) = (ExtentId(id), block(id, 0));
            let entries = [
                Entry::Create { extent, owner: Owner::of_epoch(EPOCH) },
                Entry::Append { extent, epoch: EPOCH, offset: 0, blocks: &blocks },
                Entry::Fence { extent, owner: Owner::of_epoch(EPOCH), freeze: id == 3 },
            ];
            replayed.add(&record(&entries)).unwrap();
        }
        replayed
    }

    #[test]
    fn without_a_gap_whatever_does_not_follow_is_an_error() {
        let mut replayed = before();
        let blocks = block(1, 74);
        let far = [Entry::Append { extent: ExtentId(1), epoch: EPOCH, offset: 74, blocks: &blocks }];
        assert!(replayed.add(&record(&far)).is_err());
    }

    #[test]
    fn behind_a_gap_an_extent_is_in_doubt_until_an_entry_says_how_long_it_was() {
        let doubted =
            |replayed: &TableReplay| replayed.in_doubt.iter().map(|extent| extent.0).collect::<Vec<_>>();
        let mut replayed = before();
        replayed.gap();
        assert_eq!(doubted(&replayed), [1, 2], "a frozen one is not");
        // Nothing was lost of the first; the second lacks a block.
        let (first, second) = (block(1, 37), block(2, 74));
        let entries = [
            Entry::Append { extent: ExtentId(1), epoch: EPOCH, offset: 37, blocks: &first },
            Entry::Append { extent: ExtentId(2), epoch: EPOCH, offset: 74, blocks: &second },
            Entry::Fence { extent: ExtentId(5), owner: Owner::of_epoch(EPOCH), freeze: true },
            Entry::Create { extent: ExtentId(6), owner: Owner::of_epoch(EPOCH) },
        ];
        replayed.add(&record(&entries)).unwrap();
        assert_eq!(doubted(&replayed), [5], "of this one only the fence is known");
        let state = |id| replayed.table.extents[&ExtentId(id)];
        assert_eq!((state(1).length, state(1).digest.is_some()), (74, true));
        assert_eq!((state(2).length, state(2).digest), (111, None));
        assert!(state(5).frozen && state(6) == ExtentState::empty(Owner::of_epoch(EPOCH)));
    }

    #[test]
    fn a_length_behind_a_gap_brings_its_digest() {
        let mut replayed = before();
        replayed.gap();
        let digest = Some(ExtentDigest(9));
        let length = Entry::Length { extent: ExtentId(1), epoch: EPOCH, offset: 500, size: 100, digest };
        replayed.add(&record(&[length])).unwrap();
        let state = replayed.table.extents[&ExtentId(1)];
        assert_eq!((state.length, state.digest), (600, digest));
    }
}
