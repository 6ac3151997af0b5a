//! Answers of the admin side as text: tables with a head, and lines.

use super::text_of;
use crate::arguments::admin_arguments::{AdminCommand, TableArguments};
use base::ByteSize;
use serde_json::{Value, json};

/// A column: its head, and where its value is in a row.
pub(crate) type Column = (&'static str, &'static str);

const RANGE_COLUMNS: [Column; 11] = [
    ("TABLE", "/table"),
    ("RANGE", "/range"),
    ("SIZE", "/served/size_bytes"),
    ("MEMORY", "/served/memory_table_bytes"),
    ("CHECKPOINTS", "/served/checkpoints"),
    ("COMPACTING", "/served/compacting_bytes"),
    ("REQUESTS/S", "/served/requests_per_second"),
    ("EPOCH", "/served/epoch"),
    ("FROM", "/start"),
    ("TO", "/end"),
    ("DAMAGE", "/damage"),
];
const LOAD_COLUMNS: [Column; 6] = [
    ("TABLE", "/table"),
    ("RANGE", "/range"),
    ("REQUESTS/S", "/requests_per_second"),
    ("REQUESTS", "/requests"),
    ("AT END %", "/at_end_percent"),
    ("SERIAL S", "/serial_section_seconds"),
];
const SLOW_COLUMNS: [Column; 14] = [
    ("TIME", "/time"),
    ("SERVICE", "/service"),
    ("OPERATION", "/operation"),
    ("CONTAINER", "/container"),
    ("CLASS", "/class"),
    ("STATUS", "/status"),
    ("TOTAL us", "/total_us"),
    ("AUTH us", "/authentication_us"),
    ("TURN us", "/turn_us"),
    ("BODY us", "/body_us"),
    ("WORK us", "/work_us"),
    ("ROWS READ", "/rows_read"),
    ("RETURNED", "/rows_returned"),
    ("ID", "/id"),
];
const SETTING_COLUMNS: [Column; 4] =
    [("KEY", "/key"), ("VALUE", "/value"), ("FROM", "/origin"), ("AT RUN TIME", "/at_run_time")];

/// What of an answer was asked for: the ranges of one table.
pub(super) fn chosen(command: &AdminCommand, mut answer: Value) -> Value {
    if let AdminCommand::Ranges(TableArguments { table: Some(table) })
    | AdminCommand::Loads(TableArguments { table: Some(table) }) = command
    {
        for key in ["ranges", "loads"] {
            if let Some(Value::Array(rows)) = answer.get_mut(key) {
                rows.retain(|row| row["table"] == json!(table));
            }
        }
    }
    answer
}

/// The answer to a command.
pub(super) fn text(command: &AdminCommand, answer: &Value) -> String {
    match command {
        AdminCommand::Ranges(_) => table(&RANGE_COLUMNS, &answer["ranges"]),
        AdminCommand::Loads(_) => table(&LOAD_COLUMNS, &answer["loads"]),
        AdminCommand::Slow => table(&SLOW_COLUMNS, &answer["slow"]),
        AdminCommand::Settings => table(&SETTING_COLUMNS, &answer["settings"]),
        AdminCommand::LogLevel { .. } => line(&answer["levels"]),
        AdminCommand::Simulate { .. } if answer["simulating"].is_null() => {
            "nothing is simulated\n".to_owned()
        }
        AdminCommand::Simulate { .. } => line(&answer["simulating"]),
        AdminCommand::Reload => line(&answer["outcome"]),
        AdminCommand::Token(_) => line(&answer["token"]),
        _ => lines(answer, ""),
    }
}

fn line(value: &Value) -> String {
    format!("{}\n", text_of(value))
}

/// Each field on a line; those of an object inside with its name before them.
pub(crate) fn lines(value: &Value, before: &str) -> String {
    let mut text = String::new();
    for (name, field) in value.as_object().into_iter().flatten() {
        let name = format!("{before}{name}");
        match field {
            Value::Object(_) => text.push_str(&lines(field, &format!("{name}."))),
            Value::Null => {}
            _ => text.push_str(&format!("{name:24} {}\n", cell(&name, field))),
        }
    }
    text
}

/// A value for people: bytes with a unit.
fn cell(name: &str, value: &Value) -> String {
    match value.as_u64() {
        Some(bytes) if name.ends_with("_bytes") => ByteSize(bytes).to_string(),
        _ => match value.as_f64() {
            Some(number) if value.is_f64() => format!("{number:.3}"),
            _ => text_of(value),
        },
    }
}

/// Rows below a head, each column as wide as its widest cell; columns without any value are left out.
pub(crate) fn table(columns: &[Column], rows: &Value) -> String {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let cells = |(head, path): &Column| {
        let of_row = |row: &Value| row.pointer(path).map_or_else(String::new, |value| cell(path, value));
        let cells: Vec<String> = rows.iter().map(of_row).collect();
        let is_empty = cells.iter().all(String::is_empty);
        (!is_empty).then(|| std::iter::once((*head).to_owned()).chain(cells).collect::<Vec<_>>())
    };
    let columns: Vec<Vec<String>> = columns.iter().filter_map(cells).collect();
    let width = |column: &Vec<String>| column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let mut text = String::new();
    for row in 0..=rows.len() {
        let cells = columns.iter().zip(&widths).map(|(column, width)| format!("{:width$}", column[row]));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_head_and_no_control_characters() {
        let served = json!({ "size_bytes": 3 << 20, "epoch": 2, "requests_per_second": 0 });
        let answer = json!({ "ranges": [
            { "table": "entity", "range": 3, "start": null, "end": "(a, 1, \"p\u{1b}[2J\")", "served": served },
            { "table": "blob", "range": 14, "served": null, "damage": "it is gone" },
        ] });
        let all = AdminCommand::Ranges(TableArguments { table: None });
        let printed = text(&all, &answer);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 3, "{printed}");
        assert!(lines[0].starts_with("TABLE   RANGE  SIZE") && lines[0].ends_with("DAMAGE"), "{printed}");
        assert!(!printed.contains('\u{1b}') && printed.contains("u{1b}"), "{printed}");
        assert!(!lines[0].contains("FROM") && !lines[0].contains("MEMORY"), "empty columns are left out");
        let some = AdminCommand::Ranges(TableArguments { table: Some("blob".to_owned()) });
        let chosen = chosen(&some, answer);
        assert_eq!(chosen["ranges"].as_array().map(Vec::len), Some(1));
        assert_eq!(text(&all, &json!({ "ranges": [] })), "\n");
    }

    #[test]
    fn answers_are_lines_with_units() {
        let answer = json!({ "ready": true, "reason": null, "disk": { "free_bytes": 1u64 << 30 } });
        let printed = text(&AdminCommand::Status, &answer);
        let free = format!("{:24} {}", "disk.free_bytes", ByteSize(1 << 30));
        assert_eq!(printed.lines().collect::<Vec<_>>(), [&free, &format!("{:24} true", "ready")]);
        let levels = AdminCommand::LogLevel { levels: None };
        assert_eq!(text(&levels, &json!({ "levels": "warn" })), "warn\n");
    }
}
