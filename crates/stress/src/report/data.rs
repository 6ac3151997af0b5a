//! The report of a run: plain data, from which each form is made.

use super::findings::{Ceiling, TargetRow, ceiling, findings, targets};
use super::numbers::bytes;
use crate::measure::errors::{ErrorCode, ErrorCount, ErrorCounts};
use crate::measure::latency::Percentiles;
use crate::plan::{Load, Pace, Plan, StepRole};
use crate::run::step::{OwnTime, Second, StepResult};
use crate::workload::operation::{OperationKind, items_of};
use base::Ticks;
use base::date_time::date_time_text;
use std::time::Duration;
use storage_client::Service;

/// A run's report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was done, as names and values.
    pub about: Vec<(&'static str, String)>,
    /// What items are called.
    pub items: &'static str,
    /// Each step, in order.
    pub steps: Vec<StepRow>,
    /// Each kind of operation of the last step; then all together, if there are several.
    pub operations: Vec<OperationRow>,
    /// Shares of the operations of the last step, and the latencies in microseconds that they do not exceed.
    pub curve: Vec<(f64, u64)>,
    /// Each second of all steps, without warm-ups.
    pub seconds: Vec<Second>,
    /// Errors of all steps by code, most frequent first.
    pub errors: Vec<ErrorRow>,
    /// Rates of the last step beside what is published for the live service.
    pub targets: Vec<TargetRow>,
    /// What the server did at most.
    pub ceiling: Ceiling,
    /// This program's own share.
    pub own: Option<OwnTime>,
    /// What stands out, a sentence each.
    pub findings: Vec<String>,
    /// How it ended.
    pub end: End,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// It was stopped before its time.
    pub is_interrupted: bool,
    /// What could not be dropped again, and why.
    pub left_behind: Option<String>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRow {
    /// Why there was one.
    pub role: StepRole,
    /// How requests began.
    pub pace: Pace,
    /// How long it was counted.
    pub counted_for: Duration,
    /// Operations done a second.
    pub done_per_s: f64,
    /// Items a second.
    pub items_per_s: f64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations that had no answer at the end, those that were due and never begun included.
    pub unfinished: u64,
    /// Of these, those that were never begun.
    pub unbegun: u64,
    /// Latencies of all operations.
    pub percentiles: Percentiles,
    /// Whether the server did what was due.
    pub has_kept_up: bool,
}

/// A kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRow {
    /// Its name; `all` for all of them.
    pub name: &'static str,
    /// Operations done a second.
    pub done_per_s: f64,
    /// Items a second.
    pub items_per_s: f64,
    /// Bytes of items a second, where they are known.
    pub bytes_per_s: f64,
    /// Operations that failed.
    pub failed: u64,
    /// Receives that found no message.
    pub empty: u64,
    /// Latencies.
    pub percentiles: Percentiles,
}

/// Errors of a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The code.
    pub code: ErrorCode,
    /// What became of the attempts.
    pub count: ErrorCount,
}

impl Report {
    /// Of steps that have ended, at least one.
    pub(crate) fn new(
        plan: &Plan,
        name: String,
        started_at: Ticks,
        results: &[StepResult],
        seconds: Vec<Second>,
    ) -> Self {
        let last = results.iter().rfind(|result| result.role == StepRole::Main).or(results.last());
        let mut errors = ErrorCounts::default();
        results.iter().for_each(|result| errors.add(&result.tally.errors));
        let errors = errors.sorted().into_iter().map(|(code, count)| ErrorRow { code, count });
        let own = last.and_then(|last| last.own_time(plan.workers));
        Report {
            about: about(plan, &name, started_at),
            items: items_of(plan.service),
            steps: results.iter().map(step_row).collect(),
            operations: last.map(operation_rows).unwrap_or_default(),
            curve: last.map(|last| last.latencies.curve()).unwrap_or_default(),
            seconds,
            errors: errors.collect(),
            targets: last.map(|last| targets(plan, last)).unwrap_or_default(),
            ceiling: ceiling(plan, results),
            own,
            findings: last.map(|last| findings(plan, last, own)).unwrap_or_default(),
            end: End::default(),
        }
    }

