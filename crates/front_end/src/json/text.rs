//! Strings and numbers as JSON text, appended to a byte buffer.

use std::io::Write;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` in quotes, escaped.
pub(crate) fn put_json_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    put_json_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Bytes that are looked at together for something to escape: a shape that compilers turn into vector code.
const ESCAPE_SCAN_SIZE: usize = 32;

/// Appends the bytes of a text, escaped, without quotes.
pub(crate) fn put_json_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = first_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                let high = HEX[usize::from(byte >> 4)];
                let low = HEX[usize::from(byte & 15)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Where the first byte that JSON escapes stands.
fn first_to_escape(text: &[u8]) -> Option<usize> {
    let escapes = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let chunks = text.chunks_exact(ESCAPE_SCAN_SIZE);
    let tail_at = text.len() - chunks.remainder().len();
    for (index, chunk) in chunks.enumerate() {
        if chunk.iter().fold(false, |found, byte| found | escapes(byte)) {
            return chunk.iter().position(escapes).map(|at| index * ESCAPE_SCAN_SIZE + at);
        }
    }
    text[tail_at..].iter().position(escapes).map(|at| tail_at + at)
}

/// Appends a finite number so that readers see a Double: always with a point or an exponent. Negative zero is
/// written as the service does, without its sign.
pub(crate) fn put_json_double(out: &mut Vec<u8>, value: f64) {
    let value = if value == 0.0 { 0.0 } else { value };
    // Writing to a vector cannot fail; the debug form is the shortest text that reads back, with point or exponent.
    let _ = write!(out, "{value:?}");
}

/// Appends an integer.
pub(crate) fn put_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        put_json_double(&mut out, value);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn doubles_have_a_point_or_an_exponent() {
        assert_eq!(double(2.0), "2.0");
        assert_eq!(double(-0.0), "0.0");
        assert_eq!(double(1e300), "1e300");
        assert_eq!(double(f64::MIN_POSITIVE), "2.2250738585072014e-308");
    }

    proptest! {
        #[test]
        fn strings_come_back(text in any::<String>()) {
            let mut out = Vec::new();
            put_json_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
        }

        #[test]
        fn doubles_come_back(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            let text = double(value);
            prop_assert_eq!(text.parse::<f64>().expect("number"), value);
            prop_assert!(text.contains(['.', 'e']));
        }
    }
}
