//! The partition manager: looks at what each range holds and is asked for, every some seconds or when asked,
//! and splits and merges ranges as pure functions choose.
//!
//! What always holds: at most one change a table and round, because after it the choice is another; each
//! decision is logged with its reason and counted; a failure changes nothing and is tried again in the next
//! round; while space is scarce nothing changes.

use super::hand_over::Change;
use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::RowKey;
use crate::map::choose_range_changes::{RangeChange, RangeReport, Reason, choose_range_changes};
use crate::map::choose_split_key::choose_split_key;
use crate::map::range_load::HeatBounds;
use crate::operation::{OBJECT_TABLES, ObjectTable};
use crate::range_partition::RangePartition;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Time between two rounds.
const BALANCE_INTERVAL: Duration = Duration::from_secs(15);

/// The manager's task; ends with its server.
pub(super) async fn run(server: Weak<PartitionServer>, clock: Arc<dyn base::Clock>) {
    loop {
        clock.sleep(BALANCE_INTERVAL).await;
        let Some(server) = server.upgrade() else { return };
        if server.closing.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = server.balance().await {
            tracing::warn!(%error, "ranges could not be balanced");
        }
    }
}

impl PartitionServer {
    /// One round. Returns how many ranges were split or merged.
    pub(crate) async fn balance(self: &Arc<Self>) -> Result<u64, PartitionError> {
        let _balancing = self.balancing.lock().await;
        self.shared.maintenance.wake_compaction();
        if self.shared.streams.is_scarce() {
            // Nobody writes memory tables full that a flush waits for.
            self.shared.maintenance.wake_flush();
        }
        if let Err(error) = self.shared.streams.collect_left().await {
            tracing::debug!(%error, "extents that no stream lists can't be removed yet");
        }
        if let Err(error) = self.remove_unnamed_ranges().await {
            tracing::debug!(%error, "streams of ranges that no map names can't be removed yet");
        }
        self.bring_copy_up().await;
        // What fails in one table, for damage perhaps, keeps nothing from the others.
        let mut outcome = self.remove_old_marks().await.map(|()| 0);
        for table in OBJECT_TABLES {
            let changed = self.balance_table(table).await;
            outcome = match (outcome, changed) {
                (Ok(changes), Ok(changed)) => Ok(changes + u64::from(changed)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        outcome
    }

    async fn balance_table(self: &Arc<Self>, table: ObjectTable) -> Result<bool, PartitionError> {
        let ranges = self.owners(table);
        let settings = &self.shared.settings;
        let bounds = HeatBounds {
            hot_from: settings.hot_requests_per_second,
            cold_below: settings.cold_requests_per_second,
        };
        let now = self.shared.clock.monotonic();
        let mut reports = Vec::with_capacity(ranges.len());
        for range in &ranges {
            // A range whose size does not read, because a block of it is damaged, stays as it is as a damaged
            // one does.
            let report = match range.serving() {
                None => None,
                Some(range) => {
                    let load = range.load.end_round(now, bounds);
                    let size_bytes = range.size_bytes().await;
                    let size_bytes = size_bytes.inspect_err(|error| {
                        tracing::debug!(table = table.name(), id = range.id(), %error, "the size of a range is not known");
                    });
                    let compacting_bytes = range.compacting_bytes();
                    size_bytes.ok().map(|size_bytes| RangeReport { size_bytes, compacting_bytes, load })
                }
            };
            reports.push(report);
        }
        for chosen in choose_range_changes(&reports, self.range_count(), settings) {
            let Some(range) = ranges[chosen.index].serving() else { continue };
            if self.shared.streams.is_scarce() {
                let (table, id, reason) = (table.name(), range.id(), chosen.reason);
                tracing::debug!(table, id, %reason, "no range is split or merged while the disk is full");
                return Ok(false);
            }
            let planned = plan(range, chosen).await.unwrap_or_else(|error| {
                tracing::debug!(table = table.name(), id = range.id(), %error, "keys of a range do not read");
                None
            });
            let Some(change) = planned else {
                tracing::debug!(
                    table = table.name(),
                    id = range.id(),
                    reason = %chosen.reason,
                    "no key parts what makes the range worth a split"
                );
                continue;
            };
            tracing::info!(table = table.name(), id = range.id(), ?change, reason = %chosen.reason, "decided");
            if self.change_ranges(table, change).await? {
                let mut counts = self.counts.lock();
                match chosen.reason {
                    Reason::Size { .. } => counts.size_splits += 1,
                    Reason::Heat { .. } => counts.heat_splits += 1,
                    Reason::Cold { .. } => counts.cold_merges += 1,
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How the choice is done; `None`: it can't be.
async fn plan(range: &RangePartition, chosen: RangeChange) -> Result<Option<Change>, PartitionError> {
    let weighted = match chosen.reason {
        Reason::Cold { .. } => {
            return Ok(Some(Change::Merge(RowKey::from_bytes(range.range().start.clone()))));
        }
        Reason::Size { .. } => range.weighted_keys().await?,
        Reason::Heat { .. } => range.load.sampled_keys(),
    };
    Ok(choose_split_key(weighted, range.range()).map(|at| Change::Split(RowKey::from_bytes(at))))
}
