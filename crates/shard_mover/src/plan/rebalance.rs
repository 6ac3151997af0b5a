//! `plan rebalance`: even shards with the fewest moves.
//!
//! A shard is even if its size and its load are at most the tolerance above the mean of the shards that take
//! mappings, or as large as the largest single mapping. Shards that drain are no part of it. Shards with the
//! same tags, such as a region, are a pool of their own: their mappings go to no other ones, unless tags are
//! crossed on purpose.
//!
//! What always holds: a mapping stays among shards whose tags are those of its shard, unless that is asked
//! for; [`Balance::Fewest`] is proved; else the plan says how many moves are needed at least.

use super::facts::{Facts, MappingOf};
use super::move_mapping::{check_move, check_target};
use super::plan::{Balance, Plan};
use super::search::{Piece, Problem, search};
use crate::limits::{SEARCH_MAPPINGS_MAX, SEARCH_NODES_MAX};
use shard_map::{Catalog, Name, Shard};
use std::collections::BTreeMap;

/// Makes shards even.
pub fn plan_rebalance(facts: &Facts) -> Plan {
    let mut plan = Plan::default();
    rebalance(facts, &facts.catalog, &mut plan);
    plan
}

/// The same over the catalog after a plan's changes.
pub(super) fn rebalance(facts: &Facts, catalog: &Catalog, plan: &mut Plan) {
    let mut pools: BTreeMap<Option<&BTreeMap<Name, String>>, Vec<&Name>> = BTreeMap::new();
    let is_usable =
        |shard: &&Shard| check_target(shard).is_ok() && facts.capabilities.contains_key(&shard.name);
    for shard in catalog.shards().filter(is_usable) {
        let tags = (!facts.settings.crosses_tags).then_some(&shard.tags);
        pools.entry(tags).or_default().push(&shard.name);
    }
    let found = pools.values().map(|shards| rebalance_pool(facts, catalog, shards, plan));
    let found: Vec<Balanced> = found.collect();
    let (moves, at_least) =
        found.iter().fold((0, 0), |sum, of| (sum.0 + of.moves, sum.1 + of.at_least.min(of.moves)));
    plan.balance = Some(match found.iter().all(|of| of.is_balanced) && plan.refused.is_empty() {
        false => Balance::Uneven,
        true if at_least >= moves => Balance::Fewest,
        true => Balance::AtLeast(at_least),
    });
}

/// What shards of the same tags came to.
struct Balanced {
    is_balanced: bool,
    moves: usize,
    /// So many are needed.
    at_least: usize,
}

/// Makes shards even that may have each other's mappings.
fn rebalance_pool(facts: &Facts, catalog: &Catalog, shards: &[&Name], plan: &mut Plan) -> Balanced {
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
    let (is_balanced, moves) = (solution.is_balanced, solution.moves.len());
    Balanced { is_balanced, moves, at_least: solution.at_least }
}

/// What a shard may have.
fn cap(pieces: &[Piece], which: usize, shards: usize, tolerance_percent: u64) -> u64 {
    let sum: u128 = pieces.iter().map(|piece| u128::from(piece.weight[which])).sum();
    let mean = sum.div_ceil(shards.max(1) as u128);
    let cap = mean + mean * u128::from(tolerance_percent) / 100;
    let largest = pieces.iter().map(|piece| piece.weight[which]).max().unwrap_or(0);
    u64::try_from(cap).unwrap_or(u64::MAX).max(largest)
}

#[cfg(test)]
mod tests {
    use super::super::add_shard::plan_add;
    use super::super::facts::{MappingSize, PlanSettings};
    use super::*;
    use shard_backend::Capabilities;
    use shard_map::{Change, Hashed, KeyHash, KeyKind, KeyType, MapBuilder, MappingId};

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    fn shard(text: &str, region: &str) -> Shard {
        let tags =
            if region.is_empty() { BTreeMap::new() } else { [(name("region"), region.to_owned())].into() };
        Shard { tags, ..Shard::new(name(text), text) }
    }

    /// Eight virtual shards of one size, all on `eu1`.
    fn facts(shards: &[Shard], crosses_tags: bool) -> Facts {
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
        map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 8 }).expect("a hash");
        map.spread(&[name("eu1")]).expect("room");
        let mut changes: Vec<Change> = shards.iter().cloned().map(Change::AddShard).collect();
        changes.push(Change::AddMap(map.build().expect("a map")));
        let catalog = Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog;
        let size = MappingSize { rows: 1, bytes: 100, load: 0 };
        let sizes = (0..8).map(|number| ((name("m"), MappingId::Virtual(number)), size)).collect();
        let names = ["eu1", "eu2", "eu3", "us1", "us2"];
        let capabilities = names.map(|shard| (name(shard), Capabilities::POSTGRES)).into();
        let settings = PlanSettings { crosses_tags, ..PlanSettings::default() };
        Facts { catalog, capabilities, sizes, moving: Default::default(), settings }
    }

    fn targets(plan: &Plan) -> BTreeMap<&str, usize> {
        let mut targets = BTreeMap::new();
        plan.moves.iter().for_each(|of| *targets.entry(of.to.as_str()).or_default() += 1);
        targets
    }

    /// Tenants of one region were planned to go to another one's shards.
    #[test]
    fn mappings_stay_among_shards_of_the_same_tags() {
        let shards = [shard("eu1", "eu"), shard("eu2", "eu"), shard("us1", "us"), shard("us2", "us")];
        let plan = plan_rebalance(&facts(&shards, false));
        assert_eq!((targets(&plan), plan.balance), ([("eu2", 4)].into(), Some(Balance::Fewest)));
        let plan = plan_rebalance(&facts(&shards, true));
        assert_eq!((targets(&plan).len(), plan.moves.len()), (3, 6), "{plan:?}");
        let untagged = [shard("eu1", ""), shard("eu2", ""), shard("us1", "us")];
        assert_eq!(targets(&plan_rebalance(&facts(&untagged, false))), [("eu2", 4)].into());
        // A shard that is added takes of those with its tags.
        let one = facts(&shards[..1], false);
        for (region, expected) in [("eu", 4), ("us", 0)] {
            let plan = plan_add(&one, &shard("eu3", region)).expect("a plan");
            assert_eq!(plan.moves.len(), expected, "{region}");
        }
    }
}
