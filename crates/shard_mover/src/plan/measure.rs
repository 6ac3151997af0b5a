//! Measures what mappings take, for plans.
//!
//! Pins and ranges are counted by the shards, many at a time; bytes are rows times the mean of a first batch.
//! Virtual shards would cost a read of a table each, so of a map with them each table is read once a shard.
//!
//! What always holds: nothing is changed; requests at once, and memory, have bounds.

use super::facts::{Facts, MappingOf, MappingSize, PlanSettings};
use crate::course::mover::Mover;
use crate::course::observe::mapping_of;
use crate::error::MoveError;
use crate::limits::MEASURE_AT_ONCE_MAX;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use shard_backend::{Backend, BatchBounds, Row, Shardlet, TableSchema};
use shard_map::{Catalog, MappingId, Name, ShardMap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of the batch whose mean stands for all.
const SAMPLE_ROWS: usize = 200;

/// Sizes of mappings of one map.
type Sizes = BTreeMap<MappingId, MappingSize>;

impl Mover {
    pub(crate) async fn measure(
        &self,
        catalog: &Catalog,
        settings: PlanSettings,
    ) -> Result<Facts, MoveError> {
        let map = self.map_of(catalog)?;
        let shards: Vec<&Name> =
            catalog.shards().map(|shard| &shard.name).filter(|shard| is_on(map, shard)).collect();
        let measured = shards.iter().map(|shard| self.measure_shard(map, shard));
        // A shard measures several mappings at once only if it has pins and ranges alone.
        let sizes: Vec<Sizes> = iter(measured).buffer_unordered(MEASURE_AT_ONCE_MAX).try_collect().await?;
        let of = |(mapping, size): (MappingId, MappingSize)| ((map.name().clone(), mapping), size);
        let sizes: BTreeMap<MappingOf, MappingSize> = sizes.into_iter().flatten().map(of).collect();
        let moves = self.log.all().await?;
        let active = moves.iter().filter(|of| of.state().is_active());
        let moving = active.filter_map(|of| Some((of.order.map.clone(), mapping_of(catalog, &of.order)?.1)));
        let capabilities =
            |(name, backend): (&Name, &Arc<dyn Backend>)| (name.clone(), backend.capabilities());
        Ok(Facts {
            catalog: catalog.clone(),
            capabilities: self.shards.backends.iter().map(capabilities).collect(),
            sizes,
            moving: moving.collect(),
            settings,
        })
    }

    async fn measure_shard(&self, map: &Arc<ShardMap>, shard: &Name) -> Result<Sizes, MoveError> {
        let backend = self.backend(shard)?;
        let mut sizes = Sizes::new();
        for table in self.schema.tables().filter(|table| table.is_sharded()) {
            match map.virtual_shards() {
                Some(_) => read(&*backend, table, map, shard, &mut sizes).await?,
                None => count(&*backend, table, map, shard, &mut sizes).await?,
            }
        }
        Ok(sizes)
    }
}

fn is_on(map: &ShardMap, shard: &Name) -> bool {
    map.placements().any(|placement| placement.shard == *shard)
}

async fn read(
    backend: &dyn Backend,
    table: &TableSchema,
    map: &ShardMap,
    shard: &Name,
    sizes: &mut Sizes,
) -> Result<(), MoveError> {
    let (all, mut after) = (Shardlet::all(), None);
    loop {
        let batch = backend.scan(table, &all, after.as_ref(), BatchBounds::default()).await?;
        for row in &batch.rows {
            let key: Option<Vec<_>> =
                table.shard_key().iter().map(|place| row.values.get(*place)?.key_value()).collect();
            let Some(Ok(route)) = key.map(|key| map.route(&key)) else { continue };
            if route.placement.shard == *shard {
                add(sizes, route.mapping, 1, row.size_bytes() as u64);
            }
        }
        match batch.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

async fn count(
    backend: &dyn Backend,
    table: &TableSchema,
    map: &Arc<ShardMap>,
    shard: &Name,
    sizes: &mut Sizes,
) -> Result<(), MoveError> {
    let bounds = BatchBounds { rows_max: SAMPLE_ROWS, ..BatchBounds::default() };
    let sample = backend.scan(table, &Shardlet::all(), None, bounds).await?.rows;
    let sum: usize = sample.iter().map(Row::size_bytes).sum();
    let mean_bytes = (sum / sample.len().max(1)) as u64;
    let here = map.mappings().filter(|(_, placement)| placement.shard == *shard);
    let shardlets =
        here.filter_map(|(mapping, _)| Some((mapping.clone(), Shardlet::new(map.clone(), mapping)?)));
    let counted = shardlets.map(|(mapping, shardlet)| async move {
        let rows = backend.count(table, &shardlet).await?;
        Ok::<_, MoveError>((mapping, rows))
    });
    let mut counted = iter(counted).buffer_unordered(MEASURE_AT_ONCE_MAX);
    while let Some(found) = counted.next().await {
        let (mapping, rows) = found?;
        add(sizes, mapping, rows, rows.saturating_mul(mean_bytes));
    }
    Ok(())
}

fn add(sizes: &mut Sizes, mapping: MappingId, rows: u64, bytes: u64) {
    let size = sizes.entry(mapping).or_default();
    size.rows = size.rows.saturating_add(rows);
    size.bytes = size.bytes.saturating_add(bytes);
}
