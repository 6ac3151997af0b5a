//! `plan rebalance`: even shards with the fewest moves.
//!
//! A shard is even if its size and its load are at most the tolerance above the mean of the shards that take
//! mappings, or as large as the largest single mapping. Shards that drain are no part of it.
//!
//! What always holds: [`Balance::Fewest`] is proved; else the plan says how many moves are needed at least.

use super::facts::{Facts, MappingOf};
use super::move_mapping::{check_move, check_target};
use super::plan::{Balance, Plan};
use super::search::{Piece, Problem, search};
use crate::limits::{SEARCH_MAPPINGS_MAX, SEARCH_NODES_MAX};
use shard_map::{Catalog, Name};

/// Makes shards even.
pub fn plan_rebalance(facts: &Facts) -> Plan {
    let mut plan = Plan::default();
    rebalance(facts, &facts.catalog, &mut plan);
    plan
}

/// The same over the catalog after a plan's changes.
pub(super) fn rebalance(facts: &Facts, catalog: &Catalog, plan: &mut Plan) {
    let shards: Vec<&Name> = catalog
        .shards()
        .filter(|shard| check_target(shard).is_ok() && facts.capabilities.contains_key(&shard.name))
        .map(|shard| &shard.name)
        .collect();
    let mappings: Vec<(MappingOf, usize)> = catalog
        .maps()
        .flat_map(|map| map.mappings().map(|(id, placement)| ((map.name().clone(), id), placement)))
        .filter_map(|(of, placement)| Some((of, shards.iter().position(|shard| **shard == placement.shard)?)))
        .collect();
    // A mapping that can go nowhere stays where it is, and counts there.
    let is_movable = |of: &MappingOf, at: usize| {
        let others = shards.iter().enumerate().filter(|(index, _)| *index != at);
        others.into_iter().any(|(_, to)| check_move(facts, catalog, of, to).is_ok())
    };
    let pieces: Vec<Piece> = mappings
        .iter()
        .map(|(of, shard)| {
            let size = facts.size(of);
            let is_movable = is_movable(of, *shard);
            Piece { shard: *shard, weight: [size.bytes, size.load], is_movable }
        })
        .collect();
    let cap = [0, 1].map(|which| cap(&pieces, which, shards.len(), facts.settings.tolerance_percent));
    let takes = vec![true; shards.len()];
    let nodes_max = SEARCH_NODES_MAX.min(SEARCH_MAPPINGS_MAX / pieces.len().max(1));
    let solution = search(&Problem { pieces, shards: shards.len(), takes, cap }, nodes_max);
    for (piece, to) in &solution.moves {
        plan.add(facts, catalog, &mappings[*piece].0, shards[*to]);
    }
    plan.balance = Some(match (solution.is_balanced && plan.refused.is_empty(), solution.at_least) {
        (false, _) => Balance::Uneven,
        (true, at_least) if at_least >= solution.moves.len() => Balance::Fewest,
        (true, at_least) => Balance::AtLeast(at_least),
    });
}

/// What a shard may have.
fn cap(pieces: &[Piece], which: usize, shards: usize, tolerance_percent: u64) -> u64 {
    let sum: u128 = pieces.iter().map(|piece| u128::from(piece.weight[which])).sum();
    let mean = sum.div_ceil(shards.max(1) as u128);
    let cap = mean + mean * u128::from(tolerance_percent) / 100;
    let largest = pieces.iter().map(|piece| piece.weight[which]).max().unwrap_or(0);
    u64::try_from(cap).unwrap_or(u64::MAX).max(largest)
}
