//! The worked examples of docs/sharding.md over SQLite files: a large tenant goes to a shard of its own, a
//! shard is added, rows are checked and repaired.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sharding");
const TABLES: &str = "\
CREATE TABLE customers (region TEXT NOT NULL, tenant INTEGER NOT NULL, customer INTEGER NOT NULL, \
    name TEXT NOT NULL, \
    PRIMARY KEY (region, tenant, customer));\
CREATE TABLE orders (region TEXT NOT NULL, tenant INTEGER NOT NULL, number INTEGER NOT NULL, customer INTEGER, \
    PRIMARY KEY (region, tenant, number));";

/// A folder with the examples and the databases.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["tenants.toml", "tenants-schema.toml", "tenants-rules.toml"] {
            std::fs::copy(Path::new(EXAMPLES).join(file), folder.path().join(file)).expect("a copy");
        }
        let place = Place { folder };
        for shard in ["eu1", "eu2", "eu3", "us1", "large"] {
            place.database(shard).execute_batch(TABLES).expect("tables");
        }
        place
    }

    fn path(&self, shard: &str) -> PathBuf {
        self.folder.path().join(format!("{shard}.db"))
    }

    fn database(&self, shard: &str) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path(shard)).expect("a database")
    }

    /// A customer of a tenant, and so many orders of it.
    fn fill(&self, shard: &str, region: &str, tenant: i64, orders: i64) {
        let mut database = self.database(shard);
        let database = database.transaction().expect("a transaction");
        let customer = "INSERT INTO customers VALUES (?1, ?2, 1, 'first')";
        database.execute(customer, (region, tenant)).expect("a customer");
        for number in 0..orders {
            let order = "INSERT INTO orders VALUES (?1, ?2, ?3, 1)";
            database.execute(order, (region, tenant, number)).expect("an order");
        }
        database.commit().expect("written");
    }

    fn orders(&self, shard: &str) -> i64 {
        let count = |row: &rusqlite::Row<'_>| row.get(0);
        self.database(shard).query_row("SELECT count(*) FROM orders", (), count).expect("a count")
    }

    /// Runs `larimar shard` with a home and a schema; exit code and standard output.
    fn shard(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larimar"));
        command.arg("shard").args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("LARIMAR_LOG");
        command.env("LARIMAR_SHARD_HOME", "sqlite:home.db");
        command.env("LARIMAR_SHARD_SCHEMA", "tenants-schema.toml");
        let output = command.output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (code, text) = self.shard(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        text
    }
}

#[test]
fn the_examples_of_tenants_run_as_the_page_has_them() {
    let place = Place::new();
    place.done(&["map", "init", "tenants.toml"]);
    place.done(&["map", "publish", "--shards"]);
    for tenant in 0..6 {
        place.fill("eu1", "eu", tenant, 10);
        place.fill("us1", "us", tenant, 10);
    }
    place.fill("eu2", "eu", 12, 500);
    place.fill("large", "eu", 7, 1000);
    place.done(&["verify", "--rules", "tenants-rules.toml"]);

    // A tenant has grown: it goes to the shard of large ones, alone.
    place.done(&["plan", "move", "tenants", "large", "eu", "12", "--alone", "--out", "move.json"]);
    assert_eq!(place.orders("large"), 1000, "a plan changes nothing");
    let applied = place.done(&["apply", "move.json"]);
    assert!(applied.contains("done"), "{applied}");
    assert_eq!((place.orders("large"), place.orders("eu2")), (1500, 500));
    let (code, found) = place.shard(&["verify"]);
    assert!(code == Some(3) && found.contains("501 stale-copy"), "{found}");
    let (code, tried) = place.shard(&["repair", "--dry-run"]);
    assert!(code == Some(3) && tried.contains("501 copies would be deleted"), "{tried}");
    let applied = place.done(&["apply", "--delete-sources"]);
    assert!(applied.contains("source-deleted"), "{applied}");
    assert_eq!((place.orders("large"), place.orders("eu2")), (1500, 0));
    place.done(&["verify", "--rules", "tenants-rules.toml"]);

    // A shard more; then the range of Europe's first tenants is split, and the second half goes there.
    place.done(&["plan", "split", "tenants", "eu", "3", "--out", "split.json"]);
    place.done(&["apply", "split.json"]);
    let added =
        place.shard(&["plan", "add", "eu3", "sqlite:eu3.db", "--tag", "region=eu", "--out", "add.json"]);
    assert!(matches!(added.0, Some(0 | 3)), "{}", added.1);
    place.done(&["apply", "add.json", "--delete-sources"]);
    place.done(&["verify", "--rules", "tenants-rules.toml"]);
    place.done(&["map", "check", "--shards"]);
    let shards = ["eu1", "eu2", "eu3", "us1", "large"];
    assert_eq!(shards.iter().map(|shard| place.orders(shard)).sum::<i64>(), 6 * 10 + 6 * 10 + 500 + 1000);
    let status = place.done(&["status"]);
    assert!(status.contains("source-deleted"), "{status}");
}

#[test]
fn what_makes_no_sense_is_one_line() {
    let place = Place::new();
    place.done(&["map", "init", "tenants.toml"]);
    for (arguments, expected) in [
        (&["undo", "x"][..], "\"x\" is no id of a move: 32 hexadecimal digits"),
        (&["verify", "--rules", "tenants.toml"], "tenants.toml: line 3: the rules has no key \"catalog\""),
        (&["apply", "tenants.toml"], "tenants.toml: this is no plan: "),
    ] {
        let (code, text) = place.shard(arguments);
        assert!(code == Some(2) && text.contains(expected) && text.lines().count() == 1, "{code:?} {text}");
    }
}
