//! Which request to the admin side a command is: a pure choice.

use crate::arguments::admin_arguments::{AdminCommand, HeatArguments, RangeArguments, TokenCommand};
use serde_json::{Map, Value, json};

/// A request to `/api/v1`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) method: &'static str,
    /// With the query behind it.
    pub(super) path: String,
    pub(super) body: Option<Value>,
}

/// The request of a command.
pub(super) fn request_of(command: &AdminCommand) -> Request {
    let get = |path: &str| Request { method: "GET", path: path.to_owned(), body: None };
    let post = |path: &str, body| Request { method: "POST", path: path.to_owned(), body: Some(body) };
    let put = |path: &str, body| Request { method: "PUT", path: path.to_owned(), body: Some(body) };
    match command {
        AdminCommand::Status => get("/api/v1/status"),
        AdminCommand::Ranges(_) => get("/api/v1/ranges"),
        AdminCommand::Loads(_) => get("/api/v1/loads"),
        AdminCommand::Heat(heat) => get(&format!("/api/v1/heat{}", query_of(heat))),
        AdminCommand::Slow => get("/api/v1/slow"),
        AdminCommand::LogLevel { levels: None } => get("/api/v1/log-level"),
        AdminCommand::LogLevel { levels: Some(levels) } => {
            put("/api/v1/log-level", json!({ "levels": levels }))
        }
        AdminCommand::Flush(ranges) => post("/api/v1/flush", chosen(ranges)),
        AdminCommand::Compact(ranges) => post("/api/v1/compact", chosen(ranges)),
        AdminCommand::Split { table, range } => {
            post("/api/v1/split", json!({ "table": table, "range": range }))
        }
        AdminCommand::Drain { undo } => put("/api/v1/drain", json!({ "draining": !undo })),
        AdminCommand::Simulate { profile: None } => get("/api/v1/simulate"),
        AdminCommand::Simulate { profile: Some(profile) } => {
            put("/api/v1/simulate", json!({ "profile": profile }))
        }
        AdminCommand::Settings => get("/api/v1/settings"),
        AdminCommand::Reload => post("/api/v1/settings/reload", json!({})),
        AdminCommand::Token(TokenCommand::Show { role } | TokenCommand::Rotate { role }) => {
            post("/api/v1/token", json!({ "role": role.name() }))
        }
    }
}

fn query_of(heat: &HeatArguments) -> String {
    let numbers = [("top", heat.top), ("range", heat.range), ("hours", heat.hours), ("rows", heat.rows)];
    let numbers = numbers.iter().filter_map(|(key, value)| value.map(|value| format!("{key}={value}")));
    let table = heat.table.map(|table| format!("table={table}"));
    let query = table.into_iter().chain(numbers).collect::<Vec<_>>().join("&");
    if query.is_empty() { query } else { format!("?{query}") }
}

fn chosen(ranges: &RangeArguments) -> Value {
    let mut body = Map::new();
    if let Some(table) = &ranges.table {
        body.insert("table".to_owned(), json!(table));
    }
    if let Some(range) = ranges.range {
        body.insert("range".to_owned(), json!(range));
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Chore};
    use clap::Parser;

    #[test]
    fn commands_are_requests() {
        for (words, method, path, body) in [
            (&["status"][..], "GET", "status", Value::Null),
            (&["ranges", "--table", "blob"], "GET", "ranges", Value::Null),
            (&["heat"], "GET", "heat", Value::Null),
            (&["heat", "--range", "7", "--table", "blob"], "GET", "heat?table=blob&range=7", Value::Null),
            (&["log-level"], "GET", "log-level", Value::Null),
            (&["log-level", "info"], "PUT", "log-level", json!({ "levels": "info" })),
            (&["flush"], "POST", "flush", json!({})),
            (
                &["compact", "--table", "blob", "--range", "7"],
                "POST",
                "compact",
                json!({ "table": "blob", "range": 7 }),
            ),
            (&["split", "entity", "3"], "POST", "split", json!({ "table": "entity", "range": 3 })),
            (&["drain"], "PUT", "drain", json!({ "draining": true })),
            (&["drain", "--undo"], "PUT", "drain", json!({ "draining": false })),
            (&["simulate", "azure"], "PUT", "simulate", json!({ "profile": "azure" })),
            (&["reload", "--json"], "POST", "settings/reload", json!({})),
            (&["token", "rotate", "read"], "POST", "token", json!({ "role": "read" })),
        ] {
            let arguments = Arguments::try_parse_from([&["larimar", "admin"], words].concat()).expect("good");
            let Chore::Admin(arguments) = arguments.chore() else { panic!("{words:?}") };
            let request = request_of(&arguments.command);
            let body = Some(body).filter(|body| !body.is_null());
            assert_eq!((request.method, request.body), (method, body), "{words:?}");
            assert_eq!(request.path, format!("/api/v1/{path}"), "{words:?}");
        }
    }
}
