//! Schemas that are read, and each mistake with its message.

use super::*;

const GOOD: &str = r#"
map = "tenants"

[sharded.orders]
key = "tenant"
primary_key = ["order", "tenant"]
columns = { tenant = "int64", order = "guid", note = "text null", price = "float64" }

[sharded.Lines]
key = ["tenant"]
primary_key = ["tenant", "order", "number"]
[sharded.Lines.columns]
tenant = "int64"
order = "guid"
number = "int32"

[reference.countries]
primary_key = "code"
columns = { code = "text", "its name" = "text" }
"#;

#[test]
fn a_schema_is_read() {
    let schema = Schema::parse(GOOD).expect("a schema");
    assert_eq!(schema.map().as_str(), "tenants");
    let names: Vec<&str> = schema.tables().map(TableSchema::name).collect();
    assert_eq!(names, ["Lines", "countries", "orders"]);
    let orders = schema.table("orders").expect("the table");
    let columns: Vec<_> = orders.columns().iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(
        columns,
        [
            ("note", ColumnKind::Text),
            ("order", ColumnKind::Guid),
            ("price", ColumnKind::Float64),
            ("tenant", ColumnKind::Int64)
        ]
    );
    assert!(orders.columns()[0].is_nullable && !orders.columns()[1].is_nullable);
    // The shard key comes first, whatever the primary key's order.
    assert_eq!(
        (orders.shard_key(), orders.row_key(), orders.primary_key()),
        (&[3][..], &[3, 1][..], &[1, 3][..])
    );
    assert_eq!(orders.row_key_type().to_string(), "(int64, guid)");
    let countries = schema.table("countries").expect("the table");
    assert!(!countries.is_sharded() && orders.is_sharded());
}

/// A text of the good schema, what it is replaced by, and line and message of the error.
const MISTAKES: &[(&str, &str, usize, &str)] = &[
    ("map =", "mep =", 2, "the schema has no key \"mep\"; did you mean map?"),
    ("map = \"tenants\"", "", 1, "the schema names no map; write map = \"…\""),
    ("map = \"tenants\"", "map = 5", 2, "map in the schema must be a text, in quotes"),
    ("map = \"tenants\"", "map = \"a b\"", 2, "`a b` is no name: "),
    ("[sharded.orders]", "[shared.orders]", 4, "the schema has no key \"shared\"; did you mean sharded?"),
    ("key = \"tenant\"", "keys = \"tenant\"", 5, "a sharded table has no key \"keys\"; did you mean key?"),
    ("key = \"tenant\"", "key = 7", 5, "key in a sharded table must be a text, in quotes, or a list"),
    ("key = \"tenant\"", "", 4, "table \"orders\": it has no key; write key = \"COLUMN\""),
    (
        "key = \"tenant\"",
        "key = \"tenent\"",
        5,
        "key of table \"orders\": there is no column \"tenent\"; did you mean tenant?",
    ),
    (
        "key = \"tenant\"",
        "key = [\"tenant\", \"tenant\"]",
        5,
        "key of table \"orders\": it has the column \"tenant\" twice",
    ),
    (
        "key = \"tenant\"",
        "key = \"price\"",
        5,
        "key of table \"orders\": the column \"price\" is float64, and columns of keys are int32, ",
    ),
    (
        "key = \"tenant\"",
        "key = \"note\"",
        5,
        "key of table \"orders\": the column \"note\" may be NULL, and ",
    ),
    (
        "key = \"tenant\"",
        "key = \"order\"",
        4,
        "the shard keys of the tables \"Lines\" and \"orders\" have different types: (int64), and (guid)",
    ),
    (
        "[\"order\", \"tenant\"]",
        "\"order\"",
        4,
        "table \"orders\": its primary key does not hold \"tenant\" of the shard key: ",
    ),
    (
        "note = \"text null\"",
        "note = \"txt\"",
        7,
        "column \"note\" of table \"orders\": \"txt\" is no type; did you mean text?",
    ),
    (
        "note = \"text null\"",
        "note = \"xml\"",
        7,
        "column \"note\" of table \"orders\": \"xml\" is no type; there are bool, int32, ",
    ),
    (
        "note = \"text null\"",
        "note = \"text nil\"",
        7,
        "column \"note\" of table \"orders\": behind its type may be \"null\", and \"nil\" is there",
    ),
    (
        "note = \"text null\"",
        "note = 5",
        7,
        "column \"note\" of table \"orders\": its type must be a text, in quotes",
    ),
    (
        "note = \"text null\"",
        "Order = \"text\"",
        7,
        "column \"order\" of table \"orders\": its name differs from the column \"Order\" only in case",
    ),
    ("note = \"text null\"", "order = \"text\"", 7, "this is not TOML: duplicate key"),
    (
        "note = \"text null\"",
        "\" a\" = \"text\"",
        7,
        "column \" a\" of table \"orders\": a name has no control characters",
    ),
    (
        "[reference.countries]",
        "[reference.ORDERS]",
        17,
        "table \"ORDERS\": its name differs from the table \"orders\" only in case",
    ),
    (
        "[reference.countries]",
        "[reference.orders]",
        17,
        "table \"orders\": there are two tables of this name",
    ),
    (
        "[reference.countries]",
        "[reference.larimar_fence]",
        17,
        "table \"larimar_fence\": tables that begin with larimar_ are",
    ),
    (
        "[reference.countries]",
        "[reference]\ncountries = 5\n[reference.others]",
        18,
        "table \"countries\": it must be a table of TOML",
    ),
    (
        "columns = { code",
        "colums = { code",
        19,
        "a reference table has no key \"colums\"; did you mean columns?",
    ),
    (
        "columns = { code = \"text\", \"its name\" = \"text\" }",
        "",
        17,
        "table \"countries\": it has no columns; write columns",
    ),
];

#[test]
fn each_mistake_has_one_message() {
    for (from, to, line, expected) in MISTAKES.iter().copied() {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = Schema::parse(&text).expect_err(to);
        assert!(error.line == line && error.what.starts_with(expected), "{to}: {error}");
    }
    let error = Schema::parse("map = \"a\"").expect_err("no table").to_string();
    assert_eq!(error, "line 1: the schema has no table; write [sharded.NAME]");
}

#[test]
fn a_schema_is_checked_against_its_map() {
    use crate::schema::schema::SchemaMapError;
    use shard_map::{Hashed, KeyHash, MapBuilder, ShardMap};
    let schema = Schema::parse(GOOD).expect("a schema");
    let map = |name: &str, kinds: &[KeyKind]| -> ShardMap {
        let key = KeyType::new(kinds.iter().copied()).expect("a key type");
        let mut map = MapBuilder::new(Name::parse(name).expect("a name"), key);
        let hashed = Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 2 };
        map.hash(hashed).expect("a hash").spread(&[Name::parse("one").expect("a name")]).expect("placed");
        map.build().expect("a map")
    };
    assert_eq!(schema.check_map(&map("tenants", &[KeyKind::Int64])), Ok(()));
    let other = schema.check_map(&map("others", &[KeyKind::Int64])).expect_err("another map");
    assert!(matches!(other, SchemaMapError::OtherMap { .. }));
    let other = schema.check_map(&map("tenants", &[KeyKind::Int32])).expect_err("another key").to_string();
    assert_eq!(other, "table `Lines` has the shard key (int64), and keys of the map `tenants` are int32");
}