    pub(crate) fn ended(self, is_interrupted: bool, left_behind: Option<String>) -> Self {
        Report { end: End { is_interrupted, left_behind }, ..self }
    }
}

fn step_row(result: &StepResult) -> StepRow {
    let all = result.all();
    StepRow {
        role: result.role,
        pace: result.pace,
        counted_for: result.counted_for,
        done_per_s: result.per_second(all.done),
        items_per_s: result.per_second(all.items),
        failed: result.failed(),
        unfinished: result.unfinished(),
        unbegun: result.unbegun,
        percentiles: result.latencies.percentiles(),
        has_kept_up: result.has_kept_up(),
    }
}

fn operation_rows(last: &StepResult) -> Vec<OperationRow> {
    let counted = |kind: OperationKind| {
        let found = last.counted.iter().find(|(one, _)| *one == kind);
        found.map(|(_, counted)| *counted).unwrap_or_default()
    };
    let row = |(kind, tally): (OperationKind, &crate::measure::tally::KindTally)| {
        let counted = counted(kind);
        OperationRow {
            name: kind.name(),
            done_per_s: last.per_second(counted.done),
            items_per_s: last.per_second(counted.items),
            bytes_per_s: last.per_second(counted.bytes),
            failed: tally.failed,
            empty: tally.empty,
            percentiles: tally.latencies.percentiles(),
        }
    };
    let mut rows: Vec<OperationRow> = last.tally.kinds().map(row).collect();
    // Requests that were not begun are in the latencies of all only.
    if rows.len() != 1 || last.unbegun > 0 {
        let all = last.all();
        rows.push(OperationRow {
            name: "all",
            done_per_s: last.per_second(all.done),
            items_per_s: last.per_second(all.items),
            bytes_per_s: last.per_second(all.bytes),
            failed: last.failed(),
            empty: rows.iter().map(|row| row.empty).sum(),
            percentiles: last.latencies.percentiles(),
        });
    }
    rows
}

/// What was done, in the order in which it is shown.
fn about(plan: &Plan, name: &str, started_at: Ticks) -> Vec<(&'static str, String)> {
    let shares: Vec<String> =
        plan.mix.weights().iter().map(|(kind, weight)| format!("{} {weight}", kind.name())).collect();
    let mix = match &shares[..] {
        [_] => plan.mix.name.clone(),
        _ => format!("{} ({})", plan.mix.name, shares.join(", ")),
    };
    let sizes: Vec<String> = plan.mix.sizes.item_size_bytes.iter().map(|size| bytes(*size as f64)).collect();
    let load = match plan.load {
        Load::Closed { counted_for } => format!("closed loop for {} s", counted_for.as_secs_f64()),
        Load::Open { rate, counted_for } => {
            format!("open loop at {rate}/s for {} s", counted_for.as_secs_f64())
        }
        Load::Until { rate, step_for } => {
            format!("open loop, rising to {rate}/s in steps of {} s", step_for.as_secs_f64())
        }
    };
    let keys = match plan.service {
        Service::Table if plan.keys.partitions == 1 => {
            format!("{} in one partition, {} rows loaded", plan.keys.distribution, plan.keys.loaded)
        }
        Service::Table => format!(
            "{} over {} partitions, {} rows loaded",
            plan.keys.distribution, plan.keys.partitions, plan.keys.loaded
        ),
        Service::Queue => format!("{} messages loaded", plan.keys.loaded),
        Service::Blob => format!("{}, {} blobs loaded", plan.keys.distribution, plan.keys.loaded),
    };
    vec![
        ("endpoint", plan.address.endpoint_url(plan.service).unwrap_or_default()),
        (plan.service.label(), name.to_owned()),
        ("started", date_time_text(started_at)),
        ("mix", mix),
        ("keys", keys),
        ("size", sizes.join(", ")),
        ("load", load),
        ("clients", format!("{} on {} threads", plan.clients, plan.workers)),
        ("retries", plan.retry_name.clone()),
        ("seed", plan.seed.to_string()),
    ]
}
