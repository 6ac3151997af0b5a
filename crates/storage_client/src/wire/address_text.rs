//! Texts in paths and queries, percent-encoded.
//!
//! What always holds: only unreserved characters of RFC 3986 (and, in paths of blobs, the slash) stay as they
//! are, so that a server reads back the same text whatever it normalises.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const TEXT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const SEGMENTS: &AsciiSet = &TEXT.remove(b'/');
/// Names of parameters: of the protocol, such as `$filter`.
const NAME: &AsciiSet = &TEXT.remove(b'$');

/// One segment of a path, or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, TEXT).to_string()
}

/// A path whose slashes stay.
pub(crate) fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, SEGMENTS).to_string()
}

/// A key between quotes: quotes in it are doubled.
pub(crate) fn encode_key(text: &str) -> String {
    encode(&text.replace('\'', "''"))
}

/// Appends the same.
pub(crate) fn put_encoded_key(out: &mut Vec<u8>, text: &str) {
    for (index, part) in text.split('\'').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"%27%27");
        }
        utf8_percent_encode(part, TEXT).for_each(|part| out.extend_from_slice(part.as_bytes()));
    }
}

/// `a=b&c=d`; empty without parameters.
pub(crate) fn encode_query(parameters: &[(String, String)]) -> String {
    let mut out = String::new();
    for (name, value) in parameters {
        if !out.is_empty() {
            out.push('&');
        }
        out.extend(utf8_percent_encode(name, NAME));
        out.push('=');
        out.push_str(&encode(value));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(encode("a/b c+'%é~"), "a%2Fb%20c%2B%27%25%C3%A9~");
        assert_eq!(encode_path("a/b c"), "a/b%20c");
        assert_eq!(encode_key("p'1"), "p%27%271");
        for key in ["", "p'1", "''", "a/b ü'", "plain"] {
            let mut appended = b"x".to_vec();
            put_encoded_key(&mut appended, key);
            assert_eq!(appended, format!("x{}", encode_key(key)).into_bytes(), "{key}");
        }
        let query = [("$filter".to_owned(), "a eq 'b'".to_owned()), ("x".to_owned(), String::new())];
        assert_eq!(encode_query(&query), "$filter=a%20eq%20%27b%27&x=");
        assert_eq!(encode_query(&[]), "");
    }
}
