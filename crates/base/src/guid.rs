//! Guids as text: 32 hexadecimal digits in five groups. The bytes are in the order of the text.

/// Reads a Guid in its 36-character form, either case.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != GUID_LEN {
        return None;
    }
    let mut guid = [0; 16];
    let mut at = 0;
    for (index, byte) in guid.iter_mut().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        *byte = hex_digit(text[at])? << 4 | hex_digit(text[at + 1])?;
        at += 2;
    }
    Some(guid)
}

/// Reads a Guid as 32 digits without hyphens, either case.
pub fn parse_bare_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 32 {
        return None;
    }
    let mut guid = [0; 16];
    for (byte, digits) in guid.iter_mut().zip(text.chunks_exact(2)) {
        *byte = hex_digit(digits[0])? << 4 | hex_digit(digits[1])?;
    }
    Some(guid)
}

/// Bytes of a Guid's text.
pub const GUID_LEN: usize = 36;

/// Appends the 36-character, lower-case form of `guid`.
pub fn format_guid(guid: &[u8; 16], out: &mut Vec<u8>) {
    out.extend_from_slice(&guid_letters(guid));
}

/// The same, in ASCII.
pub fn guid_letters(guid: &[u8; 16]) -> [u8; GUID_LEN] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; GUID_LEN];
    for (byte, at) in guid.iter().zip(DIGITS_AT) {
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
    }
    text
}

/// Where the digits of each byte stand.
const DIGITS_AT: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// The text of `guid` on its own.
pub fn guid_text(guid: &[u8; 16]) -> String {
    let mut out = Vec::with_capacity(GUID_LEN);
    format_guid(guid, &mut out);
    // It is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// The value of a hexadecimal digit, in either case.
pub fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn guid_text_forms() {
        let text = "c9da6455-213d-42c9-9a79-3e9149a57833";
        let guid = parse_guid(text).unwrap();
        assert_eq!(guid[..4], [0xc9, 0xda, 0x64, 0x55]);
        assert_eq!(guid_text(&guid), text);
        assert_eq!(parse_guid(&text.to_uppercase()), Some(guid));
        for wrong in [
            "",
            "c9da6455213d42c99a793e9149a57833",
            "c9da6455-213d-42c9-9a79-3e9149a5783g",
            "c9da6455-213d-42c9-9a793-e9149a57833",
            "{c9da6455-213d-42c9-9a79-3e9149a578}",
        ] {
            assert_eq!(parse_guid(wrong), None, "{wrong}");
        }
        assert_eq!(parse_bare_guid("C9da6455213d42c99a793e9149a57833"), Some(guid));
        for wrong in [text, "", "c9da6455213d42c99a793e9149a5783", "g9da6455213d42c99a793e9149a57833"] {
            assert_eq!(parse_bare_guid(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn guids_come_back(guid: [u8; 16]) {
            prop_assert_eq!(parse_guid(&guid_text(&guid)), Some(guid));
        }

        #[test]
        fn any_text_is_a_guid_or_not(text in "\\PC{30,40}") {
            let _ = parse_guid(&text);
        }
    }
}
