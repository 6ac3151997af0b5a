//! One JSON value and its type annotation, as a property value.
//!
//! Without annotation: text is a String, `true` and `false` are Boolean, an integer is an Int32 if it fits,
//! any other number is a Double. With annotation the value must fit the type; numbers and booleans may be
//! written as text, as clients do for Int64 and some for the others.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use table::edm::{DateTimeError, parse_bare_guid, parse_date_time, parse_guid};
use table::{EdmType, EdmValue};

/// A JSON value as an entity may hold it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonValue<'a> {
    /// `null`: the property is absent.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number without point or exponent.
    Integer(i128),
    /// Any other number.
    Double(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// An object or array: never a property's value.
    Nested,
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = JsonValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property value")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(JsonValue::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(JsonValue::Boolean(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(JsonValue::Integer(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(JsonValue::Integer(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(JsonValue::Double(value))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(JsonValue::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(JsonValue::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(JsonValue::Nested)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonValue::Nested)
    }
}

/// An object's member name, borrowed where it has no escapes.
pub(crate) struct MemberName<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for MemberName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = MemberName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

fn invalid() -> ApiError {
    ApiError::new(ErrorCode::InvalidInput)
}

/// The property value, or `None` for null. `annotation` is the name of a type, such as `Edm.Int64`.
pub(crate) fn property_value(
    value: JsonValue<'_>,
    annotation: Option<&str>,
) -> Result<Option<EdmValue>, ApiError> {
    let edm_type = match annotation {
        None => None,
        Some(name) => Some(EdmType::from_name(name).ok_or_else(invalid)?),
    };
    let value = match (edm_type, value) {
        (_, JsonValue::Null) => return Ok(None),
        (_, JsonValue::Nested) => return Err(invalid()),
        (None | Some(EdmType::String), JsonValue::Text(text)) => EdmValue::String(text.into_owned()),
        (None | Some(EdmType::Boolean), JsonValue::Boolean(value)) => EdmValue::Boolean(value),
        (Some(EdmType::Boolean), JsonValue::Text(text)) => EdmValue::Boolean(boolean(&text)?),
        (None, JsonValue::Integer(value)) => match i32::try_from(value) {
            Ok(value) => EdmValue::Int32(value),
            Err(_) => EdmValue::Double(value as f64),
        },
        (Some(EdmType::Int32), JsonValue::Integer(value)) => {
            EdmValue::Int32(i32::try_from(value).map_err(|_| invalid())?)
        }
        (Some(EdmType::Int32), JsonValue::Text(text)) => {
            EdmValue::Int32(text.parse().map_err(|_| invalid())?)
        }
        (Some(EdmType::Int64), JsonValue::Integer(value)) => {
            EdmValue::Int64(i64::try_from(value).map_err(|_| invalid())?)
        }
        (Some(EdmType::Int64), JsonValue::Text(text)) => {
            EdmValue::Int64(text.parse().map_err(|_| invalid())?)
        }
        (None | Some(EdmType::Double), JsonValue::Double(value)) => EdmValue::Double(value),
        (Some(EdmType::Double), JsonValue::Integer(value)) => EdmValue::Double(value as f64),
        (Some(EdmType::Double), JsonValue::Text(text)) => EdmValue::Double(double(&text)?),
        (Some(EdmType::Binary), JsonValue::Text(text)) => {
            EdmValue::Binary(STANDARD.decode(text.as_bytes()).map_err(|_| invalid())?)
        }
        (Some(EdmType::Guid), JsonValue::Text(text)) => {
            EdmValue::Guid(parse_guid(&text).or_else(|| parse_bare_guid(&text)).ok_or_else(invalid)?)
        }
        (Some(EdmType::DateTime), JsonValue::Text(text)) => {
            EdmValue::DateTime(parse_date_time(&text).map_err(|error| match error {
                DateTimeError::Malformed => invalid(),
                DateTimeError::TooEarly | DateTimeError::TooLate => ErrorCode::OutOfRangeInput.into(),
            })?)
        }
        _ => return Err(invalid()),
    };
    Ok(Some(value))
}

/// Boolean as text.
fn boolean(text: &str) -> Result<bool, ApiError> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(invalid()),
    }
}

