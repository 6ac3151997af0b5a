//! Checks all rules over all shards of a map.
//!
//! What always holds: nothing is changed. Rows are judged by one epoch of the map; if the map was changed
//! meanwhile, the report says so. Memory holds a batch of each shard, hashes of parents and the findings,
//! each of them bounded.

use super::finding::{ForeignPlace, IntegrityReport};
use super::judged::Judged;
use super::merged::bounds_of;
use super::orphans::check_orphans;
use super::placed::check_placed;
use super::progress::{CheckProgress, CheckSink};
use super::rules::Rules;
use crate::course::mover::Mover;
use crate::course::observe::mapping_of;
use crate::error::MoveError;
use crate::log::state::Move;
use crate::plan::refusal::Refusal;
use crate::rows::side::Side;
use shard_backend::Shardlet;
use shard_map::{Catalog, ShardMap};
use std::collections::BTreeSet;

impl Mover {
    pub(crate) async fn check_rules(
        &self,
        rules: &Rules,
        progress: &CheckSink,
    ) -> Result<IntegrityReport, MoveError> {
        let catalog = self.home.load().await?;
        let map = self.map_of(&catalog)?;
        let (moving, moves) = in_hands(&catalog, map, &self.log.all().await?);
        let sides = self.sides(&catalog, map).await?;
        let judged = Judged { map, sides, moving };
        let mut report = IntegrityReport { moves, epoch: catalog.epoch(), ..IntegrityReport::default() };
        if rules.foreign || rules.duplicates {
            for table in rules.tables.iter().filter_map(|name| self.schema.table(name)) {
                let at = table.name();
                let shown = |rows| progress(CheckProgress { at: at.to_owned(), rows });
                check_placed(table, &judged, rules, &mut report, shown).await?;
            }
        }
        let keys_max = self.settings.parent_keys_max;
        for rule in &rules.orphans {
            let shown = |rows| progress(CheckProgress { at: format!("rule {}", rule.name), rows });
            check_orphans(rule, &self.schema, &judged, keys_max, &mut report, shown).await?;
        }
        report.is_of_old_map = self.home.refresh(&catalog).await?.epoch() != catalog.epoch();
        Ok(report)
    }

    /// The map of the schema.
    pub(crate) fn map_of<'a>(&self, catalog: &'a Catalog) -> Result<&'a std::sync::Arc<ShardMap>, MoveError> {
        let name = self.schema.map();
        let map = catalog.map(name.as_str()).ok_or_else(|| Refusal::NoMap(name.clone()))?;
        self.schema.check_map(map).map_err(|error| Refusal::Schema(error.to_string()))?;
        Ok(map)
    }

    /// All rows of each shard that has the map's tables. A shard without any mapping of the map may have
    /// rows that were left there; without its tables it has none.
    async fn sides(&self, catalog: &Catalog, map: &ShardMap) -> Result<Vec<Side>, MoveError> {
        let mut sides = Vec::new();
        let bounds = bounds_of(catalog.shards().len());
        for shard in catalog.shards() {
            let backend = self.backend(&shard.name)?;
            let is_named = map.placements().any(|placement| placement.shard == shard.name);
            if !is_named {
                let actual = backend.actual_schema().await?;
                if !self.schema.tables().any(|table| actual.tables.contains_key(table.name())) {
                    continue;
                }
            }
            self.check_schema(&shard.name).await?;
            sides.push(Side { shard: shard.name.clone(), backend, shardlet: Shardlet::all(), bounds });
        }
        Ok(sides)
    }
}

/// What moves have in their hands, and which moves these are. After its switch a move's source still has
/// its rows; until it is done, that is its own matter.
fn in_hands(
    catalog: &Catalog,
    map: &ShardMap,
    moves: &[Move],
) -> (BTreeSet<ForeignPlace>, Vec<crate::log::id::MoveId>) {
    let (mut moving, mut ids) = (BTreeSet::new(), Vec::new());
    for of in moves.iter().filter(|of| of.order.map == *map.name() && of.state().is_active()) {
        let Some((_, mapping)) = mapping_of(catalog, &of.order) else { continue };
        for shard in [&of.order.from, &of.order.to] {
            moving.insert((shard.clone(), mapping.clone()));
        }
        ids.push(of.id.clone());
    }
    (moving, ids)
}
