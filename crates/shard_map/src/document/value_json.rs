//! Values of keys as JSON: an `int32` is a number, all others are texts; integers may be written either way.

use crate::key::error::KeyError;
use crate::key::key_type::KeyType;
use crate::key::kind::KeyKind;
use crate::key::value::KeyValue;
use serde_json::Value;

/// A key or bound: one value, or a list.
pub(crate) fn key_to_json(values: &[KeyValue], key: &KeyType) -> Value {
    match values {
        [one] if key.kinds().len() == 1 => value_to_json(one),
        many => many.iter().map(value_to_json).collect(),
    }
}

/// The values of a key or bound.
pub(crate) fn key_from_json(json: &Value, key: &KeyType) -> Result<Vec<KeyValue>, KeyError> {
    let kinds = key.kinds();
    match json {
        Value::Array(many) if many.len() <= kinds.len() => {
            many.iter().zip(kinds).map(|(json, kind)| value_from_json(json, *kind)).collect()
        }
        Value::Array(many) => Err(KeyError::WrongCount { expected: key.to_string(), found: many.len() }),
        one => Ok(vec![value_from_json(one, kinds[0])?]),
    }
}

fn value_to_json(value: &KeyValue) -> Value {
    match value {
        KeyValue::Int32(value) => (*value).into(),
        other => other.text().into(),
    }
}

fn value_from_json(json: &Value, kind: KeyKind) -> Result<KeyValue, KeyError> {
    match (json, kind) {
        (Value::String(text), kind) => KeyValue::parse(kind, text),
        (Value::Number(number), KeyKind::Int32 | KeyKind::Int64) => {
            KeyValue::parse(kind, &number.to_string())
        }
        (other, kind) => Err(kind.no_value(&other.to_string())),
    }
}
