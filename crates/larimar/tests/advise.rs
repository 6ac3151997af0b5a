//! `larimar advise` as its user runs it: samples of files and tables, mixes, answers, key functions.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::tables::{connection, run, start};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const MIX: &str = "[queries.newest]\nequal = \"Customer\"\nrange = \"At\"\nnewest = 10\nper_day = 1000\nwithin_ms = 50\n\
                   [queries.one]\nequal = \"Order\"\nper_day = 100\n\
                   [writes.order]\nper_day = 500\ntogether = \"Customer\"\ngroup = 2\n";
/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1/devstoreaccount1";

/// Orders of 20 customers, of whom the first has every other one; with keys if there is a partition.
fn orders(count: u32, partition: Option<&str>) -> String {
    let mut lines = String::new();
    for index in 0..count {
        let customer = if index % 2 == 0 { 0 } else { index % 20 };
        let (day, hour) = (index / 24 % 28 + 1, index % 24);
        let mut entity = json!({
            "Customer": format!("c/{customer}"), "Order": format!("o{index:06}"),
            "At@odata.type": "Edm.DateTime", "At": format!("2026-11-{day:02}T{hour:02}:00:00Z"),
        });
        if let Some(partition) = partition {
            entity["PartitionKey"] = json!(partition);
            entity["RowKey"] = json!(format!("{index:06}"));
        }
        let _ = writeln!(lines, "{entity}");
    }
    lines
}

fn write(folder: &Path, name: &str, content: &str) {
    std::fs::write(folder.join(name), content).expect("a file");
}

/// Runs it to a good end; what it prints.
fn advised(folder: &Path, connection: &str, arguments: &[&str]) -> String {
    let arguments = [&["advise"], arguments, &["--mix", "mix.toml"]].concat();
    let (code, out, errors) = run(folder, connection, &arguments);
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    out
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_file_without_keys_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, nobody) = (folder.path(), connection(NOBODY));
    write(folder, "mix.toml", MIX);
    write(folder, "orders.jsonl", &orders(2000, None));
    let file = ["--sample", "orders.jsonl", "--share", "0.01"];
    let text = advised(folder, &nobody, &file);
    assert_eq!(text, advised(folder, &nobody, &file), "the same input gives the same report");
    for words in
        ["2000 entities were sampled of about 200000", "largest partition", "characters: Customer", "how: "]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let report = parsed(&advised(folder, &nobody, &[&file[..], &["--json"]].concat()));
    let designs = report["designs"].as_array().expect("designs");
    assert_eq!(designs.len(), 3, "without keys there is no present design");
    let single = designs.iter().find(|one| one["partition_key"] == "Customer").expect("the customer's");
    assert!((single["largest_share"].as_f64().expect("a share") - 0.55).abs() < 0.051, "{single}");
    let drawn =
        |seed: &str| advised(folder, &nobody, &[&file[..], &["--draw", "0.5", "--seed", seed]].concat());
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
    let code = advised(folder, &nobody, &[&file[..], &["--emit", "python", "--design", "2"]].concat());
    write(folder, "keys.py", &code);
    let checked = Command::new("python3").arg(folder.join("keys.py")).output().expect("Python");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    for language in ["typescript", "csharp", "rust"] {
        let code = advised(folder, &nobody, &[&file[..], &["--emit", language]].concat());
        assert!(code.contains("0x9a6c9329ac4bc9b5") || code.contains("0x9a6c_9329_ac4b_c9b5"), "{language}");
    }
}

