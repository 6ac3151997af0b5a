//! Entities as JSON: with minimal metadata, both ways.
//!
//! Written, a value has its annotation (`"X@odata.type":"Edm.Int64"`) unless JSON's own type says it. Read,
//! the annotation may come before or after its value, and the members keep their order. What always holds:
//! any bytes are read or refused; a value that does not fit its annotation is refused, not guessed.

use super::entity::{Entity, TextEntity, Value};
use base::date_time::{date_time_text, parse_date_time};
use base::guid::{guid_text, parse_guid};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;

const TYPE: &str = "@odata.type";

impl Entity {
    /// Its JSON with minimal metadata, as a request has it: without ETag and timestamp.
    pub fn to_json(&self) -> Vec<u8> {
        write_entity(self)
    }

    /// Reads the JSON of an entity, in which an annotation may be before or behind its value; an error says
    /// what does not fit.
    pub fn parse_json(json: &[u8]) -> Result<Self, String> {
        read_entity(json)
    }
}

/// The entity's body. The ETag and the timestamp are not in it.
pub(crate) fn write_entity(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    put_keys(&mut out, &entity.partition_key, &entity.row_key);
    for (name, value) in &entity.properties {
        out.push(b',');
        if let Some(annotation) = annotation(value) {
            put_text(&mut out, &format!("{name}{TYPE}"));
            out.push(b':');
            put_text(&mut out, annotation);
            out.push(b',');
        }
        put_text(&mut out, name);
        out.push(b':');
        put_value(&mut out, value);
    }
    out.push(b'}');
    out
}

/// Appends the body of an entity of texts.
pub(crate) fn put_text_entity(out: &mut Vec<u8>, entity: &TextEntity<'_>) {
    put_keys(out, entity.partition_key, entity.row_key);
    for (name, text) in entity.properties {
        out.push(b',');
        put_text(out, name);
        out.push(b':');
        put_text(out, text);
    }
    out.push(b'}');
}

fn put_keys(out: &mut Vec<u8>, partition_key: &str, row_key: &str) {
    out.extend_from_slice(b"{\"PartitionKey\":");
    put_text(out, partition_key);
    out.extend_from_slice(b",\"RowKey\":");
    put_text(out, row_key);
}

fn annotation(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) | Value::Boolean(_) | Value::Int32(_) => None,
        Value::Int64(_) => Some("Edm.Int64"),
        Value::Double(_) => Some("Edm.Double"),
        Value::DateTime(_) => Some("Edm.DateTime"),
        Value::Guid(_) => Some("Edm.Guid"),
        Value::Binary(_) => Some("Edm.Binary"),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // Most texts have nothing to escape. All bytes are looked at, because that takes vectors.
    let is_plain = |byte: u8| (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(Json::from(text).to_string().as_bytes());
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => put_text(out, text),
        Value::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Int32(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Int64(value) => put_text(out, &value.to_string()),
        Value::Double(value) if value.is_nan() => put_text(out, "NaN"),
        Value::Double(value) if value.is_infinite() => {
            put_text(out, if *value > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Value::Double(value) => out.extend_from_slice(format!("{value:?}").as_bytes()),
        Value::DateTime(at) => put_text(out, &date_time_text(*at)),
        Value::Guid(guid) => put_text(out, &guid_text(guid)),
        Value::Binary(bytes) => put_text(out, &STANDARD.encode(bytes)),
    }
}

/// An object's members in their order.
struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[derive(Deserialize)]
struct Page {
    value: Vec<Members>,
}

/// A page of a query.
pub(crate) fn read_entities(body: &[u8]) -> Result<Vec<Entity>, String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    page.value.into_iter().map(entity).collect()
}

/// How many entities there are in a page of a query, none of which is kept.
pub(crate) fn count_entities(body: &[u8]) -> Result<usize, String> {
    #[derive(Deserialize)]
    struct CountedPage {
        // Takes no memory, however many there are.
        value: Vec<IgnoredAny>,
    }
    let page: CountedPage = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(page.value.len())
}

/// Whether the entity has that row key.
pub(crate) fn has_row_key(body: &[u8], row_key: &str) -> Result<bool, String> {
    const NAME: &[u8] = b"\"RowKey\":\"";
    // As services write it, which is seen without reading the rest; else all of it is read.
    let is_plain = !row_key.contains(['"', '\\']);
    let is_object = body.first() == Some(&b'{') && body.last() == Some(&b'}');
    if let (true, true, Some(at)) = (is_plain, is_object, memmem::find(body, NAME)) {
        let value = &body[at + NAME.len()..];
        if value.starts_with(row_key.as_bytes()) && value.get(row_key.len()) == Some(&b'"') {
            return Ok(true);
        }
    }
    Ok(read_entity(body)?.row_key == row_key)
}

/// One entity.
pub(crate) fn read_entity(body: &[u8]) -> Result<Entity, String> {
    entity(serde_json::from_slice(body).map_err(|error| error.to_string())?)
}

/// The names in a page of tables.
pub(crate) fn read_table_names(body: &[u8]) -> Result<Vec<String>, String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let name = |members: Members| {
        let name = members.0.into_iter().find(|(name, _)| name == "TableName");
        match name {
            Some((_, Json::String(name))) => Ok(name),
            _ => Err("a table has no name".to_owned()),
        }
    };
    page.value.into_iter().map(name).collect()
}

