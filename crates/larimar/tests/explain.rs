//! `larimar explain` against a server of this build, whose counts are compared with what is in the tables,
//! and against a service that says nothing of what a query costs.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::tables::{connection, run, start};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

fn explained(folder: &Path, connection: &str, arguments: &[&str]) -> Value {
    let arguments = [&["explain"], arguments, &["--json"]].concat();
    let (code, out, errors) = run(folder, connection, &arguments);
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&out).expect("JSON")
}

/// A table of these partitions with so many rows each.
fn load(folder: &Path, connection: &str, table: &str, partitions: &[(&str, u32)]) {
    let rows = partitions.iter().flat_map(|(partition, count)| (0..*count).map(move |row| (partition, row)));
    let line = |(partition, row): (&&str, u32)| {
        json!({ "PartitionKey": partition, "RowKey": format!("{row:04}"), "City": row % 10 }).to_string()
            + "\n"
    };
    std::fs::write(folder.join("rows.jsonl"), rows.map(line).collect::<String>()).expect("a file");
    let (code, _, errors) = run(folder, connection, &["table", "import", table, "rows.jsonl", "--create"]);
    assert_eq!((code, errors.as_str()), (0, ""));
}

#[test]
fn rows_read_are_those_of_the_ranges() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, (server, connection)) = (folder.path(), start(folder.path()));
    load(folder, &connection, "Few", &[("p1", 100), ("p2", 50), ("p3", 25)]);
    for (filter, class, rows_read, entities) in [
        ("", "table scan", 175, 175),
        ("City eq 3", "table scan", 175, 18),
        ("PartitionKey eq 'p1'", "partition scan", 100, 100),
        ("PartitionKey eq 'p2' and City eq 3", "partition scan", 50, 5),
        ("PartitionKey eq 'p1' and RowKey ge '0010' and RowKey lt '0020'", "row range", 10, 10),
        ("PartitionKey eq 'p1' and RowKey ne '0010'", "row range", 99, 99),
        ("PartitionKey eq 'p1' and RowKey eq '0001'", "point", 1, 1),
        ("PartitionKey eq 'p1' and RowKey eq '0001' and City eq 5", "point", 1, 0),
        ("PartitionKey eq 'p1' and RowKey eq 'none'", "point", 0, 0),
        ("PartitionKey eq 'p1' and (RowKey eq '0001' or RowKey eq '0009')", "several points", 2, 2),
        ("PartitionKey eq 'p1' or PartitionKey eq 'p3'", "several partitions by or", 125, 125),
        ("PartitionKey ge 'p2'", "partition range", 75, 75),
        ("PartitionKey ne 'p2'", "partition range", 125, 125),
        // Only in the first partition RowKey narrows anything.
        ("PartitionKey ge 'p1' and PartitionKey lt 'p3' and RowKey eq '0001'", "partition range", 149, 2),
        ("PartitionKey eq 5", "nothing", 0, 0),
    ] {
        let found = explained(folder, &connection, &["Few", "--filter", filter]);
        let of = |name: &str| found[name].as_u64();
        assert_eq!(found["class"], class, "{filter}");
        assert_eq!((of("rows_read"), of("entities")), (Some(rows_read), Some(entities)), "{filter}");
        assert_eq!((of("table_entities"), &found["table_is_counted"]), (Some(175), &json!(true)));
    }
    let (code, text, _) =
        run(folder, &connection, &["explain", "Few", "--filter", "PartitionKey eq 'p2' and City eq 3"]);
    assert_eq!(code, 0);
    for words in
        ["partition scan", "50 to return 5: 10.0 for each", "28.57 % of it was read", "begins with City"]
    {
        assert!(text.contains(words), "{text}");
    }
    assert!(server.stop().success());
}

/// A page that is full looks at one more row, to know whether there is a next page.
#[test]
fn pages_and_tokens_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, (server, connection)) = (folder.path(), start(folder.path()));
    load(folder, &connection, "Many", &[("p", 2500)]);
    let of = |arguments: &[&str]| {
        let found = explained(folder, &connection, &[&["Many"], arguments].concat());
        let number = |name: &str| found[name].as_u64().expect("a number");
        let numbers = ["pages", "tokens", "entities", "rows_read"].map(number);
        (numbers, found["is_complete"] == json!(true), found["table_is_counted"].clone())
    };
    assert_eq!(of(&[]), ([3, 2, 2500, 2502], true, json!(true)));
    assert_eq!(of(&["--top", "10"]), ([1, 1, 10, 11], true, json!(true)));
    assert_eq!(of(&["--top", "1500", "--count", "0"]), ([2, 2, 1500, 1502], true, Value::Null));
    assert_eq!(of(&["--pages", "1", "--count", "1000"]), ([1, 1, 1000, 1001], false, json!(false)));
    let narrow = explained(folder, &connection, &["Many", "--select", "RowKey"]);
    let wide = explained(folder, &connection, &["Many"]);
    assert!(narrow["bytes"].as_u64() < wide["bytes"].as_u64());
    assert!(server.stop().success());
}

/// Of a mistake three lines, without a request: nothing listens there.
#[test]
fn a_mistake_has_a_caret_under_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let nobody = connection("http://127.0.0.1:1/devstoreaccount1");
    let (code, out, errors) =
        run(folder.path(), &nobody, &["explain", "T", "--filter", "PartitionKey eq 'a' und A eq 1"]);
    assert_eq!((code, out.as_str()), (2, ""));
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 3, "{errors}");
    let at = lines[1].find("und").expect("the filter");
    assert_eq!((lines[2].find('^'), lines[2].trim_end().len()), (Some(at), at + 1), "{errors}");
    let (code, _, errors) =
        run(folder.path(), &nobody, &["explain", "T", "--retry", "none", "--filter", "A eq 1"]);
    assert_eq!((code, errors.lines().count()), (2, 1), "{errors}");
}

#[test]
fn a_table_that_is_not_there_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, connection) = start(folder.path());
    let (code, out, errors) = run(folder.path(), &connection, &["explain", "None"]);
    assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{errors}");
    assert!(errors.contains("TableNotFound"), "{errors}");
    assert!(server.stop().success());
}

/// A service that answers without statistics, as the live one does.
#[test]
fn of_a_service_without_statistics_it_says_what_cannot_be_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/devstoreaccount1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let body = r#"{"value":[{"PartitionKey":"p","RowKey":"r"}]}"#;
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            // Each request ends with an empty line; it has no body.
            while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                );
                if (&stream).write_all((head + body).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let filter = ["explain", "T", "--filter", "PartitionKey eq 'p'"];
    let (code, text, errors) = run(folder.path(), &connection(&url), &filter);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(text.contains("this service does not say it") && text.contains("1 page with 0 tokens"), "{text}");
    let found = explained(folder.path(), &connection(&url), &filter[1..]);
    assert!(found["rows_read"].is_null() && found["service_class"].is_null());
    assert_eq!((&found["class"], &found["entities"]), (&json!("partition scan"), &json!(1)));
}
