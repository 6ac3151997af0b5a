//! `plan move MAPPING to SHARD`, and the checks that every planned move passes.

use super::estimate::pause;
use super::facts::{Facts, MappingOf};
use super::plan::{Plan, PlannedMove, RefusedMove};
use super::refusal::Refusal;
use shard_backend::{Capabilities, MoveMode, choose_move};
use shard_map::{Catalog, MappingId, Name, Placement, Shard, ShardMap, State};

/// Moves one mapping.
pub fn plan_move(facts: &Facts, mapping: &MappingOf, to: &Name) -> Plan {
    let mut plan = Plan::default();
    plan.add(facts, &facts.catalog, mapping, to);
    plan
}

impl Plan {
    /// Adds a move, or why it is refused. The catalog is the one after the plan's changes.
    pub(super) fn add(&mut self, facts: &Facts, catalog: &Catalog, of: &MappingOf, to: &Name) {
        match check_move(facts, catalog, of, to) {
            Ok(planned) => self.moves.push(planned),
            Err(why) => {
                let (map, mapping) = of.clone();
                self.refused.push(RefusedMove { map, mapping, why });
            }
        }
    }
}

/// A move of a mapping, if it can be made.
pub(super) fn check_move(
    facts: &Facts,
    catalog: &Catalog,
    of: &MappingOf,
    to: &Name,
) -> Result<PlannedMove, Refusal> {
    let (name, mapping) = of;
    let map = catalog.map(name.as_str()).ok_or_else(|| Refusal::NoMap(name.clone()))?;
    let Some(placement) = map.placement(mapping) else {
        return Err(Refusal::NoMapping { map: name.clone(), mapping: mapping.to_string() });
    };
    let text = || map.mapping_text(mapping);
    check_placement(name, text, placement)?;
    if placement.shard == *to {
        return Err(Refusal::IsThere { map: name.clone(), mapping: text(), shard: to.clone() });
    }
    if facts.moving.contains(of) {
        let id = "another".to_owned();
        return Err(Refusal::Moving { map: name.clone(), mapping: mapping.to_string(), id });
    }
    check_thawed(map, mapping)?;
    check_target(catalog.shard(to.as_str()).ok_or_else(|| Refusal::NoShard(to.clone()))?)?;
    let side = |shard: &Name| {
        facts.capabilities.get(shard).copied().ok_or_else(|| Refusal::NoBackend(shard.clone()))
    };
    let (source, target) = (side(&placement.shard)?, side(to)?);
    let mode = mode((&placement.shard, &source), (to, &target), facts.settings.is_offline_allowed)?;
    let size = facts.size(of);
    Ok(PlannedMove {
        map: name.clone(),
        mapping: mapping.clone(),
        from: placement.shard.clone(),
        to: to.clone(),
        mode,
        rows: size.rows,
        bytes: size.bytes,
        pause: pause(size, &source, &target, &facts.settings),
    })
}

/// Whether a mapping can be moved from where it is.
pub(crate) fn check_placement(
    map: &Name,
    text: impl FnOnce() -> String,
    placement: &Placement,
) -> Result<(), Refusal> {
    match placement.state {
        State::Online => Ok(()),
        state => Err(Refusal::NotOnline { map: map.clone(), mapping: text(), state }),
    }
}

/// Whether nothing has a mapping frozen.
pub(crate) fn check_thawed(map: &ShardMap, mapping: &MappingId) -> Result<(), Refusal> {
    map.frozen_by(mapping).map_or(Ok(()), |there| {
        let (map, mapping) = (map.name().clone(), map.mapping_text(mapping));
        Err(Refusal::Frozen { map, mapping, by: there.by.clone() })
    })
}

/// Whether a shard takes mappings.
pub(crate) fn check_target(shard: &Shard) -> Result<(), Refusal> {
    let why = match (shard.is_draining, shard.state) {
        (true, _) => "draining".to_owned(),
        (false, State::Online) => return Ok(()),
        (false, state) => state.to_string(),
    };
    Err(Refusal::TakesNothing { shard: shard.name.clone(), why })
}

/// How rows are moved: read-only, as far as movers can it today, or offline if that is asked for.
pub(crate) fn mode(
    (from, source): (&Name, &Capabilities),
    (to, target): (&Name, &Capabilities),
    is_offline_allowed: bool,
) -> Result<MoveMode, Refusal> {
    let choice = choose_move(source, target);
    match choice.mode {
        MoveMode::OnlineFenced | MoveMode::ReadOnly => Ok(MoveMode::ReadOnly),
        MoveMode::Offline if is_offline_allowed => Ok(MoveMode::Offline),
        MoveMode::Offline => {
            let (from, to, reasons) = (from.clone(), to.clone(), choice.reasons);
            Err(Refusal::OfflineOnly { from, to, reasons })
        }
    }
}
