//! The answer of `admin heat` as text: the hottest partitions, a map of keys and time, remarks.
//!
//! What always holds: a cell is one character, and what it means stands above the map.

use super::text_of;
use super::words::{Column, table};
use serde_json::{Value, json};

const PARTITION_COLUMNS: [Column; 9] = [
    ("TABLE", "/table"),
    ("RANGE", "/range"),
    ("ACCOUNT", "/account"),
    ("CONTAINER", "/container"),
    ("CONTAINER ID", "/container_id"),
    ("PARTITION", "/shown"),
    ("READS/S", "/reads_per_second"),
    ("WRITES/S", "/writes_per_second"),
    ("SHARE %", "/share_percent"),
];
/// From nothing to the most.
const DENSITIES: &[u8; 10] = b" .:-=+*#%@";
/// Characters of a key in front of its row.
const KEY_LEN_MAX: usize = 56;

/// The answer as text.
pub(super) fn heat_text(answer: &Value) -> String {
    let mut partitions = answer["partitions"].clone();
    for partition in partitions.as_array_mut().into_iter().flatten() {
        let name = partition["partition"].as_str().map(|name| format!("{name:?}"));
        let goes_on = if partition["cut"] == true { "…" } else { "" };
        partition["shown"] = json!(name.map(|name| format!("{name}{goes_on}")));
    }
    let mut text = match partitions.as_array().is_some_and(|partitions| !partitions.is_empty()) {
        true => format!("{}\n{}", table(&PARTITION_COLUMNS, &partitions), map_text(&answer["map"])),
        false => "nothing was asked for\n".to_owned(),
    };
    let remarks = answer["remarks"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !remarks.is_empty() {
        text.push('\n');
    }
    remarks.iter().for_each(|remark| text.push_str(&format!("{}\n", text_of(remark))));
    text
}

/// Requests a second in the cells of a row.
fn rates(row: &Value) -> Vec<f64> {
    let of = |key: &str| -> Vec<f64> {
        row[key].as_array().into_iter().flatten().map(|rate| rate.as_f64().unwrap_or(0.0)).collect()
    };
    of("reads_per_second")
        .into_iter()
        .zip(of("writes_per_second"))
        .map(|(reads, writes)| reads + writes)
        .collect()
}

/// A character for a rate of at most `most`.
fn density(rate: f64, most: f64) -> char {
    let steps = (DENSITIES.len() - 1) as f64;
    let step = if rate > 0.0 { (rate / most * steps).ceil().clamp(1.0, steps) } else { 0.0 };
    char::from(DENSITIES[step as usize])
}

fn map_text(map: &Value) -> String {
    let rows = map["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let columns = map["columns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(first) = columns.first() else { return String::new() };
    let most = rows.iter().flat_map(rates).fold(0.0, f64::max);
    let key_of = |row: &Value| -> String {
        let key = text_of(&row["from"]);
        match key.chars().count() > KEY_LEN_MAX {
            true => key.chars().take(KEY_LEN_MAX - 1).chain(['…']).collect(),
            false => key,
        }
    };
    let mut lines = Vec::new();
    for row in rows {
        let cells: String = rates(row).into_iter().map(|rate| density(rate, most)).collect();
        lines.push(json!({ "table": row["table"], "range": row["range"], "from": key_of(row), "cells": format!("|{cells}|") }));
    }
    let head = format!(
        "Requests a second by keys and time: a column for each 10 minutes from {} on, {:?} for the most, {most:.1}/s in a cell, \
         less down to {:?}\n",
        text_of(&first["begins"]),
        char::from(DENSITIES[DENSITIES.len() - 1]),
        char::from(DENSITIES[1]),
    );
    let columns = [("TABLE", "/table"), ("RANGE", "/range"), ("KEYS FROM", "/from"), ("TIME", "/cells")];
    head + &table(&columns, &json!(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_a_character_for_each_cell() {
        let partition = |name: &str, cut: bool| {
            json!({
                "table": "entity", "range": 3, "account": "acct", "container": "people", "container_id": 7,
                "partition": name, "cut": cut, "reads_per_second": 1.5, "writes_per_second": 0.0, "share_percent": 60.0,
            })
        };
        let row = |from: &str, writes: [f64; 3]| {
            json!({
                "table": "entity", "range": 3, "from": from, "to": "z",
                "reads_per_second": [0.0, 0.0, 1.0], "writes_per_second": writes,
            })
        };
        let columns = json!([{ "begins": "2026-11-29T10:00:00Z", "seconds": 600 }]);
        let answer = json!({
            "partitions": [partition("a\u{1b}[2J", true), partition("b", false)],
            "map": {
                "columns": columns,
                "rows": [row("(acct, 7, \"a\")", [9.0, 0.0, 0.0]), row(&"k".repeat(99), [0.5, 4.0, 8.0])],
            },
            "remarks": ["appends at one end of range 3: so it is"],
        });
        let printed = heat_text(&answer);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            lines[0].starts_with("TABLE   RANGE  ACCOUNT  CONTAINER  CONTAINER ID  PARTITION"),
            "{printed}"
        );
        assert!(lines[1].contains("\"a\\u{1b}[2J\"…") && !printed.contains('\u{1b}'), "{printed}");
        assert!(lines[4].contains("from 2026-11-29T10:00:00Z on, '@' for the most, 9.0/s"), "{printed}");
        assert!(lines[6].ends_with("|@ .|") && lines[6].contains("(acct, 7, \"a\")"), "{printed}");
        assert!(lines[7].ends_with("…  |.=@|"), "{printed}");
        assert_eq!(lines.last(), Some(&"appends at one end of range 3: so it is"));
        let empty = json!({ "partitions": [], "map": { "columns": [], "rows": [] }, "remarks": [] });
        assert_eq!(heat_text(&empty), "nothing was asked for\n");
    }
}
