//! Listings over rows in memory.

use super::*;
use crate::memory_rows::{MemoryRows, StepClock, run};
use crate::tables::create_table::CreateTable;
use std::time::Duration;

fn tables(names: &[&str]) -> MemoryRows {
    let mut rows = MemoryRows::default();
    for (account, name) in names.iter().map(|name| ("acct", *name)).chain([("other", "Foreign")]) {
        let key = container_key(account, SERVICE_TABLE, name);
        rows.execute(&CreateTable { key, name: name.to_owned() }).unwrap();
    }
    let settings = service::container::settings_key("acct", SERVICE_TABLE);
    rows.put(ObjectTable::Container, &settings, bytes::Bytes::from_static(b"settings"));
    rows
}

fn list(rows: &MemoryRows, filter: &str, top: usize, start: Option<&str>) -> TableListPage {
    let query =
        TableListQuery { filter: Some(Filter::parse(filter).unwrap()), top, start: start.map(str::to_owned) };
    run(read_table_page(rows, &StepClock::shared(Duration::ZERO), "acct", &query)).unwrap()
}

#[test]
fn names_come_as_created_in_order_whatever_their_case() {
    let rows = tables(&["bbb", "Aaa", "aab", "CCC"]);
    let all = list(&rows, "", 1000, None);
    assert_eq!((all.names, all.next), (["Aaa", "aab", "bbb", "CCC"].map(str::to_owned).to_vec(), None));
    let first = list(&rows, "", 2, None);
    assert_eq!(first.next.as_deref(), Some("bbb"));
    let second = list(&rows, "", 2, first.next.as_deref());
    assert_eq!((second.names, second.next), (vec!["bbb".to_owned(), "CCC".to_owned()], None));
    assert_eq!(list(&rows, "", 2, Some("AAB")).names[0], "aab");
}

#[test]
fn filters() {
    let rows = tables(&["Alpha", "alphb", "Beta", "gamma"]);
    for (filter, expected) in [
        ("TableName eq 'Beta'", &["Beta"][..]),
        ("'Beta' eq TableName", &["Beta"]),
        ("TableName eq 'bETA'", &["Beta"]),
        ("TableName ge 'ALPH' and TableName lt 'ALPH{'", &["Alpha", "alphb"]),
        ("TableName eq 'Beta' or TableName eq 'gamma'", &["Beta", "gamma"]),
        ("TableName ge 'A' and TableName lt 'C'", &["Alpha", "alphb", "Beta"]),
        ("not (TableName eq 'Beta')", &["Alpha", "alphb", "gamma"]),
        ("TableName eq 'Beta' and Other eq 1", &[]),
        ("Other ne 1 or PartitionKey eq 'x'", &[]),
    ] {
        assert_eq!(list(&rows, filter, 10, None).names, expected, "{filter}");
    }
    assert_eq!(
        list(&rows, "TableName eq 'Beta' or TableName eq 'Alpha'", 1, None).next.as_deref(),
        Some("beta")
    );
}

/// Keys sort by UTF-16 unit, texts in memory by code point.
#[test]
fn tables_that_a_filter_names_are_read_once_and_in_key_order() {
    let names = ["\u{e000}", "b", "\u{1f600}", "B", "a"];
    let terms: Vec<String> = names.iter().map(|name| format!("TableName eq '{name}'")).collect();
    let filter = Filter::parse(&terms.join(" or ")).unwrap();
    let spans = spans("acct", Some(&filter), containers_range("acct", SERVICE_TABLE));
    let expected = ["a", "b", "\u{1f600}", "\u{e000}"];
    let points = expected.map(|name| Span::Point(container_key("acct", SERVICE_TABLE, name)));
    assert_eq!(spans, points);
}

#[test]
fn a_damaged_row_is_an_error() {
    let mut rows = tables(&["abc"]);
    rows.put(
        ObjectTable::Container,
        &container_key("acct", SERVICE_TABLE, "bad"),
        bytes::Bytes::from_static(b"\x63"),
    );
    let query = TableListQuery { filter: None, top: 10, start: None };
    let result = run(read_table_page(&rows, &StepClock::shared(Duration::ZERO), "acct", &query));
    assert!(matches!(result, Err(TableError::Partition(_))));
}
