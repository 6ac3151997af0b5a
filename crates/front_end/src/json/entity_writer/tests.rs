//! Entities and tables as JSON at each metadata level, and a damaged property that is no shorter entity.

use super::*;
use base::Ticks;
use std::convert::Infallible;
use table::EdmValue;

const BASE: &str = "http://127.0.0.1:10002/acct";

fn context(level: MetadataLevel) -> AnswerContext<'static> {
    AnswerContext { level, base: BASE, account: "acct", table: "People", select: None }
}

fn properties() -> Vec<(String, EdmValue)> {
    vec![
        ("S".into(), EdmValue::String("a\"b".into())),
        ("L".into(), EdmValue::Int64(-7)),
        ("D".into(), EdmValue::Double(2.0)),
        ("N".into(), EdmValue::Double(f64::NAN)),
        ("B".into(), EdmValue::Boolean(true)),
        ("X".into(), EdmValue::Binary(vec![1, 2])),
        ("T".into(), EdmValue::DateTime(Ticks(0))),
        ("G".into(), EdmValue::Guid([0xab; 16])),
        ("I".into(), EdmValue::Int32(5)),
    ]
}

fn write(level: MetadataLevel, select: Option<&[String]>) -> String {
    let own = properties();
    let entity = EntityFields {
        partition_key: "p'1",
        row_key: "r 1",
        timestamp: &DateTimeText::new(Ticks(10_000_000)),
        etag: b"W/\"datetime'x'\"",
        properties: own.iter().map(|(name, value)| Ok::<_, Infallible>((name.as_str(), value.as_ref()))),
    };
    let mut out = Vec::new();
    let Ok(()) = put_single_entity(&mut out, &context(level), entity, &Selection::new(select));
    String::from_utf8(out).expect("text")
}

#[test]
fn without_metadata_only_data() {
    let expected = concat!(
        r#"{"PartitionKey":"p'1","RowKey":"r 1","Timestamp":"1601-01-01T00:00:01Z","S":"a\"b","L":"-7","D":2.0,"#,
        r#""N":"NaN","B":true,"X":"AQI=","T":"1601-01-01T00:00:00Z","G":"abababab-abab-abab-abab-abababababab","I":5}"#
    );
    assert_eq!(write(MetadataLevel::None, None), expected);
}

#[test]
fn minimal_metadata_has_etag_and_types() {
    let text = write(MetadataLevel::Minimal, None);
    assert!(text.starts_with(concat!(
        r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#People/@Element","#,
        r#""odata.etag":"W/\"datetime'x'\"","PartitionKey":"p'1","#
    )));
    for part in [
        r#""L@odata.type":"Edm.Int64","L":"-7""#,
        r#","D":2.0,"#,
        r#""N@odata.type":"Edm.Double","N":"NaN""#,
        r#""X@odata.type":"Edm.Binary","X":"AQI=""#,
        r#""T@odata.type":"Edm.DateTime","#,
        r#""G@odata.type":"Edm.Guid","#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("Timestamp@"));
    serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
}

#[test]
fn full_metadata_has_ids_and_links() {
    let text = write(MetadataLevel::Full, None);
    let keys = "People(PartitionKey='p''1',RowKey='r%201')";
    assert!(text.contains(&format!(
        r#""odata.type":"acct.People","odata.id":"{BASE}/{keys}","odata.etag":"W/\"datetime'x'\"","odata.editLink":"{keys}","PartitionKey""#
    )));
    assert!(text.contains(r#""Timestamp@odata.type":"Edm.DateTime","Timestamp":"#));
}

#[test]
fn selected_properties_that_are_missing_are_null() {
    let select = ["S".to_owned(), "Missing".to_owned(), "Missing".to_owned(), "RowKey".to_owned()];
    let text = write(MetadataLevel::None, Some(&select));
    assert_eq!(text, r#"{"RowKey":"r 1","S":"a\"b","Missing":null}"#);
    let all = ["*".to_owned()];
    assert!(write(MetadataLevel::None, Some(&all)).contains("\"I\":5"));
}

#[test]
fn tables_at_every_level() {
    let write = |level, single| {
        let mut out = Vec::new();
        let context = AnswerContext { table: "Tables", ..context(level) };
        put_table(&mut out, &context, "People", single);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(write(MetadataLevel::None, true), r#"{"TableName":"People"}"#);
    assert_eq!(
        write(MetadataLevel::Minimal, true),
        format!(r#"{{"odata.metadata":"{BASE}/$metadata#Tables/@Element","TableName":"People"}}"#)
    );
    assert_eq!(
        write(MetadataLevel::Full, true),
        format!(
            r#"{{"odata.metadata":"{BASE}/$metadata#Tables/@Element","odata.type":"acct.Tables","odata.id":"{BASE}/Tables('People')","odata.editLink":"Tables('People')","TableName":"People"}}"#
        )
    );
    assert_eq!(write(MetadataLevel::Minimal, false), r#"{"TableName":"People"}"#);
}

#[test]
fn a_damaged_property_is_an_error_and_no_shorter_entity() {
    let entity = EntityFields {
        partition_key: "p",
        row_key: "r",
        timestamp: &DateTimeText::new(Ticks(0)),
        etag: b"",
        properties: [Ok(("A", EdmValueRef::Int32(1))), Err("damaged"), Ok(("B", EdmValueRef::Int32(2)))]
            .into_iter(),
    };
    let mut out = Vec::new();
    let context = context(MetadataLevel::Minimal);
    assert_eq!(put_single_entity(&mut out, &context, entity, &Selection::new(None)), Err("damaged"));
}
