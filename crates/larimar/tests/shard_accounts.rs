//! Shards that are storage accounts, on the command line of the default build: connection strings come from a
//! file or the environment, and all shards are asked.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::{Server, program};
use shard_backend::{Backend, FenceHold, Row, Schema, Shardlet, TableBackend, TablePlace};
use shard_map::Catalog;
use std::path::Path;
use std::sync::Arc;
use storage_client::{AccountKey, Settings, Surroundings};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sharding");
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

struct Accounts {
    folder: tempfile::TempDir,
    tables: String,
    _server: Server,
}

impl Accounts {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["notes.toml", "notes-schema.toml"] {
            std::fs::copy(Path::new(EXAMPLES).join(file), folder.path().join(file)).expect("a copy");
        }
        let arguments = ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"];
        let accounts = format!("one:{KEY};two:{KEY}");
        let server = Server::start(folder.path(), &arguments, &[("LARIMAR_ACCOUNTS", &accounts)]);
        let ready = std::fs::read(folder.path().join("ready")).expect("it is ready");
        let ready: serde_json::Value = serde_json::from_slice(&ready).expect("JSON");
        let tables = ready["table"].as_str().expect("an address").trim_end_matches('/').to_owned();
        let accounts = Accounts { folder, tables, _server: server };
        let lines = format!("one {}\ntwo {}\n", accounts.connection("one"), accounts.connection("two"));
        std::fs::write(accounts.folder.path().join("connections"), lines).expect("a file");
        accounts
    }

    fn connection(&self, account: &str) -> String {
        format!("AccountName={account};AccountKey={KEY};TableEndpoint={}/{account}", self.tables)
    }

    fn shard(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = program(self.folder.path(), &[&["shard"], arguments].concat());
        command.env("LARIMAR_SHARD_HOME", "file:notes.map").env("LARIMAR_SHARD_SCHEMA", "notes-schema.toml");
        let output = command.envs(environment.iter().copied()).output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (code, text) = self.shard(arguments, &[]);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        text
    }

    /// Tenants 0 to 199, each with a note.
    async fn fill(&self) {
        let schema = std::fs::read_to_string(self.folder.path().join("notes-schema.toml")).expect("a file");
        let schema = Arc::new(Schema::parse(&schema).expect("a schema"));
        let catalog = Catalog::from_json(&self.done(&["map", "export"])).expect("a catalog");
        let map = catalog.map("notes").expect("the map").clone();
        let table = schema.table("notes").expect("the table");
        for (account, tenants) in [("one", 0_i64..100), ("two", 100..200)] {
            let at = TablePlace {
                account: account.to_owned(),
                endpoint: format!("{}/{account}", self.tables),
                key: AccountKey::from_base64(KEY).expect("a key"),
                copies: "LarimarShard".to_owned(),
            };
            let backend = TableBackend::new(at, schema.clone(), Settings::default(), Surroundings::system())
                .expect("an address");
            backend.create_tables().await.expect("tables");
            let route = map.route(&[tenants.start.into()]).expect("a route");
            let since = route.placement.since;
            let shardlet = Shardlet::new(map.clone(), route.mapping).expect("a shardlet");
            // number, tenant, text, words
            let row = |tenant: i64| Row {
                values: vec![1_i64.into(), tenant.into(), "a note".into(), (tenant as i32).into()],
            };
            let rows: Vec<Row> = tenants.map(row).collect();
            backend.write(table, &shardlet, FenceHold::Open(since), &rows).await.expect("written");
        }
    }
}

fn with_connections<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--connections", "connections"]].concat()
}

