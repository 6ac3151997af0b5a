//! The offline check of a checkpoint: every block is read, every row is where its index and filter say, and
//! the root tells the truth about all of them.

use super::damage::damaged;
use super::index_block::IndexEntry;
use super::open_checkpoint::{Caching, Checkpoint};
use super::row_block::RowBlock;
use crate::bloom::block_filter::key_hash;
use crate::error::PartitionError;
use crate::key::KeyRange;
use base::codec::DecodeError;
use bytes::Bytes;
use stream::Location;

/// Something that is wrong, and the keys that suffer from it.
pub(crate) struct CheckpointDamage {
    /// The block; `None`: the blocks read, but don't fit together.
    pub(crate) block: Option<Location>,
    pub(crate) problem: String,
    pub(crate) keys: KeyRange,
}

/// What a checkpoint turned out to hold.
#[derive(Default)]
pub(crate) struct CheckedCheckpoint {
    pub(crate) damages: Vec<CheckpointDamage>,
    pub(crate) row_count: u64,
    deleted_count: u64,
    row_bytes: u64,
    /// Of no row empty.
    first_key: Bytes,
    versions: Option<(u64, u64)>,
}

/// Keys after `last` up to and with `end`.
fn keys_between(last: &[u8], end: &[u8]) -> KeyRange {
    let after = |key: &[u8]| Bytes::from([key, &[0]].concat());
    let start = if last.is_empty() { Bytes::new() } else { after(last) };
    KeyRange { start, end: Some(after(end)) }
}

impl Checkpoint {
    /// Reads everything from `start` on: what is before it may have been freed.
    pub(crate) async fn check(&self, start: &[u8]) -> CheckedCheckpoint {
        let mut checked = CheckedCheckpoint::default();
        let mut last_key = Bytes::new();
        let mut is_whole = true;
        for (at, part) in self.root.parts.iter().enumerate() {
            if part.last_key.as_ref() < start {
                last_key = part.last_key.clone();
                is_whole = false;
                continue;
            }
            let keys = keys_between(&last_key, &part.last_key);
            let filter = match self.filter(at).await {
                Ok(filter) => Some(filter),
                Err(error) => {
                    checked.note(Some(part.filter), &error, keys.clone());
                    None
                }
            };
            match self.index(at).await {
                Err(error) => checked.note(Some(part.index), &error, keys),
                Ok(index) => {
                    for entry in &index.entries {
                        if entry.last_key.as_ref() < start {
                            last_key = entry.last_key.clone();
                            is_whole = false;
                            continue;
                        }
                        let keys = keys_between(&last_key, &entry.last_key);
                        match self.read_rows(entry.location).await {
                            Err(error) => checked.note(Some(entry.location), &error, keys),
                            Ok(rows) => {
                                if let Err(error) =
                                    self.check_overflows(&mut checked, &rows, entry, start).await
                                {
                                    checked.note(Some(entry.location), &error, keys.clone());
                                }
                                let may_contain = |key: &[u8]| {
                                    filter.as_ref().is_none_or(|filter| filter.may_contain(key_hash(key)))
                                };
                                let outcome = checked.take(&rows, &last_key, &entry.last_key, may_contain);
                                if let Err(problem) = outcome {
                                    let problem = PartitionError::Storage(problem);
                                    checked.note(Some(entry.location), &problem, keys);
                                }
                            }
                        }
                        last_key = entry.last_key.clone();
                    }
                    if last_key != part.last_key {
                        let problem = PartitionError::Storage("the index ends before its part".to_owned());
                        checked.note(Some(part.index), &problem, keys_between(&last_key, &part.last_key));
                    }
                }
            }
            last_key = part.last_key.clone();
        }
        let root = &self.root;
        let told = (root.row_count, root.deleted_count, root.row_bytes, &root.first_key);
        let found = (checked.row_count, checked.deleted_count, checked.row_bytes, &checked.first_key);
        let versions = checked.versions.unwrap_or((u64::MAX, 0));
        if checked.damages.is_empty()
            && is_whole
            && (told != found || versions != (root.lowest_version, root.highest_version))
        {
            let problem =
                format!("the root tells of (rows, deleted, bytes, first key) {told:?}, there are {found:?}");
            checked.note(None, &PartitionError::Storage(problem), keys_between(&[], &last_key));
        }
        checked
    }

    /// Reads the overflows of a block's rows: each is there, as long as its row says. One that is damaged is
    /// noted with its row.
    async fn check_overflows(
        &self,
        checked: &mut CheckedCheckpoint,
        rows: &RowBlock,
        entry: &IndexEntry,
        start: &[u8],
    ) -> Result<(), PartitionError> {
        let malformed = |error: DecodeError| damaged(entry.location, &error.to_string());
        let (mut keys, mut places) = (Vec::new(), Vec::new());
        let mut rows = rows.rows();
        while let Some(position) = rows.step().map_err(malformed)? {
            if let Some(place) = position.overflow {
                keys.push(Bytes::copy_from_slice(rows.key()));
                places.push(place);
            }
        }
        let size_bytes: u64 = places.iter().map(|place| place.stored_size_bytes()).sum();
        if size_bytes != entry.overflow_size_bytes {
            return Err(damaged(entry.location, "the index tells of other overflows"));
        }
        // Those before `start` are elsewhere by now, and extents that only they lay in may have gone.
        let before = keys.iter().take_while(|key| key.as_ref() < start).count();
        let (keys, places) = (keys.split_off(before), places.split_off(before));
        let read = self.read_overflows(&places).await;
        if read.is_ok_and(|overflows| overflows.iter().all(|overflow| overflow.unpacked().is_ok())) {
            return Ok(());
        }
        for (key, place) in keys.into_iter().zip(places) {
            if let Err(error) = self.overflow(place, Caching::Bypass).await {
                let end = Some(Bytes::from([&key[..], &[0]].concat()));
                checked.note(Some(place.location), &error, KeyRange { start: key, end });
            }
        }
        Ok(())
    }
}

impl CheckedCheckpoint {
    fn note(&mut self, block: Option<Location>, error: &PartitionError, keys: KeyRange) {
        self.damages.push(CheckpointDamage { block, problem: error.to_string(), keys });
    }

    /// Walks one row block, whose keys lie after `after` and end with `last`.
    fn take(
        &mut self,
        rows: &RowBlock,
        after: &[u8],
        last: &[u8],
        may_contain: impl Fn(&[u8]) -> bool,
    ) -> Result<(), String> {
        let malformed = |error: DecodeError| error.to_string();
        let mut rows = rows.rows();
        let mut before = after.to_vec();
        while let Some(position) = rows.step().map_err(malformed)? {
            let key = rows.key();
            if !before.is_empty() && key <= before.as_slice() {
                return Err("keys don't rise".to_owned());
            }
            if !may_contain(key) {
                return Err("the filter denies a key that is there".to_owned());
            }
            let value = rows.value_ref(position);
            if self.row_count == 0 {
                self.first_key = Bytes::copy_from_slice(key);
            }
            self.row_count += 1;
            self.deleted_count += u64::from(value.is_none());
            let overflow_bytes = position.overflow.map_or(0, |overflow| u64::from(overflow.size_bytes));
            self.row_bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64 + overflow_bytes;
            let version = position.version.0;
            let (low, high) = self.versions.unwrap_or((version, version));
            self.versions = Some((low.min(version), high.max(version)));
            before.clear();
            before.extend_from_slice(key);
        }
        if before == last { Ok(()) } else { Err("the last key is not the one in the index".to_owned()) }
    }
}
