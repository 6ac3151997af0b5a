//! `larimar table` against a server of this build: nothing is lost and nothing done twice, whenever it is
//! killed; bad input is one line and exit code 2.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use storage_client::{AccountAddress, BlobWrite, PutMessage, Settings, StorageAccount, Surroundings};

const PROGRAM: &str = env!("CARGO_BIN_EXE_larimar");
const WITHIN: Duration = Duration::from_secs(120);
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LARIMAR_") || name.to_string_lossy().starts_with("AZ") {
            command.env_remove(name);
        }
    }
    command
}

struct Server {
    process: Child,
    connection: String,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        let mut process = program(folder.path())
            .args(["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"])
            .args(["--admin-port", "none", "--ready-file", "ready"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program");
        let started = Instant::now();
        let ready: Value = loop {
            assert!(started.elapsed() < WITHIN, "the program does not get ready");
            assert!(process.try_wait().expect("a child").is_none(), "the program does not start");
            std::thread::sleep(Duration::from_millis(5));
            if let Ok(ready) = serde_json::from_slice(&std::fs::read(&ready).unwrap_or_default()) {
                break ready;
            }
        };
        let url = |name: &str| ready[name].as_str().expect("an address").trim_end_matches('/').to_owned();
        let (tables, queues, blobs) = (url("table"), url("queue"), url("blob"));
        let connection = format!(
            "AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={tables}/devstoreaccount1;\
             QueueEndpoint={queues}/devstoreaccount1;BlobEndpoint={blobs}/devstoreaccount1"
        );
        Server { process, connection, folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.folder.path());
        command.arg("table").args(arguments).env("AZURE_STORAGE_CONNECTION_STRING", &self.connection);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        parts(self.command(arguments).output().expect("the program"))
    }

    /// Runs it to a good end; what it prints.
    fn fine(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}: {out}");
        out
    }

    /// Runs it to a bad end: one line.
    fn refused(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        errors.trim_start_matches("larimar: ").trim_end().to_owned()
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("a file")
    }

    fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// Runs it until it ends well, and kills it before up to three times, each time a while after its state
    /// was kept; how often it was killed.
    fn with_kills(&self, arguments: &[&str], state: &str, random: &mut u64) -> u32 {
        for kills in 0.. {
            let mut child = self.command(arguments).spawn().expect("the program");
            let until = Duration::from_millis(next(random) % 120);
            let (started, mut kept_at) = (Instant::now(), None);
            let ended = loop {
                assert!(started.elapsed() < WITHIN, "it does not end");
                if let Some(status) = child.try_wait().expect("a child") {
                    break Some(status);
                }
                if self.has(state) && kept_at.is_none() {
                    kept_at = Some(Instant::now());
                }
                if kills < 3 && kept_at.is_some_and(|at: Instant| at.elapsed() >= until) {
                    break None;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            // It may have ended.
            let _ = child.kill();
            let (_, out, errors) = parts(child.wait_with_output().expect("a child"));
            if let Some(status) = ended {
                assert!(status.success(), "{arguments:?}: {status}: {out}{errors}");
                return kills;
            }
        }
        0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn parts(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    // A slow machine has lines of progress, too.
    let errors = text(output.stderr);
    let errors = errors.split_inclusive('\n').filter(|line| !line.contains(" so far, ")).collect();
    (output.status.code().unwrap_or(-1), text(output.stdout), errors)
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Entities of all types: one large partition, some of 100, many of one; by key.
fn entities(count: u64) -> BTreeMap<(String, String), Value> {
    let mut random = 7;
    let keys = (0..count).map(|number| match number % 4 {
        0 | 1 => ("large".to_owned(), format!("{number:07}")),
        2 => (format!("part-{:03}", number / 4 / 100), format!("row {number}")),
        _ => (format!("{:016x}", next(&mut random)), "it's ü".to_owned()),
    });
    keys.enumerate().map(|(number, (partition, row))| {
        let mut entity = json!({
            "PartitionKey": partition, "RowKey": row, "Text": format!("\"{number}\"\n,ü\u{1f600}"), "Empty": "",
            "True": number % 2 == 0, "Int": number as i32 - 1000, "Double": number as f64 + 0.25,
            "Long@odata.type": "Edm.Int64", "Long": (i64::MIN + number as i64).to_string(),
            "At@odata.type": "Edm.DateTime", "At": "1601-01-01T00:00:00.0000001Z",
            "Last@odata.type": "Edm.DateTime", "Last": "9999-12-31T23:59:59.9999999Z",
            "Guid@odata.type": "Edm.Guid", "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
            "Bytes@odata.type": "Edm.Binary", "Bytes": "AQI=", "None@odata.type": "Edm.Binary", "None": "",
        });
        let special = [json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(1.0e300)];
        entity["Several"] = special[number % 4].clone();
        if number % 4 < 3 {
            entity["Several@odata.type"] = json!("Edm.Double");
        }
        match number % 3 {
            0 => entity["Mixed"] = json!("a text"),
            1 => entity["Mixed"] = json!(5),
            _ => {}
        }
        ((partition, row), entity)
    })
    .collect()
}

fn lines<'a>(entities: impl IntoIterator<Item = &'a Value>) -> String {
    entities.into_iter().map(|entity| entity.to_string() + "\n").collect()
}

fn by_key(text: &str) -> BTreeMap<(String, String), Value> {
    let key = |entity: &Value, name: &str| entity[name].as_str().expect("a key").to_owned();
    let entity = |line: &str| -> Value { serde_json::from_str(line).expect("JSON") };
    let all: Vec<Value> = text.lines().map(entity).collect();
    let count = all.len();
    let by_key: BTreeMap<_, _> =
        all.into_iter().map(|one| ((key(&one, "PartitionKey"), key(&one, "RowKey")), one)).collect();
    assert_eq!(by_key.len(), count, "nothing is there twice");
    by_key
}

/// What a file has, sent through two tables and two formats, is the same at the end, though each step was
/// killed on its way.
#[test]
fn nothing_is_lost_or_twice_whenever_it_is_killed() {
    let server = Server::start();
    let entities = entities(12_000);
    server.write("in.jsonl", &lines(entities.values()));
    let mut random = 1;
    let import = ["import", "First", "in.jsonl", "--create", "--connections", "4"];
    let mut kills = vec![server.with_kills(&import, "in.jsonl.state", &mut random)];
    assert!(!server.has("in.jsonl.state"), "what is done leaves no state");
    assert_eq!(server.fine(&["count", "First", "--json"]), "{\"entities\":12000}\n");

    let export = ["export", "First", "out.jsonl", "--connections", "3"];
    kills.push(server.with_kills(&export, "out.jsonl.state", &mut random));
    assert!(!server.has("out.jsonl.state") && !server.has("out.jsonl.partial"));
    let exported = by_key(&server.read("out.jsonl"));
    assert!(exported == entities, "the file is what was imported");

    kills.push(server.with_kills(&["export", "First", "out.csv"], "out.csv.state", &mut random));
    let import = ["import", "Second", "out.csv", "--create", "--on-conflict", "skip", "--connections", "4"];
    kills.push(server.with_kills(&import, "out.csv.state", &mut random));
    let same = "12000 entities are the same, 0 differ, 0 are only in the first table, 0 only in the second\n";
    assert_eq!(server.fine(&["diff", "First", "Second"]), same);

    let copy = ["copy", "Second", "Third", "--create", "--state", "copy.state"];
    kills.push(server.with_kills(&copy, "copy.state", &mut random));
    assert_eq!(server.fine(&["diff", "Third", "First", "--connections", "2"]), same);
    // It shows that the kills did not come too late everywhere.
    assert!(kills[0] > 0 && kills.iter().sum::<u32>() > 1, "{kills:?}");
    let ordered = server.fine(&["export", "First", "ordered.jsonl", "--ordered"]);
    assert!(ordered.starts_with("ordered.jsonl has 12000 entities, "), "{ordered}");
    let keys: Vec<(String, String)> = server.read("ordered.jsonl").lines().map(key).collect();
    assert!(keys.is_sorted(), "the order is that of keys");
    // More than may be pinned at a time: each is ended.
    for connections in ["1", "2", "3", "4", "5", "6"] {
        let file = format!("snapshot{connections}.jsonl");
        server.fine(&["export", "First", &file, "--snapshot", "--connections", connections]);
        assert!(by_key(&server.read(&file)) == entities, "the file is what was imported");
    }
}

fn key(line: &str) -> (String, String) {
    let entity: Value = serde_json::from_str(line).expect("JSON");
    let text = |name: &str| entity[name].as_str().expect("a key").to_owned();
    (text("PartitionKey"), text("RowKey"))
}

fn few() -> &'static str {
    "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"A\":2}\n\
     {\"PartitionKey\":\"q\",\"RowKey\":\"1\",\"B\":\"x\"}\n"
}

fn import<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["import", "Tab", "few.jsonl"], more].concat()
}

#[test]
fn conflicts_end_as_they_are_to() {
    let server = Server::start();
    server.write("few.jsonl", few());
    assert_eq!(
        server.fine(&import(&["--create", "--dry-run"])),
        "dry run: nothing was written; 3 entities can be\n"
    );
    assert_eq!(
        server.fine(&import(&["--create"])),
        "written: 3 entities; left out, because they were there: 0\n"
    );
    let refused = server.refused(&import(&[]));
    assert!(
        refused.starts_with("few.jsonl: line 1: an entity with its key is there already; --on-conflict says what then; of few.jsonl the first 0 entities are in http://"),
        "{refused}"
    );
    let other = few().replace("\"A\":2", "\"A\":3,\"C\":true").replace("\"B\":\"x\"", "\"D\":\"y\"");
    server.write("few.jsonl", &(other + "{\"PartitionKey\":\"q\",\"RowKey\":\"2\"}\n"));
    let skipped = server.fine(&import(&["--on-conflict", "skip", "--restart"]));
    assert_eq!(skipped, "written: 1 entity; left out, because they were there: 3\n");
    server.fine(&["export", "Tab", "a.jsonl"]);
    assert_eq!(by_key(&server.read("a.jsonl"))[&("p".to_owned(), "2".to_owned())]["A"], 2);
    server.fine(&import(&["--on-conflict", "merge"]));
    server.fine(&["export", "Tab", "a.jsonl", "--overwrite"]);
    let merged = &by_key(&server.read("a.jsonl"))[&("q".to_owned(), "1".to_owned())];
    assert_eq!(*merged, json!({ "PartitionKey": "q", "RowKey": "1", "B": "x", "D": "y" }));
    server.fine(&import(&["--on-conflict", "replace"]));
    server.fine(&["export", "Tab", "a.jsonl", "--overwrite", "--select", "D", "--filter", "RowKey eq '1'"]);
    let expected = json!({ "PartitionKey": "q", "RowKey": "1", "D": "y" });
    assert_eq!(by_key(&server.read("a.jsonl"))[&("q".to_owned(), "1".to_owned())], expected);
    assert_eq!(by_key(&server.read("a.jsonl")).len(), 2);
}

#[test]
fn tables_are_compared_copied_described_and_emptied() {
    let server = Server::start();
    server.write("few.jsonl", few());
    server.fine(&["import", "Tab", "few.jsonl", "--create"]);
    let set = [
        "--set",
        "RowKey=PartitionKey + '-' + pad(RowKey, 3)",
        "--set",
        "PartitionKey=hash(PartitionKey, 1)",
    ];
    let copy = [&["copy", "Tab", "Uab", "--create", "--drop", "B"], &set[..]].concat();
    assert_eq!(
        server.fine(&[&copy[..], &["--dry-run"]].concat()),
        "dry run: nothing was written; 3 entities can be\n"
    );
    assert!(server.refused(&["count", "Uab"]).contains("TableNotFound"), "nothing was made");
    server.fine(&copy);
    server.fine(&["export", "Uab", "u.jsonl", "--ordered"]);
    let expected = "{\"PartitionKey\":\"0\",\"RowKey\":\"p-001\",\"A\":1}\n{\"PartitionKey\":\"0\",\"RowKey\":\"p-002\",\"A\":2}\n\
                    {\"PartitionKey\":\"0\",\"RowKey\":\"q-001\"}\n";
    assert_eq!(server.read("u.jsonl"), expected);
    let missing = server.refused(&["copy", "Tab", "Uab", "--on-conflict", "replace", "--set", "RowKey=A"]);
    assert!(missing.contains("\"q\" \"1\": it has no property A"), "{missing}");

    server.fine(&["copy", "Tab", "Vab", "--create", "--filter", "A lt 2 or B eq 'x'", "--set", "C=or(A, B)"]);
    let (code, out, errors) = server.run(&["diff", "Tab", "Vab"]);
    assert_eq!((code, errors.as_str()), (1, ""));
    let expected = "  \"p\" \"1\": C is absent, and Edm.Int32 1\n  \"p\" \"2\": only in the first table\n  \
                    \"q\" \"1\": C is absent, and Edm.String \"x\"\n\
                    0 entities are the same, 2 differ, 1 are only in the first table, 0 only in the second\n";
    assert_eq!(out, expected);
    let (code, out, _) = server.run(&["diff", "Vab", "Tab", "--json", "--partition", "p"]);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, found["only_second"].as_u64(), found["differing"].as_u64()), (1, Some(1), Some(1)));

    let schema: Value = serde_json::from_str(&server.fine(&["schema", "Tab", "--json"])).expect("JSON");
    assert_eq!((schema["entities"].as_u64(), schema["partitions"].as_u64()), (Some(3), Some(2)));
    assert_eq!(
        schema["properties"][0],
        json!({ "name": "A", "types": { "Edm.Int32": 2 }, "bytes": 8, "bytes_max": 4 })
    );
    let text = server.fine(&["schema", "Tab"]);
    assert!(
        text.contains("large partition: ") && text.contains("  B: Edm.String 1; 6 bytes at most"),
        "{text}"
    );

    let delete = |more: &[&str]| server.fine(&[&["delete", "Tab"], more].concat());
    assert_eq!(
        delete(&["--filter", "A gt 1", "--dry-run"]),
        "dry run: nothing was deleted; 1 entity can be\n"
    );
    assert_eq!(delete(&["--filter", "A gt 1"]), "deleted: 1 entity\n");
    assert_eq!(delete(&["--partition", "q"]), "deleted: 1 entity\n");
    assert_eq!(delete(&["--all"]), "deleted: 1 entity\n");
    assert_eq!(server.fine(&["count", "Tab"]), "0 entities\n");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let server = Server::start();
    server.write("few.jsonl", few());
    server.fine(&["import", "Tab", "few.jsonl", "--create"]);
    server.write("cut.jsonl", &few()[..few().len() - 6]);
    server.write(
        "type.jsonl",
        "{\"PartitionKey\":\"p\",\"RowKey\":\"9\",\"X@odata.type\":\"Edm.Int64\",\"X\":\"y\"}\n",
    );
    server.write("head.csv", "PartitionKey,RowKey\np,r\n");
    server.write(
        "big.jsonl",
        &format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"big\",\"S\":\"{}\"}}\n", "x".repeat(40_000)),
    );
    for (arguments, expected) in [
        (&["export", "Missing", "x.jsonl"][..], "query entities /Missing() failed: 404 TableNotFound"),
        (&["export", "Tab", "x.jsonl", "--filter", "A eq"], "query entities /Tab() failed: 400 InvalidInput"),
        (
            &["export", "Tab", "x.jsonl", "--filter", "A eq 1) or (A eq 2"],
            "query entities /Tab() failed: 400 InvalidInput",
        ),
        (&["export", "Tab", "few.jsonl"], "few.jsonl is there already; give --overwrite, or another name"),
        (&["export", "Tab", "no/x.jsonl"], "no/x.jsonl.state.lock: No such file"),
        (&["export", "Tab", "x.txt"], "x.txt: its name tells no format"),
        (&["export", "Tab", "x.jsonl", "--connections", "0"], "--connections: give a number from 1 to 1000"),
        (&["export", "Tab", "x.jsonl", "--retry", "dotnt"], "--retry dotnt: there is no such policy"),
        (&["import", "Tab", "missing.jsonl"], "missing.jsonl: No such file"),
        (&["import", "Missing", "few.jsonl"], "submit entity group failed: 404 TableNotFound"),
        (
            &["import", "Tab", "cut.jsonl", "--on-conflict", "replace"],
            "cut.jsonl: line 3: the file ends in the middle of this line: it was cut off",
        ),
        (&["import", "Tab", "type.jsonl"], "type.jsonl: line 1: property X: \"y\" is no Edm.Int64"),
        (
            &["import", "Tab", "big.jsonl"],
            "big.jsonl: line 1: insert entity /Tab failed: 400 PropertyValueTooLarge",
        ),
        (
            &["import", "Tab", "head.csv"],
            "head.csv: line 1: the second line is to give the types of the columns",
        ),
        (&["count", "Tab", "--endpoint", "AccountName=a"], "--endpoint: "),
        (&["copy", "Tab", "Tab"], "a table is not copied onto itself"),
        (&["copy", "Tab", "Tab", "--set", "RowKey=A"], "a table is not copied onto itself"),
        (&["delete", "Tab", "--filter", ""], "invalid value '' for '--filter <FILTER>': it is empty"),
        (&["copy", "Tab", "Uab", "--set", "A"], "--set: '=' is missing at character 2"),
        (&["delete", "Tab"], "the following required arguments were not provided"),
        (&["delete", "Tab", "--all", "--filter", "x"], "the argument '--all' cannot be used with"),
    ] {
        let line = server.refused(arguments);
        assert!(line.starts_with(expected), "{arguments:?}\n found {line}\nwanted {expected}");
    }
    let wrong = server.connection.replace(&KEY[..4], "AAAA");
    let line = server.refused(&["count", "Tab", "--endpoint", &wrong]);
    assert!(line.contains("AuthenticationFailed") && !line.contains(&KEY[5..20]), "{line}");
    assert!(!server.has("x.jsonl") && !server.has("x.jsonl.partial"), "what was refused makes no file");
    // The state of other work is not gone on with.
    assert!(!server.has("type.jsonl.state"), "nothing was sent");
    let line = server.refused(&["import", "Uab", "few.jsonl", "--create"]);
    assert!(
        line.starts_with("few.jsonl.state: is of other work (import of few.jsonl into http://"),
        "{line}"
    );
}

