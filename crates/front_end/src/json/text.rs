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
const VECTOR_SCAN_SIZE: usize = 64;

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

/// Where the first byte that JSON escapes stands: in long steps, then in words, then in bytes.
fn first_to_escape(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk::<VECTOR_SCAN_SIZE>() {
        if chunk.iter().fold(false, |found, byte| found | escapes(*byte)) {
            break;
        }
        at += VECTOR_SCAN_SIZE;
    }
    while let Some(word) = text[at..].first_chunk::<8>() {
        if let Some(index) = first_to_escape_of(*word) {
            return Some(at + index);
        }
        at += 8;
    }
    text[at..].iter().position(|byte| escapes(*byte)).map(|index| at + index)
}

fn escapes(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The same for eight bytes at once. A byte's high bit is set in `below(x, n)` if it is less than `n`, and
/// perhaps in bytes after such a one, which are not looked at (source: Anderson, "Bit Twiddling Hacks", words
/// with bytes less than n).
fn first_to_escape_of(word: [u8; 8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let below = |word: u64, bound: u8| word.wrapping_sub(EACH * u64::from(bound)) & !word;
    let equal = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let word = u64::from_le_bytes(word);
    let marks = (below(word, 0x20) | equal(word, b'"') | equal(word, b'\\')) & (EACH * 0x80);
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Appends a finite number so that readers see a Double: always with a point or an exponent. Negative zero is
/// written as the service does, without its sign.
pub(crate) fn put_json_double(out: &mut Vec<u8>, value: f64) {
    let value = if value == 0.0 { 0.0 } else { value };
    // Writing to a vector cannot fail; the debug form is the shortest text that reads back, with point or
    // exponent.
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

    /// At each place of texts around the sizes of the steps, among bytes that look alike to a careless
    /// comparison.
    #[test]
    fn what_is_escaped_is_found_wherever_it_stands() {
        for len in (0..20).chain(60..80).chain(120..140) {
            for filler in [b'x', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0x9f, 0xff] {
                let mut text = vec![filler; len];
                assert_eq!(first_to_escape(&text), None, "{len} of {filler:#x}");
                for at in 0..len {
                    for byte in [0, 0x1f, b'"', b'\\', b'\n'] {
                        text[at] = byte;
                        assert_eq!(first_to_escape(&text), Some(at), "{byte:#x} at {at} of {len}");
                    }
                    text[at] = filler;
                }
            }
        }
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
