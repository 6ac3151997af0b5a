//! Lines are read back as what was written, by this reader and by that of the client.

use super::*;
use base::Ticks;
use base::date_time::TICKS_MAX;
use proptest::prelude::*;
use storage_client::{Entity, Value};

pub(crate) fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::String),
        Just(Value::String(String::new())),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(1 << 53)].prop_map(Value::Int64),
        any::<f64>().prop_map(Value::Double),
        prop_oneof![
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(2.0),
            Just(f64::MIN_POSITIVE)
        ]
        .prop_map(Value::Double),
        (0..=TICKS_MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
        prop_oneof![Just(Ticks(0)), Just(TICKS_MAX)].prop_map(Value::DateTime),
        any::<[u8; 16]>().prop_map(Value::Guid),
        any::<Vec<u8>>().prop_map(|bytes| Value::Binary(bytes.into())),
    ]
}

/// Entities whose properties have names in common, so that one property has several types.
pub(crate) fn entities() -> impl Strategy<Value = Entity> {
    let properties = proptest::collection::btree_map("[A-F]", values(), 0..6);
    (any::<String>(), any::<String>(), properties).prop_map(|(partition_key, row_key, properties)| Entity {
        properties: properties.into_iter().collect(),
        ..Entity::new(partition_key, row_key)
    })
}

/// The same, with any NaN like another.
pub(crate) fn shown(entity: &Entity) -> String {
    format!("{entity:?}")
}

fn line(text: &str) -> Result<String, String> {
    let row =
        Row::parse(text).and_then(|row| row.check().map(|()| row)).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    row.put_line(&mut out);
    Ok(String::from_utf8(out).expect("text"))
}