/// A disk that takes no more: what is there is whole, and named, and the same command goes on.
#[test]
fn a_full_disk_leaves_whole_lines() {
    let server = Server::start();
    server.write("in.jsonl", &lines(entities(3000).values()));
    server.fine(&["import", "Tab", "in.jsonl", "--create"]);
    let mut limited = Command::new("bash");
    limited.args([
        "-c",
        "trap '' XFSZ; ulimit -f 1024; exec \"$0\" table export Tab out.jsonl --connections 2",
        PROGRAM,
    ]);
    limited.current_dir(server.folder.path()).env("AZURE_STORAGE_CONNECTION_STRING", &server.connection);
    let (code, _, errors) = parts(limited.output().expect("bash"));
    assert_eq!((code, errors.lines().count()), (2, 1), "{errors}");
    let partial = server.read("out.jsonl.partial");
    let rows = by_key(&partial).len();
    assert!(rows > 0 && partial.ends_with('\n'), "{errors}");
    let named =
        format!("; out.jsonl.partial has {rows} whole entities; the same command goes on with them\n");
    assert!(
        errors.starts_with("larimar: out.jsonl.partial: File too large") && errors.ends_with(&named),
        "{errors}"
    );
    server.fine(&["export", "Tab", "out.jsonl", "--connections", "2"]);
    assert!(by_key(&server.read("out.jsonl")) == entities(3000));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_moved_and_never_lost() {
    let server = Server::start();
    let address = AccountAddress::parse(&server.connection).expect("a connection string");
    let account = StorageAccount::new(address, Settings::default(), Surroundings::system());
    let (work, poison) = (account.queue("work"), account.queue("work-poison"));
    work.create_if_absent().await.expect("made");
    poison.create_if_absent().await.expect("made");
    for number in 0..40 {
        poison.put(&format!("<{number}>"), PutMessage::default()).await.expect("put");
    }
    let queue = |arguments: &[&str]| {
        let mut command = program(server.folder.path());
        command.arg("queue").args(arguments).env("AZURE_STORAGE_CONNECTION_STRING", &server.connection);
        parts(command.output().expect("the program"))
    };
    let fine = |arguments: &[&str]| {
        let (code, out, errors) = queue(arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}: {out}");
        out
    };
    let text = |line: &str| -> String {
        let message: Value = serde_json::from_str(line).expect("JSON");
        message["text"].as_str().expect("a text").to_owned()
    };
    let peeked = fine(&["peek", "work-poison", "--count", "3"]);
    assert_eq!(peeked.lines().map(text).collect::<Vec<_>>(), ["<0>", "<1>", "<2>"]);
    assert_eq!(
        fine(&["requeue", "work", "--dry-run"]),
        "dry run: nothing was changed; 32 messages at the queue's head\n"
    );
    assert_eq!(fine(&["requeue", "work", "--count", "1"]), "requeued: 1 message\n");
    assert_eq!(fine(&["requeue", "work"]), "requeued: 39 messages\n");
    assert_eq!(poison.properties().await.expect("properties").message_count, 0);
    assert_eq!(fine(&["copy", "work", "work-poison"]), "copied: 40 messages\n");
    assert_eq!(work.peek(32).await.expect("messages").len(), 32, "they are visible again");
    assert_eq!(fine(&["drain", "work", "out.jsonl", "--count", "33"]), "drained: 33 messages\n");
    // A run that was killed leaves half a line: what comes next is deleted from the queue, and must be
    // legible.
    let whole = server.read("out.jsonl");
    server.write("out.jsonl", &format!("{whole}{{\"id\":\"half"));
    assert_eq!(fine(&["drain", "work", "out.jsonl"]), "drained: 7 messages\n");
    let drained = server.read("out.jsonl");
    let mut drained: Vec<String> =
        drained.lines().filter(|line| *line != "{\"id\":\"half").map(text).collect();
    drained.sort_by_key(|text| (text.len(), text.clone()));
    assert_eq!(drained, (0..40).map(|number| format!("<{number}>")).collect::<Vec<_>>());
    assert_eq!(poison.properties().await.expect("properties").message_count, 40);

    for (arguments, expected) in [
        (&["drain", "missing", "x"][..], "get queue properties /missing failed: 404 QueueNotFound"),
        (&["requeue", "other"], "get queue properties /other failed: 404 QueueNotFound"),
        (&["requeue", "work", "--poison", "work"], "--poison: it is the same queue"),
        (&["copy", "work", "work"], "a queue is not copied onto itself"),
        (&["drain", "work", "no/x"], "no/x: No such file"),
        (&["drain", "work", "x", "--invisible", "0"], "--invisible: give seconds from 1 to 604800"),
    ] {
        let (code, out, errors) = queue(arguments);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.trim_start_matches("larimar: ").starts_with(expected), "{arguments:?}: {errors}");
    }
    assert!(!server.has("x"));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_are_copied_whole_and_known_again() {
    let server = Server::start();
    let address = AccountAddress::parse(&server.connection).expect("a connection string");
    let account = StorageAccount::new(address, Settings::default(), Surroundings::system());
    let (from, to) = (account.container("from"), account.container("other"));
    from.create_if_absent().await.expect("made");
    let write = || BlobWrite { content_type: Some("text/x".to_owned()), ..BlobWrite::default() };
    for number in 0..5_usize {
        let mut upload = from.blob(format!("a/{number}")).upload_in_blocks(write(), 70_000);
        upload.write(&vec![number as u8; number * 50_000][..]).await.expect("written");
        upload.finish().await.expect("made");
    }
    let copy = |arguments: &[&str]| {
        let mut command = program(server.folder.path());
        command.args(["blob", "copy", "from"]).args(arguments);
        command.env("AZURE_STORAGE_CONNECTION_STRING", &server.connection);
        parts(command.output().expect("the program"))
    };
    let fine = |arguments: &[&str]| {
        let (code, out, errors) = copy(arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}: {out}");
        out
    };
    let dry = "dry run: nothing was written; would be copied: 5 blobs of 500000 bytes; there already: 0\n";
    assert_eq!(fine(&["other", "--create", "--dry-run"]), dry);
    assert_eq!(fine(&["other", "--create"]), "copied: 5 blobs of 500000 bytes; there already: 0\n");
    for number in 0..5_usize {
        let blob = to.blob(format!("a/{number}"));
        assert!(blob.read(None).await.expect("a blob") == vec![number as u8; number * 50_000]);
        let properties = blob.properties().await.expect("properties");
        assert_eq!((properties.content_type.as_str(), properties.content_md5.len()), ("text/x", 24));
    }
    // Those of one block have an MD5 in the source, too; without one a blob is copied again.
    assert_eq!(fine(&["other", "--prefix", "a/1"]), "copied: 0 blobs of 0 bytes; there already: 1\n");
    to.blob("a/1").put("other", &write()).await.expect("put");
    assert_eq!(fine(&["other", "--prefix", "a/1"]), "copied: 1 blobs of 50000 bytes; there already: 0\n");
    assert_eq!(fine(&["other", "--prefix", "b"]), "copied: 0 blobs of 0 bytes; there already: 0\n");
    for (arguments, expected) in [
        (&["missing"][..], "get container properties /missing failed: 404 ContainerNotFound"),
        (&["from"], "a container is not copied onto itself"),
    ] {
        let (code, out, errors) = copy(arguments);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.trim_start_matches("larimar: ").starts_with(expected), "{arguments:?}: {errors}");
    }
}
