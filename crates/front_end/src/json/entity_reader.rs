//! Request bodies with one entity, and the body that creates a table.
//!
//! ```text
//! {"PartitionKey":"p","RowKey":"r","Age":5,"Id":"7","Id@odata.type":"Edm.Int64"}
//! ```
//!
//! Annotations may stand before or after their value. Nulls are dropped. Ignored are `Timestamp`, members
//! whose name starts with `odata.`, and annotations `X@odata.…` other than `X@odata.type`; any other name
//! with an `@` is a property name that the Table service refuses. What always holds: any bytes are an entity
//! or are refused, no property's value is dropped silently, and the work is bounded by the number of members.

use super::value_reader::{JsonValue, MemberName, property_value};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use table::Properties;

/// Members of a body at most: values and annotations of more properties than an entity may have.
const MEMBERS_MAX: usize = 1024;

/// An entity as sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntityBody {
    /// The PartitionKey, if sent.
    pub(crate) partition_key: Option<String>,
    /// The RowKey, if sent.
    pub(crate) row_key: Option<String>,
    /// Own properties in the order sent.
    pub(crate) properties: Properties,
    /// Whether a key is said to be of another type than String, though it is text.
    pub(crate) has_typed_key: bool,
}

/// Reads an entity. An empty body is an entity without properties.
pub(crate) fn read_entity(body: &[u8]) -> Result<EntityBody, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(EntityBody::default());
    }
    let body = without_negative_zeros(body);
    let members = read_members(&body)?;
    let mut entity = EntityBody::default();
    entity.properties.0.reserve(members.values.len().saturating_sub(2));
    for (index, (name, _)) in members.values.iter().enumerate() {
        if members.values[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(ErrorCode::DuplicatePropertiesSpecified.into());
        }
    }
    let Members { values, annotations } = members;
    for (name, value) in values {
        let annotation = annotations
            .iter()
            .find(|(annotated, _)| *annotated == name)
            .map(|(_, edm_type)| edm_type.as_ref());
        match name.as_ref() {
            "PartitionKey" | "RowKey" => {
                let is_typed = annotation.is_some_and(|edm_type| edm_type != "Edm.String");
                entity.has_typed_key |= is_typed;
                let key = key_value(value)?;
                match name.as_ref() {
                    "RowKey" => entity.row_key = key,
                    _ => entity.partition_key = key,
                }
            }
            "Timestamp" => {}
            _ => {
                if let Some(value) = property_value(value, annotation)? {
                    entity.properties.0.push((name.into_owned(), value));
                }
            }
        }
    }
    Ok(entity)
}