#[test]
fn a_services_entity_becomes_a_line() {
    let text = r#"{"odata.etag":"W/\"x\"","odata.x":{"a":[1]},"RowKey":"r","PartitionKey@odata.type":"Edm.String",
        "PartitionKey":"p","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2026-01-01T00:00:00Z","Z":1,
        "A":2.0,"L@odata.type":"Edm.Int64","L":"5","N":"NaN","N@odata.type":"Edm.Double","Gone":null,
        "Gone2@odata.type":"Edm.Guid","Gone2":null,"Big":4294967296,"E":"","D@odata.type":"Edm.Double","D":3}"#;
    let expected = r#"{"PartitionKey":"p","RowKey":"r","Z":1,"A":2.0,"L@odata.type":"Edm.Int64","L":"5","#
        .to_owned()
        + r#""N@odata.type":"Edm.Double","N":"NaN","Big@odata.type":"Edm.Int64","Big":4294967296,"E":"","#
        + r#""D@odata.type":"Edm.Double","D":3}"#
        + "\n";
    assert_eq!(line(text).as_deref(), Ok(expected.as_str()));
    assert_eq!(line(expected.trim_end()).as_deref(), Ok(expected.as_str()), "a line is its own line");
    let page = format!(r#"{{"odata.metadata":"m","value":[{text},{text}],"x":1}}"#);
    assert_eq!(rows_of_page(page.as_bytes()).expect("a page").len(), 2);
    assert_eq!(rows_of_page(br#"{"value":[]}"#), Ok(Vec::new()));
}

#[test]
fn what_is_no_entity_is_refused_in_one_line() {
    for (text, expected) in [
        ("", "byte 0: the text ends too early"),
        ("[]", "byte 0: an entity begins with {"),
        (r#"{"PartitionKey":"p"}"#, "it has no RowKey"),
        (r#"{"RowKey":"p"}"#, "it has no PartitionKey"),
        (r#"{"PartitionKey":1,"RowKey":"r"}"#, "its PartitionKey is no text"),
        (r#"{"PartitionKey":"p","RowKey@odata.type":"Edm.Int32","RowKey":"1"}"#, "its RowKey is no text"),
        (r#"{"PartitionKey":"p","RowKey":"\ud800"}"#, "a name or a key has an escape that is no character"),
        (
            r#"{"PartitionKey":"p","RowKey":"r","X":[1]}"#,
            "byte 37: a value of a property is an object or an array",
        ),
        (r#"{"PartitionKey":"p","RowKey":"r","X":1"#, "byte 38: the text ends too early"),
        (r#"{"PartitionKey":"p","RowKey":"r","X":1} x"#, "byte 40: there is more behind the entity"),
        (r#"{"PartitionKey":"p","RowKey":"r","X":1,"X":2}"#, "property X is there twice"),
        (r#"{"PartitionKey":"p","RowKey":"r","X":1,"RowKey":"s"}"#, "property RowKey is there twice"),
        (r#"{"PartitionKey":"","PartitionKey":"","RowKey":"r"}"#, "property PartitionKey is there twice"),
        (
            r#"{"PartitionKey":"p","RowKey":"r","X@odata.type":"Edm.Int64","X":"a"}"#,
            "property X: \"a\" is no Edm.Int64",
        ),
        (
            r#"{"PartitionKey":"p","RowKey":"r","X@odata.type":"Edm.Int16","X":1}"#,
            "property X: \"Edm.Int16\" is no type",
        ),
        (r#"{"PartitionKey":"p","RowKey":"r","X":1e999}"#, "property X: 1e999 is no Edm.Double"),
        (
            r#"{"PartitionKey":"p","RowKey":"r","X":9223372036854775808}"#,
            "property X: 9223372036854775808 is no Edm.Int64",
        ),
    ] {
        assert_eq!(line(text), Err(expected.to_owned()), "{text}");
    }
    for page in ["", "{}", "[]", r#"{"value":[{}]}"#, r#"{"value":[{"a":1}"#, "{\"value\":[]}}\u{0}"] {
        assert!(rows_of_page(page.as_bytes()).is_err() || page.ends_with('\u{0}'), "{page}");
    }
    assert!(rows_of_page(b"\xff").is_err());
}

/// A line of 16 MiB took minutes.
#[test]
fn an_entity_with_too_many_members_is_refused() {
    let of = |count: usize, member: &dyn Fn(usize) -> String| {
        let members: Vec<String> = (0..count).map(member).collect();
        line(&format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",{}}}", members.join(",")))
    };
    let properties = |index| format!("\"p{index}\":1");
    let annotations = |index| format!("\"p{index}@odata.type\":\"Edm.Int64\"");
    let refused = Err("it has more than 4096 properties".to_owned());
    assert!(of(PROPERTIES_MAX, &properties).is_ok());
    assert_eq!(of(500_000, &properties), refused);
    assert_eq!(of(500_000, &annotations), refused);
}

#[test]
fn sizes_are_about_those_of_the_service() {
    let row = Row::parse(r#"{"PartitionKey":"p","RowKey":"rr","S":"abc","B":true}"#).expect("a row");
    assert_eq!(row.size_bytes(), 4 + 6 + (8 + 2 + 10) + (8 + 2 + 1));
}

proptest! {
    #[test]
    fn a_line_is_read_back(entity in entities()) {
        let json = String::from_utf8(entity.to_json()).expect("text");
        let row = Row::parse(&json).expect("a row");
        prop_assert_eq!(row.check(), Ok(()));
        let mut out = Vec::new();
        row.put_line(&mut out);
        let line = std::str::from_utf8(&out).expect("text").trim_end_matches('\n');
        let again = Row::parse(line).expect("a row");
        prop_assert_eq!(&again.properties, &row.properties);
        let back = Entity::parse_json(&out).expect("an entity");
        prop_assert_eq!(shown(&back), shown(&entity));
    }

    #[test]
    fn any_line_is_read_or_refused(text: String) {
        let _ = Row::parse(&text).map(|row| row.check());
        let _ = rows_of_page(text.as_bytes());
    }

    #[test]
    fn any_entity_like_line_that_is_taken_is_taken_by_the_client(
        text in r#"\{"PartitionKey":"p","RowKey":"r"(,"[AB](@odata\.type)?":("Edm\.(Int64|Double|Guid)"|"[0-9]{1,3}"|[0-9]{1,3}(\.[0-9])?|true|null)){0,4}\}"#,
    ) {
        if let Ok(row) = Row::parse(&text) && row.check().is_ok() {
            prop_assert!(Entity::parse_json(text.as_bytes()).is_ok(), "{}", text);
        }
    }
}
