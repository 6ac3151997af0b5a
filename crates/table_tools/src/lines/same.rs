//! Whether two entities are the same: the same properties with the same types and values, in whatever order.

use super::json::text_of;
use super::row::{Property, Row};
use super::token::{EdmType, Token};
use base::date_time::parse_date_time;
use base::guid::parse_guid;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How a property differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyDifference {
    pub(crate) name: String,
    /// Type and JSON text; none if it is absent.
    pub(crate) left: Option<(EdmType, String)>,
    pub(crate) right: Option<(EdmType, String)>,
}

/// The first property that differs, in the order of the left one.
pub(crate) fn first_difference(left: &Row<'_>, right: &Row<'_>) -> Option<PropertyDifference> {
    let shown = |value: Option<Token<'_>>| value.map(|value| (value.kind, value.text.to_owned()));
    let difference = |name: &str, left, right| PropertyDifference {
        name: name.to_owned(),
        left: shown(left),
        right: shown(right),
    };
    // Most often both are in the same order.
    let is_alike = left.properties.len() == right.properties.len()
        && left
            .properties
            .iter()
            .zip(&right.properties)
            .all(|(one, other)| one.name == other.name && is_same(&one.value, &other.value));
    if is_alike {
        return None;
    }
    for Property { name, value } in &left.properties {
        let other = value_of(right, name);
        if !other.is_some_and(|other| is_same(value, &other)) {
            return Some(difference(name, Some(*value), other));
        }
    }
    let extra = right.properties.iter().find(|one| value_of(left, &one.name).is_none())?;
    Some(difference(&extra.name, None, Some(extra.value)))
}

fn value_of<'a>(row: &Row<'a>, name: &str) -> Option<Token<'a>> {
    row.properties.iter().find(|one| one.name == name).map(|one| one.value)
}

/// Whether both are the same value of the same type.
fn is_same(one: &Token<'_>, other: &Token<'_>) -> bool {
    if one.kind != other.kind {
        return false;
    }
    if one.text == other.text {
        return true;
    }
    let (inner, other_inner) = (one.inner(), other.inner());
    match one.kind {
        EdmType::String => match (text_of(one.text), text_of(other.text)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        },
        EdmType::Boolean => false,
        EdmType::Int32 | EdmType::Int64 => inner.parse::<i64>().ok() == other_inner.parse::<i64>().ok(),
        // "NaN" and the infinities are read by the same function.
        EdmType::Double => match (inner.parse::<f64>(), other_inner.parse::<f64>()) {
            (Ok(one), Ok(other)) => one == other || (one.is_nan() && other.is_nan()),
            _ => false,
        },
        EdmType::DateTime => {
            parse_date_time(inner).is_ok() && parse_date_time(inner) == parse_date_time(other_inner)
        }
        EdmType::Guid => parse_guid(inner).is_some() && parse_guid(inner) == parse_guid(other_inner),
        EdmType::Binary => match (STANDARD.decode(inner), STANDARD.decode(other_inner)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(left: &str, right: &str) -> Option<String> {
        let row = |properties: &str| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\"{properties}}}");
        let (left, right) = (row(left), row(right));
        let (left, right) = (Row::parse(&left).expect("a row"), Row::parse(&right).expect("a row"));
        let name = |difference: PropertyDifference| difference.name;
        let found = first_difference(&left, &right).map(name);
        assert_eq!(found.is_some(), first_difference(&right, &left).is_some());
        found
    }

    #[test]
    fn values_are_compared_not_their_texts() {
        let same = [
            (",\"A\":1,\"B\":\"x\"", ",\"B\":\"\\u0078\",\"A\":1"),
            (",\"D\":1.50", ",\"D\":15e-1"),
            (",\"D\":0.0", ",\"D\":-0.0"),
            (
                ",\"D@odata.type\":\"Edm.Double\",\"D\":\"NaN\"",
                ",\"D@odata.type\":\"Edm.Double\",\"D\":\"NaN\"",
            ),
            (
                ",\"T@odata.type\":\"Edm.DateTime\",\"T\":\"2026-01-01T00:00:00Z\"",
                ",\"T@odata.type\":\"Edm.DateTime\",\"T\":\"2026-01-01T00:00:00.0000000Z\"",
            ),
            (",\"L@odata.type\":\"Edm.Int64\",\"L\":\"5\"", ",\"L@odata.type\":\"Edm.Int64\",\"L\":5"),
            (",\"N\":null", ""),
        ];
        for (left, right) in same {
            assert_eq!(differing(left, right), None, "{left} {right}");
        }
        for (left, right, name) in [
            (",\"A\":1", ",\"A\":2", "A"),
            (",\"A\":1", ",\"A\":1.0", "A"),
            (",\"A\":\"\"", "", "A"),
            ("", ",\"B\":false", "B"),
            (",\"A\":1,\"L@odata.type\":\"Edm.Int64\",\"L\":\"5\"", ",\"A\":1,\"L\":5", "L"),
            (",\"A\":1,\"B\":2", ",\"A\":1,\"C\":2", "B"),
        ] {
            assert_eq!(differing(left, right).as_deref(), Some(name), "{left} {right}");
        }
    }
}
