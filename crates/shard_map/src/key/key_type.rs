//! The type of a map's keys: the kinds of its columns, and what values and bytes have to do with each other.
//!
//! ```
//! use shard_map::{KeyKind, KeyType};
//!
//! let tenants = KeyType::new([KeyKind::Text, KeyKind::Int32])?;
//! let key = tenants.encode(&["eu".into(), 17.into()])?;
//! assert_eq!(key.as_bytes(), b"eu\x00\x01\x80\x00\x00\x11");
//! assert!(tenants.bound(&["eu".into()])?.as_bytes() < key.as_bytes());
//! # Ok::<(), shard_map::KeyError>(())
//! ```
//!
//! What always holds: keys of one type are ordered as their bytes are; bytes that [`KeyType::decode`] takes
//! are those of one key.

use super::columns::{KeyBytes, fixed_size, push_column, take_bytes, take_column};
use super::encoded::{Bound, EncodedKey};
use super::error::KeyError;
use super::hex::to_hex;
use super::kind::KeyKind;
use super::value::KeyValue;
use crate::limits::{COLUMNS_MAX, KEY_BYTES_MAX};
use base::date_time::TICKS_MAX;
use smallvec::SmallVec;
use std::fmt;

/// A bound may be the next one after a key of [`KEY_BYTES_MAX`]: a byte 0 more, escaped.
const BOUND_BYTES_MAX: usize = KEY_BYTES_MAX + 2;

/// The kinds of a key's columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyType {
    kinds: SmallVec<[KeyKind; COLUMNS_MAX]>,
}

impl KeyType {
    /// A type of these columns.
    pub fn new(kinds: impl IntoIterator<Item = KeyKind>) -> Result<Self, KeyError> {
        let kinds: SmallVec<[KeyKind; COLUMNS_MAX]> = kinds.into_iter().collect();
        match kinds.len() {
            1..=COLUMNS_MAX => Ok(KeyType { kinds }),
            count => Err(KeyError::Columns(count)),
        }
    }

    /// The kinds of its columns, from 1 to [`COLUMNS_MAX`].
    pub fn kinds(&self) -> &[KeyKind] {
        &self.kinds
    }