/// A Double written as text. There is no negative not-a-number, and what overflows is an error.
fn double(text: &str) -> Result<f64, ApiError> {
    match text {
        "NaN" => return Ok(f64::NAN),
        "Infinity" | "INF" => return Ok(f64::INFINITY),
        "-Infinity" | "-INF" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    // The standard parser also reads words for infinity.
    let is_number =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    match text.parse::<f64>() {
        Ok(value) if is_number && value.is_finite() => Ok(value),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str, annotation: Option<&str>) -> Result<Option<EdmValue>, ErrorCode> {
        let value = serde_json::from_str(value).map_err(|_| ErrorCode::InvalidInput)?;
        property_value(value, annotation).map_err(|error| error.code)
    }

    #[test]
    fn values_without_annotation() {
        assert_eq!(read("\"x\\n\"", None), Ok(Some(EdmValue::String("x\n".into()))));
        assert_eq!(read("true", None), Ok(Some(EdmValue::Boolean(true))));
        assert_eq!(read("-5", None), Ok(Some(EdmValue::Int32(-5))));
        assert_eq!(read("2.0", None), Ok(Some(EdmValue::Double(2.0))));
        assert_eq!(read("1e3", None), Ok(Some(EdmValue::Double(1000.0))));
        assert_eq!(read("null", None), Ok(None));
        for wrong in ["[1]", "{}", "1e999"] {
            assert_eq!(read(wrong, None), Err(ErrorCode::InvalidInput), "{wrong}");
        }
    }

    /// They were refused; Azure takes them as numbers of the next type that holds them.
    #[test]
    fn integers_outside_int32_without_annotation_are_doubles() {
        for (text, value) in [
            ("2147483647", EdmValue::Int32(i32::MAX)),
            ("-2147483648", EdmValue::Int32(i32::MIN)),
            ("2147483648", EdmValue::Double(2_147_483_648.0)),
            ("-2147483649", EdmValue::Double(-2_147_483_649.0)),
            ("5454161346626", EdmValue::Double(5_454_161_346_626.0)),
            ("9223372036854775807", EdmValue::Double(9_223_372_036_854_775_807.0)),
            ("18446744073709551615", EdmValue::Double(18_446_744_073_709_551_615.0)),
            ("18446744073709551616", EdmValue::Double(18_446_744_073_709_551_616.0)),
        ] {
            assert_eq!(read(text, None), Ok(Some(value)), "{text}");
        }
        for text in ["2147483648", "-2147483649"] {
            assert_eq!(read(text, Some("Edm.Int32")), Err(ErrorCode::InvalidInput), "{text}");
        }
    }

    #[test]
    fn values_with_annotation() {
        let read_as = |value: &str, name: &str| read(value, Some(&format!("Edm.{name}")));
        assert_eq!(read_as("\"1099511627776\"", "Int64"), Ok(Some(EdmValue::Int64(1 << 40))));
        assert_eq!(read_as("7", "Int64"), Ok(Some(EdmValue::Int64(7))));
        assert_eq!(read_as("\"2\"", "Double"), Ok(Some(EdmValue::Double(2.0))));
        assert_eq!(read_as("2", "Double"), Ok(Some(EdmValue::Double(2.0))));
        assert!(matches!(read_as("\"NaN\"", "Double"), Ok(Some(EdmValue::Double(value))) if value.is_nan()));
        assert_eq!(read_as("\"-Infinity\"", "Double"), Ok(Some(EdmValue::Double(f64::NEG_INFINITY))));
        assert_eq!(read_as("\"AQI=\"", "Binary"), Ok(Some(EdmValue::Binary(vec![1, 2]))));
        assert_eq!(read_as("null", "Guid"), Ok(None));
        assert_eq!(read_as("\"False\"", "Boolean"), Ok(Some(EdmValue::Boolean(false))));
        assert_eq!(read_as("\"true\"", "Boolean"), Ok(Some(EdmValue::Boolean(true))));
        let guid = read_as("\"c9da6455-213d-42c9-9a79-3e9149a57833\"", "Guid");
        assert!(guid.is_ok() && read_as("\"c9da6455213d42c99a793e9149a57833\"", "Guid") == guid);
        assert!(read_as("\"2020-01-02T03:04:05.678900Z\"", "DateTime").is_ok());
        assert_eq!(read_as("\"1600-12-31T00:00:00Z\"", "DateTime"), Err(ErrorCode::OutOfRangeInput));
        for (value, name) in [
            ("5", "String"),
            ("\"yes\"", "Boolean"),
            ("1", "Boolean"),
            ("\"x\"", "Int32"),
            ("1.5", "Int64"),
            ("\"9223372036854775808\"", "Int64"),
            ("\"infinity\"", "Double"),
            ("\"1e999\"", "Double"),
            ("\"AQI\"", "Binary"),
            ("\"x\"", "Guid"),
            ("\"x\"", "DateTime"),
            ("\"x\"", "Unknown"),
        ] {
            assert_eq!(read_as(value, name), Err(ErrorCode::InvalidInput), "{value} as {name}");
        }
    }
}