fn entity(members: Members) -> Result<Entity, String> {
    let mut entity = Entity::default();
    let mut types: Vec<(String, String)> = Vec::new();
    let mut values = Vec::new();
    for (name, value) in members.0 {
        if let Some(property) = name.strip_suffix(TYPE).filter(|property| !property.is_empty()) {
            if let Json::String(kind) = value {
                types.push((property.to_owned(), kind));
            }
        } else if name == "odata.etag" {
            entity.etag = value.as_str().map(str::to_owned);
        } else if !name.starts_with("odata.") && !name.contains("@odata.") {
            values.push((name, value));
        }
    }
    for (name, value) in values {
        let kind = types.iter().find(|(property, _)| *property == name).map(|(_, kind)| kind.as_str());
        match (name.as_str(), value) {
            (_, Json::Null) => {}
            ("PartitionKey", Json::String(text)) => entity.partition_key = text,
            ("RowKey", Json::String(text)) => entity.row_key = text,
            ("Timestamp", Json::String(text)) => {
                let at = parse_date_time(&text).map_err(|error| format!("Timestamp: {error}"))?;
                entity.timestamp = Some(at);
            }
            (_, value) => {
                let value = read_value(value, kind).ok_or_else(|| {
                    format!("property {name} has a value that is no {}", kind.unwrap_or("value"))
                })?;
                entity.properties.push((name, value));
            }
        }
    }
    Ok(entity)
}

fn read_value(value: Json, kind: Option<&str>) -> Option<Value> {
    Some(match (kind, value) {
        (None | Some("Edm.String"), Json::String(text)) => Value::String(text),
        (None | Some("Edm.Boolean"), Json::Bool(value)) => Value::Boolean(value),
        (None | Some("Edm.Int32"), Json::Number(number)) if number.is_i64() => {
            let number = number.as_i64()?;
            match i32::try_from(number) {
                Ok(number) => Value::Int32(number),
                Err(_) if kind.is_none() => Value::Int64(number),
                Err(_) => return None,
            }
        }
        (None | Some("Edm.Double"), Json::Number(number)) => Value::Double(number.as_f64()?),
        (Some("Edm.Double"), Json::String(text)) => Value::Double(match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            text => text.parse().ok()?,
        }),
        (Some("Edm.Int64"), Json::String(text)) => Value::Int64(text.parse().ok()?),
        (Some("Edm.Int64"), Json::Number(number)) => Value::Int64(number.as_i64()?),
        (Some("Edm.DateTime"), Json::String(text)) => Value::DateTime(parse_date_time(&text).ok()?),
        (Some("Edm.Guid"), Json::String(text)) => Value::Guid(parse_guid(&text)?),
        (Some("Edm.Binary"), Json::String(text)) => Value::Binary(STANDARD.decode(text).ok()?.into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use base::date_time::TICKS_MAX;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_by_their_annotations() {
        let body = r#"{"odata.metadata":"m","odata.etag":"W/\"x\"","PartitionKey":"p","RowKey":"r",
            "Timestamp@odata.type":"Edm.DateTime","Timestamp":"1601-01-01T00:00:01Z",
            "Z":1,"A":2.0,"L@odata.type":"Edm.Int64","L":"-5","N":"NaN","N@odata.type":"Edm.Double",
            "B@odata.type":"Edm.Binary","B":"AQI=","Gone":null,"Big":4294967296,"T":true,"S":"s"}"#;
        let entity = read_entity(body.as_bytes()).expect("an entity");
        assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p", "r"));
        assert_eq!(entity.etag.as_deref(), Some("W/\"x\""));
        assert_eq!(entity.timestamp, Some(Ticks(10_000_000)));
        let names: Vec<&str> = entity.properties.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Z", "A", "L", "N", "B", "Big", "T", "S"], "in their order, without nulls");
        assert_eq!(entity.value("Z"), Some(&Value::Int32(1)));
        assert_eq!(entity.value("A"), Some(&Value::Double(2.0)));
        assert_eq!(entity.value("L"), Some(&Value::Int64(-5)));
        assert_eq!(entity.value("B"), Some(&Value::Binary(vec![1, 2].into())));
        assert_eq!(entity.value("Big"), Some(&Value::Int64(1 << 32)));
        assert!(matches!(entity.value("N"), Some(Value::Double(value)) if value.is_nan()));
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        for body in [
            r#"{"X@odata.type":"Edm.Int64","X":"a"}"#,
            r#"{"X@odata.type":"Edm.Guid","X":"a"}"#,
            r#"{"X@odata.type":"Edm.Int32","X":4294967296}"#,
            r#"{"X":[1]}"#,
            r#"{"Timestamp":"now"}"#,
            r#"{"PartitionKey":1,"X":{}}"#,
            "[]",
            "",
        ] {
            assert!(read_entity(body.as_bytes()).is_err(), "{body}");
        }
        assert!(read_entities(b"{}").is_err());
        assert_eq!(read_table_names(br#"{"value":[{"TableName":"a"}]}"#), Ok(vec!["a".to_owned()]));
        assert!(read_table_names(br#"{"value":[{}]}"#).is_err());
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<String>().prop_map(Value::String),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_filter("NaN is unlike itself", |value| !value.is_nan()).prop_map(Value::Double),
            Just(Value::Double(f64::INFINITY)),
            (0..=TICKS_MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
            any::<[u8; 16]>().prop_map(Value::Guid),
            any::<Vec<u8>>().prop_map(|bytes| Value::Binary(bytes.into())),
        ]
    }

    proptest! {
        #[test]
        fn an_entity_comes_back(
            partition_key in any::<String>(), row_key in any::<String>(),
            values in proptest::collection::vec(values(), 0..8),
        ) {
            let mut entity = Entity::new(partition_key, row_key);
            for (index, value) in values.into_iter().enumerate() {
                entity = entity.with(format!("P{index}"), value);
            }
            prop_assert_eq!(read_entity(&write_entity(&entity)), Ok(entity));
        }
    }
}
