//! A value as the text that JSON has for it, with its Edm type.
//!
//! What always holds: a token that passes [`Token::check`] is a value of its type; written with its
//! annotation where JSON's own type does not say it, it is read back as the same type and the same text.

use super::json::{is_number, text_of};
use base::date_time::parse_date_time;
use base::guid::parse_guid;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The types of properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdmType {
    /// Text.
    String,
    /// `true` or `false`.
    Boolean,
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
    /// IEEE 754 binary64.
    Double,
    /// Ticks of 100 ns from 1601 to 9999.
    DateTime,
    /// 16 bytes.
    Guid,
    /// Bytes.
    Binary,
}

/// All types.
pub(crate) const EDM_TYPES: [EdmType; 8] = [
    EdmType::String,
    EdmType::Boolean,
    EdmType::Int32,
    EdmType::Int64,
    EdmType::Double,
    EdmType::DateTime,
    EdmType::Guid,
    EdmType::Binary,
];

impl EdmType {
    /// Its name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EdmType::String => "Edm.String",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::Double => "Edm.Double",
            EdmType::DateTime => "Edm.DateTime",
            EdmType::Guid => "Edm.Guid",
            EdmType::Binary => "Edm.Binary",
        }
    }

    /// The type of that name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        EDM_TYPES.into_iter().find(|one| one.name() == name)
    }
}

/// A value as it stands in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: EdmType,
    /// With quotes if it is a string.
    pub(crate) text: &'a str,
}

impl<'a> Token<'a> {
    /// The type that JSON's own type says.
    pub(crate) fn inferred(text: &'a str) -> Self {
        let kind = match text.as_bytes().first() {
            Some(b'"') => EdmType::String,
            Some(b't' | b'f') => EdmType::Boolean,
            _ if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => EdmType::Double,
            _ if text.parse::<i32>().is_ok() => EdmType::Int32,
            _ => EdmType::Int64,
        };
        Token { kind, text }
    }

    /// Whether it is to be annotated.
    pub(crate) fn needs_annotation(&self) -> bool {
        match self.kind {
            EdmType::String | EdmType::Boolean | EdmType::Int32 => false,
            EdmType::Double => Token::inferred(self.text).kind != EdmType::Double,
            EdmType::Int64 | EdmType::DateTime | EdmType::Guid | EdmType::Binary => true,
        }
    }

    /// What is between its quotes, if it has any; without escapes, which only texts have.
    pub(crate) fn inner(&self) -> &'a str {
        let inner = self.text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.unwrap_or(self.text)
    }

    /// Whether it is a value of its type.
    pub(crate) fn check(&self) -> bool {
        let (inner, is_quoted) = (self.inner(), self.text.starts_with('"'));
        match self.kind {
            EdmType::String => text_of(self.text).is_some(),
            EdmType::Boolean => matches!(self.text, "true" | "false"),
            EdmType::Int32 => !is_quoted && is_number(inner) && inner.parse::<i32>().is_ok(),
            EdmType::Int64 => is_number(inner) && inner.parse::<i64>().is_ok(),
            EdmType::Double if is_quoted && matches!(inner, "NaN" | "Infinity" | "-Infinity") => true,
            EdmType::Double => is_number(inner) && inner.parse::<f64>().is_ok_and(f64::is_finite),
            EdmType::DateTime => is_quoted && parse_date_time(inner).is_ok(),
            EdmType::Guid => is_quoted && parse_guid(inner).is_some(),
            EdmType::Binary => is_quoted && STANDARD.decode(inner).is_ok(),
        }
    }

    /// Bytes of the value as the service counts them.
    pub(crate) fn size_bytes(&self) -> u64 {
        match self.kind {
            EdmType::String => {
                let units = text_of(self.text).map_or(0, |text| text.encode_utf16().count());
                4 + 2 * units as u64
            }
            EdmType::Boolean => 1,
            EdmType::Int32 => 4,
            EdmType::Int64 | EdmType::Double | EdmType::DateTime => 8,
            EdmType::Guid => 16,
            EdmType::Binary => {
                let inner = self.inner();
                let padding = inner.bytes().rev().take_while(|byte| *byte == b'=').count();
                4 + (inner.len() / 4 * 3).saturating_sub(padding) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_value_of_its_type_or_refused() {
        use EdmType::*;
        for (kind, good, bad) in [
            (String, &["\"\"", "\"a\\u00e9\""][..], &["1", "\"\\ud800\"", "\"\\x\"", "\"\n\""][..]),
            (Boolean, &["true", "false"], &["\"true\"", "1"]),
            (Int32, &["0", "-2147483648"], &["2147483648", "\"1\"", "1.0", "true"]),
            (
                Int64,
                &["\"-9223372036854775808\"", "5"],
                &["\"9223372036854775808\"", "\"x\"", "\"+1\"", "1.5"],
            ),
            (
                Double,
                &["1.5", "2", "\"NaN\"", "\"-Infinity\"", "1e308", "\"1.5\""],
                &["1e309", "NaN", "\"INF\"", "true"],
            ),
            (
                DateTime,
                &["\"1601-01-01T00:00:00Z\"", "\"9999-12-31T23:59:59.9999999Z\""],
                &["\"1600-01-01T00:00:00Z\"", "5"],
            ),
            (Guid, &["\"c9da6455-213d-42c9-9a79-3e9149a57833\""], &["\"c9da\"", "1"]),
            (Binary, &["\"\"", "\"AQI=\""], &["\"A\"", "\"AQI\"", "1"]),
        ] {
            for text in good {
                assert!(Token { kind, text }.check(), "{kind:?} {text}");
            }
            for text in bad {
                assert!(!Token { kind, text }.check(), "{kind:?} {text}");
            }
            assert_eq!(EdmType::parse(kind.name()), Some(kind));
        }
        assert_eq!(EdmType::parse("Edm.Int16"), None);
    }

    #[test]
    fn sizes_are_those_of_the_service() {
        for (kind, text, size_bytes) in [
            (EdmType::String, "\"a\\u00e9\u{1f600}\"", 4 + 8),
            (EdmType::Binary, "\"AQI=\"", 6),
            (EdmType::Binary, "\"\"", 4),
            (EdmType::Guid, "\"c9da6455-213d-42c9-9a79-3e9149a57833\"", 16),
            (EdmType::Int64, "\"1\"", 8),
        ] {
            assert_eq!(Token { kind, text }.size_bytes(), size_bytes, "{text}");
        }
    }
}
