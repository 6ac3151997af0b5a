//! `larimar table export` and `import` with Parquet: nothing is lost and nothing done twice, whenever they
//! are killed; bad input is one line and exit code 2.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::program;
use running::tables::{run, start};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(120);
const ENTITIES: usize = 9_000;

/// Entities with all types, a property of several types, and 320 properties of which each has a few.
fn lines() -> String {
    let line = |number: usize| {
        let mut entity = json!({
            "PartitionKey": format!("part {}", number % 40), "RowKey": format!("{number:06}"),
            "Text": format!("\"{number}\"\n,ü\u{1f600}"), "Empty": "", "True": number.is_multiple_of(2),
            "Int": i32::MIN, "Long@odata.type": "Edm.Int64", "Long": i64::MIN.to_string(),
            "Double": number as f64 + 0.25,
            "At@odata.type": "Edm.DateTime", "At": "1601-01-01T00:00:00.0000001Z",
            "Last@odata.type": "Edm.DateTime", "Last": "9999-12-31T23:59:59.9999999Z",
            "Guid@odata.type": "Edm.Guid", "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
            "Bytes@odata.type": "Edm.Binary", "Bytes": "AQI=", "None@odata.type": "Edm.Binary", "None": "",
        });
        entity[format!("P{:03}", number % 320)] = json!(number);
        match number % 5 {
            0 => entity["Mixed"] = json!("a text"),
            1 => entity["Mixed"] = json!(5),
            2 => entity["Mixed"] = json!(1.0e300),
            3 => {
                let special = ["NaN", "Infinity", "-Infinity"];
                entity["Mixed@odata.type"] = json!("Edm.Double");
                entity["Mixed"] = json!(special[number % 3]);
            }
            _ => {}
        }
        entity.to_string() + "\n"
    };
    (0..ENTITIES).map(line).collect()
}

