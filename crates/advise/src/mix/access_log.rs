//! A mix from the server's access log: what was done with a table as it is.
//!
//! The log has no filters and no values: a query's class says which keys it named, and no more. What always
//! holds: what the log does not say is listed as unknown, not guessed; lines of other tables are passed over.

use super::classes::{Mix, Query, Write};
use serde::Deserialize;
use std::collections::BTreeMap;
use table::edm::parse_date_time;

/// The shortest time that a log is taken to be of: a shorter one says nothing of a day.
const SPAN_S_MIN: f64 = 60.0;
/// How long a query may take if the log has no time.
const WITHIN_MS: f64 = 1000.0;

/// Why a log can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessLogError {
    /// A line that is none of a log.
    #[error("line {line}: it is no line of an access log: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// Nothing of the table.
    #[error("it has no request to table {0}")]
    NoRequests(String),
}

/// What of a line is used.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    time: &'a str,
    #[serde(borrow)]
    service: &'a str,
    #[serde(borrow)]
    operation: &'a str,
    #[serde(borrow, default)]
    container: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    class: Option<&'a str>,
    status: u16,
    #[serde(default)]
    total_us: u64,
}

/// Requests of one kind.
#[derive(Default)]
struct Seen {
    count: u64,
    total_us: u64,
}

/// The mix of a table as the log has it. Requests a day are those of the log's span, extended to a day.
pub fn mix_of_access_log(text: &str, table: &str) -> Result<Mix, AccessLogError> {
    let (mut reads, mut writes) = (BTreeMap::<&str, Seen>::new(), BTreeMap::<&str, Seen>::new());
    let mut span: Option<(u64, u64)> = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| AccessLogError::Line { line: index + 1, what };
        let read: Line<'_> = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let is_of_table = read.container.as_deref().is_some_and(|one| one.eq_ignore_ascii_case(table));
        if read.service != "table" || !is_of_table || read.status >= 400 {
            continue;
        }
        let at = parse_date_time(read.time).map_err(|_| wrong("its time is none".to_owned()))?.0;
        span = Some(span.map_or((at, at), |(low, high)| (low.min(at), high.max(at))));
        let seen = match operation_kind(read.operation) {
            Some(true) => reads.entry(read.class.unwrap_or("none")).or_default(),
            Some(false) => writes.entry(read.operation).or_default(),
            None => continue,
        };
        seen.count += 1;
        seen.total_us += read.total_us;
    }
    let (low, high) = span.ok_or_else(|| AccessLogError::NoRequests(table.to_owned()))?;
    let days = ((high - low) as f64 / 1e7).max(SPAN_S_MIN) / 86_400.0;
    Ok(mix(&reads, &writes, days))
}

/// Whether an operation reads entities; none if it does neither.
fn operation_kind(operation: &str) -> Option<bool> {
    match operation {
        "GetEntity" | "QueryEntities" => Some(true),
        name if name.contains("Entity") => Some(false),
        _ => None,
    }
}

fn mix(reads: &BTreeMap<&str, Seen>, writes: &BTreeMap<&str, Seen>, days: f64) -> Mix {
    let mut mix = Mix::default();
    let per_day = |seen: &Seen| seen.count as f64 / days;
    for (class, seen) in reads {
        let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (equal, range) = match *class {
            "point" => (keys(&["PartitionKey", "RowKey"]), None),
            "row-range" => (keys(&["PartitionKey"]), Some("RowKey".to_owned())),
            "partition-range" => (Vec::new(), Some("PartitionKey".to_owned())),
            _ => (Vec::new(), None),
        };
        let mean_ms = seen.total_us as f64 / 1e3 / seen.count.max(1) as f64;
        mix.queries.push(Query {
            name: format!("{class} of the log"),
            equal,
            range,
            length: None,
            newest: None,
            per_day: per_day(seen),
            within_ms: if mean_ms > 0.0 { (mean_ms * 2.0).max(10.0) } else { WITHIN_MS },
        });
        if matches!(*class, "table-scan" | "partition-range" | "row-range") {
            mix.unknown.push(format!(
                "the log does not say what queries of class {class} compare: name their properties in a mix of TOML"
            ));
        }
    }
    for (operation, seen) in writes {
        let name = format!("{operation} of the log");
        mix.writes.push(Write { name, per_day: per_day(seen), together: Vec::new(), group: 1.0 });
        if *operation == "EntityGroupTransaction" {
            mix.unknown
                .push("the log does not say how many entities a batch has: it is counted as one".to_owned());
        }
    }
    mix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, operation: &str, class: &str, table: &str, status: u16) -> String {
        format!(
            "{{\"time\":\"2026-11-28T{time}Z\",\"id\":\"x\",\"service\":\"table\",\"operation\":\"{operation}\",\
             \"container\":\"{table}\",\"class\":\"{class}\",\"status\":{status},\"total_us\":2000}}\n"
        )
    }

    #[test]
    fn a_log_is_counted_by_class() {
        let log = [
            line("00:00:00", "GetEntity", "point", "T", 200),
            line("00:30:00", "QueryEntities", "table-scan", "t", 200),
            line("00:40:00", "QueryEntities", "table-scan", "Other", 200),
            line("00:50:00", "InsertEntity", "point", "T", 409),
            line("01:00:00", "InsertEntity", "point", "T", 204),
        ]
        .concat();
        let mix = mix_of_access_log(&log, "T").expect("a log");
        assert_eq!(mix.queries.iter().map(|query| query.per_day.round()).collect::<Vec<_>>(), [24.0, 24.0]);
        assert_eq!((mix.queries[0].equal.len(), mix.queries[1].equal.len()), (2, 0));
        assert_eq!((mix.written_per_day().round(), mix.unknown.len()), (24.0, 1));
        assert_eq!(mix_of_access_log(&log, "X"), Err(AccessLogError::NoRequests("X".to_owned())));
        let error = mix_of_access_log("{}\n", "T").expect_err("no line").to_string();
        assert!(error.starts_with("line 1: it is no line of an access log"), "{error}");
    }
}
