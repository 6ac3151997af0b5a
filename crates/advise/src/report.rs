//! A report as text and as JSON.

use crate::answers::{Answers, QUESTIONS};
use crate::design::parts_text;
use crate::predict::{METHODS, Prediction, QueryPrediction, Second};
use crate::proposals::Report;
use serde_json::{Value, json};
use std::fmt::Write;

/// Columns of a design's name in the table.
const LABEL_LEN: usize = 22;

/// The report as text: the table first, then each design, then how predictions are made.
pub fn report_text(report: &Report, answers: &Answers) -> String {
    let mut out = String::new();
    // Text takes everything.
    let _ = put_report(&mut out, report, answers);
    out
}

fn put_report(out: &mut String, report: &Report, answers: &Answers) -> std::fmt::Result {
    let (sampled, entities) = (report.sampled, report.entities);
    writeln!(
        out,
        "{sampled} entities were sampled of about {entities:.0}, of {:.0} bytes on the average; {:.1} are written a second at \
         the busiest time",
        report.mean_size_bytes, report.peak_rate
    )?;
    let all: Vec<(String, &Prediction)> = labelled(report);
    writeln!(out)?;
    put_line(out, "", all.iter().map(|(label, _)| label.clone()))?;
    let mut row = |label: &str, cell: &dyn Fn(&Prediction) -> String| {
        put_line(out, label, all.iter().map(|(_, prediction)| cell(prediction)))
    };
    row("largest partition", &|one| format!("{:.2} %", one.largest.share * 100.0))?;
    row("  19 times of 20", &|one| {
        format!("{:.2}-{:.2} %", one.largest.low * 100.0, one.largest.high * 100.0)
    })?;
    row("entities/s at most", &|one| format!("{:.0}", one.rate_max))?;
    row("requests a day", &|one| format!("{:.0}", one.requests_per_day))?;
    row("transactions lost", &|one| format!("{:.0} a day", one.transactions_lost))?;
    row("bytes duplicated", &|one| format!("{:.0}", one.duplicated_bytes))?;
    row("second rows, tables", &|one| {
        let tables = one.seconds.iter().filter(|second| second.is_table).count();
        format!("{}, {tables}", one.seconds.len() - tables)
    })?;
    row("serious warnings", &|one| {
        one.warnings.iter().filter(|warning| warning.is_serious).count().to_string()
    })?;
    for (label, prediction) in &all {
        put_design(out, label, prediction)?;
    }
    writeln!(out)?;
    for warning in &report.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    for unknown in &report.unknown {
        writeln!(out, "unknown: {unknown}")?;
    }
    for question in &QUESTIONS {
        writeln!(out, "answer: {} {}", question.text, answers.text(question))?;
    }
    for (what, how) in METHODS {
        writeln!(out, "how: {what}: {how}")?;
    }
    Ok(())
}

/// The designs with what they are called: the present one, then the proposals.
fn labelled(report: &Report) -> Vec<(String, &Prediction)> {
    let now = report.now.iter().map(|one| ("as it is".to_owned(), one));
    let proposals = report.proposals.iter().enumerate();
    now.chain(proposals.map(|(index, one)| (format!("{}: {}", index + 1, one.design.kind.name()), one)))
        .collect()
}

fn put_line(out: &mut String, label: &str, cells: impl Iterator<Item = String>) -> std::fmt::Result {
    let mut line = format!("{label:<LABEL_LEN$}");
    for cell in cells {
        write!(line, " {cell:<LABEL_LEN$}")?;
    }
    writeln!(out, "{}", line.trim_end())
}

fn put_design(out: &mut String, label: &str, prediction: &Prediction) -> std::fmt::Result {
    writeln!(out, "\n{label}\n  {}", prediction.design)?;
    for (index, second) in prediction.seconds.iter().enumerate() {
        writeln!(out, "  {}", second_text(index, second))?;
    }
    for query in &prediction.queries {
        writeln!(out, "  {}", query_text(query, prediction))?;
    }
    for warning in &prediction.warnings {
        let word = if warning.is_serious { "warning" } else { "note" };
        writeln!(out, "  {word}: {}", warning.text)?;
    }
    Ok(())
}

fn second_text(index: usize, second: &Second) -> String {
    let (partition, row) = (parts_text(&second.partition), parts_text(&second.row));
    let number = index + 1;
    match second.is_table {
        true => format!(
            "index table {number}, for {}: PartitionKey = {partition}; RowKey = {row}; a queue's worker writes it",
            second.query
        ),
        false => {
            format!("second row {number}, for {}: RowKey = {row}; in the same transaction", second.query)
        }
    }
}

fn query_text(query: &QueryPrediction, prediction: &Prediction) -> String {
    let place = match query.second {
        None => "the table".to_owned(),
        Some(index) if prediction.seconds[index].is_table => format!("index table {}", index + 1),
        Some(index) => format!("second row {}", index + 1),
    };
    format!(
        "query {}: {} of {place}; fan-out {:.1}, {:.1} requests, {:.0} rows read of which {:.0} are wanted, about {:.0} ms",
        query.name,
        query.class.name(),
        query.fan_out,
        query.requests,
        query.rows_read,
        query.rows_wanted,
        query.took_ms
    )
}

/// The report as JSON.
pub fn report_json(report: &Report, answers: &Answers) -> Value {
    let designs: Vec<Value> = labelled(report).iter().map(|(label, one)| design_json(label, one)).collect();
    let methods: Vec<Value> = METHODS.iter().map(|(what, how)| json!({ "what": what, "how": how })).collect();
    json!({
        "sampled": report.sampled, "entities": report.entities, "mean_bytes": report.mean_size_bytes,
        "peak_rate": report.peak_rate, "designs": designs,
        "warnings": report.warnings.iter().map(|one| &one.text).collect::<Vec<_>>(),
        "unknown": report.unknown, "methods": methods,
        "answers": {
            "growth": answers.growth, "peak_factor": answers.peak_factor, "stale_s": answers.stale_s,
            "is_atomic": answers.is_atomic,
        },
    })
}

fn design_json(label: &str, one: &Prediction) -> Value {
    let seconds = one.seconds.iter().map(|second| {
        json!({
            "is_table": second.is_table, "partition_key": parts_text(&second.partition),
            "row_key": parts_text(&second.row), "query": second.query,
        })
    });
    let queries = one.queries.iter().map(|query| {
        json!({
            "name": query.name, "class": query.class.name(), "second": query.second.map(|index| index + 1),
            "fan_out": query.fan_out, "requests": query.requests, "rows_read": query.rows_read,
            "rows_wanted": query.rows_wanted, "ms": query.took_ms, "is_fast_enough": query.is_fast_enough,
        })
    });
    let warnings = one.warnings.iter().map(|one| json!({ "serious": one.is_serious, "text": one.text }));
    json!({
        "label": label, "kind": one.design.kind.name(),
        "partition_key": parts_text(&one.design.partition), "row_key": parts_text(&one.design.row),
        "largest_share": one.largest.share, "largest_low": one.largest.low, "largest_high": one.largest.high,
        "hot_share": one.hot.share, "rate_max": one.rate_max, "requests_per_day": one.requests_per_day,
        "transactions_lost": one.transactions_lost, "bytes_duplicated": one.duplicated_bytes,
        "seconds": seconds.collect::<Vec<_>>(), "queries": queries.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
