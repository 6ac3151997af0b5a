//! Property values and their types (the Entity Data Model's primitive types), owned and borrowed, and their
//! text forms.
//!
//! JSON bodies, `$filter` literals and ETags share these texts, so they live here once. Date-times are in
//! [`service::date_time`] and re-exported. What always holds: null is no value; a property that is null is
//! absent.

use base::Ticks;
use std::cmp::Ordering;

pub use service::date_time::{DateTimeError, TICKS_MAX, date_time_text, format_date_time, parse_date_time};
use service::guid::hex_digit;
pub use service::guid::{GUID_LEN, format_guid, guid_text, parse_bare_guid, parse_guid};

/// The type of a value. The numbers are stored: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdmType {
    /// UTF-8 here, UTF-16 for limits and order.
    String = 1,
    /// Bytes.
    Binary = 2,
    /// True or false.
    Boolean = 3,
    /// 32-bit integer.
    Int32 = 4,
    /// 64-bit integer.
    Int64 = 5,
    /// 64-bit floating point number.
    Double = 6,
    /// 128-bit identifier.
    Guid = 7,
    /// Instant in 100 ns units.
    DateTime = 8,
}

impl EdmType {
    /// The type with this stored number.
    pub fn from_code(code: u8) -> Option<EdmType> {
        Some(match code {
            1 => EdmType::String,
            2 => EdmType::Binary,
            3 => EdmType::Boolean,
            4 => EdmType::Int32,
            5 => EdmType::Int64,
            6 => EdmType::Double,
            7 => EdmType::Guid,
            8 => EdmType::DateTime,
            _ => return None,
        })
    }

    /// The name on the wire, such as `Edm.Int32`.
    pub fn name(self) -> &'static str {
        match self {
            EdmType::String => "Edm.String",
            EdmType::Binary => "Edm.Binary",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::Double => "Edm.Double",
            EdmType::Guid => "Edm.Guid",
            EdmType::DateTime => "Edm.DateTime",
        }
    }

    /// The type with this name on the wire.
    pub fn from_name(name: &str) -> Option<EdmType> {
        Some(match name {
            "Edm.String" => EdmType::String,
            "Edm.Binary" => EdmType::Binary,
            "Edm.Boolean" => EdmType::Boolean,
            "Edm.Int32" => EdmType::Int32,
            "Edm.Int64" => EdmType::Int64,
            "Edm.Double" => EdmType::Double,
            "Edm.Guid" => EdmType::Guid,
            "Edm.DateTime" => EdmType::DateTime,
            _ => return None,
        })
    }
}

/// A property value. Null never appears here: a null property is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum EdmValue {
    /// Text.
    String(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// True or false.
    Boolean(bool),
    /// 32-bit integer.
    Int32(i32),
    /// 64-bit integer.
    Int64(i64),
    /// 64-bit floating point number.
    Double(f64),
    /// 16 bytes in the order of the text.
    Guid([u8; 16]),
    /// 1601-01-01 to 9999-12-31T23:59:59.9999999Z.
    DateTime(Ticks),
}

/// A property value, borrowed from where it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EdmValueRef<'a> {
    /// Text.
    String(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
    /// True or false.
    Boolean(bool),
    /// 32-bit integer.
    Int32(i32),
    /// 64-bit integer.
    Int64(i64),
    /// 64-bit floating point number.
    Double(f64),
    /// 16 bytes in the order of the text.
    Guid([u8; 16]),
    /// 1601-01-01 to 9999-12-31T23:59:59.9999999Z.
    DateTime(Ticks),
}

impl EdmValue {
    /// The value without owning it.
    pub fn as_ref(&self) -> EdmValueRef<'_> {
        match self {
            EdmValue::String(text) => EdmValueRef::String(text),
            EdmValue::Binary(bytes) => EdmValueRef::Binary(bytes),
            EdmValue::Boolean(value) => EdmValueRef::Boolean(*value),
            EdmValue::Int32(value) => EdmValueRef::Int32(*value),
            EdmValue::Int64(value) => EdmValueRef::Int64(*value),
            EdmValue::Double(value) => EdmValueRef::Double(*value),
            EdmValue::Guid(bytes) => EdmValueRef::Guid(*bytes),
            EdmValue::DateTime(at) => EdmValueRef::DateTime(*at),
        }
    }

    /// The value's type.
    pub fn edm_type(&self) -> EdmType {
        self.as_ref().edm_type()
    }
}

