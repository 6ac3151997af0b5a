//! `plan split KEY`: a range becomes two, and the second one is moved if a shard is named.

use super::facts::Facts;
use super::plan::Plan;
use super::refusal::Refusal;
use shard_map::{Change, KeyValue, MapChange, MappingId, Name};

/// Splits the range that holds a key, which the second one begins with.
pub fn plan_split(facts: &Facts, map: &Name, at: &[KeyValue], to: Option<&Name>) -> Result<Plan, Refusal> {
    let there = facts.catalog.map(map.as_str()).ok_or_else(|| Refusal::NoMap(map.clone()))?;
    // A move that has the range would find it changed.
    if let Ok(route) = there.route(at)
        && facts.moving.contains(&(map.clone(), route.mapping.clone()))
    {
        let (mapping, id) = (route.mapping.to_string(), "another".to_owned());
        return Err(Refusal::Moving { map: map.clone(), mapping, id });
    }
    let changes = vec![Change::Map(map.clone(), MapChange::Split { at: at.to_vec() })];
    let after = facts.catalog.apply(&changes)?.catalog;
    let mut plan = Plan { changes, ..Plan::default() };
    if let Some(to) = to
        && let Ok(second) = there.key_type().bound(at)
    {
        plan.add(facts, &after, &(map.clone(), MappingId::Range(second)), to);
    }
    Ok(plan)
}
