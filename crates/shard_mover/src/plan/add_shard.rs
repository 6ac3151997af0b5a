//! `plan add SHARD`: a shard is added, and gets its part with the fewest moves.

use super::facts::Facts;
use super::plan::Plan;
use super::rebalance::rebalance;
use super::refusal::Refusal;
use shard_map::{Catalog, Change, Shard};

/// Whether the catalog has the shard as it is to be added, without mappings: what a plan leaves that was cut
/// off before its first move.
pub fn is_added(catalog: &Catalog, shard: &Shard) -> bool {
    let name = shard.name.as_str();
    let is_it = |there: &Shard| there.location == shard.location && there.tags == shard.tags;
    catalog.shard(name).is_some_and(is_it) && catalog.mappings_on(name).next().is_none()
}

/// Adds a shard, unless it is there already without mappings, and makes all even.
pub fn plan_add(facts: &Facts, shard: &Shard) -> Result<Plan, Refusal> {
    let is_there = is_added(&facts.catalog, shard);
    let changes = if is_there { Vec::new() } else { vec![Change::AddShard(shard.clone())] };
    let after = facts.catalog.apply(&changes)?.catalog;
    let mut plan = Plan { changes, ..Plan::default() };
    rebalance(facts, &after, &mut plan);
    Ok(plan)
}
