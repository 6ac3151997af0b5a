//! The rows under one blob's name as a decision sees and changes them.
//!
//! Most operations read the head alone; those that need more rows name them, and are run again. What always
//! holds: a row that was not requested is never taken for absent. Other operations wait during a decision, so
//! it visits each row a bounded number of times, however much it removes.

use crate::content::Content;
use crate::error::BlobError;
use crate::rows::blob_address::BlobAddress;
use crate::rows::chunk_row::{chunks_prefix, generation_of};
use crate::rows::decision::stop::Stop;
use crate::rows::decision::visible_rows::{Visibility, VisibleRows};
use crate::rows::former_row::{SNAPSHOT_PREFIX, VERSION_PREFIX, decode_snapshot, is_former};
use crate::rows::head_row::{HEAD, Head};
use crate::rows::record::BlobRecord;
use crate::rows::region_row::{garbage_row, regions_prefix};
use crate::rows::staged_row::STAGED_PREFIX;
use base::Ticks;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::{PartitionError, RowChange, put_pieces};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The rows of one name during a decision.
pub(crate) struct BlobRows {
    pub(crate) head: Head,
    /// The head's row as it was found.
    head_before: Option<Bytes>,
    /// The others.
    found: BTreeMap<String, Bytes>,
    pub(super) changed: BTreeMap<String, Option<Bytes>>,
    visible: VisibleRows,
    /// How many snapshots and former versions name the chunks of a generation. `None`: not counted yet.
    generations: Option<BTreeMap<u64, usize>>,
}

impl BlobRows {
    pub(super) fn open(
        head_before: Option<Bytes>,
        found: BTreeMap<String, Bytes>,
        visible: VisibleRows,
    ) -> Result<Self, DecodeError> {
        let head = head_before.as_ref().map(|value| Head::decode(value)).transpose()?.unwrap_or_default();
        Ok(BlobRows { head, head_before, found, changed: BTreeMap::new(), visible, generations: None })
    }

    /// Stops if pages of a deleted blob are still to be removed where those of a new one would lie.
    pub(crate) fn check_no_garbage(&self, owner: u64) -> Result<(), Stop> {
        let mark = garbage_row(owner);
        match self.row(&mark)? {
            // Of the blob that this one would replace: deleting that comes first.
            Some(_) if self.changed.contains_key(&mark) => Err(BlobError::TooManyRows.into()),
            Some(_) => Err(BlobError::Partition(PartitionError::Busy).into()),
            None => Ok(()),
        }
    }

    /// Stops unless all rows whose names start so are seen.
    pub(crate) fn need_rows(&self, prefix: &str) -> Result<(), Stop> {
        match self.visible.visibility(prefix) {
            Visibility::Whole => Ok(()),
            Visibility::CutOff => Err(BlobError::TooManyRows.into()),
            Visibility::NotRequested => Err(Stop::Need(prefix.to_owned())),
        }
    }

    /// A row as it is now; stops if nobody has looked whether it is there.
    pub(crate) fn row(&self, name: &str) -> Result<Option<&Bytes>, Stop> {
        let row = self.row_if_visible(name);
        if row.is_none() && !self.is_visible(name) {
            self.need_rows(name)?;
        }
        Ok(row)
    }

    /// Whether it is known that a row is there or not.
    fn is_visible(&self, name: &str) -> bool {
        self.changed.contains_key(name) || self.found.contains_key(name) || self.visible.shows(name)
    }