impl EdmValueRef<'_> {
    /// The value's type.
    pub fn edm_type(self) -> EdmType {
        match self {
            EdmValueRef::String(_) => EdmType::String,
            EdmValueRef::Binary(_) => EdmType::Binary,
            EdmValueRef::Boolean(_) => EdmType::Boolean,
            EdmValueRef::Int32(_) => EdmType::Int32,
            EdmValueRef::Int64(_) => EdmType::Int64,
            EdmValueRef::Double(_) => EdmType::Double,
            EdmValueRef::Guid(_) => EdmType::Guid,
            EdmValueRef::DateTime(_) => EdmType::DateTime,
        }
    }

    /// The value, owned.
    pub fn to_owned(self) -> EdmValue {
        match self {
            EdmValueRef::String(text) => EdmValue::String(text.to_owned()),
            EdmValueRef::Binary(bytes) => EdmValue::Binary(bytes.to_owned()),
            EdmValueRef::Boolean(value) => EdmValue::Boolean(value),
            EdmValueRef::Int32(value) => EdmValue::Int32(value),
            EdmValueRef::Int64(value) => EdmValue::Int64(value),
            EdmValueRef::Double(value) => EdmValue::Double(value),
            EdmValueRef::Guid(bytes) => EdmValue::Guid(bytes),
            EdmValueRef::DateTime(at) => EdmValue::DateTime(at),
        }
    }
}

/// UTF-16 code units of the UTF-8 bytes `text`: what limits count. One for each character, two above U+FFFF,
/// whose lead bytes are F0 and more.
pub fn utf16_len(text: &[u8]) -> usize {
    // Most texts are ASCII, and `is_ascii` checks many bytes at a time.
    if text.is_ascii() {
        return text.len();
    }
    text.iter().map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(*byte >= 0xf0)).sum()
}

/// Ordinal order by UTF-16 code unit, which is the service's. It is the order of the UTF-8 bytes, except that
/// U+E000 to U+FFFF (lead bytes EE, EF) come after the supplementary characters (F0 to F4), whose surrogates
/// are D800 to DFFF.
pub fn utf16_cmp(a: &[u8], b: &[u8]) -> Ordering {
    let rank = |byte: u8| match byte {
        0xee | 0xef => byte + 0x0a,
        _ => byte,
    };
    match std::iter::zip(a, b).find(|(a, b)| a != b) {
        Some((&a, &b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// The order of .NET: the first three groups as unsigned integers, the rest bytewise. The bytes are in the
/// order of the text, where the integers are big-endian, so this is the order of the bytes.
pub fn guid_cmp(a: &[u8; 16], b: &[u8; 16]) -> Ordering {
    a.cmp(b)
}

/// Bytes written in hexadecimal digits, either case.
pub(crate) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(hex_digit(*high)? << 4 | hex_digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn guids_sort_by_their_text() {
        let low = parse_guid("01000000-0000-0000-0000-000000000000").unwrap();
        let high = parse_guid("f0000000-0000-0000-0000-000000000000").unwrap();
        assert_eq!(guid_cmp(&low, &high), Ordering::Less);
    }

    #[test]
    fn hex_needs_pairs() {
        assert_eq!(parse_hex("01fF"), Some(vec![1, 255]));
        assert_eq!(parse_hex(""), Some(vec![]));
        assert_eq!(parse_hex("012"), None);
        assert_eq!(parse_hex("0g"), None);
    }

    #[test]
    fn type_names_and_codes_come_back() {
        for code in 0..=255 {
            if let Some(edm_type) = EdmType::from_code(code) {
                assert_eq!(edm_type as u8, code);
                assert_eq!(EdmType::from_name(edm_type.name()), Some(edm_type));
            }
        }
    }

    proptest! {
        #[test]
        fn utf16_order_and_length(a: String, b: String) {
            let (a16, b16): (Vec<u16>, Vec<u16>) = (a.encode_utf16().collect(), b.encode_utf16().collect());
            prop_assert_eq!(utf16_cmp(a.as_bytes(), b.as_bytes()), a16.cmp(&b16));
            prop_assert_eq!(utf16_len(a.as_bytes()), a16.len());
        }

        #[test]
        fn any_text_is_hex_or_not(text in "\\PC{30,40}") {
            let _ = parse_hex(&text);
        }
    }
}
