//! What a design of keys would do: predicted from the sample, the mix and the answers.
//!
//! How each number is made is in [`METHODS`], which reports show. What always holds: the same sample, mix
//! and answers give the same prediction.

pub(crate) mod access;
pub(crate) mod facts;
mod prediction;
mod share;
pub(crate) mod warnings;

pub(crate) use prediction::Given;
pub use prediction::{Prediction, QueryPrediction, Second, Warning};
pub use share::Share;

use crate::design::{KeyDesign, Part, Period, parts_text};
use crate::mix::{Query, Write};
use access::{Reach, reach};
use facts::Facts;
use table::{EdmType, PlanClass};

/// Entities of a page.
const PAGE_ROWS: f64 = 1000.0;
/// Entities a second that the live service publishes as the target of a partition, and of an account.
const PARTITION_RATE: f64 = 2_000.0;
const ACCOUNT_RATE: f64 = 20_000.0;
/// What a request is taken to last.
const REQUEST_MS: f64 = 10.0;
/// Requests that an index table costs with each entity written: the row, and a queue's message put, got and
/// deleted.
const INDEX_REQUESTS: f64 = 4.0;
/// Buckets of an index table of times.
const INDEX_BUCKETS: u32 = 8;

/// How predictions are made.
pub const METHODS: [(&str, &str); 7] = [
    (
        "largest partition",
        "its share of the sample, what is chance taken out (James-Stein); the interval holds 19 times of 20",
    ),
    (
        "fan-out",
        "the product of the texts that a client tries for each part of the PartitionKey: 1 if the query names it, all \
      buckets of a hash, the periods of a range, the values of a property with few; of scans the partitions there are (Chao 1984)",
    ),
    (
        "rows read",
        "of keys that narrow: those that are wanted, from pairs of the sample with the same values; else all of the partitions",
    ),
    (
        "requests a day",
        "of queries one a partition or a page of 1,000 rows, whichever is more; of writes one a transaction, \
      and with each index table 4 an entity: its row, a queue's message put, got and deleted",
    ),
    ("transactions lost", "those whose entities have not all parts of the PartitionKey in common"),
    ("bytes duplicated", "a whole copy of each entity for each second row and index table"),
    (
        "entities/s at most",
        "2,000 a partition, the live service's target, over the share that the most written one has, of the table or an index table; 20,000 an account",
    ),
];

/// A sum that is 0 and not -0 of nothing.
fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Predicts what a design does.
pub(crate) fn predict(design: KeyDesign, given: &Given<'_>) -> Prediction {
    let mut seconds: Vec<Second> = Vec::new();
    let queries: Vec<QueryPrediction> =
        given.mix.queries.iter().map(|query| answer(&design, query, given, &mut seconds)).collect();
    let largest = given.facts.largest(&design.partition);
    let hot = hot_share(&design.partition, given.facts);
    let lost = |write: &Write| write.per_day / write.group * lost_share(&design.partition, write);
    let transactions_lost = sum(given.mix.writes.iter().filter(|write| write.group > 1.0).map(lost));
    let tables = seconds.iter().filter(|second| second.is_table).count() as f64;
    // Index tables are written with the table, and may be hotter.
    let of_tables = seconds.iter().filter(|second| second.is_table);
    let shares = of_tables.map(|second| hot_share(&second.partition, given.facts).share);
    let hottest = shares.fold(hot.share, f64::max);
    let size_bytes = given.facts.sample.whole_count() * given.facts.sample.mean_size_bytes();
    let write_requests =
        sum(given.mix.writes.iter().map(|write| write_requests(&design.partition, write, tables)));
    let read_requests =
        sum(queries.iter().zip(&given.mix.queries).map(|(found, query)| found.requests * query.per_day));
    let mut prediction = Prediction {
        rate_max: (PARTITION_RATE / hottest.max(1e-9)).min(ACCOUNT_RATE),
        duplicated_bytes: size_bytes * seconds.len() as f64,
        requests_per_day: read_requests + write_requests,
        design,
        seconds,
        largest,
        hot,
        queries,
        transactions_lost,
        warnings: Vec::new(),
    };
    prediction.warnings = warnings::of(&prediction, given);
    prediction
}

