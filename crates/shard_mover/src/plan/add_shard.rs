//! `plan add SHARD`: a shard is added, and gets its part with the fewest moves.

use super::facts::Facts;
use super::plan::Plan;
use super::rebalance::rebalance;
use super::refusal::Refusal;
use shard_map::{Change, Shard};

/// Adds a shard and makes all even.
pub fn plan_add(facts: &Facts, shard: &Shard) -> Result<Plan, Refusal> {
    let changes = vec![Change::AddShard(shard.clone())];
    let after = facts.catalog.apply(&changes)?.catalog;
    let mut plan = Plan { changes, ..Plan::default() };
    rebalance(facts, &after, &mut plan);
    Ok(plan)
}
