//! What all shards answered: as a table for people, as JSON for programs.
//!
//! What always holds: a shard without an answer is named; a control character of a value is not printed.

use super::query::QueryError;
use super::request::Question;
use base::date_time::date_time_text;
use base::guid::guid_text;
use serde_json::{Map, Value as Json, json};
use shard_backend::{Row, Value};
use shard_map::Name;
use shard_router::ShardFailure;
use std::collections::BTreeMap;

/// Characters of a cell of a table, at most; JSON has all.
const CELL_CHARS_MAX: usize = 60;
/// The name of the column that has the shard.
const SHARD: &str = "shard";

/// The answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// Rows in their order, with their shards.
    Rows(Vec<(Name, Row)>),
    /// A value an aggregate: of all shards, and of each.
    Aggregates { all: Vec<Value>, shards: Vec<(Name, Vec<Value>)> },
}

/// What all shards answered.
#[derive(Debug)]
pub struct FanOutOutcome {
    columns: Vec<String>,
    /// Which values of a row are shown.
    places: Vec<usize>,
    answer: Answer,
    failed: BTreeMap<Name, String>,
}

impl FanOutOutcome {
    pub(super) fn new(
        question: &Question,
        answer: Answer,
        failed: &BTreeMap<Name, ShardFailure<QueryError>>,
    ) -> Self {
        let columns = match answer {
            Answer::Rows(_) => {
                question.columns.iter().map(|column| question.name(*column).to_owned()).collect()
            }
            Answer::Aggregates { .. } => {
                question.aggregates.iter().map(|aggregate| question.aggregate_name(aggregate)).collect()
            }
        };
        let failed = failed.iter().map(|(shard, failure)| (shard.clone(), failure.to_string())).collect();
        FanOutOutcome { columns, places: question.columns.clone(), answer, failed }
    }

    /// Whether a shard has no answer.
    pub fn is_amiss(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Shards without an answer, and why.
    pub fn failed(&self) -> &BTreeMap<Name, String> {
        &self.failed
    }

    fn shown<'a>(&self, row: &'a Row) -> Vec<&'a Value> {
        self.places.iter().filter_map(|place| row.values.get(*place)).collect()
    }

    /// A table: a line of names, a line a row.
    pub fn text(&self) -> String {
        let head = std::iter::once(SHARD.to_owned()).chain(self.columns.iter().cloned());
        let mut lines: Vec<Vec<String>> = vec![head.collect()];
        let mut line = |shard: &str, values: &[&Value]| {
            let values = values.iter().map(|value| cell(value));
            lines.push(std::iter::once(shard.to_owned()).chain(values).collect());
        };
        match &self.answer {
            Answer::Rows(rows) => rows.iter().for_each(|(shard, row)| line(shard.as_str(), &self.shown(row))),
            Answer::Aggregates { all, shards } => {
                for (shard, values) in shards {
                    line(shard.as_str(), &values.iter().collect::<Vec<_>>());
                }
                line("(all)", &all.iter().collect::<Vec<_>>());
            }
        }
        table(&lines)
    }

    /// Columns by their names beside the shard.
    pub fn json(&self) -> Json {
        let object = |values: &[&Value]| -> Map<String, Json> {
            self.columns.iter().cloned().zip(values.iter().map(|value| value_json(value))).collect()
        };
        let with_shard = |shard: &Name, values: &[&Value]| json!({ SHARD: shard, "values": object(values) });
        match &self.answer {
            Answer::Rows(rows) => {
                let rows: Vec<Json> =
                    rows.iter().map(|(shard, row)| with_shard(shard, &self.shown(row))).collect();
                json!({ "rows": rows, "failed": self.failed })
            }
            Answer::Aggregates { all, shards } => {
                let of = |(shard, values): &(Name, Vec<Value>)| {
                    with_shard(shard, &values.iter().collect::<Vec<_>>())
                };
                let shards: Vec<Json> = shards.iter().map(of).collect();
                let all = object(&all.iter().collect::<Vec<_>>());
                json!({ "all": all, "shards": shards, "failed": self.failed })
            }
        }
    }
}

/// Columns of one width each, two spaces between them.
fn table(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let text = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(text).collect()
}

fn cell(value: &Value) -> String {
    let Value::Text(text) = value else { return value.to_string() };
    let shown = text.chars().take(CELL_CHARS_MAX).map(|one| if one.is_control() { '\u{FFFD}' } else { one });
    let more = if text.chars().nth(CELL_CHARS_MAX).is_some() { "…" } else { "" };
    shown.collect::<String>() + more
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int32(value) => json!(value),
        Value::Int64(value) => json!(value),
        // JSON has no NaN and no infinity.
        Value::Float64(value) if !value.is_finite() => json!(value.to_string()),
        Value::Float64(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::Binary(bytes) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        Value::DateTime(at) => json!(date_time_text(*at)),
        Value::Guid(guid) => json!(guid_text(guid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_of_one_width_and_no_control_characters() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(table(&[line(["shard", "n"]), line(["a", "12"])]), "shard  n\na      12\n");
        assert_eq!(cell(&"a\u{1b}[31m\n".into()), "a\u{FFFD}[31m\u{FFFD}");
        assert_eq!(cell(&Value::Text("é".repeat(61))), "é".repeat(60) + "…");
        assert_eq!(value_json(&Value::Float64(f64::NAN)), json!("NaN"));
        assert_eq!(value_json(&Value::Binary(vec![0, 255])), json!("00ff"));
    }
}
