//! Designs that are worth a prediction, from what queries compare.
//!
//! What always holds: their number is bounded, whatever the mix; a part is made only of a property that all
//! entities of the sample have.

use super::{KeyDesign, Kind, Part, Period};
use crate::mix::Query;
use crate::predict::facts::Facts;
use crate::predict::{Given, row_parts};
use table::EdmType;

/// Properties that are tried as the first part, at most.
const NAMED_MAX: usize = 8;
/// Buckets of a hash.
const BUCKETS_MIN: u32 = 8;
const BUCKETS_MAX: u32 = 256;
/// Entities a second that a bucket is given: a quarter of the live service's target for a partition.
const BUCKET_RATE: f64 = 500.0;
/// Periods that a sensible design divides the data into.
const PERIODS: std::ops::RangeInclusive<f64> = 2.0..=20_000.0;

/// The property, or the properties, that no two entities have in common; none if there are none.
pub(crate) fn identity(facts: &Facts<'_>) -> Vec<Part> {
    let entities = facts.entities();
    let unique = facts.columns.iter().filter(|(name, column)| {
        let is_key = matches!(name.as_str(), "PartitionKey" | "RowKey");
        column.is_unique(entities)
            && column.can_be_key(entities)
            && column.kind != EdmType::DateTime
            && !is_key
    });
    // Of several the one that makes the shortest keys.
    let best = unique.min_by_key(|(name, column)| (column.units_max, (*name).clone()));
    if let Some((name, _)) = best {
        return vec![Part::Value(name.clone())];
    }
    let keys = ["PartitionKey", "RowKey"];
    let has_keys = keys.iter().all(|name| facts.columns.contains_key(*name));
    if has_keys { keys.map(|name| Part::Value(name.to_owned())).into() } else { Vec::new() }
}

/// The keys that the entities have, as a design; none if they have none.
pub(crate) fn as_it_is(facts: &Facts<'_>) -> Option<KeyDesign> {
    let value = |name: &str| vec![Part::Value(name.to_owned())];
    let has = |name: &str| facts.columns.contains_key(name);
    (has("PartitionKey") && has("RowKey")).then(|| KeyDesign {
        kind: Kind::AsItIs,
        partition: value("PartitionKey"),
        row: value("RowKey"),
    })
}

/// All candidates.
pub(crate) fn candidates(given: &Given<'_>) -> Vec<KeyDesign> {
    let (named, times) = (named(given), times(given));
    let value = |name: &String| Part::Value(name.clone());
    let mut found: Vec<(Kind, Vec<Part>)> = Vec::new();
    found.extend(named.iter().map(|name| (Kind::Single, vec![value(name)])));
    if let [identity] = given.identity {
        found.push((Kind::Single, vec![identity.clone()]));
    }
    for first in &named {
        for second in named.iter().filter(|second| *second != first) {
            found.push((Kind::Composite, vec![value(first), value(second)]));
        }
        for time in &times {
            for period in [Period::Month, Period::Day, Period::Hour] {
                let span = given.facts.span(time).unwrap_or(0.0);
                if PERIODS.contains(&(span / period.seconds())) {
                    found.push((Kind::Composite, vec![value(first), Part::Period(time.clone(), period)]));
                }
            }
        }
    }
    found.extend(hashed(given, &named, &times).into_iter().map(|parts| (Kind::Hashed, parts)));
    found.into_iter().map(|(kind, partition)| design(kind, partition, given)).collect()
}

fn hashed(given: &Given<'_>, named: &[String], times: &[String]) -> Vec<Vec<Part>> {
    let mut found = Vec::new();
    for name in named {
        let value = Part::Value(name.clone());
        found.push(vec![Part::Bucket(name.clone(), buckets(given, 1.0))]);
        if let [Part::Value(identity)] = given.identity
            && identity != name
        {
            let hot = given.facts.largest(std::slice::from_ref(&value)).share;
            found.push(vec![value, Part::Bucket(identity.clone(), buckets(given, hot))]);
        }
    }
    if let [Part::Value(identity)] = given.identity {
        let bucket = Part::Bucket(identity.clone(), buckets(given, 1.0));
        found.extend(times.iter().map(|time| vec![bucket.clone(), Part::Period(time.clone(), Period::Day)]));
        found.push(vec![bucket]);
    }
    found
}

/// So many buckets that none takes more than [`BUCKET_RATE`] of the busiest time's writes to this share.
fn buckets(given: &Given<'_>, share: f64) -> u32 {
    let wanted = (given.peak_rate() * share / BUCKET_RATE).ceil().clamp(1.0, f64::from(BUCKETS_MAX)) as u32;
    wanted.next_power_of_two().clamp(BUCKETS_MIN, BUCKETS_MAX)
}

/// Properties that queries compare with eq, the most often compared ones first.
fn named(given: &Given<'_>) -> Vec<String> {
    let entities = given.facts.entities();
    let mut weighed: Vec<(f64, String)> = Vec::new();
    for query in &given.mix.queries {
        for name in &query.equal {
            let can_be = given.facts.columns.get(name).is_some_and(|column| column.can_be_key(entities));
            match weighed.iter_mut().find(|(_, one)| one == name) {
                Some((weight, _)) => *weight += query.per_day,
                None if can_be => weighed.push((query.per_day, name.clone())),
                None => {}
            }
        }
    }
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    weighed.into_iter().take(NAMED_MAX).map(|(_, name)| name).collect()
}

/// Times that queries have ranges of.
fn times(given: &Given<'_>) -> Vec<String> {
    let entities = given.facts.entities();
    let mut times: Vec<String> = Vec::new();
    for name in given.mix.queries.iter().filter_map(|query| query.range.as_ref()) {
        let column = given.facts.columns.get(name);
        let is_time = column.is_some_and(|one| one.kind == EdmType::DateTime && one.can_be_key(entities));
        if is_time && !times.contains(name) && times.len() < NAMED_MAX {
            times.push(name.clone());
        }
    }
    times
}

/// The design of a PartitionKey: its RowKey is for the most frequent query that the PartitionKey serves.
fn design(kind: Kind, partition: Vec<Part>, given: &Given<'_>) -> KeyDesign {
    let names = |query: &Query| {
        partition.iter().all(|part| match part {
            Part::Value(name) => query.equal.contains(name),
            _ => true,
        })
    };
    let served = given.mix.queries.iter().filter(|query| names(query));
    let query = served.max_by(|a, b| a.per_day.total_cmp(&b.per_day));
    let mut row = match query {
        Some(query) => {
            let is_left =
                |name: &&String| !partition.iter().any(|part| *part == Part::Value((*name).clone()));
            let left = query.equal.iter().filter(is_left).cloned().map(Part::Value).collect();
            row_parts(left, query, given)
        }
        None => given.identity.to_vec(),
    };
    row.retain(|part| !partition.contains(part));
    KeyDesign { kind, partition, row }
}
