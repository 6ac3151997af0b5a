//! The facade of the layer: finds the range partition that owns a key and runs operations, gets and scans there.
//!
//! Today every object table is one range in this process. What always holds: a key that no range owns is an error,
//! never "no rows".

use crate::block_cache::{BlockCache, CacheStatistics};
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::maintenance::Maintenance;
use crate::operation::{OBJECT_TABLES, ObjectTable, Operation, Row, Scan, ScanEnd};
use crate::range_partition::{RangePartition, Shared};
use crate::settings::PartitionSettings;
use base::Environment;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::Streams;

/// Every object table is one range with this id.
const RANGE_ID: u64 = 1;

/// What the layer has done in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatistics {
    /// Memory tables that became checkpoints.
    pub flushes: u64,
    /// Merges of several checkpoints into one.
    pub merges: u64,
    /// The block cache.
    pub cache: CacheStatistics,
}

/// The object tables of a stamp.
pub struct Partitions {
    ranges: BTreeMap<ObjectTable, Arc<RangePartition>>,
    shared: Shared,
}

impl Partitions {
    /// Loads every range.
    pub async fn open(
        env: &Environment,
        streams: Arc<Streams>,
        settings: PartitionSettings,
    ) -> Result<Self, PartitionError> {
        let shared = Shared {
            clock: env.clock.clone(),
            streams,
            cache: Arc::new(BlockCache::new(settings.cache_size_bytes_max)),
            settings,
            maintenance: Maintenance::start(&*env.spawner, &env.clock),
        };
        let mut ranges = BTreeMap::new();
        for table in OBJECT_TABLES {
            let range = RangePartition::open(env, shared.clone(), table, RANGE_ID, KeyRange::all()).await?;
            ranges.insert(table, range);
        }
        Ok(Partitions { ranges, shared })
    }

    /// What the layer has done in the background since it was opened.
    pub fn statistics(&self) -> PartitionStatistics {
        let (flushes, merges) = self.shared.maintenance.counts();
        PartitionStatistics { flushes, merges, cache: self.shared.cache.statistics() }
    }

    /// Runs an operation: durable and visible when it returns.
    pub async fn execute<O: Operation>(&self, operation: O) -> Result<O::Reply, PartitionError> {
        self.owner(operation.object_table())?.execute(operation).await
    }

    /// The row at `key`, from the newest durable state.
    pub async fn get(&self, table: ObjectTable, key: &RowKey) -> Result<Option<Row>, PartitionError> {
        self.owner(table)?.get(key).await
    }

    /// Shows the rows of `range` to `scan`, in key order.
    pub async fn scan<S: Scan>(
        &self,
        table: ObjectTable,
        range: KeyRange,
        mut scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        let end = self.owner(table)?.scan(&range, &mut scan).await?;
        Ok((scan, end))
    }

    /// Refuses further writes and waits for those under way.
    pub async fn close(&self) {
        self.shared.maintenance.close();
        for range in self.ranges.values() {
            range.close().await;
        }
    }

    fn owner(&self, table: ObjectTable) -> Result<&RangePartition, PartitionError> {
        let owner = self.ranges.get(&table).map(|range| &**range);
        owner.ok_or_else(|| {
            PartitionError::Unavailable(format!("no range of table {} is loaded", table.name()))
        })
    }
}