/// Parts that all entities of one time have in common take all writes of that time.
fn hot_share(partition: &[Part], facts: &Facts<'_>) -> Share {
    let is_rising = |name: &String| facts.columns.get(name).is_some_and(|column| column.is_rising);
    let spread: Vec<Part> = partition
        .iter()
        .filter(|part| match part {
            Part::Period(..) | Part::Word(_) | Part::Reversed(_) => false,
            Part::Value(name) => !is_rising(name),
            Part::Bucket(..) => true,
        })
        .cloned()
        .collect();
    facts.largest(&spread)
}

/// Which share of a write's transactions falls apart.
fn lost_share(partition: &[Part], write: &Write) -> f64 {
    let mut stays = 1.0;
    for part in partition {
        let is_common = part.property().is_none_or(|name| write.together.iter().any(|one| one == name));
        match part {
            // What is written at once has one time.
            _ if is_common => {}
            Part::Period(..) | Part::Word(_) => {}
            Part::Bucket(_, buckets) => stays *= f64::from(*buckets).powf(1.0 - write.group),
            Part::Value(_) | Part::Reversed(_) => stays = 0.0,
        }
    }
    1.0 - stays
}

fn write_requests(partition: &[Part], write: &Write, tables: f64) -> f64 {
    let lost = if write.group > 1.0 { lost_share(partition, write) } else { 0.0 };
    let transactions = write.per_day / write.group;
    let of_the_table = transactions * (1.0 - lost) + write.per_day * lost;
    of_the_table + write.per_day * tables * INDEX_REQUESTS
}

/// The cheapest way to answer a query: the table's own keys, a second row, an index table.
fn answer(
    design: &KeyDesign,
    query: &Query,
    given: &Given<'_>,
    seconds: &mut Vec<Second>,
) -> QueryPrediction {
    let reached = reach(&design.partition, &design.row, query, given.facts);
    let first = cost(&design.partition, reached, query, given, None);
    let mut ways = vec![(first, None, 0.0)];
    for second in [second_row(design, reached, query, given), index_table(query, given)].into_iter().flatten()
    {
        let reached = reach(&second.partition, &second.row, query, given.facts);
        let is_same = |one: &Second| {
            (one.is_table, &one.partition, &one.row) == (second.is_table, &second.partition, &second.row)
        };
        let there = seconds.iter().position(is_same);
        let written = given.mix.written_per_day() * INDEX_REQUESTS;
        let extra = if there.is_none() && second.is_table { written } else { 0.0 };
        let index = there.unwrap_or(seconds.len());
        let found = cost(&second.partition, reached, query, given, Some(index));
        ways.push((found, there.is_none().then_some(second), extra));
    }
    let price = |(found, _, extra): &(QueryPrediction, Option<Second>, f64)| {
        // Rows that are read cost less than requests, and not nothing.
        let requests = query.per_day * (found.requests + found.rows_read / PAGE_ROWS) + extra;
        (!found.is_fast_enough, requests)
    };
    let cheaper = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    // Of two that cost the same, the one that needs less beside the table.
    let best = ways.into_iter().min_by(|a, b| cheaper(&price(a), &price(b)));
    match best {
        Some((found, second, _)) => {
            seconds.extend(second);
            found
        }
        None => cost(&design.partition, reached, query, given, None),
    }
}

/// What a query costs that reaches its entities so.
fn cost(
    partition: &[Part],
    reached: Reach,
    query: &Query,
    given: &Given<'_>,
    second: Option<usize>,
) -> QueryPrediction {
    let Reach { class, fan_out, rows, is_narrow } = reached;
    let whole = given.facts.sample.whole_count();
    let rows_wanted = given.facts.wanted(query).min(whole);
    let rows_read = match class {
        PlanClass::TableScan => whole,
        PlanClass::PartitionRange => rows.unwrap_or(whole).clamp(rows_wanted, whole),
        _ if is_narrow => rows_wanted,
        _ => (given.facts.partition_size(partition) * fan_out).min(whole).max(rows_wanted),
    };
    let is_parallel = class < PlanClass::PartitionRange;
    let lanes = if is_parallel { fan_out } else { 1.0 };
    let pages = (rows_read / lanes / PAGE_ROWS).ceil().max(1.0);
    let requests = pages * lanes;
    let took_ms = pages * REQUEST_MS;
    let is_fast_enough = took_ms <= query.within_ms.max(REQUEST_MS);
    let name = query.name.clone();
    QueryPrediction {
        name,
        class,
        second,
        fan_out,
        rows_read,
        rows_wanted,
        requests,
        took_ms,
        is_fast_enough,
    }
}

