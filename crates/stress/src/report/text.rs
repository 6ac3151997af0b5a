//! The report as text for a terminal.

use super::data::{OperationRow, Report};
use super::numbers::{bytes, percent, rate, span, thousands};
use crate::plan::{Pace, StepRole};
use std::fmt::Write as _;

/// The report, with a line break at its end.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for (name, value) in &report.about {
        line(&mut out, format!("{name:<9} {value}"));
    }
    if report.end.is_interrupted {
        line(&mut out, "stopped   before its time: what follows was measured until then".to_owned());
    }
    put_operations(&mut out, report);
    if report.steps.len() > 1 {
        put_steps(&mut out, report);
    }
    put_errors(&mut out, report);
    put_comparisons(&mut out, report);
    if !report.findings.is_empty() {
        out.push('\n');
        report.findings.iter().for_each(|finding| line(&mut out, format!("- {finding}")));
    }
    out
}

fn line(out: &mut String, text: String) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Cells in columns as wide as their widest cell, the first one to the left.
fn put_table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut text = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string does not fail.
            let _ = match index {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        line(out, text);
    }
}

const LATENCY_NAMES: [&str; 5] = ["p50", "p95", "p99", "p99.9", "longest"];

fn cells(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn put_operations(out: &mut String, report: &Report) {
    let has_bytes = report.operations.iter().any(|row| row.bytes_per_s > 0.0);
    let items = format!("{}/s", report.items);
    let mut head = cells(&["operation", "done/s", &items]);
    head.extend(has_bytes.then(|| "bytes/s".to_owned()));
    head.extend(cells(&LATENCY_NAMES));
    head.push("failed".to_owned());
    let row = |row: &OperationRow| {
        let mut line = vec![row.name.to_owned(), rate(row.done_per_s), rate(row.items_per_s)];
        line.extend(has_bytes.then(|| bytes(row.bytes_per_s)));
        let percentiles = row.percentiles;
        let latencies = [
            percentiles.p50_us,
            percentiles.p95_us,
            percentiles.p99_us,
            percentiles.p999_us,
            percentiles.max_us,
        ];
        line.extend(latencies.map(span));
        line.push(thousands(row.failed as f64));
        line
    };
    out.push('\n');
    let rows: Vec<_> = std::iter::once(head).chain(report.operations.iter().map(row)).collect();
    put_table(out, &rows);
    let unfinished: u64 = report.steps.last().map_or(0, |step| step.unfinished);
    if unfinished > 0 {
        let unbegun = report.steps.last().map_or(0, |step| step.unbegun);
        line(
            out,
            format!(
                "{} had no answer at the end, {} of them were never begun: they are in the percentiles with the \
                 time that they have waited",
                thousands(unfinished as f64),
                thousands(unbegun as f64)
            ),
        );
    }
}

fn put_steps(out: &mut String, report: &Report) {
    out.push('\n');
    let mut rows = vec![cells(&["step", "done/s", "p50", "p99", "failed", "never begun", ""])];
    for step in &report.steps {
        let name = match (step.role, step.pace) {
            (StepRole::Ceiling, _) => "ceiling".to_owned(),
            (StepRole::Main, Pace::Closed) => "closed loop".to_owned(),
            (StepRole::Main, Pace::Open(per_s)) => format!("{}/s due", rate(per_s)),
        };
        rows.push(vec![
            name,
            rate(step.done_per_s),
            span(step.percentiles.p50_us),
            span(step.percentiles.p99_us),
            thousands(step.failed as f64),
            thousands(step.unbegun as f64),
            if step.has_kept_up { String::new() } else { "falls behind".to_owned() },
        ]);
    }
    put_table(out, &rows);
}

fn put_errors(out: &mut String, report: &Report) {
    if report.errors.is_empty() {
        line(out, "\nno errors".to_owned());
        return;
    }
    out.push('\n');
    let head = ["error", "attempts", "sent again", "operations done after it", "failed with it"];
    let mut rows = vec![cells(&head)];
    for row in &report.errors {
        let count = &row.count;
        rows.push(vec![
            row.code.to_string(),
            thousands((count.repeated + count.failed) as f64),
            thousands(count.repeated as f64),
            thousands(count.done_after as f64),
            thousands(count.failed as f64),
        ]);
    }
    put_table(out, &rows);
    for row in report.errors.iter().filter(|row| row.count.failed > 0) {
        let reasons = row.count.reasons.iter().map(|(why, count)| format!("; {count} not sent again: {why}"));
        let doubtful = match row.count.may_be_done {
            0 => String::new(),
            count => format!("; {count} may have been done all the same"),
        };
        let reasons: String = reasons.collect();
        line(out, format!("{}: {}{reasons}{doubtful}", row.code, row.count.message));
    }
}

fn put_comparisons(out: &mut String, report: &Report) {
    out.push('\n');
    for target in &report.targets {
        line(
            out,
            format!(
                "{}: {} {}/s; published for the live service: {} ({})",
                target.what,
                rate(target.per_s),
                target.unit,
                thousands(target.published_per_s),
                percent(target.per_s / target.published_per_s)
            ),
        );
    }
    let ceiling = &report.ceiling;
    let reached = if ceiling.is_reached { "" } else { "not reached, at least " };
    line(out, format!("the server's ceiling: {reached}{}/s ({})", rate(ceiling.per_s), ceiling.why));
    if let Some(own) = report.own {
        line(
            out,
            format!(
                "own processor time: {:.1} µs an operation, {} of its threads' time",
                own.us_per_operation,
                percent(own.share)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::findings::tests::{plan, result, throttled};
    use base::Ticks;
    use storage_client::Service;

    #[test]
    fn a_report_is_read_from_top_to_bottom() {
        let plan = plan(Service::Table, 1);
        let results = [result(Pace::Open(500.0), 500), throttled(result(Pace::Open(3000.0), 2500), 40)];
        let report = Report::new(&plan, "stress1".to_owned(), Ticks::default(), &results, Vec::new());
        let text = text(&report);
        for part in [
            "table     stress1\n",
            "keys      uniform in one partition, 100 rows loaded\n",
            "operation  done/s  entities/s      p50",
            "get         2,500       2,500  ",
            "3,000/s due   2,500",
            "falls behind\n",
            "503 ServerBusy        40          40                        40               0\n",
            "the partition: 2,500 entities/s; published for the live service: 2,000 (125 %)\n",
            "the server's ceiling: 2,500/s (it did not keep up with 3,000/s; beyond it",
            "own processor time: 400.0 µs an operation, 50 % of its threads' time\n",
            "- 40 attempts were refused",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_end() == line));
    }
}
