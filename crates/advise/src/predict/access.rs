//! How a query is answered under a design: which partitions a client has to read for it.
//!
//! Each part of the PartitionKey has so many texts that the client has to try: one if the query names the
//! property, the buckets of a hash, the periods of a range, the values of a property that has few. Their
//! product is the query's *fan-out*. A part that can't be tried leaves a scan: of a range of partitions if
//! the parts before it are known, of the table if not.

use crate::design::{Part, Period};
use crate::mix::Query;
use crate::predict::facts::Facts;
use table::PlanClass;

/// Partitions that a client tries, at most; beyond that an index table is kept.
pub(crate) const FAN_OUT_MAX: f64 = 64.0;

/// Which partitions are read for a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    /// As for a filter.
    pub class: PlanClass,
    /// Partitions, each by a query of its own; of scans those that are there.
    pub fan_out: f64,
    /// Rows that are read, if that is known from the parts before the one that is not.
    pub(crate) rows: Option<f64>,
    /// Whether RowKeys narrow the read to what is wanted.
    pub is_narrow: bool,
}

/// How a query reaches its entities under keys of these parts.
pub(crate) fn reach(partition: &[Part], row: &[Part], query: &Query, facts: &Facts<'_>) -> Reach {
    let mut fan_out = 1.0;
    for (index, part) in partition.iter().enumerate() {
        match tries(part, query, facts) {
            Some(count) => fan_out *= count,
            None if index > 0 && fan_out <= FAN_OUT_MAX => {
                // All rows that have the known parts in common.
                let rows = facts.partition_size(&partition[..index]) * fan_out;
                let there = rows * facts.partition_count(partition) / facts.sample.whole_count();
                let class = PlanClass::PartitionRange;
                return Reach { class, fan_out: there.max(fan_out), rows: Some(rows), is_narrow: false };
            }
            None => return scan(partition, facts),
        }
    }
    if fan_out > FAN_OUT_MAX {
        // So many queries cost more than reading everything once.
        return Reach { fan_out, ..scan(partition, facts) };
    }
    let (is_row_named, is_narrow) = narrowing(partition, row, query);
    let class = match (is_row_named, is_narrow, fan_out > 1.0) {
        (true, _, false) => PlanClass::Point,
        (true, _, true) => PlanClass::Points,
        (false, _, true) => PlanClass::Partitions,
        (false, true, false) => PlanClass::RowRange,
        (false, false, false) => PlanClass::PartitionScan,
    };
    Reach { class, fan_out, rows: None, is_narrow }
}

fn scan(partition: &[Part], facts: &Facts<'_>) -> Reach {
    let fan_out = facts.partition_count(partition);
    Reach { class: PlanClass::TableScan, fan_out, rows: None, is_narrow: false }
}

/// How many texts of a part a client has to try; none if it can't know them.
fn tries(part: &Part, query: &Query, facts: &Facts<'_>) -> Option<f64> {
    let is_equal = part.property().is_none_or(|name| query.equal.iter().any(|one| one == name));
    if is_equal {
        return Some(1.0);
    }
    match part {
        Part::Bucket(_, buckets) => Some(f64::from(*buckets)),
        Part::Period(name, period) if query.range.as_deref() == Some(name) => {
            match (query.newest, query.length) {
                (Some(newest), None) => {
                    let there = facts.span(name).map(|span| periods(*period, span))?;
                    Some(facts.periods_of_newest(query, newest as f64, there))
                }
                (_, length) => {
                    Some(periods(*period, length.or_else(|| facts.span(name).map(|span| span / 2.0))?))
                }
            }
        }
        Part::Period(name, period) => facts.span(name).map(|span| periods(*period, span)),
        Part::Value(name) => facts.enumerable(name),
        Part::Reversed(_) | Part::Word(_) => None,
    }
}

/// Periods that a range of so many seconds touches, on the average.
fn periods(period: Period, length_s: f64) -> f64 {
    length_s / period.seconds() + 1.0
}

/// Whether the RowKey is named whole, and whether its first parts narrow the read to what is wanted.
fn narrowing(partition: &[Part], row: &[Part], query: &Query) -> (bool, bool) {
    let in_partition =
        |name: &String| partition.iter().any(|part| matches!(part, Part::Value(one) if one == name));
    let mut left: Vec<&String> = query.equal.iter().filter(|name| !in_partition(name)).collect();
    let mut wants_range = query.range.as_ref();
    let mut is_whole = true;
    for part in row {
        let name = part.property();
        if let Some(at) = left.iter().position(|one| Some(one.as_str()) == name) {
            left.remove(at);
            continue;
        }
        let is_named = part.property().is_none_or(|name| query.equal.iter().any(|one| one == name));
        if is_named {
            continue;
        }
        is_whole = false;
        if left.is_empty() && wants_range.map(String::as_str) == name {
            wants_range = None;
        }
        break;
    }
    (is_whole && left.is_empty() && wants_range.is_none(), left.is_empty() && wants_range.is_none())
}
