//! The stored form of an entity: its bytes as drawn, and cut or changed ones that are refused.

use super::*;
use proptest::prelude::*;

pub(crate) fn any_value() -> impl Strategy<Value = EdmValue> {
    prop_oneof![
        any::<String>().prop_map(EdmValue::String),
        any::<Vec<u8>>().prop_map(EdmValue::Binary),
        any::<bool>().prop_map(EdmValue::Boolean),
        any::<i32>().prop_map(EdmValue::Int32),
        any::<i64>().prop_map(EdmValue::Int64),
        any::<f64>().prop_map(EdmValue::Double),
        any::<[u8; 16]>().prop_map(EdmValue::Guid),
        (0..=TICKS_MAX.0).prop_map(|ticks| EdmValue::DateTime(Ticks(ticks))),
    ]
}

/// The stored form of `properties`, without any checks.
pub(crate) fn stored(properties: &Properties) -> Vec<u8> {
    let mut out = vec![FORMAT];
    for (name, value) in &properties.0 {
        put_property(&mut out, name, value);
    }
    out
}

pub(crate) fn entity_of(value: &[u8]) -> EntityRef<'_> {
    EntityRef { partition_key: "p", row_key: "r", version: RowVersion(1), value }
}

/// All of an entity's properties, which must be well-formed.
pub(crate) fn owned_properties(entity: &EntityRef<'_>) -> Vec<(String, EdmValue)> {
    let owned = |(name, value): (&str, EdmValueRef<'_>)| (name.to_owned(), value.to_owned());
    entity.properties().map(|property| owned(property.expect("a well-formed property"))).collect()
}

#[test]
fn the_bytes_are_as_drawn() {
    let properties = Properties(vec![
        ("Name".to_owned(), EdmValue::String("ä".to_owned())),
        ("On".to_owned(), EdmValue::Boolean(true)),
        ("N".to_owned(), EdmValue::Int32(-2)),
    ]);
    let expected = b"\x01\x04Name\x01\x02\xc3\xa4\x02On\x03\x01\x01\x01N\x04\x04\xfe\xff\xff\xff";
    assert_eq!(stored(&properties), expected);
}

#[test]
fn malformed_entities_are_errors() {
    for (bytes, what) in [
        (&b""[..], "entity format"),
        (b"\x02", "entity format"),
        (b"\x01\x05a", "property name"),
        (b"\x01\x01a", "property type"),
        (b"\x01\x01a\x01\x05x", "property value"),
        (b"\x01\x01a\x63\x00", "property type"),
        (b"\x01\x01\xff\x03\x01\x00", "property name"),
        (b"\x01\x01a\x01\x01\xff", "string property"),
        (b"\x01\x01a\x03\x01\x02", "boolean property"),
        (b"\x01\x01a\x04\x03\x00\x00\x00", "property value length"),
        (b"\x01\x01a\x08\x08\xff\xff\xff\xff\xff\xff\xff\xff", "date-time property"),
    ] {
        assert_eq!(check_entity(bytes), Err(DecodeError(what)), "{}", bytes.escape_ascii());
        // An iterator returns the same error, and nothing after it.
        let mut walk = entity_of(bytes).properties();
        assert_eq!(walk.next(), Some(Err(DecodeError(what))), "{}", bytes.escape_ascii());
        assert_eq!(walk.next(), None, "{}", bytes.escape_ascii());
    }
}

proptest! {
    #[test]
    fn properties_come_back(properties in prop::collection::vec(("\\PC{1,8}", any_value()), 0..12)) {
        let properties = Properties(properties);
        let bytes = stored(&properties);
        let lens = properties.0.iter().map(|(name, value)| stored_property_len(name.len(), stored_value_len(value)));
        prop_assert_eq!(bytes.len(), 1 + lens.sum::<usize>());
        prop_assert_eq!(check_entity(&bytes), Ok(()));
        let read = owned_properties(&entity_of(&bytes));
        // NaN is not equal to itself; its debug text is.
        prop_assert_eq!(format!("{read:?}"), format!("{:?}", properties.0));
        for (name, _) in &properties.0 {
            let first = properties.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_ref());
            prop_assert_eq!(format!("{:?}", entity_of(&bytes).property(name)), format!("{:?}", Ok::<_, DecodeError>(first)));
        }
        prop_assert_eq!(entity_of(&bytes).property("123456789").map(|found| found.is_none()), Ok(true));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
        let _ = check_entity(&bytes);
        bytes.insert(0, FORMAT);
        let checked = check_entity(&bytes);
        let walked: Vec<_> = entity_of(&bytes).properties().collect();
        prop_assert!(walked.len() <= bytes.len());
        prop_assert_eq!(walked.iter().filter(|property| property.is_err()).count(), usize::from(checked.is_err()));
        prop_assert_eq!(walked.last().is_some_and(|property| property.is_err()), checked.is_err());
        let _ = entity_of(&bytes).property("a");
    }

    #[test]
    fn a_cut_or_flipped_entity_is_read_or_refused(
        properties in prop::collection::vec(("[a-z]{1,8}", any_value()), 1..6),
        at: prop::sample::Index,
        flip: u8,
    ) {
        let mut bytes = stored(&Properties(properties));
        let at = at.index(bytes.len());
        let _ = check_entity(&bytes[..at]);
        bytes[at] ^= flip;
        let _ = check_entity(&bytes);
        let _ = entity_of(&bytes).properties().count();
    }
}
