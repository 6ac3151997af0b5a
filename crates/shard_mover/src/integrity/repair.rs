//! Deletes rows of a mapping from a shard that the map does not name for it, if the owner has them.
//!
//! What always holds:
//!
//! * a row is deleted only after the owner's row of its key was read and every value of both is equal, which
//!   is stricter than equal hashes; all else is reported and stays;
//! * deletes have a claim of an epoch that the repair made, by the change that froze all its mappings: so
//!   they keep their keys, and no move of them begins. Mappings that something else has frozen are left out;
//! * a repair that was killed leaves its mappings frozen. The next one takes them: it ends the claims that
//!   the former one may have, on all shards, before it thaws them;
//! * before each batch the map is read again, and once it was changed the repair of the mapping ends. The
//!   claim is released at the end, so that no late delete lands.

use super::merged::{Merged, bounds_of};
use super::repair_plan::{RepairPlan, RepairReport, RepairStep};
use crate::course::map_changes::selection;
use crate::course::mover::Mover;
use crate::course::observe::mapping_of;
use crate::error::MoveError;
use crate::log::state::Move;
use crate::rows::side::Side;
use shard_backend::{BATCH_ROWS_MAX, BackendError, Fence, RowKey, Shardlet, TableSchema};
use shard_map::{Catalog, Change, Epoch, MapChange, MappingId, Name, ShardMap};
use std::collections::BTreeSet;

/// What the text begins with by which a repair freezes mappings.
const FREEZER: &str = "repair ";

/// Rows of one mapping on two shards.
struct Pair {
    /// The owner, then the other one.
    sides: [Side; 2],
    claim: Epoch,
}

impl Mover {
    pub(crate) async fn repair_rows(&self, plan: &RepairPlan) -> Result<RepairReport, MoveError> {
        let mut report = RepairReport::default();
        let by = format!("{FREEZER}{}", self.log.new_id());
        let known = self.home.load().await?;
        // A move that is marked after this is found by the change, and one that begins later waits for it.
        let moves = self.log.all().await?;
        let (steps, left) = steps_beside(plan, &moves, &known, self.schema.map());
        report.skipped = left;
        let wanted: BTreeSet<MappingId> = steps.iter().map(|step| step.mapping.clone()).collect();
        let mut former = self.frozen_by_repairs(&known)?;
        if wanted.is_empty() && former.is_empty() {
            return Ok(report);
        }
        let decide = |catalog: &Catalog| {
            former = self.frozen_by_repairs(catalog)?;
            self.freezes(catalog, (&wanted, &former), &by)
        };
        let catalog = self.home.change(&known, &format!("{by}: freeze"), decide).await?.catalog;
        self.end_former_claims(&catalog, &former, &steps).await?;
        for step in steps {
            if let Err(why) = self.repair_step(&catalog, step, &by, &mut report).await? {
                report.skipped.push((step.clone(), why));
            }
        }
        let decide =
            |catalog: &Catalog| Ok::<_, MoveError>(thaws(self.map_of(catalog)?, |there| there == by));
        self.home.change(&catalog, &format!("{by}: thaw"), decide).await?;
        Ok(report)
    }

    /// What repairs have frozen that are killed, or under way elsewhere: those lose their claims.
    fn frozen_by_repairs(&self, catalog: &Catalog) -> Result<Vec<MappingId>, MoveError> {
        let frozen = self.map_of(catalog)?.frozen().filter(|(_, there)| there.by.starts_with(FREEZER));
        Ok(frozen.map(|(mapping, _)| mapping.clone()).collect())
    }

    /// The changes that freeze these mappings, and those that former repairs have frozen.
    fn freezes(
        &self,
        catalog: &Catalog,
        (wanted, former): (&BTreeSet<MappingId>, &[MappingId]),
        by: &str,
    ) -> Result<Vec<Change>, MoveError> {
        let map = self.map_of(catalog)?;
        let mut changes = thaws(map, |there| there.starts_with(FREEZER));
        let free =
            wanted.iter().filter(|wanted| map.placement(wanted).is_some() && map.frozen_by(wanted).is_none());
        let mappings: BTreeSet<&MappingId> = former.iter().chain(free).collect();
        let selections = mappings.into_iter().filter_map(|mapping| selection(mapping, map.key_type()));
        changes.extend(selections.map(|mappings| {
            Change::Map(map.name().clone(), MapChange::Freeze { mappings, by: by.to_owned() })
        }));
        Ok(changes)
    }