    /// A row as it is now, if it is there and seen.
    fn row_if_visible(&self, name: &str) -> Option<&Bytes> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref(),
            None => self.found.get(name),
        }
    }

    /// Names of the rows that start so, in order; all must be seen.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, Stop> {
        self.need_rows(prefix)?;
        Ok(self.present(prefix).map(|(name, _)| name.to_owned()).collect())
    }

    /// As [`Self::names`], or the first of them if there are too many to see.
    pub(crate) fn first_names(&self, prefix: &str) -> Result<Vec<String>, Stop> {
        match self.visible.visibility(prefix) {
            Visibility::NotRequested => Err(Stop::Need(prefix.to_owned())),
            Visibility::Whole | Visibility::CutOff => {
                Ok(self.present(prefix).map(|(name, _)| name.to_owned()).collect())
            }
        }
    }

    /// The rows whose names start so, as they are now, in order.
    fn present<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        let start = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.found.range::<str, _>(start).map(|(name, _)| name.as_str());
        let changed = self.changed.range::<str, _>(start).map(|(name, _)| name.as_str());
        let starts_so = move |name: &&str| name.starts_with(prefix);
        let names: BTreeSet<&str> =
            found.take_while(starts_so).chain(changed.take_while(starts_so)).collect();
        #[cfg(test)]
        crate::rows::decision::memory_blob::VISITED_COUNT.with(|count| count.set(count.get() + names.len()));
        names.into_iter().filter_map(|name| Some((name, self.row_if_visible(name)?)))
    }

    pub(crate) fn put(&mut self, name: String, value: Vec<u8>) {
        self.change(name, Some(value.into()));
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.change(name.to_owned(), None);
    }

    fn change(&mut self, name: String, value: Option<Bytes>) {
        if let Some(mut generations) = self.generations.take_if(|_| is_former(&name)) {
            let named = |row: Option<&Bytes>| row.map(|row| decode_snapshot(row)).transpose();
            // What can't be read has them counted anew, which tells.
            if let (Ok(before), Ok(after)) = (named(self.row_if_visible(&name)), named(value.as_ref())) {
                if let Some(generation) = before.as_ref().and_then(generation_of)
                    && let Some(count) = generations.get_mut(&generation)
                {
                    *count = count.saturating_sub(1);
                }
                if let Some(generation) = after.as_ref().and_then(generation_of) {
                    *generations.entry(generation).or_default() += 1;
                }
                self.generations = Some(generations);
            }
        }
        self.changed.insert(name, value);
    }

    /// How many snapshots and former versions name the chunks of a generation. They are looked at once for
    /// it.
    fn count_named(&mut self, generation: u64) -> Result<usize, Stop> {
        if self.generations.is_none() {
            let mut generations = BTreeMap::new();
            for prefix in [SNAPSHOT_PREFIX, VERSION_PREFIX] {
                self.need_rows(prefix)?;
                for (_, row) in self.present(prefix) {
                    if let Some(generation) = generation_of(&decode_snapshot(row)?) {
                        *generations.entry(generation).or_default() += 1;
                    }
                }
            }
            self.generations = Some(generations);
        }
        let count = self.generations.as_ref().and_then(|generations| generations.get(&generation));
        Ok(count.copied().unwrap_or_default())
    }

    /// The base blob.
    pub(crate) fn live(&self) -> Result<&BlobRecord, BlobError> {
        self.head.live().ok_or(BlobError::BlobNotFound)
    }

    /// The base blob, to be changed.
    pub(crate) fn live_mut(&mut self) -> Result<&mut BlobRecord, BlobError> {
        self.head.current.as_mut().filter(|current| current.deleted.is_none()).ok_or(BlobError::BlobNotFound)
    }

    /// The record of a snapshot or former version; `row` is its row's name.
    pub(crate) fn former(&self, row: &str) -> Result<BlobRecord, Stop> {
        let row = self.row(row)?.ok_or(BlobError::BlobNotFound)?;
        let record = decode_snapshot(row)?;
        if record.deleted.is_some() { Err(BlobError::BlobNotFound.into()) } else { Ok(record) }
    }

    /// Forgets staged blocks.
    pub(crate) fn clear_staged(&mut self) -> Result<(), Stop> {
        if self.head.staged > 0 {
            for name in self.names(STAGED_PREFIX)? {
                self.delete(&name);
            }
        }
        self.head.staged = 0;
        self.head.staged_at = Ticks(0);
        self.head.staged_id_len = 0;
        Ok(())
    }

    /// Removes the rows of a content that no record here names any more.
    pub(crate) fn release(&mut self, content: &Content) -> Result<(), Stop> {
        match content {
            Content::Inline(_) | Content::Unread => Ok(()),
            Content::Blocks(blocks) if blocks.chunks.is_empty() => Ok(()),
            Content::Blocks(blocks) => {
                let of_head = self.head.current.as_ref().and_then(generation_of);
                if of_head == Some(blocks.generation) || self.count_named(blocks.generation)? > 0 {
                    return Ok(());
                }
                for name in self.names(&chunks_prefix(blocks.generation))? {
                    self.delete(&name);
                }
                Ok(())
            }
            Content::Pages(owner) => {
                let prefix = regions_prefix(*owner);
                if self.visible.visibility(&prefix) == Visibility::CutOff {
                    // Too many for one operation: they are removed bit by bit.
                    let mut mark = Vec::new();
                    put_pieces(&mut mark, &[]);
                    self.put(garbage_row(*owner), mark);
                    return Ok(());
                }
                for name in self.names(&prefix)? {
                    self.delete(&name);
                }
                Ok(())
            }
        }
    }

    pub(super) fn into_changes(self, address: &BlobAddress) -> Result<Vec<RowChange>, Stop> {
        let mut changes = Vec::with_capacity(self.changed.len() + 1);
        for (name, value) in self.changed {
            let key = address.key(&name);
            match value {
                Some(value) if self.found.get(&name) != Some(&value) => {
                    changes.push(RowChange::Put { key, value });
                }
                // What nobody has looked for may be there.
                None if self.found.contains_key(&name) || !self.visible.shows(&name) => {
                    changes.push(RowChange::Delete { key });
                }
                _ => {}
            }
        }
        let key = address.key(HEAD);
        if self.head.is_empty() {
            if self.head_before.is_some() {
                changes.push(RowChange::Delete { key });
            }
        } else {
            let value = Bytes::from(self.head.encode()?);
            if self.head_before.as_ref() != Some(&value) {
                changes.push(RowChange::Put { key, value });
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests;
