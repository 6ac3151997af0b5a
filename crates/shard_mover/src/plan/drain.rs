//! `plan drain SHARD`: nothing more is put on it, and all its mappings go elsewhere.
//!
//! Each mapping is moved once, which is the fewest; the largest first, each to the shard that is emptiest by
//! then.

use super::facts::{Facts, MappingOf};
use super::move_mapping::{check_move, check_target};
use super::plan::{Plan, RefusedMove};
use super::refusal::Refusal;
use shard_map::{Change, MappingId, Name};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Drains a shard.
pub fn plan_drain(facts: &Facts, shard: &Name) -> Result<Plan, Refusal> {
    let there = facts.catalog.shard(shard.as_str()).ok_or_else(|| Refusal::NoShard(shard.clone()))?;
    let mut drained = there.clone();
    drained.is_draining = true;
    let changes = match there.is_draining {
        true => Vec::new(),
        false => vec![Change::ChangeShard(drained)],
    };
    let after = facts.catalog.apply(&changes)?.catalog;
    let mut plan = Plan { changes, ..Plan::default() };
    let mut sizes: BTreeMap<&Name, u64> = BTreeMap::new();
    for target in after.shards().filter(|target| check_target(target).is_ok()) {
        let on_it = after.mappings_on(target.name.as_str());
        let bytes = on_it.map(|(map, mapping)| facts.size(&(map.name().clone(), mapping)).bytes).sum();
        sizes.insert(&target.name, bytes);
    }
    let of = |(map, mapping): (&shard_map::ShardMap, MappingId)| (map.name().clone(), mapping);
    let mut mappings: Vec<MappingOf> = after.mappings_on(shard.as_str()).map(of).collect();
    mappings.sort_by_key(|of| (Reverse(facts.size(of).bytes), of.clone()));
    for of in mappings {
        let mut targets: Vec<(u64, &Name)> = sizes.iter().map(|(name, bytes)| (*bytes, *name)).collect();
        targets.sort();
        let mut why = Refusal::NoTarget;
        let mut try_target = |to: &Name| match check_move(facts, &after, &of, to) {
            Ok(planned) => Some(planned),
            Err(refusal) => {
                why = refusal;
                None
            }
        };
        match targets.iter().find_map(|(_, to)| try_target(to)) {
            Some(planned) => {
                *sizes.entry(targets_name(&targets, &planned.to)).or_default() += planned.bytes;
                plan.moves.push(planned);
            }
            None => {
                let (map, mapping) = of.clone();
                plan.refused.push(RefusedMove { map, mapping, why });
            }
        }
    }
    Ok(plan)
}

/// The name among the targets.
fn targets_name<'a>(targets: &[(u64, &'a Name)], name: &Name) -> &'a Name {
    match targets.iter().find(|(_, target)| *target == name) {
        Some((_, target)) => target,
        None => unreachable!("a move goes to one of the targets"),
    }
}
