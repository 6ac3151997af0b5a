//! What follows from the numbers: how they compare with what is published, what the server did at most, what
//! stands out.
//!
//! Sources of the targets: "Scalability and performance targets" of
//! [Table](https://learn.microsoft.com/azure/storage/tables/scalability-targets),
//! [Queue](https://learn.microsoft.com/azure/storage/queues/scalability-targets), [Blob
//! storage](https://learn.microsoft.com/azure/storage/blobs/scalability-targets) and [standard
//! accounts](https://learn.microsoft.com/azure/storage/common/scalability-targets-standard-account). They
//! speak of items of 1 KiB.

use super::numbers::{percent, rate, thousands};
use crate::measure::key_pattern::KeyPattern;
use crate::plan::{Pace, Plan, StepRole};
use crate::run::step::{OwnTime, StepResult};
use crate::workload::operation::{OperationKind, items_of};
use storage_client::Service;

/// Entities of one partition of a table, a second.
pub(crate) const PARTITION_ENTITIES_PER_S: f64 = 2_000.0;
/// Messages of one queue, a second.
pub(crate) const QUEUE_MESSAGES_PER_S: f64 = 2_000.0;
/// Requests for one block blob, a second.
pub(crate) const BLOCK_BLOB_REQUESTS_PER_S: f64 = 3_000.0;
/// Requests of one account, a second; 40,000 in some regions.
pub(crate) const ACCOUNT_REQUESTS_PER_S: f64 = 20_000.0;

/// A rate beside a published one.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRow {
    /// What the target is about.
    pub what: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// As it was measured.
    pub per_s: f64,
    /// As it is published for the live service.
    pub published_per_s: f64,
}

/// What the server did at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Operations a second.
    pub per_s: f64,
    /// False: the server kept up with all that was due, and may do more.
    pub is_reached: bool,
    /// How it shows.
    pub why: String,
}

/// Rates of a step beside the published ones.
pub(crate) fn targets(plan: &Plan, last: &StepResult) -> Vec<TargetRow> {
    let all = last.all();
    let hottest = last.tally.heat.hottest_share();
    let mut rows = Vec::new();
    let mut add = |what, unit, count: u64, share: f64, published_per_s| {
        rows.push(TargetRow { what, unit, per_s: last.per_second(count) * share, published_per_s });
    };
    match plan.service {
        Service::Table => {
            let what = if plan.keys.partitions == 1 { "the partition" } else { "the hottest partition" };
            add(what, "entities", all.items, hottest.unwrap_or(0.0), PARTITION_ENTITIES_PER_S);
        }
        Service::Queue => add("the queue", "messages", all.items, 1.0, QUEUE_MESSAGES_PER_S),
        Service::Blob => {
            if let Some(share) = hottest.filter(|_| last.tally.heat.tells_apart()) {
                add("the hottest blob", "requests", all.done, share, BLOCK_BLOB_REQUESTS_PER_S);
            }
        }
    }
    add("the account", "requests", all.done, 1.0, ACCOUNT_REQUESTS_PER_S);
    rows
}

/// What the server did at most in all steps.
pub(crate) fn ceiling(plan: &Plan, results: &[StepResult]) -> Ceiling {
    let done_per_s = |result: &&StepResult| result.per_second(result.all().done);
    let best = |of: fn(&&StepResult) -> bool| {
        results.iter().filter(of).max_by(|a, b| done_per_s(a).total_cmp(&done_per_s(b)))
    };
    let is_closed = |result: &&StepResult| result.pace == Pace::Closed;
    let falls_behind = |result: &&StepResult| !result.has_kept_up();
    let (found, is_reached, why) = match (best(is_closed), best(falls_behind), best(|_| true)) {
        (Some(closed), ..) => (closed, true, format!("closed loop with {} clients", plan.clients)),
        (None, Some(behind), Some(any)) => {
            (any, true, format!("it did not keep up with {}", pace(behind.pace)))
        }
        (None, None, Some(any)) => (any, false, format!("it kept up with {}", pace(any.pace))),
        (None, _, None) => {
            return Ceiling { per_s: 0.0, is_reached: false, why: "nothing was measured".to_owned() };
        }
    };
    let why = if busy(found) > 0 { format!("{why}; beyond it the server answers 503 or 429") } else { why };
    Ceiling { per_s: done_per_s(&found), is_reached, why }
}

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Closed => "its clients".to_owned(),
        Pace::Open(per_s) => format!("{}/s", rate(per_s)),
    }
}

/// Attempts that the server refused because it was too much.
fn busy(result: &StepResult) -> u64 {
    result.tally.errors.with_status(503) + result.tally.errors.with_status(429)
}

/// The share of its threads' time from which on this program may be what limits the rate.
const OWN_SHARE_MAX: f64 = 0.85;

/// What stands out in a step.
pub(crate) fn findings(plan: &Plan, last: &StepResult, own: Option<OwnTime>) -> Vec<String> {
    let all = last.all();
    let mut found = Vec::new();
    found.extend(last.tally.keys.pattern().map(|pattern| of_pattern(plan, pattern)));
    for target in targets(plan, last).iter().filter(|target| target.per_s > target.published_per_s) {
        found.push(format!(
            "{} did {} {}/s, more than the {} that are published: the live service may answer 503 ServerBusy there",
            target.what,
            rate(target.per_s),
            target.unit,
            thousands(target.published_per_s)
        ));
    }
    if busy(last) > 0 {
        found.push(format!(
            "{} attempts were refused with 503 or 429, while {} {}/s went through",
            thousands(busy(last) as f64),
            rate(last.per_second(all.items)),
            items_of(plan.service)
        ));
    }
    if let (Pace::Open(due), false) = (last.pace, last.has_kept_up()) {
        found.push(format!(
            "the server did not keep up: of {}/s that were due {}/s were done, and {} requests were never begun",
            rate(due),
            rate(last.per_second(all.done)),
            thousands(last.unbegun as f64)
        ));
    }
    let receives = last.tally.kinds().find(|(kind, _)| *kind == OperationKind::Get).map(|(_, kind)| kind);
    if let Some(receives) = receives.filter(|kind| kind.empty * 2 > kind.done) {
        found.push(format!(
            "{} of the receives found no message",
            percent(receives.empty as f64 / receives.done as f64)
        ));
    }
    if let Some(own) = own.filter(|own| own.share > OWN_SHARE_MAX) {
        found.push(format!(
            "this program used {} of its threads' time: the rate may be its own limit, not the server's",
            percent(own.share)
        ));
    }
    if last.role == StepRole::Ceiling {
        found.push("only the server's ceiling was measured".to_owned());
    }
    found
}

fn of_pattern(plan: &Plan, pattern: KeyPattern) -> String {
    let (name, place, range) = match pattern {
        KeyPattern::AppendOnly => ("append-only", "behind all that are there", "last"),
        KeyPattern::PrependOnly => ("prepend-only", "before all that are there", "first"),
    };
    let partitions = match plan.service {
        Service::Table if plan.keys.partitions > 1 => ", however many partitions there are",
        _ => "",
    };
    format!(
        "{name} pattern: new keys fall {place}, so all inserts meet the {range} range, which can't be split so \
         that the load is{partitions}; put something before the key that spreads it, such as a hash"
    )
}

#[cfg(test)]
pub(crate) mod tests;
