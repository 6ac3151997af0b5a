//! The stored form of an entity's own properties, and entities as they are read.
//!
//! ```text
//! entity   = u8 format (1), then each property in the order sent
//! property = bytes(name) u8 type bytes(value)
//! value    = String UTF-8 · Binary as is · Boolean u8 0 or 1
//!            Int32 4, Int64 8, Double 8 bytes little-endian
//!            Guid 16 bytes in text order · DateTime u64 ticks
//!            bytes(x) is a varint length and then x; types are the numbers of EdmType
//! ```
//!
//! PartitionKey and RowKey are in the row's key, Timestamp is the row's version. One property is found by
//! skipping the others, undecoded. What always holds: reading never panics. An iterator over an entity's
//! properties ends with an error at the first malformed one, so that the properties before it never pass for
//! all; pages of entities are checked before they are returned.

use crate::edm::{EdmType, EdmValue, EdmValueRef, TICKS_MAX};
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use partition::RowVersion;

/// Entity contents as sent: own properties in the order sent, without PartitionKey, RowKey, Timestamp.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Properties(pub Vec<(String, EdmValue)>);

/// The format byte that every stored entity starts with.
pub(crate) const FORMAT: u8 = 1;

/// Bytes that `value` takes when stored, without its length.
pub(crate) fn stored_value_len(value: &EdmValue) -> usize {
    match value {
        EdmValue::String(text) => text.len(),
        EdmValue::Binary(bytes) => bytes.len(),
        EdmValue::Boolean(_) => 1,
        EdmValue::Int32(_) => 4,
        EdmValue::Int64(_) | EdmValue::Double(_) | EdmValue::DateTime(_) => 8,
        EdmValue::Guid(_) => 16,
    }
}

/// Bytes that a property with a name and a value of these lengths takes when stored.
pub(crate) fn stored_property_len(name_len: usize, value_len: usize) -> usize {
    varint_len(name_len) + name_len + 1 + varint_len(value_len) + value_len
}

fn varint_len(value: usize) -> usize {
    (value.max(1).ilog2() / 7 + 1) as usize
}

/// Appends the stored form of one property.
pub(crate) fn put_property(out: &mut Vec<u8>, name: &str, value: &EdmValue) {
    out.put_bytes_field(name.as_bytes());
    out.put_u8_field(value.edm_type() as u8);
    match value {
        EdmValue::String(text) => out.put_bytes_field(text.as_bytes()),
        EdmValue::Binary(bytes) => out.put_bytes_field(bytes),
        EdmValue::Boolean(value) => out.put_bytes_field(&[u8::from(*value)]),
        EdmValue::Int32(value) => out.put_bytes_field(&value.to_le_bytes()),
        EdmValue::Int64(value) => out.put_bytes_field(&value.to_le_bytes()),
        EdmValue::Double(value) => out.put_bytes_field(&value.to_le_bytes()),
        EdmValue::Guid(bytes) => out.put_bytes_field(bytes),
        EdmValue::DateTime(at) => out.put_bytes_field(&at.0.to_le_bytes()),
    }
}

/// A property as stored: nothing is decoded yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawProperty<'a> {
    /// UTF-8.
    pub(crate) name: &'a [u8],
    /// Number of an [`EdmType`], if it is well-formed.
    pub(crate) type_code: u8,
    /// The stored value.
    pub(crate) value: &'a [u8],
    /// All of the property's bytes.
    pub(crate) encoded: &'a [u8],
}

impl<'a> RawProperty<'a> {
    /// The value, checked.
    pub(crate) fn decode(&self) -> Result<EdmValueRef<'a>, DecodeError> {
        decode_value(self.type_code, self.value)
    }

    /// The name, checked.
    pub(crate) fn name_text(&self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.name).map_err(|_| DecodeError("property name"))
    }
}

/// A stored value, checked.
pub(crate) fn decode_value(type_code: u8, value: &[u8]) -> Result<EdmValueRef<'_>, DecodeError> {
    fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], DecodeError> {
        value.try_into().map_err(|_| DecodeError("property value length"))
    }
    let edm_type = EdmType::from_code(type_code).ok_or(DecodeError("property type"))?;
    Ok(match edm_type {
        EdmType::String => {
            let text = simdutf8::basic::from_utf8(value).map_err(|_| DecodeError("string property"))?;
            EdmValueRef::String(text)
        }
        EdmType::Binary => EdmValueRef::Binary(value),
        EdmType::Boolean => match value {
            [0] => EdmValueRef::Boolean(false),
            [1] => EdmValueRef::Boolean(true),
            _ => return Err(DecodeError("boolean property")),
        },
        EdmType::Int32 => EdmValueRef::Int32(i32::from_le_bytes(fixed(value)?)),
        EdmType::Int64 => EdmValueRef::Int64(i64::from_le_bytes(fixed(value)?)),
        EdmType::Double => EdmValueRef::Double(f64::from_le_bytes(fixed(value)?)),
        EdmType::Guid => EdmValueRef::Guid(fixed(value)?),
        EdmType::DateTime => {
            let at = Ticks(u64::from_le_bytes(fixed(value)?));
            if at > TICKS_MAX {
                return Err(DecodeError("date-time property"));
            }
            EdmValueRef::DateTime(at)
        }
    })
}