    /// No delete of a former repair passes any more. It had none on the owner; the steps that are to be done
    /// have newer claims themselves.
    async fn end_former_claims(
        &self,
        catalog: &Catalog,
        former: &[MappingId],
        steps: &[&RepairStep],
    ) -> Result<(), MoveError> {
        let (map, mut expires) = (self.map_of(catalog)?, false);
        for mapping in former {
            let Some(shardlet) = Shardlet::new(map.clone(), mapping.clone()) else { continue };
            let owner = map.placement(mapping).map(|placement| &placement.shard);
            let is_claimed_anew =
                |shard: &Name| steps.iter().any(|step| step.shard == *shard && step.mapping == *mapping);
            let shards = catalog.shards().map(|shard| &shard.name);
            for shard in shards.filter(|shard| Some(*shard) != owner && !is_claimed_anew(shard)) {
                let backend = self.backend(shard)?;
                backend.claim(&shardlet, catalog.epoch()).await?;
                backend.release(&shardlet, catalog.epoch()).await?;
                expires |= backend.capabilities().fence == Fence::Expires;
            }
        }
        if expires {
            self.clock.sleep(self.settings.expires_after.saturating_add(self.settings.clock_bound)).await;
        }
        Ok(())
    }

    /// Repairs a mapping on a shard; why not, if it can't be.
    async fn repair_step(
        &self,
        catalog: &Catalog,
        step: &RepairStep,
        by: &str,
        report: &mut RepairReport,
    ) -> Result<Result<(), String>, MoveError> {
        let frozen = self.map_of(catalog)?.frozen_by(&step.mapping);
        if let Some(other) = frozen.filter(|there| there.by != by) {
            return Ok(Err(format!("{} has the mapping frozen", other.by)));
        }
        let pair = match self.pair(catalog, step)? {
            Ok(pair) => pair,
            Err(why) => return Ok(Err(why)),
        };
        let [_, other] = &pair.sides;
        // Refused: another move or repair has claimed it since. Any other error ends the repair with the
        // mapping frozen: what a former repair has under way there is not ended.
        match other.backend.claim(&other.shardlet, pair.claim).await {
            Ok(()) => {}
            Err(error @ (BackendError::Claimed { .. } | BackendError::Released { .. })) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error.into()),
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
            let (backend, shard) = (self.backend(shard)?, shard.clone());
            Ok::<_, MoveError>(Side { shard, backend, shardlet: shardlet.clone(), bounds: bounds_of(2) })
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

/// The changes that thaw what was frozen by such a text.
fn thaws(map: &ShardMap, is_it: impl Fn(&str) -> bool) -> Vec<Change> {
    let frozen = map.frozen().filter(|(_, there)| is_it(&there.by));
    let thaws = frozen.filter_map(|(mapping, there)| {
        let (mappings, by) = (selection(mapping, map.key_type())?, there.by.clone());
        Some(Change::Map(map.name().clone(), MapChange::Thaw { mappings, by }))
    });
    thaws.collect()
}

/// The steps that no move is in the way of, and the others with the reason.
fn steps_beside<'a>(
    plan: &'a RepairPlan,
    moves: &[Move],
    catalog: &Catalog,
    map: &Name,
) -> (Vec<&'a RepairStep>, Vec<(RepairStep, String)>) {
    let active: Vec<(&Move, Option<MappingId>)> = moves
        .iter()
        .filter(|of| of.state().is_active() && of.order.map == *map)
        .map(|of| (of, mapping_of(catalog, &of.order).map(|(_, mapping)| mapping)))
        .collect();
    let (mut steps, mut left) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        let has_it = |(_, mapping): &&(&Move, Option<MappingId>)| {
            mapping.as_ref().is_none_or(|there| *there == step.mapping)
        };
        match active.iter().find(has_it) {
            Some((of, _)) => left.push((step.clone(), format!("move {} is not at its end", of.id))),
            None => steps.push(step),
        }
    }
    (steps, left)
}
