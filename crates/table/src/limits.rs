//! The Table service's published limits, each once, with its unit, and the size that the entity limit counts.
//!
//! The size of an entity is 4 + 2 × (units of PartitionKey and RowKey) + for each own property 8 + 2 × units
//! of its name + its value: String 4 + 2 × units, Binary 4 + bytes, Boolean 1, Int32 4, Int64, Double and
//! DateTime 8, Guid 16. A unit is a UTF-16 code unit.

use crate::edm::{EdmType, utf16_len};

/// Own properties of an entity: 255 without PartitionKey, RowKey and Timestamp.
pub const OWN_PROPERTIES_MAX: usize = 252;
/// Size of an entity, in bytes, as computed above.
pub const ENTITY_SIZE_BYTES_MAX: usize = 1 << 20;
/// Size of one value, in bytes; strings count as UTF-16.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// Length of a property name, in UTF-16 units.
pub const PROPERTY_NAME_UNITS_MAX: usize = 255;
/// Length of a PartitionKey or a RowKey, in UTF-16 units.
pub const KEY_UNITS_MAX: usize = 1024;
/// Shortest table name, in characters.
pub const TABLE_NAME_LEN_MIN: usize = 3;
/// Longest table name, in characters.
pub const TABLE_NAME_LEN_MAX: usize = 63;
/// Operations in an entity group.
pub const GROUP_OPERATIONS_MAX: usize = 100;
/// Entities or tables in one page of results.
pub const PAGE_ROWS_MAX: usize = 1000;

/// The part of an entity's size that is not own properties.
pub(crate) fn entity_base_size(key_units: usize) -> usize {
    4 + 2 * key_units
}

/// What a value's size depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SizedValue<'a> {
    /// Text as UTF-8.
    Text(&'a [u8]),
    /// So many bytes.
    Bytes(usize),
    /// A type that always takes so many bytes.
    Fixed(usize),
}

impl<'a> SizedValue<'a> {
    /// From a stored property's type and value.
    pub(crate) fn stored(type_code: u8, value: &'a [u8]) -> Self {
        match EdmType::from_code(type_code) {
            Some(EdmType::String) => SizedValue::Text(value),
            Some(EdmType::Binary) => SizedValue::Bytes(value.len()),
            _ => SizedValue::Fixed(value.len()),
        }
    }

    /// What the limit of one value counts.
    pub(crate) fn value_bytes(self) -> usize {
        match self {
            SizedValue::Text(text) => 2 * utf16_len(text),
            SizedValue::Bytes(len) | SizedValue::Fixed(len) => len,
        }
    }

    /// What the entity's size counts for the value, given its [`Self::value_bytes`].
    pub(crate) fn counted(self, value_bytes: usize) -> usize {
        match self {
            SizedValue::Text(_) | SizedValue::Bytes(_) => 4 + value_bytes,
            SizedValue::Fixed(len) => len,
        }
    }
}

/// What the entity's size counts for a property's name.
pub(crate) fn property_name_size(name_units: usize) -> usize {
    8 + 2 * name_units
}