/// Reads `{"TableName":"N"}`.
pub(crate) fn read_table_name(body: &[u8]) -> Result<String, ApiError> {
    let members = read_members(body)?;
    let mut names = members.values.into_iter().filter(|(name, _)| name == "TableName");
    match (names.next(), names.next()) {
        (Some((_, JsonValue::Text(name))), None) => Ok(name.into_owned()),
        (Some(_), Some(_)) => Err(ErrorCode::DuplicatePropertiesSpecified.into()),
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// The body with `0` for each `-0`, which is an integer to a client and a Double to the parser. The one of an
/// exponent stays.
fn without_negative_zeros(body: &[u8]) -> Cow<'_, [u8]> {
    let ends_number = |byte: Option<&u8>| matches!(byte, Some(b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'));
    let is_exponent = |at: usize| at > 0 && matches!(body[at - 1], b'e' | b'E');
    let is_found =
        |at: usize| body[at..].starts_with(b"-0") && ends_number(body.get(at + 2)) && !is_exponent(at);
    if !memchr::memchr_iter(b'-', body).any(is_found) {
        return Cow::Borrowed(body);
    }
    let mut plain = body.to_vec();
    let (mut in_text, mut escaped) = (false, false);
    for at in 0..body.len() {
        match body[at] {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'-' if !in_text && is_found(at) => plain[at] = b' ',
            _ => {}
        }
    }
    Cow::Owned(plain)
}

fn key_value(value: JsonValue<'_>) -> Result<Option<String>, ApiError> {
    match value {
        JsonValue::Null => Ok(None),
        JsonValue::Text(text) => Ok(Some(text.into_owned())),
        _ => Err(ErrorCode::PrimaryKeyPropertyIsInvalidType.into()),
    }
}

/// An object's members, annotations apart.
struct Members<'a> {
    values: Vec<(Cow<'a, str>, JsonValue<'a>)>,
    annotations: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

fn read_members(body: &[u8]) -> Result<Members<'_>, ApiError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    // All of it must be text: the parser does not look into members that are ignored.
    let body = simdutf8::basic::from_utf8(body).map_err(|_| ApiError::new(ErrorCode::InvalidInput))?;
    let mut too_many = false;
    let mut deserializer = serde_json::Deserializer::from_str(body);
    let members = deserializer
        .deserialize_map(MembersVisitor { too_many: &mut too_many })
        .and_then(|members| deserializer.end().map(|()| members));
    members.map_err(|_| match too_many {
        true => ErrorCode::TooManyProperties.into(),
        false => ErrorCode::InvalidInput.into(),
    })
}

/// Where the annotation in a member's name starts. Nearly all names have none, and nothing like one.
fn annotation_at(name: &str) -> Option<usize> {
    memchr::memchr_iter(b'@', name.as_bytes()).find(|at| name[*at..].starts_with("@odata."))
}

struct MembersVisitor<'m> {
    too_many: &'m mut bool,
}

impl<'de> Visitor<'de> for MembersVisitor<'_> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members { values: Vec::with_capacity(16), annotations: Vec::new() };
        while let Some(MemberName(name)) = map.next_key()? {
            if members.values.len() + members.annotations.len() == MEMBERS_MAX {
                *self.too_many = true;
                return Err(serde::de::Error::custom("too many members"));
            }
            if name.starts_with("odata.") {
                map.next_value::<IgnoredAny>()?;
            } else if let Some(at) = annotation_at(&name) {
                if &name[at..] != "@odata.type" {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                let annotated = match name {
                    Cow::Borrowed(name) => Cow::Borrowed(&name[..at]),
                    Cow::Owned(name) => Cow::Owned(name[..at].to_owned()),
                };
                match map.next_value()? {
                    JsonValue::Text(edm_type) => members.annotations.push((annotated, edm_type)),
                    JsonValue::Null => {}
                    _ => return Err(serde::de::Error::custom("a type must be text")),
                }
            } else {
                members.values.push((name, map.next_value()?));
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use table::EdmValue;

    fn code(body: &str) -> Option<ErrorCode> {
        read_entity(body.as_bytes()).err().map(|error| error.code)
    }

    #[test]
    fn annotations_before_and_after() {
        let body = br#"{"odata.metadata":{"x":[1]},"A@odata.type":"Edm.Int64","A":"1","B":"2","B@odata.type":"Edm.Int64",
            "N":null,"N@odata.type":"Edm.Guid","Timestamp":5,"RowKey":"r","PartitionKey":"p",
            "PartitionKey@odata.type":"Edm.String","C@odata.other":[],"\u0043":"x","a@b":7}"#;
        let entity = read_entity(body).expect("an entity");
        assert_eq!(entity.partition_key.as_deref(), Some("p"));
        assert_eq!(entity.row_key.as_deref(), Some("r"));
        let expected = vec![
            ("A".to_owned(), EdmValue::Int64(1)),
            ("B".to_owned(), EdmValue::Int64(2)),
            ("C".to_owned(), EdmValue::String("x".into())),
            // No annotation but a name, which the Table service refuses.
            ("a@b".to_owned(), EdmValue::Int32(7)),
        ];
        assert_eq!(entity.properties.0, expected);
        assert_eq!(read_entity(b" "), Ok(EntityBody::default()));
    }

    /// The parser takes `-0` for a Double, which it is not without a point.
    #[test]
    fn negative_zeros_are_integers() {
        let body = br#"{"A":-0,"B":"-0,\"-0}","C": -0 ,"D":-0.0,"E":-0e1,"F":-01,"G":-0}"#;
        assert_eq!(code(std::str::from_utf8(body).expect("text")), Some(ErrorCode::InvalidInput), "-01");
        let body = br#"{"A":-0,"B":"-0,\"-0}","C": -0 ,"D":-0.0,"E":-0e1,"G":-0}"#;
        let expected = vec![
            ("A".to_owned(), EdmValue::Int32(0)),
            ("B".to_owned(), EdmValue::String("-0,\"-0}".into())),
            ("C".to_owned(), EdmValue::Int32(0)),
            ("D".to_owned(), EdmValue::Double(-0.0)),
            ("E".to_owned(), EdmValue::Double(-0.0)),
            ("G".to_owned(), EdmValue::Int32(0)),
        ];
        assert_eq!(read_entity(body).expect("an entity").properties.0, expected);
    }

    /// They were refused: the sign was blanked as if it stood before a number.
    #[test]
    fn exponents_may_be_negative_zeros() {
        for (number, value) in
            [("1e-0", 1.0), ("1.5E-0", 1.5), ("-2e-0", -2.0), ("0e-0", 0.0), ("3e-00", 3.0)]
        {
            assert_eq!(double(number), Some(value), "{number}");
        }
        let body = br#"{"A":-0,"B":1e-0,"C":"e-0}","D":-0}"#;
        let expected = vec![
            ("A".to_owned(), EdmValue::Int32(0)),
            ("B".to_owned(), EdmValue::Double(1.0)),
            ("C".to_owned(), EdmValue::String("e-0}".into())),
            ("D".to_owned(), EdmValue::Int32(0)),
        ];
        assert_eq!(read_entity(body).expect("an entity").properties.0, expected);
        assert_eq!(code(r#"{"A":true-0}"#), Some(ErrorCode::InvalidInput));
    }

    fn double(number: &str) -> Option<f64> {
        let entity = read_entity(format!("{{\"A\":{number}}}").as_bytes()).ok()?;
        match entity.properties.0[..] {
            [(_, EdmValue::Double(value))] => Some(value),
            _ => None,
        }
    }

    /// It came back as 449.4910647887382, the number's neighbour.
    #[test]
    fn a_double_is_the_one_that_is_nearest_to_its_text() {
        assert_eq!(double("449.49106478873813"), Some(449.491_064_788_738_13));
        // In the middle between two, and a little more.
        assert_eq!(double("9007199254740993.0"), Some(9_007_199_254_740_992.0));
        assert_eq!(double("9007199254740993.00000000000000000000000001"), Some(9_007_199_254_740_994.0));
        assert_eq!(double("5e-324"), Some(f64::from_bits(1)));
        assert_eq!(double("1.7976931348623157E+308"), Some(f64::MAX));
    }

    #[test]
    fn errors_have_their_codes() {
        use ErrorCode::*;
        assert_eq!(code(r#"{"A":1,"A":2}"#), Some(DuplicatePropertiesSpecified));
        assert_eq!(code(r#"{"A":1,"\u0041":2}"#), Some(DuplicatePropertiesSpecified));
        assert_eq!(code(r#"{"PartitionKey":5}"#), Some(PrimaryKeyPropertyIsInvalidType));
        let typed = read_entity(br#"{"RowKey":"5","RowKey@odata.type":"Edm.Int32"}"#);
        assert!(typed.is_ok_and(|entity| entity.has_typed_key));
        for body in ["{", "[]", "5", "{}x", r#"{"A":{}}"#, r#"{"A":[1]}"#, r#"{"A@odata.type":5}"#] {
            assert_eq!(code(body), Some(InvalidInput), "{body}");
        }
        // Not text, in a member that is ignored.
        let ignored = read_entity(b"{\"odata.etag\":\"\xff\"}").err();
        assert_eq!(ignored.map(|error| error.code), Some(InvalidInput));
        let many: Vec<String> = (0..2000).map(|index| format!("\"P{index}\":1")).collect();
        assert_eq!(code(&format!("{{{}}}", many.join(","))), Some(TooManyProperties));
        let deep = format!("{{\"A\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(code(&deep), Some(InvalidInput));
    }

    #[test]
    fn table_names() {
        assert_eq!(read_table_name(br#"{"TableName": "People"}"#), Ok("People".to_owned()));
        for body in ["", "{}", r#"{"TableName":5}"#, r#"{"TableName":null}"#] {
            assert!(read_table_name(body.as_bytes()).is_err(), "{body}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_double_that_is_written_is_the_one_that_is_read(
            value in any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
        ) {
            for text in [format!("{value:?}"), format!("{value:e}"), format!("{value:.20e}")] {
                prop_assert_eq!(double(&text).map(f64::to_bits), Some(value.to_bits()), "{}", text);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_entity_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = read_entity(&bytes);
            let _ = read_table_name(&bytes);
        }

        #[test]
        fn almost_json_too(text in "[{}\\[\\]\",:0-9eE+.a@\\\\ -]{0,60}") {
            let _ = read_entity(text.as_bytes());
        }
    }
}
