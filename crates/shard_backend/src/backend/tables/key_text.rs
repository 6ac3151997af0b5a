//! Columns of a key as text, of characters that every service takes in a key.
//!
//! ```text
//! int32, int64   17 -> 0000000017, -17 -> -2147483631: negative numbers count from the least one, so that
//!                their digits rise with them; 10 or 19 digits
//! guid           as it is printed
//! date-time      2026-11-28T14:00:00.0000000Z, always with seven digits of a second
//! text, binary   letters, digits and `-` as they are; other bytes (of UTF-8) in two hexadecimal digits
//! behind a mark: `!` below `-`, `.` below the digits, `:` below the capital letters, `_` below the small
//! ones, `~` above them
//! ```
//!
//! Columns are parted by a space, which none of them has.
//!
//! What always holds: keys are ordered as their texts are, and the beginning of a key as its columns are: a
//! space is before all characters of a column, and each mark stands in ASCII where the bytes do that it is
//! for. There is no `/`, `\`, `#`, `?`, `'`, `%` and no control character in a text.

use base::Ticks;
use base::date_time::{TICKS_MAX, parse_date_time, seven_digits_text};
use base::guid::{guid_text, hex_digit, parse_guid};
use shard_map::{KeyKind, KeyValue};
use std::fmt::Write;

/// Between two columns.
const BETWEEN: char = ' ';

/// The text of the first columns of a key, or of all.
pub(super) fn key_text(values: &[KeyValue]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(BETWEEN);
        }
        push_value(value, &mut out);
    }
    out
}

/// The columns of a key; none if the text is none of columns of these kinds.
pub(super) fn read_key(kinds: &[KeyKind], text: &str) -> Option<Vec<KeyValue>> {
    if kinds.is_empty() {
        return text.is_empty().then(Vec::new);
    }
    let columns: Vec<&str> = text.split(BETWEEN).collect();
    if columns.len() != kinds.len() {
        return None;
    }
    kinds.iter().zip(columns).map(|(kind, column)| read_value(*kind, column)).collect()
}

fn push_value(value: &KeyValue, out: &mut String) {
    // Writing to memory does not fail.
    let _ = match value {
        KeyValue::Int32(value) if *value < 0 => write!(out, "-{:010}", value.wrapping_sub(i32::MIN)),
        KeyValue::Int32(value) => write!(out, "{value:010}"),
        KeyValue::Int64(value) if *value < 0 => write!(out, "-{:019}", value.wrapping_sub(i64::MIN)),
        KeyValue::Int64(value) => write!(out, "{value:019}"),
        KeyValue::Guid(guid) => write!(out, "{}", guid_text(guid)),
        KeyValue::DateTime(at) => write!(out, "{}", seven_digits_text(*at)),
        KeyValue::Text(text) => push_bytes(text.as_bytes(), out),
        KeyValue::Binary(bytes) => push_bytes(bytes, out),
    };
}

/// The mark of a byte that does not stand for itself.
fn mark_of(byte: u8) -> Option<char> {
    match byte {
        b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => None,
        0..b'-' => Some('!'),
        b'-'..b'0' => Some('.'),
        b'0'..b'A' => Some(':'),
        b'A'..b'a' => Some('_'),
        _ => Some('~'),
    }
}

fn push_bytes(bytes: &[u8], out: &mut String) -> std::fmt::Result {
    for byte in bytes {
        match mark_of(*byte) {
            None => out.push(char::from(*byte)),
            Some(mark) => write!(out, "{mark}{byte:02x}")?,
        }
    }
    Ok(())
}

fn read_value(kind: KeyKind, text: &str) -> Option<KeyValue> {
    Some(match kind {
        KeyKind::Int32 => KeyValue::Int32(i32::try_from(read_number(text, 10, i32::MIN.into())?).ok()?),
        KeyKind::Int64 => KeyValue::Int64(i64::try_from(read_number(text, 19, i64::MIN.into())?).ok()?),
        KeyKind::Guid => KeyValue::Guid(parse_guid(text)?),
        KeyKind::DateTime => KeyValue::DateTime(read_date_time(text)?),
        KeyKind::Text => KeyValue::Text(String::from_utf8(read_bytes(text)?).ok()?),
        KeyKind::Binary => KeyValue::Binary(read_bytes(text)?),
    })
}

fn read_number(text: &str, digits: usize, least: i128) -> Option<i128> {
    let (number, least) = text.strip_prefix('-').map_or((text, 0), |number| (number, least));
    let is_number = number.len() == digits && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse::<i128>().ok()).flatten().map(|number| number + least)
}