#[test]
fn a_table_is_sampled_and_its_log_is_a_mix() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, (server, connection)) = (folder.path(), start(folder.path()));
    write(folder, "mix.toml", MIX);
    write(folder, "orders.jsonl", &orders(10_000, Some("all")));
    let (code, _, errors) =
        run(folder, &connection, &["table", "import", "Orders", "orders.jsonl", "--create"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let drawn = ["Orders", "--draw", "0.1", "--json"];
    let text = advised(folder, &connection, &drawn);
    assert_eq!(text, advised(folder, &connection, &[&drawn[..], &["--connections", "2"]].concat()));
    let report = parsed(&text);
    let entities = report["entities"].as_f64().expect("a number");
    // Within five standard deviations.
    assert!((8500.0..11_500.0).contains(&entities), "{entities}");
    let now = &report["designs"][0];
    assert_eq!((&now["label"], &now["largest_share"]), (&json!("as it is"), &json!(1.0)));
    let line = |time: &str, operation: &str, class: &str| {
        json!({
            "time": format!("2026-11-28T{time}Z"), "service": "table", "operation": operation,
            "container": "Orders", "class": class, "status": 200, "total_us": 1000,
        })
        .to_string()
    };
    let log = [line("10:00:00", "QueryEntities", "table-scan"), line("11:00:00", "InsertEntity", "point")];
    write(folder, "access.log", &log.join("\n"));
    let of_log = ["advise", "Orders", "--draw", "0.1", "--mix", "access.log"];
    let (code, text, errors) = run(folder, &connection, &of_log);
    // Scans alone name no property, so nothing but the entities' own keys can be tried.
    assert!(code == 0 && errors.is_empty(), "{errors}");
    assert!(
        text.contains("unknown: the log does not say what queries of class table-scan compare"),
        "{text}"
    );
    assert!(server.stop().success());
}

#[test]
fn answers_are_kept_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, nobody) = (folder.path(), connection(NOBODY));
    write(folder, "mix.toml", MIX);
    write(folder, "orders.jsonl", &orders(500, None));
    let arguments = ["--sample", "orders.jsonl", "--answers", "answers.toml"];
    let text = advised(folder, &nobody, &arguments);
    let answers = std::fs::read_to_string(folder.join("answers.toml")).expect("a file");
    assert!(answers.contains("peak_factor = 5.0") && text.contains("than the mean? 5.0"), "{text}");
    write(folder, "answers.toml", &answers.replace("peak_factor = 5.0", "peak_factor = 7.0"));
    assert!(advised(folder, &nobody, &arguments).contains("than the mean? 7.0"));
    write(folder, "answers.toml", &answers.replace("stale_s = 60.0", "stale_s = 0"));
    assert!(!advised(folder, &nobody, &arguments).contains("index table 1"), "none may be behind");
}

#[test]
fn mistakes_are_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, nobody) = (folder.path(), connection(NOBODY));
    write(folder, "mix.toml", MIX);
    write(folder, "orders.jsonl", &orders(100, None));
    write(folder, "cut.jsonl", "{\"A\":1}\n{\"A\":");
    write(folder, "none.jsonl", "");
    write(folder, "other.toml", "[queries.a]\nequal = \"Costumer\"\nper_day = 1\n");
    write(folder, "bad.toml", "[queries.a]\nequals = \"Customer\"\nper_day = 1\n");
    write(folder, "bad-answers.toml", "peak_factor = 0\n");
    for (arguments, words) in [
        (&["--sample", "none.jsonl", "--mix", "mix.toml"][..], "the sample has no entities"),
        (&["--sample", "cut.jsonl", "--mix", "mix.toml"], "cut.jsonl: line 2: the file ends in the middle"),
        (&["--sample", "missing.jsonl", "--mix", "mix.toml"], "missing.jsonl"),
        (
            &["--sample", "orders.jsonl", "--mix", "other.toml"],
            "no entity of the sample has a property Costumer",
        ),
        (&["--sample", "orders.jsonl", "--mix", "bad.toml"], "bad.toml: line 2"),
        (&["--sample", "orders.jsonl", "--mix", "missing.toml"], "missing.toml"),
        (&["--sample", "orders.jsonl", "--mix", "orders.jsonl"], "an access log needs TABLE"),
        (&["--sample", "orders.jsonl", "--mix", "mix.toml", "--answers", "bad-answers.toml"], "line 1"),
        (&["--sample", "orders.jsonl", "--mix", "mix.toml", "--share", "0"], "more than 0"),
        (&["Orders", "--mix", "mix.toml", "--retry", "none"], "127.0.0.1"),
        (&["--mix", "mix.toml"], "TABLE"),
    ] {
        let (code, out, errors) = run(folder, &nobody, &[&["advise"], arguments].concat());
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{words}: {errors}");
    }
}
