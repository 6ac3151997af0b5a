//! The bytes of keys and values in the metadata store.
//!
//! ```text
//! <stamp, 32 hex>/life                        which generation is in force
//! <generation, 32 hex>/ages                   how old what was dropped is: collection/ages.rs
//! <generation, 32 hex>/own/<range>            and the other keys of `stamp`'s transaction.rs
//!
//! documents: document/codec.rs of `stamp`; every other value:
//!  1  format, 1
//! 16  stamp
//!     own:        1 byte 1 or 0, 16 incarnation of the owner if 1, 8 epoch
//!     dropped:    8 length
//!     present:    nothing
//!     collection: 1 byte 1 or 0
//!     life:       16 generation, 8 count of restores
//!  8  CRC-64/NVME of the key, and of all before
//! ```
//!
//! Integers are little-endian. What always holds: the same value of a key has the same bytes; a value under
//! another key, of another stamp, of a newer format, cut or damaged is an error that names the key.

use base::checksum::crc64;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stamp::{
    ExtentName, Generation, Incarnation, Key, OwnEntry, OwnerEpoch, RangeId, StampId, StoredError,
    UniqueName, Value, decode_document, encode_document,
};
use std::sync::Arc;

/// The newest format that is read, and the one that is written.
pub const VALUE_FORMAT: u8 = 1;

const CHECKSUM_SIZE: usize = 8;
const STAMP_SIZE: usize = 16;
const SIZE_MIN: usize = 1 + STAMP_SIZE + CHECKSUM_SIZE;

/// Which life of the metadata store is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeEntry {
    /// The prefix of all other keys.
    pub generation: Generation,
    /// How many restores came before.
    pub restores: u64,
}

/// The kinds of keys that are read all at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Own,
    Document,
    Process,
    Beat,
    CutOff,
    Dropped,
}

/// The key of a stamp's life.
pub(crate) fn life_key(stamp: StampId) -> String {
    format!("{stamp}/life")
}

/// The key of the clock by which dropped extents grow old: see `collection/ages.rs`.
pub(crate) fn ages_key(generation: Generation) -> String {
    format!("{generation}/ages")
}

/// A key as text.
pub(crate) fn key_text(generation: Generation, key: Key) -> String {
    format!("{generation}/{key}")
}

/// What all keys of a kind begin with.
pub(crate) fn kind_prefix(generation: Generation, kind: KeyKind) -> String {
    let folder = match kind {
        KeyKind::Own => "own",
        KeyKind::Document => "document",
        KeyKind::Process => "process",
        KeyKind::Beat => "beat",
        KeyKind::CutOff => "cut-off",
        KeyKind::Dropped => "gc",
    };
    format!("{generation}/{folder}/")
}

/// Reads a key; none if it is not of this form.
pub fn parse_key(text: &str) -> Option<Key> {
    let (generation, rest) = text.split_once('/')?;
    parse_wide(generation)?;
    if rest == "collection" {
        return Some(Key::Collection);
    }
    let (folder, name) = rest.split_once('/')?;
    match folder {
        "own" => UniqueName::parse(name).map(|name| Key::Own(RangeId(name))),
        "document" => UniqueName::parse(name).map(|name| Key::Document(RangeId(name))),
        "gc" => UniqueName::parse(name).map(|name| Key::Dropped(ExtentName(name))),
        "process" => parse_wide(name).map(|name| Key::Process(Incarnation(name))),
        "beat" => parse_wide(name).map(|name| Key::Beat(Incarnation(name))),
        "cut-off" => parse_wide(name).map(|name| Key::CutOff(Incarnation(name))),
        _ => None,
    }
}

fn parse_wide(text: &str) -> Option<u128> {
    let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// The bytes of the value of a key.
pub fn encode_value(key: &str, value: &Value, stamp: StampId) -> Bytes {
    match value {
        Value::Document(document) => encode_document(document, stamp).into(),
        Value::Own(own) => seal_value(key, stamp, |out| {
            out.put_u8_field(u8::from(own.owner.is_some()));
            if let Some(owner) = own.owner {
                out.put_raw(&owner.0.to_le_bytes());
            }
            out.put_u64_field(own.epoch.0);
        }),
        Value::Dropped { length } => seal_value(key, stamp, |out| out.put_u64_field(*length)),
        Value::Present => seal_value(key, stamp, |_| ()),
        Value::Collection { is_on } => seal_value(key, stamp, |out| out.put_u8_field(u8::from(*is_on))),
    }
}

/// The bytes of a stamp's life.
pub(crate) fn encode_life(entry: LifeEntry, stamp: StampId) -> Bytes {
    seal_value(&life_key(stamp), stamp, |out| {
        out.put_raw(&entry.generation.0.to_le_bytes());
        out.put_u64_field(entry.restores);
    })
}

fn seal_value(key: &str, stamp: StampId, put: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = vec![VALUE_FORMAT];
    out.put_raw(&stamp.0.to_le_bytes());
    put(&mut out);
    let checksum = crc64(&[key.as_bytes(), &out]);
    out.put_u64_field(checksum);
    out.into()
}

/// Reads the value of a key.
///
/// # Errors
///
/// It names the key if the value is not one of `stamp`, of this format, whole.
pub fn decode_value(text: &str, key: Key, bytes: &[u8], stamp: StampId) -> Result<Value, StoredError> {
    if let Key::Document(range) = key {
        return decode_document(bytes, stamp, range).map(|document| Value::Document(Arc::new(document)));
    }
    let fields = open_value(text, bytes, stamp)?;
    let decoded = decode_fields(key, fields);
    decoded.map_err(|error| StoredError::Malformed { what: format!("key {text}"), why: error.to_string() })
}

/// Reads the life of a stamp.
pub(crate) fn decode_life(bytes: &[u8], stamp: StampId) -> Result<LifeEntry, StoredError> {
    let text = life_key(stamp);
    let fields = open_value(&text, bytes, stamp)?;
    let decode = || -> Result<LifeEntry, DecodeError> {
        let mut decoder = Decoder::new(fields);
        let generation = Generation(wide(&mut decoder, "generation")?);
        let restores = decoder.u64("count of restores")?;
        decoder.finish("end of the value")?;
        Ok(LifeEntry { generation, restores })
    };
    decode().map_err(|error| StoredError::Malformed { what: format!("key {text}"), why: error.to_string() })
}

fn open_value<'a>(text: &str, bytes: &'a [u8], stamp: StampId) -> Result<&'a [u8], StoredError> {
    let what = format!("key {text}");
    let whole = bytes.split_last_chunk::<CHECKSUM_SIZE>().filter(|_| bytes.len() >= SIZE_MIN);
    let Some((checked, checksum)) = whole else {
        return Err(StoredError::Cut { what, found: bytes.len() as u64, expected: SIZE_MIN as u64 });
    };
    if crc64(&[text.as_bytes(), checked]).to_le_bytes() != *checksum {
        return Err(StoredError::WrongChecksum { what, of: "content" });
    }
    if checked[0] > VALUE_FORMAT {
        let (found, newest) = (u16::from(checked[0]), u16::from(VALUE_FORMAT));
        return Err(StoredError::NewerFormat { what, found, newest });
    }
    let (found, fields) = checked[1..].split_at(STAMP_SIZE);
    if found != stamp.0.to_le_bytes() {
        let found = found.try_into().map(u128::from_le_bytes).unwrap_or_default();
        let (found, expected) = (StampId(found).to_string(), stamp.to_string());
        return Err(StoredError::OtherStamp { what, found, expected });
    }
    Ok(fields)
}