fn read_date_time(text: &str) -> Option<Ticks> {
    parse_date_time(text).ok().filter(|at| *at <= TICKS_MAX)
}

fn read_bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if mark_of(*first).is_none() {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        let byte = hex_digit(digits[0])? << 4 | hex_digit(digits[1])?;
        if mark_of(byte) != Some(char::from(*first)) {
            return None;
        }
        bytes.push(byte);
        rest = behind;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shard_map::KeyType;

    #[test]
    fn keys_are_readable_and_read_back() {
        for (values, expected) in [
            (vec![17_i32.into()], "0000000017"),
            (vec![(-17_i32).into()], "-2147483631"),
            (vec![i32::MIN.into()], "-0000000000"),
            (vec![i64::MAX.into()], "9223372036854775807"),
            (vec!["Tenant-7".into(), 17_i64.into()], "Tenant-7 0000000000000000017"),
            (vec!["a/b\\c#d?e'f%g h\u{1}.é".into()], "a.2fb_5cc!23d:3fe!27f!25g!20h!01.2e~c3~a9"),
            (vec![Ticks(0).into()], "1601-01-01T00:00:00.0000000Z"),
            (vec![KeyValue::Guid([0xab; 16])], "abababab-abab-abab-abab-abababababab"),
            (vec!["".into(), "".into()], " "),
        ] {
            let kinds: Vec<KeyKind> = values.iter().map(KeyValue::kind).collect();
            assert_eq!((key_text(&values).as_str(), read_key(&kinds, expected)), (expected, Some(values)));
        }
        for (kind, text) in [
            (KeyKind::Int32, "17"),
            (KeyKind::Int32, "9999999999"),
            (KeyKind::Int32, "+000000017"),
            (KeyKind::Text, "a/b"),
            (KeyKind::Text, "~ff"),
            (KeyKind::Text, "!2f"),
            (KeyKind::Text, "a b"),
            (KeyKind::Binary, "~f"),
        ] {
            assert_eq!(read_key(&[kind], text), None, "{text}");
        }
    }

    fn value(kind: KeyKind) -> BoxedStrategy<KeyValue> {
        match kind {
            KeyKind::Int32 => any::<i32>().prop_map(KeyValue::Int32).boxed(),
            KeyKind::Int64 => any::<i64>().prop_map(KeyValue::Int64).boxed(),
            KeyKind::Guid => any::<[u8; 16]>().prop_map(KeyValue::Guid).boxed(),
            KeyKind::Binary => prop::collection::vec(any::<u8>(), 0..6).prop_map(KeyValue::Binary).boxed(),
            KeyKind::Text => "\\PC{0,4}|[ -~\u{0}]{0,4}".prop_map(KeyValue::Text).boxed(),
            KeyKind::DateTime => (0..=TICKS_MAX.0).prop_map(|ticks| KeyValue::DateTime(Ticks(ticks))).boxed(),
        }
    }

    proptest! {
        #[test]
        fn texts_are_ordered_as_keys_and_bounds_are(
            (kinds, one, other) in prop::collection::vec(prop::sample::select(&KeyKind::ALL[..]), 1..4)
                .prop_flat_map(|kinds| {
                    let key = || kinds.iter().map(|kind| value(*kind)).collect::<Vec<_>>();
                    (Just(kinds.clone()), key(), key())
                }),
            shared in 0_usize..3,
            columns in 0_usize..4,
        ) {
            // Keys that begin alike are the ones that matter.
            let other: Vec<KeyValue> = one.iter().take(shared).chain(other.iter().skip(shared)).cloned().collect();
            let key_type = KeyType::new(kinds.iter().copied()).expect("a type");
            let encoded = |values: &[KeyValue]| key_type.encode(values).expect("a key").as_bytes().to_vec();
            let (text, other_text) = (key_text(&one), key_text(&other));
            prop_assert_eq!(text.cmp(&other_text), encoded(&one).cmp(&encoded(&other)));
            prop_assert_eq!(read_key(&kinds, &text), Some(one.clone()));
            let allowed = |byte: u8| (b' '..0x7f).contains(&byte) && !b"/\\#?'%".contains(&byte);
            prop_assert!(text.bytes().all(allowed), "{}", text);
            let bound = &other[..columns.min(other.len())];
            let is_before = encoded(&one).as_slice() < key_type.bound(bound).expect("a bound").as_bytes();
            prop_assert_eq!(text < key_text(bound), is_before, "{:?} {:?}", one, bound);
        }
    }
}
