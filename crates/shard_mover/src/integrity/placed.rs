//! Rows on shards to which the map does not route them, and keys on two shards.
//!
//! What always holds: a row of a mapping that a move has is not judged on the move's shards, because the
//! move's copy is there or what it left.

use super::finding::{Finding, FindingKind, ForeignRows, IntegrityReport};
use super::judged::{Judged, SHOWN_EVERY_ROWS};
use super::merged::{Merged, SameKey};
use super::rules::Rules;
use crate::error::MoveError;
use crate::limits::FOREIGN_PLACES_MAX;
use shard_backend::{RowKey, TableSchema};
use shard_map::Name;

/// Checks a table.
pub(crate) async fn check_placed(
    table: &TableSchema,
    judged: &Judged<'_>,
    rules: &Rules,
    report: &mut IntegrityReport,
    mut shown: impl FnMut(u64),
) -> Result<(), MoveError> {
    let mut merged = Merged::new(&judged.sides, table).await?;
    while let Some(same) = merged.next().await? {
        let before = report.rows;
        report.rows += same.rows.len() as u64;
        if before / SHOWN_EVERY_ROWS != report.rows / SHOWN_EVERY_ROWS {
            shown(report.rows);
        }
        check_key(table, judged, rules, report, &same);
    }
    Ok(())
}

fn check_key(
    table: &TableSchema,
    judged: &Judged<'_>,
    rules: &Rules,
    report: &mut IntegrityReport,
    same: &SameKey,
) {
    let route = judged.route(table, &same.key);
    let owner = route.as_ref().map(|route| &route.placement.shard);
    let is_judged =
        |shard: &Name| route.as_ref().is_none_or(|route| !judged.is_moving(&route.mapping, shard));
    let shard_of = |index: usize| &judged.sides[index].shard;
    let there: Vec<&Name> = same.rows.iter().map(|(index, _)| shard_of(*index)).collect();
    let of_owner = same.rows.iter().find(|(index, _)| Some(shard_of(*index)) == owner);
    for (index, row) in &same.rows {
        let shard = shard_of(*index);
        if !rules.foreign || Some(shard) == owner || !is_judged(shard) {
            continue;
        }
        let kind = match (owner, of_owner) {
            (None, _) => FindingKind::Unrouted,
            (Some(owner), None) => FindingKind::Stray { owner: owner.clone() },
            (Some(owner), Some((_, other))) if other == row => {
                FindingKind::StaleCopy { owner: owner.clone() }
            }
            (Some(owner), Some(_)) => FindingKind::Conflict { owner: owner.clone() },
        };
        if let Some(route) = &route {
            count(report, (shard.clone(), route.mapping.clone()), &kind);
        }
        add(report, shard, table, &same.key, kind);
    }
    let judged_there: Vec<&Name> = there.into_iter().filter(|shard| is_judged(shard)).collect();
    if let (true, [first, others @ ..]) = (rules.duplicates, judged_there.as_slice())
        && !others.is_empty()
    {
        let others = others.iter().copied().cloned().collect();
        add(report, first, table, &same.key, FindingKind::Duplicate { others });
    }
}

fn count(report: &mut IntegrityReport, place: super::finding::ForeignPlace, kind: &FindingKind) {
    if report.foreign.len() >= FOREIGN_PLACES_MAX && !report.foreign.contains_key(&place) {
        return;
    }
    let ForeignRows { copies, others } = report.foreign.entry(place).or_default();
    match kind {
        FindingKind::StaleCopy { .. } => *copies += 1,
        _ => *others += 1,
    }
}

pub(crate) fn add(
    report: &mut IntegrityReport,
    shard: &Name,
    table: &TableSchema,
    key: &RowKey,
    kind: FindingKind,
) {
    let name = kind.name();
    let (shard, table) = (shard.clone(), table.name().to_owned());
    report.add(|| Finding { shard, table, key: key.to_string(), kind }, name);
}