#[test]
fn all_accounts_are_asked_and_a_failure_is_named() {
    let accounts = Accounts::start();
    accounts.done(&["map", "init", "notes.toml"]);
    accounts.done(&["map", "publish", "--connections", "connections"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(accounts.fill());
    let asked = [
        "fanout",
        "notes",
        "--connections",
        "connections",
        "--count",
        "--sum",
        "words",
        "--min",
        "words",
        "--max",
        "words",
        "--avg",
        "words",
    ];
    let text = accounts.done(&asked);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["shard", "count(*)", "sum(words)", "min(words)", "max(words)", "avg(words)"]);
    assert_eq!(lines[1], ["one", "100", "4950", "0", "99", "49.5"]);
    assert_eq!(lines[2], ["two", "100", "14950", "100", "199", "149.5"]);
    assert_eq!(lines[3], ["(all)", "200", "19900", "0", "199", "99.5"]);
    // Merged in the order of keys, across the accounts' bound.
    let text = accounts.done(&[
        "fanout",
        "notes",
        "--connections",
        "connections",
        "--where",
        "tenant>=98",
        "--limit",
        "4",
        "--columns",
        "tenant,text",
    ]);
    let rows =
        ["shard  tenant  text", "one    98      a note", "one    99      a note", "two    100     a note"];
    assert_eq!(text.lines().take(4).collect::<Vec<_>>(), rows);
    accounts.done(&["verify", "--connections", "connections"]);
    // By the environment, and with an account whose key is another.
    let (one, two) = (accounts.connection("one"), accounts.connection("two"));
    let opened =
        [("LARIMAR_SHARD_CONNECTION_ONE", one.as_str()), ("LARIMAR_SHARD_CONNECTION_TWO", two.as_str())];
    let (code, text) = accounts.shard(&["fanout", "notes", "--count", "--json"], &opened);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &json["all"]["count(*)"]), (Some(0), &200.into()));
    let wrong = two.replace("Eby8", "AAAA");
    let opened = [opened[0], ("LARIMAR_SHARD_CONNECTION_TWO", wrong.as_str())];
    let (code, text) = accounts.shard(&["fanout", "notes", "--count", "--partial", "--json"], &opened);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &json["all"]["count(*)"]), (Some(3), &100.into()));
    assert!(json["failed"]["two"].is_string() && !text.contains("AAAA"), "{text}");
    let (code, text) = accounts.shard(&["fanout", "notes", "--count"], &opened);
    assert!(code == Some(1) && text.contains("`two`") && text.lines().count() == 1, "{text}");
    let (code, text) = accounts.shard(&["fanout", "notes"], &[]);
    assert!(code == Some(2) && text.contains("--connections"), "{text}");
}

/// The second half of the first account's tenants goes to the other account, and the sources are deleted.
#[test]
fn a_range_of_tenants_moves_from_account_to_account() {
    let accounts = Accounts::start();
    let done = |arguments: &[&str]| accounts.done(&with_connections(arguments));
    accounts.done(&["map", "init", "notes.toml"]);
    done(&["map", "publish"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(accounts.fill());
    let counts = || {
        let text = done(&["fanout", "notes", "--count", "--sum", "tenant"]);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().skip(1).take(3).map(words).collect::<Vec<_>>()
    };
    done(&["plan", "split", "notes", "50", "--out", "split.json"]);
    done(&["apply", "split.json"]);
    done(&["plan", "move", "notes", "two", "50", "--out", "move.json"]);
    assert_eq!(counts(), [["one", "100", "4950"], ["two", "100", "14950"], ["(all)", "200", "19900"]]);
    let applied = done(&["apply", "move.json"]);
    assert!(applied.contains("done"), "{applied}");
    assert_eq!(counts(), [["one", "50", "1225"], ["two", "150", "18675"], ["(all)", "200", "19900"]]);
    let (code, found) = accounts.shard(&with_connections(&["verify"]), &[]);
    assert!(code == Some(3) && found.contains("50 stale-copy"), "{code:?} {found}");
    let applied = done(&["apply", "--delete-sources"]);
    assert!(applied.contains("source-deleted"), "{applied}");
    done(&["verify"]);
    assert_eq!(counts(), [["one", "50", "1225"], ["two", "150", "18675"], ["(all)", "200", "19900"]]);
    let status = accounts.done(&["status"]);
    assert!(status.contains("source-deleted"), "{status}");
}