    /// The key of these values, one for each column.
    pub fn encode(&self, values: &[KeyValue]) -> Result<EncodedKey, KeyError> {
        if values.len() != self.kinds.len() {
            return Err(KeyError::WrongCount { expected: self.to_string(), found: values.len() });
        }
        let bytes = self.bytes_of(values)?;
        if bytes.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong(bytes.len()));
        }
        Ok(EncodedKey(bytes))
    }

    /// The bound before all keys that begin with these values, of which there may be fewer than columns, or
    /// none.
    pub fn bound(&self, values: &[KeyValue]) -> Result<Bound, KeyError> {
        if values.len() > self.kinds.len() {
            return Err(KeyError::WrongCount { expected: self.to_string(), found: values.len() });
        }
        self.check_kinds(values)?;
        // A column with the least value at the end cuts where the columns before it do.
        let rest = values.iter().rev().skip_while(|value| value.is_least()).count();
        let bytes = self.bytes_of(&values[..rest])?;
        if bytes.len() > BOUND_BYTES_MAX {
            return Err(KeyError::TooLong(bytes.len()));
        }
        Ok(Bound(bytes))
    }

    /// The bound after all keys that begin with these values; none if no key comes after them.
    pub fn bound_after(&self, values: &[KeyValue]) -> Result<Option<Bound>, KeyError> {
        self.check_kinds(values)?;
        let mut begin = values.to_vec();
        while let Some(last) = begin.pop() {
            if let Some(next) = last.next() {
                begin.push(next);
                return self.bound(&begin).map(Some);
            }
        }
        Ok(None)
    }

    /// The values of a key.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<KeyValue>, KeyError> {
        let values = self.columns_of(bytes).filter(|values| values.len() == self.kinds.len());
        // An empty text at the end takes no byte.
        let values = values.or_else(|| {
            let mut values = self.columns_of(bytes)?;
            let left = self.kinds.get(values.len()..)?;
            match left {
                [KeyKind::Text] => values.push(KeyValue::Text(String::new())),
                [KeyKind::Binary] => values.push(KeyValue::Binary(Vec::new())),
                _ => return None,
            }
            Some(values)
        });
        values.filter(|_| bytes.len() <= KEY_BYTES_MAX).ok_or_else(|| self.unreadable(bytes))
    }

    /// The values of a bound, without least values at the end.
    pub fn decode_bound(&self, bytes: &[u8]) -> Result<Vec<KeyValue>, KeyError> {
        let values = self.columns_of(bytes).filter(|values| !values.last().is_some_and(KeyValue::is_least));
        values.filter(|_| bytes.len() <= BOUND_BYTES_MAX).ok_or_else(|| self.unreadable(bytes))
    }

    /// A key out of its stored bytes.
    pub fn stored_key(&self, bytes: &[u8]) -> Result<EncodedKey, KeyError> {
        self.decode(bytes).map(|_| EncodedKey(bytes.into()))
    }

    /// A bound out of its stored bytes.
    pub fn stored_bound(&self, bytes: &[u8]) -> Result<Bound, KeyError> {
        self.decode_bound(bytes).map(|_| Bound(bytes.into()))
    }

    /// What the first `columns` columns of a key are as a key of their own: what of it is hashed.
    pub(crate) fn leading<'a>(&self, key: &'a EncodedKey, columns: usize) -> LeadingBytes<'a> {
        if columns >= self.kinds.len() {
            return LeadingBytes::Borrowed(&key.0);
        }
        let mut rest = key.as_bytes();
        for kind in &self.kinds[..columns - 1] {
            match fixed_size(*kind) {
                Some(size) => rest = rest.get(size..).unwrap_or_default(),
                None => drop(take_bytes(false, &mut rest)),
            }
        }
        let last_at = key.0.len() - rest.len();
        match fixed_size(self.kinds[columns - 1]) {
            Some(size) => LeadingBytes::Borrowed(key.0.get(..last_at + size).unwrap_or(&key.0)),
            None => {
                let mut bytes = KeyBytes::from_slice(&key.0[..last_at]);
                bytes.extend_from_slice(&take_bytes(false, &mut rest).unwrap_or_default());
                LeadingBytes::Owned(bytes)
            }
        }
    }

    fn check_kinds(&self, values: &[KeyValue]) -> Result<(), KeyError> {
        for (index, (kind, value)) in self.kinds.iter().zip(values).enumerate() {
            let column = index + 1;
            if value.kind() != *kind {
                let (expected, found, value) = (*kind, value.kind(), value.to_string());
                return Err(KeyError::WrongKind { column, expected, found, value });
            }
            if matches!(value, KeyValue::DateTime(at) if *at > TICKS_MAX) {
                return Err(KeyError::DateTimeTooLate(column));
            }
        }
        Ok(())
    }

    fn bytes_of(&self, values: &[KeyValue]) -> Result<KeyBytes, KeyError> {
        self.check_kinds(values)?;
        let mut bytes = KeyBytes::new();
        for (index, value) in values.iter().enumerate() {
            push_column(value, index + 1 == self.kinds.len(), &mut bytes);
        }
        Ok(bytes)
    }

    /// The columns that the bytes have, and nothing behind them.
    fn columns_of(&self, mut bytes: &[u8]) -> Option<Vec<KeyValue>> {
        let mut values = Vec::new();
        for (index, kind) in self.kinds.iter().enumerate() {
            if bytes.is_empty() {
                break;
            }
            values.push(take_column(*kind, index + 1 == self.kinds.len(), &mut bytes)?);
        }
        bytes.is_empty().then_some(values)
    }

    fn unreadable(&self, bytes: &[u8]) -> KeyError {
        KeyError::Unreadable { expected: self.to_string(), bytes: to_hex(bytes) }
    }
}

/// Bytes of a key's first columns.
pub(crate) enum LeadingBytes<'a> {
    Borrowed(&'a [u8]),
    Owned(KeyBytes),
}

impl std::ops::Deref for LeadingBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            LeadingBytes::Borrowed(bytes) => bytes,
            LeadingBytes::Owned(bytes) => bytes,
        }
    }
}

/// `int64`, or `(text, int64)`.
impl fmt::Display for KeyType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kinds.as_slice() {
            [one] => write!(out, "{one}"),
            many => {
                let names: Vec<&str> = many.iter().map(|kind| kind.name()).collect();
                write!(out, "({})", names.join(", "))
            }
        }
    }
}
