//! Begins a move: checks what can be checked before anything is changed, and puts the first state.
//!
//! What always holds: while a move has a mapping, or something else has it frozen, no other of it begins. A
//! frozen mapping keeps its keys; if one that a move has was changed all the same, because others thawed it
//! or the map was recovered, no other move of that map begins: the former one may still write its former
//! keys.

use super::mover::Mover;
use super::observe::{freezer, mapping_of};
use crate::error::MoveError;
use crate::log::id::MoveId;
use crate::log::state::{Move, MoveOrder, MoveState};
use crate::plan::move_mapping::{check_placement, check_target, check_thawed, mode};
use crate::plan::plan::PlannedMove;
use crate::plan::refusal::Refusal;
use crate::settings::PlantedFault;
use shard_backend::{MoveMode, drift};
use shard_map::{Catalog, Name};

impl Mover {
    pub(super) async fn begin_move(&self, planned: &PlannedMove) -> Result<MoveId, MoveError> {
        let catalog = self.home.load().await?;
        let order = self.order(&catalog, planned)?;
        for shard in [&order.from, &order.to] {
            self.check_schema(shard).await?;
        }
        for other in self.log.all().await? {
            if !self.settings.planted.is(PlantedFault::ThawEarly) {
                check_beside(&catalog, &order, &other)?;
            }
        }
        let id = self.log.new_id();
        // An answer that is lost leaves a move that nothing was done of; it is undone or finished like
        // others.
        self.log.put(&id, 0, MoveState::Planned { order }).await?;
        Ok(id)
    }

    fn order(&self, catalog: &Catalog, planned: &PlannedMove) -> Result<MoveOrder, Refusal> {
        let PlannedMove { map: name, mapping, from, to, .. } = planned;
        let map = catalog.map(name.as_str()).ok_or_else(|| Refusal::NoMap(name.clone()))?;
        self.schema.check_map(map).map_err(|error| Refusal::Schema(error.to_string()))?;
        let Some(placement) = map.placement(mapping) else {
            return Err(Refusal::NoMapping { map: name.clone(), mapping: mapping.to_string() });
        };
        let text = || map.mapping_text(mapping);
        if placement.shard != *from {
            let (there, planned) = (placement.shard.clone(), from.clone());
            return Err(Refusal::Elsewhere { map: name.clone(), mapping: text(), there, planned });
        }
        if from == to {
            return Err(Refusal::IsThere { map: name.clone(), mapping: text(), shard: to.clone() });
        }
        check_placement(name, text, placement)?;
        check_thawed(map, mapping)?;
        check_target(catalog.shard(to.as_str()).ok_or_else(|| Refusal::NoShard(to.clone()))?)?;
        let backend = |shard: &Name| {
            let backend = self.backend(shard).map_err(|_| Refusal::NoBackend(shard.clone()));
            Ok::<_, Refusal>(backend?.capabilities())
        };
        let is_offline = planned.mode == MoveMode::Offline;
        mode((from, &backend(from)?), (to, &backend(to)?), is_offline)?;
        Ok(MoveOrder {
            map: name.clone(),
            mapping: mapping.to_string(),
            from: from.clone(),
            to: to.clone(),
            since: placement.since,
            catalog_epoch: catalog.epoch(),
            is_offline,
            rows: planned.rows,
            schema: self.schema.fingerprint().to_string(),
        })
    }

    pub(crate) async fn check_schema(&self, shard: &Name) -> Result<(), MoveError> {
        let drift = drift(&self.schema, &self.backend(shard)?.actual_schema().await?);
        match drift.first() {
            None => Ok(()),
            Some(first) => {
                let more = match drift.len() - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                let drift = format!("{first}{more}");
                Err(Refusal::Drift { shard: shard.clone(), drift }.into())
            }
        }
    }
}

/// Whether a move may begin beside another.
fn check_beside(catalog: &Catalog, order: &MoveOrder, other: &Move) -> Result<(), Refusal> {
    if !other.state().is_active() || other.order.map != order.map {
        return Ok(());
    }
    if other.order.mapping == order.mapping {
        let (map, mapping, id) = (order.map.clone(), order.mapping.clone(), other.id.to_string());
        return Err(Refusal::Moving { map, mapping, id });
    }
    // A change that the other one has not recorded yet froze the mapping.
    let is_its_own = mapping_of(catalog, &other.order).is_some_and(|(map, mapping)| {
        let Some(map) = catalog.map(map) else { return false };
        map.frozen_by(&mapping).is_some_and(|there| there.by == freezer(&other.id))
            || map.placement(&mapping).is_some_and(|there| other.has_recorded(there.since))
    });
    let has_written = other.has_claimed();
    match is_its_own || !has_written {
        true => Ok(()),
        false => Err(Refusal::ChangedUnderMove { map: order.map.clone(), id: other.id.to_string() }),
    }
}
