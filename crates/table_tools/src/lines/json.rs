//! A reader of JSON that gives the text of values, not the values: what moves an entity from one place to
//! another needs to know where a value ends, and seldom what it is.
//!
//! What always holds: any text is read or refused; nesting is bounded; a string that it gives may still have
//! escapes that name no character, which [`text_of`] refuses.

use std::borrow::Cow;

/// Levels of arrays and objects in what is skipped, at most.
const DEPTH_MAX: usize = 64;

/// What is wrong, and at which byte of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub(crate) struct Malformed {
    /// From 0.
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// A text, and how far it was read.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0 }
    }

    /// Where it is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether nothing but blanks is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub(crate) fn fail<T>(&self, what: &'static str) -> Result<T, Malformed> {
        let what = if self.at >= self.text.len() { "the text ends too early" } else { what };
        Err(Malformed { at: self.at, what })
    }

    /// The next byte that is no blank.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the byte if it is the next one.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Malformed> {
        if self.take(byte) { Ok(()) } else { self.fail(what) }
    }

    /// A string with its quotes.
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        if self.peek() != Some(b'"') {
            return self.fail("a string is missing");
        }
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut at = start + 1;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) else {
                self.at = bytes.len();
                return self.fail("");
            };
            at += found + 1;
            if bytes[at - 1] == b'"' {
                break;
            }
            // What is escaped; nothing but ASCII, as `text_of` finds.
            at += 1;
        }
        self.at = at;
        // Quotes are never within a character.
        Ok(self.text.get(start..at).unwrap_or_default())
    }

    /// A string, a number, `true`, `false` or `null`, as it stands.
    pub(crate) fn scalar(&mut self) -> Result<&'a str, Malformed> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.fail("a value of a property is an object or an array"),
            _ => {
                let start = self.at;
                let bytes = &self.text.as_bytes()[start..];
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let size = bytes.iter().take_while(|byte| is_part(byte)).count();
                let text = &self.text[start..start + size];
                if !matches!(text, "true" | "false" | "null") && !is_number(text) {
                    return self.fail("a value is missing");
                }
                self.at += size;
                Ok(text)
            }
        }
    }

    /// Skips a value of any kind.
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(b'{' | b'[') if depth == DEPTH_MAX => return self.fail("it is nested too deeply"),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => self.at += 1,
                _ => {
                    self.scalar()?;
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

/// Whether it is a number of JSON.
pub(crate) fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        |at: usize| bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return false;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return false;
        }
        at += 1 + sign + exponent;
    }
    at == bytes.len()
}

/// What a string with its quotes says; none if it is no string of JSON.
pub(crate) fn text_of(string: &str) -> Option<Cow<'_, str>> {
    let inner = string.strip_prefix('"')?.strip_suffix('"')?;
    // All bytes are looked at, because that takes vectors.
    if inner.bytes().fold(true, |all, byte| all & (byte >= b' ') & (byte != b'\\') & (byte != b'"')) {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(string).ok().map(Cow::Owned)
}

/// Appends a text as a string.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.bytes().fold(true, |all, byte| all & (byte >= b' ') & (byte != b'"') & (byte != b'\\')) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_those_of_json() {
        for text in ["0", "-0", "10", "1.5", "-1.5e-10", "1E+3", "0.0"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1x", "NaN", "0x1", "1.5.5"] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn values_are_taken_as_they_stand() {
        let mut scanner = Scanner::new(r#" "a\"b" , 1.50 ,true,null, {"x":[1,{"y":"]}"}]} ,"ü" "#);
        assert_eq!(scanner.scalar(), Ok(r#""a\"b""#));
        for expected in ["1.50", "true", "null"] {
            assert!(scanner.take(b','));
            assert_eq!(scanner.scalar(), Ok(expected));
        }
        assert!(scanner.take(b','));
        assert!(scanner.scalar().is_err());
        scanner.skip().expect("an object");
        assert!(scanner.take(b','));
        assert_eq!(scanner.scalar().map(text_of), Ok(Some(Cow::Borrowed("ü"))));
        assert!(scanner.is_at_end());
        for (text, what) in [
            ("\"a", "the text ends too early"),
            ("\"a\\", "the text ends too early"),
            ("nul", "a value is missing"),
        ] {
            assert_eq!(Scanner::new(text).scalar().map_err(|error| error.what), Err(what), "{text}");
        }
        assert!(Scanner::new(&"[".repeat(100)).skip().is_err());
    }

    proptest! {
        #[test]
        fn texts_come_back(text: String) {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            let string = String::from_utf8(out).expect("text");
            prop_assert_eq!(Scanner::new(&string).string(), Ok(string.as_str()));
            prop_assert_eq!(text_of(&string), Some(Cow::Borrowed(text.as_str())));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = (Scanner::new(&text).skip(), Scanner::new(&text).scalar(), text_of(&text));
            if let Ok(scalar) = Scanner::new(&text).scalar() && !scalar.starts_with('"') {
                prop_assert!(serde_json::from_str::<serde_json::Value>(scalar).is_ok() || is_number(scalar));
            }
        }
    }
}
