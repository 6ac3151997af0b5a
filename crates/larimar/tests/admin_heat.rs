//! `larimar admin heat` against a running server: what it says of tables, queues and blobs that were used.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::requests::send;
use running::{Server, program};
use serde_json::{Value, json};
use std::path::Path;

const PORTS: [&str; 4] = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=0"];
const VALUE: &str = "a-value-that-nobody-may-see";

fn heat(folder: &Path, server: &Server, words: &[&str]) -> (Option<i32>, String, String) {
    let (endpoint, tokens) = (server.ready("admin"), server.ready("admin_token_file"));
    let connection = ["admin", "--endpoint", endpoint, "--token-file", tokens, "heat"];
    let output = program(folder, &[&connection[..], words].concat()).output().expect("the program");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn insert(server: &Server, partition: &str, row: u32) {
    let entity = json!({ "PartitionKey": partition, "RowKey": format!("{row:05}"), "Text": VALUE });
    let json = ["Content-Type: application/json", "Prefer: return-no-content"];
    let answer = send(server.sas("table"), "POST", "/People", &json, entity.to_string().as_bytes());
    assert_eq!(answer.status, 204, "{}", answer.text());
}

fn find(rows: &Value, matches: impl Fn(&Value) -> bool) -> &Value {
    rows.as_array().and_then(|rows| rows.iter().find(|row| matches(row))).unwrap_or(&Value::Null)
}

#[test]
fn the_hottest_partitions_and_appends_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arguments = [&["--in-memory", "--heat-sample", "1"], &PORTS[..]].concat();
    let server = Server::start(folder, &arguments, &[]);
    let json_body = ["Content-Type: application/json"];
    let made = send(server.sas("table"), "POST", "/Tables", &json_body, br#"{"TableName":"People"}"#);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(send(server.sas("queue"), "PUT", "/jobs", &[], b"").status, 201);
    let message = format!("<QueueMessage><MessageText>{VALUE}</MessageText></QueueMessage>");
    assert_eq!(send(server.sas("queue"), "POST", "/jobs/messages", &[], message.as_bytes()).status, 201);
    assert_eq!(send(server.sas("blob"), "PUT", "/files?restype=container", &[], b"").status, 201);
    let blob = ["x-ms-blob-type: BlockBlob"];
    assert_eq!(send(server.sas("blob"), "PUT", "/files/a.txt", &blob, VALUE.as_bytes()).status, 201);
    insert(&server, "b\"q", 1);
    (0..60).for_each(|row| insert(&server, "log", row));
    for _ in 0..5 {
        let got = send(server.sas("table"), "GET", "/People(PartitionKey='log',RowKey='00007')", &[], b"");
        assert!(got.status == 200 && got.text().contains(VALUE), "{}", got.text());
    }

    let (code, out, err) = heat(folder, &server, &["--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(!out.contains(VALUE), "{out}");
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    let log = find(&answer["partitions"], |partition| partition["partition"] == "log");
    assert_eq!(
        (&log["table"], &log["container"], &log["account"]),
        (&json!("entity"), &json!("People"), &json!("devstoreaccount1"))
    );
    assert!(log["writes_per_second"].as_f64() > log["reads_per_second"].as_f64(), "{log}");
    assert!(log["reads_per_second"].as_f64() > Some(0.0), "{log}");
    let file =
        find(&answer["partitions"], |found| found["container"] == "files" && found["partition"] == "a.txt");
    assert!(file["table"] == "blob" && file["writes_per_second"].as_f64() > Some(0.0), "{out}");
    assert!(
        find(&answer["partitions"], |partition| partition["container"] == "jobs")["range"].is_u64(),
        "{out}"
    );
    let range = log["range"].as_u64().expect("a range");
    let appends = format!("appends at one end of range {range} of table entity: ");
    assert!(answer["remarks"][0].as_str().is_some_and(|remark| remark.starts_with(&appends)), "{out}");
    assert_eq!(
        find(&answer["ranges"], |found| found["table"] == "entity" && found["range"] == range)["writes_go_to"],
        "last"
    );
    assert!(answer["sketch_bytes"].as_u64().is_some_and(|bytes| bytes < 5 * 65_536), "{out}");

    let (_, out, _) =
        heat(folder, &server, &["--table", "entity", "--range", &range.to_string(), "--top", "9"]);
    assert!(out.starts_with("TABLE   RANGE  ACCOUNT") && out.contains("\"log\""), "{out}");
    assert!(out.contains("KEYS FROM") && out.contains("@|") && out.contains(&appends), "{out}");
    assert!(out.contains("\"b\\\"q\""), "{out}");
    assert!(!out.contains("files") && !out.contains(VALUE), "{out}");
    for (words, part) in [
        (["--top", "0"], "top has to be a whole number from 1 to 1000"),
        (["--hours", "9"], "hours has to be a whole number from 1 to 4"),
        (["--range", "99999"], "there is no such range"),
    ] {
        let (code, _, err) = heat(folder, &server, &words);
        assert!(code == Some(3) && err.contains(part), "{words:?}: {err}");
    }
    assert!(server.stop().success());
}

#[test]
fn without_a_sample_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arguments = [&["--in-memory", "--heat-sample", "0"], &PORTS[..]].concat();
    let server = Server::start(folder, &arguments, &[]);
    assert_eq!(send(server.sas("queue"), "PUT", "/jobs", &[], b"").status, 201);
    let (code, out, _) = heat(folder, &server, &[]);
    assert!(code == Some(0) && out.starts_with("nothing was asked for\n"), "{out}");
    assert!(out.contains("--heat-sample 0"), "{out}");
    assert!(server.stop().success());
}