fn decode_fields(key: Key, fields: &[u8]) -> Result<Value, DecodeError> {
    let mut decoder = Decoder::new(fields);
    let value = match key {
        Key::Own(_) => {
            let has_owner = is_set(&mut decoder, "owner")?;
            let owner = has_owner.then(|| wide(&mut decoder, "owner")).transpose()?.map(Incarnation);
            Value::Own(OwnEntry { owner, epoch: OwnerEpoch(decoder.u64("epoch")?) })
        }
        Key::Dropped(_) => Value::Dropped { length: decoder.u64("length")? },
        Key::Collection => Value::Collection { is_on: is_set(&mut decoder, "collection")? },
        Key::Process(_) | Key::Beat(_) | Key::CutOff(_) => Value::Present,
        Key::Document(_) => return Err(DecodeError("document")),
    };
    decoder.finish("end of the value")?;
    Ok(value)
}

fn is_set(decoder: &mut Decoder<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match decoder.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError(field)),
    }
}

fn wide(decoder: &mut Decoder<'_>, field: &'static str) -> Result<u128, DecodeError> {
    let bytes = decoder.take(STAMP_SIZE, field)?;
    bytes.try_into().map(u128::from_le_bytes).map_err(|_| DecodeError(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: StampId = StampId(7);

    fn cases() -> Vec<(Key, Value)> {
        let by = Incarnation(3);
        let own = |owner| Value::Own(OwnEntry { owner, epoch: OwnerEpoch(9) });
        vec![
            (Key::Own(RangeId::new(by, 1)), own(Some(by))),
            (Key::Own(RangeId::new(by, 1)), own(None)),
            (Key::Dropped(ExtentName::new(by, 2)), Value::Dropped { length: 77 }),
            (Key::Process(by), Value::Present),
            (Key::Beat(by), Value::Present),
            (Key::CutOff(by), Value::Present),
            (Key::Collection, Value::Collection { is_on: true }),
        ]
    }

    #[test]
    fn keys_and_values_come_back() {
        for (key, value) in cases() {
            let text = key_text(Generation(5), key);
            assert_eq!(parse_key(&text), Some(key));
            let bytes = encode_value(&text, &value, STAMP);
            assert_eq!(decode_value(&text, key, &bytes, STAMP), Ok(value));
        }
        let entry = LifeEntry { generation: Generation(8), restores: 2 };
        assert_eq!(decode_life(&encode_life(entry, STAMP), STAMP), Ok(entry));
    }

    #[test]
    fn bad_values_are_errors_that_name_the_key() {
        for (key, value) in cases() {
            let text = key_text(Generation(5), key);
            let bytes = encode_value(&text, &value, STAMP);
            let fails = |bytes: &[u8], stamp| {
                let error = decode_value(&text, key, bytes, stamp).unwrap_err();
                assert!(error.to_string().starts_with(&format!("key {text} ")), "{error}");
                error
            };
            assert!(matches!(fails(&bytes, StampId(8)), StoredError::OtherStamp { .. }));
            assert!(matches!(fails(&bytes[..10], STAMP), StoredError::Cut { .. }));
            assert!(matches!(fails(&[], STAMP), StoredError::Cut { .. }));
            let mut flipped = bytes.to_vec();
            flipped[17 % (bytes.len() - 8)] ^= 1;
            assert!(matches!(fails(&flipped, STAMP), StoredError::WrongChecksum { .. }));
            let mut newer = bytes[..bytes.len() - 8].to_vec();
            newer[0] = 2;
            let checksum = crc64(&[text.as_bytes(), &newer]);
            newer.put_u64_field(checksum);
            assert!(matches!(fails(&newer, STAMP), StoredError::NewerFormat { .. }));
        }
    }
}
