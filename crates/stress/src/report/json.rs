//! The report as JSON, for programs. Names say their units; what is not known is null.

use super::data::{ErrorRow, OperationRow, Report, StepRow};
use crate::measure::latency::Percentiles;
use crate::plan::{Pace, StepRole};
use serde_json::{Map, Value, json};

/// The number of this form. It rises when a reader of the form before would misread it.
const FORM: u32 = 1;

/// The report as one JSON document, with a line break at its end.
pub fn json(report: &Report) -> String {
    let about: Map<String, Value> =
        report.about.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    let seconds = report.seconds.iter().map(|second| {
        json!({
            "at_s": round(second.at_s), "done_per_s": round(second.done_per_s),
            "items_per_s": round(second.items_per_s), "failed_per_s": round(second.failed_per_s),
            "sent_again_per_s": round(second.repeated_per_s),
            "p50_us": second.percentiles.p50_us, "p99_us": second.percentiles.p99_us,
            "max_us": second.percentiles.max_us,
        })
    });
    let targets = report.targets.iter().map(|target| {
        json!({
            "what": target.what, "unit": target.unit, "per_s": round(target.per_s),
            "published_per_s": target.published_per_s,
        })
    });
    let own = report.own.map(|own| {
        json!({ "us_per_operation": round(own.us_per_operation), "share_of_threads": round(own.share) })
    });
    let curve = report.curve.iter().map(|(share, us)| json!([share, us]));
    let document = json!({
        "form": FORM,
        "about": about,
        "items": report.items,
        "operations": report.operations.iter().map(operation).collect::<Vec<_>>(),
        "steps": report.steps.iter().map(step).collect::<Vec<_>>(),
        "seconds": seconds.collect::<Vec<_>>(),
        "latency_us_by_share": curve.collect::<Vec<_>>(),
        "errors": report.errors.iter().map(error).collect::<Vec<_>>(),
        "targets": targets.collect::<Vec<_>>(),
        "ceiling": {
            "per_s": round(report.ceiling.per_s), "is_reached": report.ceiling.is_reached,
            "why": report.ceiling.why,
        },
        "own": own,
        "findings": report.findings,
        "is_interrupted": report.end.is_interrupted,
        "left_behind": report.end.left_behind,
    });
    format!("{document:#}\n")
}

/// To three digits behind the point.
fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

fn latencies(percentiles: &Percentiles) -> Value {
    json!({
        "p50": percentiles.p50_us, "p95": percentiles.p95_us, "p99": percentiles.p99_us,
        "p99_9": percentiles.p999_us, "max": percentiles.max_us,
    })
}

fn operation(row: &OperationRow) -> Value {
    json!({
        "name": row.name, "done_per_s": round(row.done_per_s), "items_per_s": round(row.items_per_s),
        "bytes_per_s": round(row.bytes_per_s), "failed": row.failed, "empty": row.empty,
        "latency_us": latencies(&row.percentiles),
    })
}

fn step(row: &StepRow) -> Value {
    let due = match row.pace {
        Pace::Closed => Value::Null,
        Pace::Open(per_s) => round(per_s).into(),
    };
    json!({
        "role": match row.role { StepRole::Ceiling => "ceiling", StepRole::Main => "main" },
        "due_per_s": due, "counted_s": round(row.counted_for.as_secs_f64()),
        "done_per_s": round(row.done_per_s), "items_per_s": round(row.items_per_s),
        "failed": row.failed, "unfinished": row.unfinished, "never_begun": row.unbegun,
        "has_kept_up": row.has_kept_up, "latency_us": latencies(&row.percentiles),
    })
}

fn error(row: &ErrorRow) -> Value {
    let count = &row.count;
    json!({
        "status": row.code.status, "code": row.code.code, "sent_again": count.repeated,
        "done_after": count.done_after, "failed": count.failed, "may_be_done": count.may_be_done,
        "reasons": count.reasons, "message": count.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::findings::tests::{plan, result, throttled};
    use crate::run::step::Second;
    use base::Ticks;
    use storage_client::Service;

    #[test]
    fn a_report_is_a_document() {
        let plan = plan(Service::Table, 1);
        let results = [throttled(result(Pace::Open(3000.0), 2500), 40)];
        let seconds = vec![Second { at_s: 1.0, done_per_s: 2500.0, ..Second::default() }];
        let report = Report::new(&plan, "stress1".to_owned(), Ticks::default(), &results, seconds);
        let text = json(&report.ended(true, Some("table stress1 stays behind".to_owned())));
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["form"], 1);
        assert_eq!(read["about"]["table"], "stress1");
        assert_eq!(read["operations"][0]["done_per_s"], 2500.0);
        assert_eq!(read["operations"][0]["latency_us"]["max"].as_u64().expect("a number") / 100, 34);
        assert_eq!(read["steps"][0]["due_per_s"], 3000.0);
        assert_eq!(read["errors"][0]["code"], "ServerBusy");
        assert_eq!(read["errors"][0]["done_after"], 40);
        assert_eq!(read["ceiling"]["is_reached"], true);
        assert_eq!(
            (&read["is_interrupted"], read["seconds"].as_array().map(Vec::len)),
            (&Value::Bool(true), Some(1))
        );
    }
}