/// Walks stored properties without decoding them.
#[derive(Clone, Debug)]
pub(crate) struct RawProperties<'a> {
    decoder: Decoder<'a>,
}

impl<'a> RawProperties<'a> {
    /// Over a stored entity.
    pub(crate) fn open(entity: &'a [u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(entity);
        match decoder.u8("entity format")? {
            FORMAT => Ok(RawProperties { decoder }),
            _ => Err(DecodeError("entity format")),
        }
    }

    /// The next property; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawProperty<'a>>, DecodeError> {
        if self.decoder.is_empty() {
            return Ok(None);
        }
        let before = self.decoder.rest();
        let name = self.decoder.bytes("property name")?;
        let type_code = self.decoder.u8("property type")?;
        let value = self.decoder.bytes("property value")?;
        let encoded = &before[..before.len() - self.decoder.rest().len()];
        Ok(Some(RawProperty { name, type_code, value, encoded }))
    }
}

/// Checks a stored entity from end to end.
pub(crate) fn check_entity(entity: &[u8]) -> Result<(), DecodeError> {
    let mut properties = RawProperties::open(entity)?;
    while let Some(property) = properties.next()? {
        property.name_text()?;
        property.decode()?;
    }
    Ok(())
}

/// A stored entity, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    partition_key: String,
    row_key: String,
    version: RowVersion,
    value: Bytes,
}

impl Entity {
    /// From a stored row's parts.
    pub(crate) fn new(partition_key: &str, row_key: &str, version: RowVersion, value: Bytes) -> Entity {
        Entity { partition_key: partition_key.to_owned(), row_key: row_key.to_owned(), version, value }
    }

    /// The entity without owning it.
    pub fn as_ref(&self) -> EntityRef<'_> {
        EntityRef {
            partition_key: &self.partition_key,
            row_key: &self.row_key,
            version: self.version,
            value: &self.value,
        }
    }
}

/// A stored entity, borrowed from where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityRef<'a> {
    pub(crate) partition_key: &'a str,
    pub(crate) row_key: &'a str,
    pub(crate) version: RowVersion,
    /// Checked as its properties are walked.
    pub(crate) value: &'a [u8],
}

impl<'a> EntityRef<'a> {
    /// The PartitionKey.
    pub fn partition_key(&self) -> &'a str {
        self.partition_key
    }

    /// The RowKey.
    pub fn row_key(&self) -> &'a str {
        self.row_key
    }

    /// The version of the last write: the Timestamp and the ETag.
    pub fn version(&self) -> RowVersion {
        self.version
    }

    /// Bytes of the own properties as they are stored.
    pub fn stored_len(&self) -> usize {
        self.value.len()
    }

    /// Own properties in stored order. The iterator ends with an error at the first malformed one.
    pub fn properties(&self) -> PropertyIterator<'a> {
        PropertyIterator { raw: Some(RawProperties::open(self.value)) }
    }

    /// The own property `name`, found by skipping the others.
    pub fn property(&self, name: &str) -> Result<Option<EdmValueRef<'a>>, DecodeError> {
        let mut raw = RawProperties::open(self.value)?;
        while let Some(property) = raw.next()? {
            if property.name == name.as_bytes() {
                return property.decode().map(Some);
            }
        }
        Ok(None)
    }
}

/// Own properties of a stored entity, checked and decoded one by one.
#[derive(Clone, Debug)]
pub struct PropertyIterator<'a> {
    /// `None` after the end, or an error.
    raw: Option<Result<RawProperties<'a>, DecodeError>>,
}

impl<'a> Iterator for PropertyIterator<'a> {
    type Item = Result<(&'a str, EdmValueRef<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let raw = match self.raw.as_mut()? {
            Ok(raw) => raw,
            Err(error) => {
                let error = error.clone();
                self.raw = None;
                return Some(Err(error));
            }
        };
        let read = |property: RawProperty<'a>| Ok((property.name_text()?, property.decode()?));
        let next = raw.next().and_then(|property| property.map(read).transpose()).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.raw = None;
        }
        next
    }
}

#[cfg(test)]
pub(crate) mod tests;
