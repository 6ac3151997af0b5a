//! The published vectors (`vectors/`), which another program made and other languages read: if an encoding
//! or a hash became another, certificates and fingerprints of before would not fit any more.

use base::date_time::parse_date_time;
use base::guid::parse_guid;
use serde_json::Value as Json;
use shard_backend::{ColumnKind, DigestKey, Fingerprint, Row, RowHasher, Schema, Value};

const ROWS: &str = include_str!("../vectors/rows.json");
const FINGERPRINTS: &str = include_str!("../vectors/fingerprints.json");

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(kind: ColumnKind, json: &Json) -> Value {
    if json.is_null() {
        return Value::Null;
    }
    let text = || json.as_str().expect("a text");
    match kind {
        ColumnKind::Bool => Value::Bool(json.as_bool().expect("true or false")),
        ColumnKind::Int32 => Value::Int32(text().parse().expect("a number")),
        ColumnKind::Int64 => Value::Int64(text().parse().expect("a number")),
        ColumnKind::Float64 => Value::Float64(f64::from_bits(u64::from_str_radix(text(), 16).expect("bits"))),
        ColumnKind::Text => Value::Text(text().to_owned()),
        ColumnKind::Binary => Value::Binary(bytes(text())),
        ColumnKind::DateTime => Value::DateTime(parse_date_time(text()).expect("an instant")),
        ColumnKind::Guid => Value::Guid(parse_guid(text()).expect("a Guid")),
    }
}

#[test]
fn rows_are_encoded_and_hashed_as_published() {
    let all: Json = serde_json::from_str(ROWS).expect("JSON");
    let text = |json: &Json, name: &str| json[name].as_str().expect("a text").to_owned();
    let key: [u8; 16] = bytes(&text(&all, "key")).try_into().expect("16 bytes");
    assert_eq!((text(&all, "hash").as_str(), all["version"].as_u64()), (RowHasher::NAME, Some(1)));
    for vector in all["rows"].as_array().expect("a list") {
        let schema = Schema::parse(&text(vector, "schema")).expect("a schema");
        let table = schema.table(&text(vector, "table")).expect("the table");
        let values = vector["values"].as_array().expect("a list").iter();
        let row = Row {
            values: values.zip(table.columns()).map(|(json, column)| value(column.kind, json)).collect(),
        };
        table.check_row(&row).expect("a row");
        assert_eq!(hex(&table.canonical_row(&row)), text(vector, "encoded"), "{vector}");
        let hash = RowHasher::new(&DigestKey::new(key), table).hash(&row);
        assert_eq!(format!("{:032x}", hash.0), text(vector, "hash"), "{vector}");
    }
}

#[test]
fn fingerprints_are_as_published() {
    let all: Json = serde_json::from_str(FINGERPRINTS).expect("JSON");
    for vector in all["schemas"].as_array().expect("a list") {
        let schema = Schema::parse(vector["schema"].as_str().expect("a text")).expect("a schema");
        assert_eq!(schema.canonical_form(), vector["canonical_form"].as_str().expect("a text"));
        let published = vector["fingerprint"].as_str().expect("a text");
        assert_eq!(schema.fingerprint().to_string(), published);
        assert_eq!(Fingerprint::parse(published), Some(schema.fingerprint()));
        assert_eq!(Fingerprint::parse(&published.replace("v1-", "v2-")), None);
    }
}