/// Whether all properties of a query can be parts of keys.
fn can_be_keys(query: &Query, facts: &Facts<'_>) -> bool {
    query.equal.iter().chain(&query.range).all(|name| can_be_key(name, facts))
}

fn can_be_key(name: &str, facts: &Facts<'_>) -> bool {
    facts.columns.get(name).is_some_and(|column| column.can_be_key(facts.entities()))
}

fn values(names: &[&String]) -> Vec<Part> {
    names.iter().map(|name| Part::Value((*name).clone())).collect()
}

/// A row in the same partition that answers a query; none if the query does not name the partition.
fn second_row(design: &KeyDesign, reached: Reach, query: &Query, given: &Given<'_>) -> Option<Second> {
    if reached.class >= PlanClass::PartitionRange || reached.is_narrow || !can_be_keys(query, given.facts) {
        return None;
    }
    let is_left = |name: &&String| {
        !design.partition.iter().any(|part| matches!(part, Part::Value(one) if one == *name))
    };
    let left: Vec<&String> = query.equal.iter().filter(is_left).collect();
    let mut row = vec![Part::Word(format!("by-{}", parts_text(&values(&left)).replace(" | ", "-")))];
    row.extend(row_parts(values(&left), query, given));
    Some(Second { is_table: false, partition: design.partition.clone(), row, query: query.name.clone() })
}

/// A table that answers a query; none if it must not be behind, or no keys can be made.
fn index_table(query: &Query, given: &Given<'_>) -> Option<Second> {
    if given.answers.stale_s <= 0.0 || !can_be_keys(query, given.facts) {
        return None;
    }
    let partition = match query.equal.is_empty() {
        false => values(&query.equal.iter().collect::<Vec<_>>()),
        true => time_partition(query, given)?,
    };
    let mut row = row_parts(Vec::new(), query, given);
    row.retain(|part| !partition.contains(part));
    Some(Second { is_table: true, partition, row, query: query.name.clone() })
}

/// Times without anything else: buckets, so that not all writes of a time go to one partition.
fn time_partition(query: &Query, given: &Given<'_>) -> Option<Vec<Part>> {
    let range = query.range.as_ref()?;
    let is_time = given.facts.columns.get(range).is_some_and(|column| column.kind == EdmType::DateTime);
    let Some(Part::Value(identity)) = given.identity.first().filter(|_| is_time) else { return None };
    let period = match query.length.unwrap_or(86_400.0) {
        length if length < 6.0 * 3600.0 => Period::Hour,
        length if length < 60.0 * 86_400.0 => Period::Day,
        _ => Period::Month,
    };
    Some(vec![Part::Bucket(identity.clone(), INDEX_BUCKETS), Part::Period(range.clone(), period)])
}

/// A RowKey that begins with what is named, then what is ranged over, then what makes it unique.
pub(crate) fn row_parts(mut row: Vec<Part>, query: &Query, given: &Given<'_>) -> Vec<Part> {
    row.retain(|part| part.property().is_none_or(|name| can_be_key(name, given.facts)));
    if let Some(range) = query.range.as_ref().filter(|name| can_be_key(name, given.facts)) {
        let kind = given.facts.columns.get(range).map(|column| column.kind);
        row.push(match (query.newest, kind) {
            (Some(_), Some(EdmType::DateTime)) => Part::Reversed(range.clone()),
            _ => Part::Value(range.clone()),
        });
    }
    for part in given.identity {
        if !row.contains(part) {
            row.push(part.clone());
        }
    }
    row
}
