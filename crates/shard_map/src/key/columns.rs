//! The bytes of one column in an encoded key.
//!
//! ```text
//! int32, int64   4 or 8 bytes, big-endian, with the sign bit flipped
//! guid           its 16 bytes, in the order of its text
//! date-time      8 bytes, big-endian: units of 100 ns since 1601-01-01T00:00:00Z
//! text, binary   as the last column: the bytes (of UTF-8), to the end of the key
//!                before the last: the bytes, each 00 as 00 FF, and then 00 01
//! ```
//!
//! What always holds: of two values of one kind the lesser has the lesser bytes, whatever follows; a column
//! that is not the last shows where it ends. `00 01` is less than `00 FF` and than any byte but `00`, so a
//! text comes before all that it begins.

use super::kind::KeyKind;
use super::value::KeyValue;
use base::Ticks;
use base::date_time::TICKS_MAX;
use smallvec::SmallVec;

/// Bytes of an encoded key. Most keys fit without an allocation.
pub(crate) type KeyBytes = SmallVec<[u8; 32]>;

/// A byte 0 inside of a column that is not the last.
const ESCAPED_ZERO: [u8; 2] = [0, 0xFF];
/// The end of such a column.
const END: [u8; 2] = [0, 1];

/// Appends a column.
pub(crate) fn push_column(value: &KeyValue, is_last: bool, out: &mut KeyBytes) {
    match value {
        KeyValue::Int32(value) => out.extend_from_slice(&(value ^ i32::MIN).to_be_bytes()),
        KeyValue::Int64(value) => out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes()),
        KeyValue::Guid(guid) => out.extend_from_slice(guid),
        KeyValue::DateTime(at) => out.extend_from_slice(&at.0.to_be_bytes()),
        KeyValue::Binary(bytes) => push_bytes(bytes, is_last, out),
        KeyValue::Text(text) => push_bytes(text.as_bytes(), is_last, out),
    }
}

fn push_bytes(bytes: &[u8], is_last: bool, out: &mut KeyBytes) {
    if is_last {
        out.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        match byte {
            0 => out.extend_from_slice(&ESCAPED_ZERO),
            other => out.push(*other),
        }
    }
    out.extend_from_slice(&END);
}

/// Takes a column from the start of `rest`; none if the bytes are no such column.
pub(crate) fn take_column(kind: KeyKind, is_last: bool, rest: &mut &[u8]) -> Option<KeyValue> {
    Some(match kind {
        KeyKind::Int32 => KeyValue::Int32(i32::from_be_bytes(take(rest)?) ^ i32::MIN),
        KeyKind::Int64 => KeyValue::Int64(i64::from_be_bytes(take(rest)?) ^ i64::MIN),
        KeyKind::Guid => KeyValue::Guid(take(rest)?),
        KeyKind::DateTime => {
            let at = Ticks(u64::from_be_bytes(take(rest)?));
            KeyValue::DateTime(Some(at).filter(|at| *at <= TICKS_MAX)?)
        }
        KeyKind::Binary => KeyValue::Binary(take_bytes(is_last, rest)?.to_vec()),
        KeyKind::Text => KeyValue::Text(String::from_utf8(take_bytes(is_last, rest)?.to_vec()).ok()?),
    })
}

fn take<const SIZE: usize>(rest: &mut &[u8]) -> Option<[u8; SIZE]> {
    let (taken, behind) = rest.split_first_chunk::<SIZE>()?;
    *rest = behind;
    Some(*taken)
}

/// The bytes of a text or binary column.
pub(crate) fn take_bytes(is_last: bool, rest: &mut &[u8]) -> Option<KeyBytes> {
    if is_last {
        return Some(std::mem::take(rest).into());
    }
    let mut bytes = KeyBytes::new();
    loop {
        match **rest {
            [0, 0xFF, ..] => {
                bytes.push(0);
                *rest = &rest[ESCAPED_ZERO.len()..];
            }
            [0, 1, ..] => {
                *rest = &rest[END.len()..];
                return Some(bytes);
            }
            [0, ..] | [] => return None,
            [byte, ..] => {
                bytes.push(byte);
                *rest = &rest[1..];
            }
        }
    }
}

/// Passes over a column of a kind whose columns all have the same size; none for the others.
pub(crate) fn fixed_size(kind: KeyKind) -> Option<usize> {
    match kind {
        KeyKind::Int32 => Some(4),
        KeyKind::Int64 | KeyKind::DateTime => Some(8),
        KeyKind::Guid => Some(16),
        KeyKind::Binary | KeyKind::Text => None,
    }
}
