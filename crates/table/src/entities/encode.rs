//! Encodes an entity's properties as sent. One pass checks every limit and measures the result, so that it is
//! written into memory of exactly its size.

use crate::edm::{EdmValue, TICKS_MAX};
use crate::entities::entity::{FORMAT, Properties, put_property, stored_property_len, stored_value_len};
use crate::error::TableError;
use crate::limits::{
    ENTITY_SIZE_BYTES_MAX, OWN_PROPERTIES_MAX, SizedValue, VALUE_BYTES_MAX, entity_base_size,
    property_name_size,
};
use crate::name::check_property_name;
use bytes::Bytes;

/// Up to this many properties, the check for duplicate names compares each with each.
const PAIRWISE_MAX: usize = 16;

/// Checks `properties` of an entity whose keys have `key_units` UTF-16 units, and returns their stored form.
pub(crate) fn encode_entity(properties: &Properties, key_units: usize) -> Result<Bytes, TableError> {
    if properties.0.len() > OWN_PROPERTIES_MAX {
        return Err(TableError::TooManyProperties);
    }
    let mut stored_len = 1;
    let mut size = entity_base_size(key_units);
    let mut too_large = None;
    for (name, value) in &properties.0 {
        let name_units = check_property_name(name)?;
        let sized = sized_value(value);
        let value_bytes = sized.value_bytes();
        if value_bytes > VALUE_BYTES_MAX {
            too_large = too_large.or(Some(name));
        }
        if matches!(value, EdmValue::DateTime(at) if *at > TICKS_MAX) {
            return Err(TableError::PropertyValueOutOfRange(name.clone()));
        }
        size += property_name_size(name_units) + sized.counted(value_bytes);
        stored_len += stored_property_len(name.len(), stored_value_len(value));
    }
    if size > ENTITY_SIZE_BYTES_MAX {
        return Err(TableError::EntityTooLarge);
    }
    if let Some(name) = too_large {
        return Err(TableError::PropertyValueTooLarge(name.clone()));
    }
    check_names_differ(&properties.0)?;
    let mut out = Vec::with_capacity(stored_len);
    out.push(FORMAT);
    for (name, value) in &properties.0 {
        put_property(&mut out, name, value);
    }
    debug_assert_eq!(out.len(), stored_len);
    Ok(out.into())
}

fn sized_value(value: &EdmValue) -> SizedValue<'_> {
    match value {
        EdmValue::String(text) => SizedValue::Text(text.as_bytes()),
        EdmValue::Binary(bytes) => SizedValue::Bytes(bytes.len()),
        _ => SizedValue::Fixed(stored_value_len(value)),
    }
}

fn check_names_differ(properties: &[(String, EdmValue)]) -> Result<(), TableError> {
    let twice = if properties.len() <= PAIRWISE_MAX {
        (properties.iter().enumerate())
            .map(|(index, (name, _))| (name, &properties[..index]))
            .find(|(name, before)| before.iter().any(|(other, _)| other == *name))
            .map(|(name, _)| name.as_str())
    } else {
        let mut names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    };
    match twice {
        Some(name) => Err(TableError::DuplicateProperties(name.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::entity::check_entity;
    use base::Ticks;

    fn numbered(count: usize) -> Properties {
        Properties((0..count).map(|index| (format!("P{index}"), EdmValue::Int32(1))).collect())
    }

    fn one(value: EdmValue) -> Properties {
        Properties(vec![("Value".to_owned(), value)])
    }

    #[test]
    fn property_count() {
        assert!(check_entity(&encode_entity(&numbered(252), 0).unwrap()).is_ok());
        assert!(matches!(encode_entity(&numbered(253), 0), Err(TableError::TooManyProperties)));
    }

    #[test]
    fn value_size_counts_utf16() {
        for fits in [
            EdmValue::String("a".repeat(32_768)),
            EdmValue::String("啊".repeat(32_768)),
            EdmValue::String("\u{1f600}".repeat(16_384)),
            EdmValue::Binary(vec![0; 65_536]),
        ] {
            assert!(encode_entity(&one(fits), 0).is_ok());
        }
        for too_large in [
            EdmValue::String("a".repeat(32_769)),
            EdmValue::String("\u{1f600}".repeat(16_385)),
            EdmValue::Binary(vec![0; 65_537]),
        ] {
            let error = encode_entity(&one(too_large), 0);
            assert!(matches!(error, Err(TableError::PropertyValueTooLarge(name)) if name == "Value"));
        }
    }

    #[test]
    fn entity_size_is_one_mebibyte_exactly() {
        // 4 + 2 × keys, and 15 properties of 8 + 2 × 1 + 4 + 65,536 bytes and one that fills up.
        let entity = |last: usize| {
            let mut properties = Properties::default();
            for name in 'a'..'p' {
                let value = EdmValue::Binary(vec![0; 65_536]);
                properties.0.push((name.to_string(), value));
            }
            properties.0.push(("z".to_owned(), EdmValue::Binary(vec![0; last])));
            properties
        };
        let rest = (1 << 20) - 4 - 2 * 10 - 15 * (8 + 2 + 4 + 65_536) - (8 + 2 + 4);
        assert!(encode_entity(&entity(rest), 10).is_ok());
        assert!(matches!(encode_entity(&entity(rest + 1), 10), Err(TableError::EntityTooLarge)));
        assert!(matches!(encode_entity(&entity(rest), 11), Err(TableError::EntityTooLarge)));
    }

    #[test]
    fn duplicate_names_are_found_among_few_and_many() {
        for count in [2, 16, 17, 252] {
            let mut properties = numbered(count);
            assert!(encode_entity(&properties, 0).is_ok());
            properties.0[count - 1].0 = "P0".to_owned();
            let error = encode_entity(&properties, 0);
            assert!(matches!(error, Err(TableError::DuplicateProperties(name)) if name == "P0"), "{count}");
        }
        let cases =
            Properties(vec![("a".to_owned(), EdmValue::Int32(1)), ("A".to_owned(), EdmValue::Int32(1))]);
        assert!(encode_entity(&cases, 0).is_ok());
    }

    #[test]
    fn dates_end_in_9999() {
        assert!(encode_entity(&one(EdmValue::DateTime(TICKS_MAX)), 0).is_ok());
        let late = one(EdmValue::DateTime(Ticks(TICKS_MAX.0 + 1)));
        assert!(matches!(encode_entity(&late, 0), Err(TableError::PropertyValueOutOfRange(_))));
    }
}
