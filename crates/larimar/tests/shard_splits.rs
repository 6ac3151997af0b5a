//! The worked examples of docs/sharding.md about splits, over SQLite files: hot rows apart from cold ones,
//! and a card's code apart from its number. Each map is asked with its own schema.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

use std::path::Path;
use std::process::{Command, Stdio};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sharding");
const SHOP: &str = "
    CREATE TABLE orders (customer INTEGER NOT NULL, number INTEGER NOT NULL, cents INTEGER NOT NULL,
        PRIMARY KEY (customer, number));
    CREATE TABLE cards (customer INTEGER NOT NULL, card INTEGER NOT NULL, number TEXT NOT NULL,
        PRIMARY KEY (customer, card));";
const ARCHIVE: &str = "
    CREATE TABLE done_orders (customer INTEGER NOT NULL, number INTEGER NOT NULL, cents INTEGER NOT NULL,
        PRIMARY KEY (customer, number));";
const CODES: &str = "
    CREATE TABLE codes (customer INTEGER NOT NULL, card INTEGER NOT NULL, code TEXT NOT NULL,
        PRIMARY KEY (customer, card));";

/// A folder with the examples, the databases and a home.
struct Shop(tempfile::TempDir);

impl Shop {
    fn new() -> Self {
        let shop = Shop(tempfile::tempdir().expect("a folder"));
        for file in ["splits.toml", "shop-schema.toml", "archive-schema.toml", "codes-schema.toml"] {
            std::fs::copy(Path::new(EXAMPLES).join(file), shop.0.path().join(file)).expect("a copy");
        }
        for (shard, tables) in [("hot1", SHOP), ("hot2", SHOP), ("cold", ARCHIVE), ("vault", CODES)] {
            shop.run(shard, tables);
        }
        shop.done(&["map", "init", "splits.toml"]);
        shop.done(&["map", "publish", "--shards"]);
        shop
    }

    fn run(&self, shard: &str, statements: &str) {
        let database = rusqlite::Connection::open(self.0.path().join(format!("{shard}.db")));
        database.expect("a database").execute_batch(statements).expect("statements");
    }

    /// Runs `larimar shard`; exit code and output.
    fn shard(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larimar"));
        command.arg("shard").args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env_remove("LARIMAR_LOG").env("LARIMAR_SHARD_HOME", "sqlite:home.db");
        let output = command.output().expect("the program");
        let errors = String::from_utf8_lossy(&output.stderr);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (code, text) = self.shard(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        text
    }

    /// The shard of a customer in a map.
    fn shard_of(&self, customer: i64) -> &'static str {
        // The key's hash decides, so its shard is looked up where the example's program would route.
        let shown = self.done(&["map", "export"]);
        let catalog = shard_map::Catalog::from_json(&shown).expect("a catalog");
        let route = catalog.map("shop").expect("the map").route(&[customer.into()]).expect("a route");
        if route.placement.shard.as_str() == "hot1" { "hot1" } else { "hot2" }
    }

    /// The last line's last cell of an aggregate: that of all shards.
    fn all(&self, schema: &str, arguments: &[&str]) -> String {
        let text = self.done(&[&["fanout", "--schema", schema], arguments].concat());
        text.split_whitespace().next_back().expect("a cell").to_owned()
    }
}

#[test]
fn orders_that_are_done_go_to_the_cold_shard_and_none_is_lost_on_the_way() {
    let shop = Shop::new();
    for customer in 0..20 {
        let hot = shop.shard_of(customer);
        shop.run(
            hot,
            &format!("INSERT INTO orders VALUES ({customer}, 1, 100), ({customer}, 2, {customer})"),
        );
    }
    assert_eq!(shop.all("shop-schema.toml", &["orders", "--count"]), "40");
    assert_eq!(shop.all("shop-schema.toml", &["orders", "--sum", "cents"]), "2190");
    // An order that is done is put into the archive, and deleted then; either may be done twice.
    for customer in 0..20 {
        let (hot, done) = (shop.shard_of(customer), format!("({customer}, 1, 100)"));
        for _ in 0..2 {
            shop.run("cold", &format!("INSERT OR REPLACE INTO done_orders VALUES {done}"));
        }
        shop.run(hot, &format!("DELETE FROM orders WHERE customer = {customer} AND number = 1"));
    }
    assert_eq!(shop.all("shop-schema.toml", &["orders", "--count"]), "20");
    assert_eq!(shop.all("archive-schema.toml", &["done_orders", "--count"]), "20");
    // The orders of all shards, the dearest first; and one that the shards' orders are merged in by key.
    let dearest = shop.done(&[
        "fanout",
        "orders",
        "--schema",
        "shop-schema.toml",
        "--order-by",
        "cents",
        "--descending",
        "--limit",
        "2",
    ]);
    let cells = |line: &str| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = dearest.lines().map(cells).collect();
    // cents, customer, number
    assert_eq!(rows, [["cents", "customer", "number"], ["19", "19", "2"], ["18", "18", "2"]]);
    let first = shop.done(&[
        "fanout",
        "orders",
        "--schema",
        "shop-schema.toml",
        "--columns",
        "customer",
        "--limit",
        "3",
        "--json",
        "--where",
        "customer>=4",
    ]);
    let first: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    let customers: Vec<_> = (0..3).map(|row| first["rows"][row]["values"]["customer"].clone()).collect();
    assert_eq!(customers, [4, 5, 6]);
    for (schema, table) in [("shop-schema.toml", "orders"), ("archive-schema.toml", "done_orders")] {
        shop.done(&["verify", "--schema", schema]);
        let wrong = shop.shard(&["fanout", table, "--schema", schema, "--sum", "x"]);
        assert!(wrong.0 == Some(2) && wrong.1.contains("has no column `x`"), "{wrong:?}");
    }
}

#[test]
fn no_shard_has_a_card_and_its_code() {
    let shop = Shop::new();
    let hot = shop.shard_of(7);
    shop.run(hot, "INSERT INTO cards VALUES (7, 1, '4111 1111 1111 1111')");
    shop.run("vault", "INSERT INTO codes VALUES (7, 1, '123')");
    let card = shop.done(&["fanout", "cards", "--schema", "shop-schema.toml"]);
    assert!(card.contains("4111") && !card.contains("123"), "{card}");
    let code = shop.done(&["fanout", "codes", "--schema", "codes-schema.toml"]);
    assert!(code.contains("123") && !code.contains("4111"), "{code}");
    let shown = shop.done(&["map", "export"]);
    let catalog = shard_map::Catalog::from_json(&shown).expect("a catalog");
    let on = |map: &str| -> std::collections::BTreeSet<String> {
        let map = catalog.map(map).expect("the map");
        map.mappings().map(|(_, placement)| placement.shard.to_string()).collect()
    };
    assert!(on("codes").is_disjoint(&on("shop")), "{shown}");
    // What can't reach the vault still has the numbers, and the vault's shard is named.
    std::fs::remove_file(shop.0.path().join("vault.db")).expect("removed");
    shop.done(&["fanout", "cards", "--schema", "shop-schema.toml"]);
    let (exit, text) = shop.shard(&["fanout", "codes", "--schema", "codes-schema.toml", "--partial"]);
    assert!(exit == Some(3) && text.contains("shard vault: "), "{text}");
    let (exit, text) = shop.shard(&["fanout", "codes", "--schema", "codes-schema.toml"]);
    assert!(exit == Some(1) && text.contains("`vault`") && text.lines().count() == 1, "{text}");
}