/// Runs it until it ends well, and kills it before each time that a file appears, a while after that; how
/// often it was killed.
fn with_kills(folder: &Path, connection: &str, arguments: &[&str], kills: &[(&str, u64)]) -> usize {
    let mut killed = 0;
    for (file, after_ms) in kills.iter().copied().map(Some).chain([None]).map(Option::unwrap_or_default) {
        let mut command = program(folder, arguments);
        command.env("AZURE_STORAGE_CONNECTION_STRING", connection);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
        let (started, mut seen_at) = (Instant::now(), None);
        loop {
            assert!(started.elapsed() < WITHIN, "it does not end");
            if let Some(status) = child.try_wait().expect("a child") {
                assert!(status.success(), "{arguments:?}: {status}");
                return killed;
            }
            if !file.is_empty() && folder.join(file).exists() {
                let seen_at: &mut Instant = seen_at.get_or_insert_with(Instant::now);
                if seen_at.elapsed() >= Duration::from_millis(after_ms) {
                    // It may have ended.
                    let _ = child.kill();
                    let ended = child.wait().expect("a child");
                    killed += usize::from(!ended.success());
                    break;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    killed
}

#[test]
fn nothing_is_lost_or_twice_whenever_it_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (_server, connection) = start(folder);
    let fine = |arguments: &[&str]| {
        // A slow machine shows progress there.
        let (code, out, errors) = run(folder, &connection, arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{errors}");
        out
    };
    std::fs::write(folder.join("in.jsonl"), lines()).expect("a file");
    fine(&["table", "import", "First", "in.jsonl", "--create"]);

    let (state, made) = ("out.parquet.state", "out.parquet.partial.parquet");
    let export = ["table", "export", "First", "out.parquet", "--connections", "3"];
    let mut kills =
        with_kills(folder, &connection, &export, &[(state, 0), (state, 30), (made, 0), (made, 20)]);
    assert!(kills > 0, "the kills came too late");
    for left in [state, made, "out.parquet.partial"] {
        assert!(!folder.join(left).exists(), "{left}");
    }
    let import = ["table", "import", "Second", "out.parquet", "--create", "--connections", "4"];
    kills = with_kills(folder, &connection, &import, &[(state, 0), (state, 40), (state, 90)]);
    assert!(kills > 0, "the kills came too late");
    assert!(!folder.join(state).exists(), "what is done leaves no state");
    let same = format!(
        "{ENTITIES} entities are the same, 0 differ, 0 are only in the first table, 0 only in the second\n"
    );
    assert_eq!(fine(&["table", "diff", "First", "Second"]), same);

    let dry = fine(&["table", "import", "Second", "out.parquet", "--dry-run"]);
    assert_eq!(dry, format!("dry run: nothing was written; {ENTITIES} entities can be\n"));
    std::fs::write(folder.join("mix.toml"), "[queries.one]\nequal = \"Text\"\nper_day = 100\n")
        .expect("a file");
    let advice = fine(&["advise", "--sample", "out.parquet", "--mix", "mix.toml"]);
    assert!(advice.contains("9000 entities were sampled"), "{advice}");
}

#[test]
fn bad_files_are_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (_server, connection) = start(folder);
    let text = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"A\":\"x\"}\n";
    std::fs::write(folder.join("in.jsonl"), text).expect("a file");
    for arguments in [
        &["table", "import", "Tab", "in.jsonl", "--create"][..],
        &["table", "export", "Tab", "good", "--format", "parquet"],
        &["table", "export", "Tab", "less.parquet", "--filter", "RowKey eq '2'"],
    ] {
        let (code, _, errors) = run(folder, &connection, arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    }
    let good = std::fs::read(folder.join("good")).expect("a file");
    let mut changed = good.clone();
    changed[8] ^= 1;
    std::fs::write(folder.join("cut.parquet"), &good[..good.len() - 9]).expect("a file");
    std::fs::write(folder.join("changed.parquet"), &changed).expect("a file");
    std::fs::write(folder.join("other.parquet"), text).expect("a file");
    for (arguments, expected) in [
        (&["export", "Tab", "less.parquet"][..], "less.parquet is there already; give --overwrite"),
        (
            &["import", "Tab", "cut.parquet"],
            "cut.parquet: the end of the file is missing: it was cut off; get it again",
        ),
        (
            &["import", "Tab", "changed.parquet"],
            "changed.parquet: row group 1: it is damaged: its checksum is another one",
        ),
        (&["import", "Tab", "other.parquet"], "other.parquet: it is no Parquet file, which begins with PAR1"),
        (&["import", "Tab", "missing.parquet"], "missing.parquet: No such file"),
        (&["import", "Tab", "less.parquet"], "less.parquet: line 1: an entity with its key is there already"),
    ] {
        let (code, out, errors) = run(folder, &connection, &[&["table"], arguments].concat());
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.starts_with(&format!("larimar: {expected}")), "{arguments:?}: {errors}");
    }
    // A file that was changed since the import began is not gone on with.
    let import =
        ["table", "import", "Other", "good", "--format", "parquet", "--create", "--on-conflict", "replace"];
    std::fs::write(folder.join("good.state"), state(&connection, &good)).expect("a file");
    let (code, _, errors) = run(folder, &connection, &import);
    assert_eq!((code, errors.as_str()), (0, ""), "of the same file");
    std::fs::write(folder.join("good.state"), state(&connection, &changed)).expect("a file");
    let (code, _, errors) = run(folder, &connection, &import);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.starts_with("larimar: good is not the file that good.state is about"), "{errors}");
}

/// The state of an import of a file that has done a row.
fn state(connection: &str, content: &[u8]) -> String {
    let url = connection.rsplit_once("TableEndpoint=").expect("an address").1;
    json!({
        "format": 1,
        "work": format!("import of good into {url}/Other, on conflict Replace"),
        "state": {
            "done_to": 1, "line": 2, "issued_to": 1, "counts": {"written": 1, "skipped": 0},
            "checksum": base::checksum::crc64(&[content]), "compared_size": content.len(),
        },
    })
    .to_string()
}
