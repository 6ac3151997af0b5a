//! What operators have done to ranges at once that the background does when it is due, and how ranges look to
//! them.
//!
//! What always holds: nothing is done that the background would not do: locks, back-pressure and the rules of
//! a full disk are the same.

use super::hand_over::Change;
use super::owner::Owner;
use super::server::PartitionServer;
use crate::background::range_work::RangeWork;
use crate::error::PartitionError;
use crate::key::RowKey;
use crate::key::describe::describe_bounds;
use crate::map::choose_split_key::choose_split_key;
use crate::operation::ObjectTable;
use crate::range_partition::RangePartition;
use crate::statistics::{RangeDetails, ServedRange};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Compactions of one range that one request takes at most: more come due while there are writers.
const COMPACTION_COUNT_MAX: u64 = 64;

impl PartitionServer {
    /// See `Partitions`.
    pub(crate) async fn range_details(&self, table: ObjectTable) -> Vec<RangeDetails> {
        let mut all = Vec::new();
        for owner in self.owners(table) {
            let (start, end) = describe_bounds(owner.range());
            all.push(match &owner {
                Owner::Damaged(damaged) => {
                    let damage = Some(damaged.error().to_string());
                    RangeDetails { id: damaged.id(), start, end, damage, served: None }
                }
                Owner::Serving(range) => {
                    let served = Some(served_range(range).await);
                    RangeDetails { id: range.id(), start, end, damage: None, served }
                }
            });
        }
        all
    }

    /// See `Partitions`.
    pub(crate) async fn flush_now(&self, table: ObjectTable, id: Option<u64>) -> Result<u64, PartitionError> {
        let ranges = self.chosen(table, id);
        let mut failed = None;
        for range in &ranges {
            self.check_space()?;
            if let Err(error) = range.flush_all().await {
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(ranges.len() as u64), Err)
    }

    /// See `Partitions`.
    pub(crate) async fn compact_now(
        &self,
        table: ObjectTable,
        id: Option<u64>,
    ) -> Result<Option<u64>, PartitionError> {
        let ranges = self.chosen(table, id);
        let mut all = None;
        for range in ranges {
            let count = self.compact_range(&range).await?;
            all = Some(all.unwrap_or(0) + count);
        }
        Ok(all)
    }

    async fn compact_range(&self, range: &RangePartition) -> Result<u64, PartitionError> {
        let ends = || self.closing.load(Ordering::Acquire);
        let mut count = 0;
        while count < COMPACTION_COUNT_MAX && !ends() {
            match range.compact(&ends).await? {
                0 if range.waits_until_idle() && range.compact_when_idle(&ends).await => count += 1,
                0 => break,
                done => count += done,
            }
        }
        self.shared.maintenance.note_compactions(count);
        Ok(count)
    }

    /// See `Partitions`.
    pub(crate) async fn split_in_middle(
        self: &Arc<Self>,
        table: ObjectTable,
        id: u64,
    ) -> Result<bool, PartitionError> {
        let Some(range) = self.chosen(table, Some(id)).pop() else { return Ok(false) };
        let range_count_max = self.shared.settings.range_count_max;
        if self.range_count() >= range_count_max {
            let why = format!("there are {range_count_max} ranges already, which is the setting's most");
            return Err(PartitionError::Unavailable(why));
        }
        self.check_space()?;
        // What is in memory only has no weight.
        range.flush_all().await?;
        let chosen = choose_split_key(range.weighted_keys().await?, range.range());
        drop(range);
        match chosen {
            None => Ok(false),
            Some(key) => self.change_ranges(table, Change::Split(RowKey::from_bytes(key))).await,
        }
    }

    /// A full disk is left to the background, which writes where that frees more than it takes; a server that
    /// stops is left alone.
    fn check_space(&self) -> Result<(), PartitionError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
        }
        match self.shared.streams.is_scarce() {
            true => Err(PartitionError::DiskFull),
            false => Ok(()),
        }
    }

    /// The ranges of a table that are served, or the one with this id.
    fn chosen(&self, table: ObjectTable, id: Option<u64>) -> Vec<Arc<RangePartition>> {
        let mut ranges = self.ranges(table);
        ranges.retain(|range| id.is_none_or(|id| range.id() == id));
        ranges
    }
}

async fn served_range(range: &RangePartition) -> ServedRange {
    let statistics = range.statistics();
    let (round, requests) = range.load.last_round();
    ServedRange {
        epoch: range.epoch(),
        size_bytes: range.size_bytes().await.ok(),
        memory_table_bytes: range.memory_bytes(),
        checkpoints: statistics.checkpoints,
        compacting_bytes: range.compacting_bytes(),
        requests,
        requests_per_second: round.requests_per_second,
        at_end_percent: round.at_end_percent,
        serial_section_held_for: statistics.serial_section_held_for,
    }
}
