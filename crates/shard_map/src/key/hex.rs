//! Bytes as hexadecimal digits: binary keys in documents and messages, encoded keys in logs.
//!
//! What always holds: written in lower case, read in either.

use base::guid::hex_digit;
use std::fmt::Write;

/// Two lower-case digits a byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a text of digits, if it is one.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(hex_digit(*high)? << 4 | hex_digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        assert_eq!(to_hex(&[0, 0xaf, 255]), "00afff");
        assert_eq!(from_hex("00AFff"), Some(vec![0, 0xaf, 255]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        assert_eq!((from_hex("0"), from_hex("0g"), from_hex("ä")), (None, None, None));
    }
}
