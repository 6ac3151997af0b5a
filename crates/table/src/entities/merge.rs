//! Merging stored entities: properties that were sent replace those of the same name and are added otherwise.
//!
//! Works on the stored bytes; no value is decoded. What always holds: present properties keep their order,
//! new ones follow in the order sent, and the result is within the limits of an entity.

use crate::edm::utf16_len;
use crate::entities::entity::{FORMAT, RawProperties, RawProperty};
use crate::error::TableError;
use crate::limits::{
    ENTITY_SIZE_BYTES_MAX, OWN_PROPERTIES_MAX, SizedValue, entity_base_size, property_name_size,
};
use base::codec::DecodeError;
use bytes::Bytes;

/// The stored entity `present` with the properties of the stored entity `sent`. The keys have `key_units`
/// UTF-16 units.
pub(crate) fn merge_entities(present: &[u8], sent: &[u8], key_units: usize) -> Result<Bytes, TableError> {
    let sent = collect(sent)?;
    let mut by_name: Vec<usize> = (0..sent.len()).collect();
    by_name.sort_unstable_by_key(|&index| sent[index].name);
    let mut placed = vec![false; sent.len()];

    let sent_len: usize = sent.iter().map(|property| property.encoded.len()).sum();
    let mut merged = MergedEntity {
        out: Vec::with_capacity(present.len() + sent_len),
        count: 0,
        size: entity_base_size(key_units),
    };
    merged.out.push(FORMAT);
    let mut properties = RawProperties::open(present)?;
    while let Some(property) = properties.next()? {
        let found = by_name.binary_search_by_key(&property.name, |&index| sent[index].name);
        match found {
            Ok(at) => {
                placed[by_name[at]] = true;
                merged.push(&sent[by_name[at]]);
            }
            Err(_) => merged.push(&property),
        }
    }
    for (property, placed) in std::iter::zip(&sent, placed) {
        if !placed {
            merged.push(property);
        }
    }
    merged.finish()
}

fn collect(entity: &[u8]) -> Result<Vec<RawProperty<'_>>, DecodeError> {
    let mut out = Vec::new();
    let mut properties = RawProperties::open(entity)?;
    while let Some(property) = properties.next()? {
        out.push(property);
    }
    Ok(out)
}

struct MergedEntity {
    out: Vec<u8>,
    count: usize,
    size: usize,
}

impl MergedEntity {
    fn push(&mut self, property: &RawProperty<'_>) {
        let sized = SizedValue::stored(property.type_code, property.value);
        self.count += 1;
        self.size += property_name_size(utf16_len(property.name)) + sized.counted(sized.value_bytes());
        self.out.extend_from_slice(property.encoded);
    }

    fn finish(mut self) -> Result<Bytes, TableError> {
        if self.count > OWN_PROPERTIES_MAX {
            return Err(TableError::TooManyProperties);
        }
        if self.size > ENTITY_SIZE_BYTES_MAX {
            return Err(TableError::EntityTooLarge);
        }
        // The memory table keeps this allocation, so unused capacity would waste memory.
        self.out.shrink_to_fit();
        Ok(self.out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edm::EdmValue;
    use crate::entities::encode::encode_entity;
    use crate::entities::entity::Properties;
    use crate::entities::entity::tests::{any_value, entity_of, owned_properties, stored};
    use proptest::prelude::*;

    fn read(entity: &[u8]) -> Vec<(String, EdmValue)> {
        owned_properties(&entity_of(entity))
    }

    fn text(len: usize) -> EdmValue {
        EdmValue::Binary(vec![7; len])
    }

    #[test]
    fn the_limits_hold_for_the_result() {
        let half = |prefix: &str| {
            let names = (0..126).map(|index| (format!("{prefix}{index}"), EdmValue::Boolean(true)));
            Properties(names.collect())
        };
        let (a, b) = (stored(&half("a")), stored(&half("b")));
        let full = merge_entities(&a, &b, 0).unwrap();
        assert_eq!(read(&full).len(), 252);
        assert_eq!(merge_entities(&full, &b, 0).unwrap(), full);
        let one = stored(&Properties(vec![("c".to_owned(), EdmValue::Boolean(true))]));
        assert!(matches!(merge_entities(&full, &one, 0), Err(TableError::TooManyProperties)));

        let large = |names: std::ops::Range<char>| {
            stored(&Properties(names.map(|name| (name.to_string(), text(65_000))).collect()))
        };
        let merged = merge_entities(&large('a'..'i'), &large('i'..'q'), 0).unwrap();
        assert!(matches!(merge_entities(&merged, &large('q'..'r'), 0), Err(TableError::EntityTooLarge)));
    }

    #[test]
    fn a_malformed_stored_entity_is_an_error() {
        let fine = stored(&Properties::default());
        assert!(matches!(merge_entities(b"\x01\x05", &fine, 0), Err(TableError::Partition(_))));
    }

    proptest! {
        #[test]
        fn as_a_list_of_properties_would(
            present in prop::collection::btree_map("[a-f]{1,2}", any_value(), 0..20),
            sent in prop::collection::btree_map("[a-f]{1,2}", any_value(), 0..20),
        ) {
            let present: Vec<_> = present.into_iter().rev().collect();
            let sent: Vec<_> = sent.into_iter().collect();
            let mut expected = present.clone();
            for (name, value) in &sent {
                match expected.iter_mut().find(|(other, _)| other == name) {
                    Some((_, old)) => *old = value.clone(),
                    None => expected.push((name.clone(), value.clone())),
                }
            }
            let merged = merge_entities(&stored(&Properties(present)), &stored(&Properties(sent)), 3).unwrap();
            prop_assert_eq!(format!("{:?}", read(&merged)), format!("{expected:?}"));
        }

        #[test]
        fn the_size_is_that_of_encoding(
            present in prop::collection::btree_map("[a-f]{1,2}", any_value(), 0..8),
            pad in 0usize..1500,
        ) {
            // Sizes near the limit: encoding and merging must agree on which side of it an entity is.
            let mut properties = Properties(present.into_iter().collect());
            for name in 'g'..'v' {
                properties.0.push((name.to_string(), text(65_536)));
            }
            properties.0.push(("w".to_owned(), text(64_000 + pad)));
            let encoded = encode_entity(&properties, 5);
            let merged = merge_entities(&stored(&properties), &stored(&Properties::default()), 5);
            prop_assert_eq!(encoded.is_ok(), merged.is_ok());
        }
    }
}
