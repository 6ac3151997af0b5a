//! Deletes rows of a mapping from a shard that the map does not name for it, if the owner has them.
//!
//! What always holds:
//!
//! * a row is deleted only after the owner's row of its key was read and every value of both is equal, which
//!   is stricter than equal hashes; all else is reported and stays;
//! * deletes have a claim of an epoch that the repair made. A move that begins later has a later claim, so no
//!   delete of the repair lands in its copy; mappings that moves have are left out;
//! * before each batch the map is read again, and once it was changed the repair of the mapping ends. The
//!   claim is released at the end, so that no late delete lands.

use super::merged::{Merged, bounds_of};
use super::repair_plan::{RepairPlan, RepairReport, RepairStep};
use crate::course::mover::Mover;
use crate::course::observe::mapping_of;
use crate::error::MoveError;
use crate::rows::side::Side;
use shard_backend::{BATCH_ROWS_MAX, Fence, RowKey, Shardlet, TableSchema};
use shard_map::{Catalog, Epoch, Name};
use shard_store::HomeError;

/// How often a repair begins again because others changed the map.
const EPOCHS_MAX: u32 = 16;

/// Rows of one mapping on two shards.
struct Pair {
    /// The owner, then the other one.
    sides: [Side; 2],
    claim: Epoch,
}

impl Mover {
    pub(crate) async fn repair_rows(&self, plan: &RepairPlan) -> Result<RepairReport, MoveError> {
        let mut report = RepairReport::default();
        if plan.steps.is_empty() {
            return Ok(report);
        }
        let catalog = self.own_epoch("repair: an epoch of its own for claims").await?;
        // Moves that are not among these begin after that epoch, and their claims are later.
        let moves = self.log.all().await?;
        for step in &plan.steps {
            let has_it = |of: &&crate::log::state::Move| {
                let mapping = mapping_of(&catalog, &of.order).map(|(_, mapping)| mapping);
                of.state().is_active()
                    && of.order.map == *self.schema.map()
                    && mapping.is_none_or(|there| there == step.mapping)
            };
            let done = match moves.iter().find(has_it) {
                Some(of) => Err(format!("move {} is not at its end", of.id)),
                None => self.repair_step(&catalog, step, &mut report).await?,
            };
            if let Err(why) = done {
                report.skipped.push((step.clone(), why));
            }
        }
        Ok(report)
    }

    /// An epoch of the map in which nothing is different.
    async fn own_epoch(&self, note: &str) -> Result<Catalog, MoveError> {
        for _ in 0..EPOCHS_MAX {
            let known = self.home.load().await?;
            let next = known.clone().at_epoch(known.epoch().next());
            match self.home.replace(&known, &next, note).await {
                Ok(()) => return Ok(next),
                Err(HomeError::Moved { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(HomeError::Busy { place: self.home.place().to_owned(), attempts: EPOCHS_MAX }.into())
    }

    /// Repairs a mapping on a shard; why not, if it can't be.
    async fn repair_step(
        &self,
        catalog: &Catalog,
        step: &RepairStep,
        report: &mut RepairReport,
    ) -> Result<Result<(), String>, MoveError> {
        let pair = match self.pair(catalog, step)? {
            Ok(pair) => pair,
            Err(why) => return Ok(Err(why)),
        };
        let [_, other] = &pair.sides;
        // Refused: another move or repair has claimed it since.
        if let Err(error) = other.backend.claim(&other.shardlet, pair.claim).await {
            return Ok(Err(error.to_string()));
        }
        if other.backend.capabilities().fence == Fence::Expires {
            let wait = self.settings.expires_after.saturating_add(self.settings.clock_bound);
            self.clock.sleep(wait).await;
        }
        let mut done = Ok(Ok(()));
        for table in self.schema.tables().filter(|table| table.is_sharded()) {
            done = self.delete_copies(catalog, table, &pair, report).await;
            if !matches!(done, Ok(Ok(()))) {
                break;
            }
        }
        // After an error, too: no late delete may land once nobody repairs any more.
        other.backend.release(&other.shardlet, pair.claim).await?;
        done
    }

    fn pair(&self, catalog: &Catalog, step: &RepairStep) -> Result<Result<Pair, String>, MoveError> {
        let map = self.map_of(catalog)?;
        let Some(placement) = map.placement(&step.mapping) else {
            return Ok(Err("the map does not have the mapping any more".to_owned()));
        };
        if placement.shard == step.shard {
            return Ok(Err("the map has the mapping on this shard by now".to_owned()));
        }
        let Some(shardlet) = Shardlet::new(map.clone(), step.mapping.clone()) else {
            return Ok(Err("the map does not have the mapping any more".to_owned()));
        };
        let side = |shard: &Name| {
            let backend = self.shards.backends.get(shard).cloned();
            let backend = backend.ok_or_else(|| MoveError::NoBackend(shard.clone()))?;
            let (shard, shardlet, bounds) = (shard.clone(), shardlet.clone(), bounds_of(2));
            Ok::<_, MoveError>(Side { shard, backend, shardlet, bounds })
        };
        let sides = [side(&placement.shard)?, side(&step.shard)?];
        Ok(Ok(Pair { sides, claim: catalog.epoch() }))
    }

    async fn delete_copies(
        &self,
        catalog: &Catalog,
        table: &TableSchema,
        pair: &Pair,
        report: &mut RepairReport,
    ) -> Result<Result<(), String>, MoveError> {
        let mut merged = Merged::new(&pair.sides, table).await?;
        let mut copies: Vec<RowKey> = Vec::new();
        loop {
            let next = merged.next().await?;
            let is_at_end = next.is_none();
            if let Some(same) = next {
                match same.rows.as_slice() {
                    [(_, one), (_, other)] if one == other => copies.push(same.key),
                    [(0, _)] => {}
                    _ => report.kept += 1,
                }
            }
            if copies.len() == BATCH_ROWS_MAX || (is_at_end && !copies.is_empty()) {
                if self.home.refresh(catalog).await?.epoch() != catalog.epoch() {
                    return Ok(Err("the map was changed meanwhile; check and repair again".to_owned()));
                }
                if let Err(error) = pair.sides[1].delete(table, pair.claim, &copies).await {
                    return Ok(Err(error.to_string()));
                }
                report.deleted += copies.len() as u64;
                copies.clear();
            }
            if is_at_end {
                return Ok(Ok(()));
            }
        }
    }
}
