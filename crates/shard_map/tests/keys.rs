//! Properties of keys of any type: their encodings are ordered as they are and come back; a bound cuts where
//! its values do.

use base::Ticks;
use base::date_time::TICKS_MAX;
use proptest::prelude::*;
use shard_map::{Bound, COLUMNS_MAX, KEY_BYTES_MAX, KeyError, KeyKind, KeyType, KeyValue};

fn kind() -> impl Strategy<Value = KeyKind> {
    proptest::sample::select(KeyKind::ALL.to_vec())
}

/// Values of a kind, many of them near each other and near the ends.
fn value(kind: KeyKind) -> BoxedStrategy<KeyValue> {
    let byte = prop_oneof![3 => Just(0_u8), 1 => Just(1_u8), 1 => Just(255_u8), 2 => any::<u8>()];
    match kind {
        KeyKind::Int32 => prop_oneof![Just(i32::MIN), Just(i32::MAX), -2_i32..3, any::<i32>()]
            .prop_map(KeyValue::Int32)
            .boxed(),
        KeyKind::Int64 => prop_oneof![Just(i64::MIN), Just(i64::MAX), -2_i64..3, any::<i64>()]
            .prop_map(KeyValue::Int64)
            .boxed(),
        KeyKind::Guid => {
            prop_oneof![Just([0; 16]), Just([255; 16]), any::<[u8; 16]>()].prop_map(KeyValue::Guid).boxed()
        }
        KeyKind::Binary => proptest::collection::vec(byte, 0..4).prop_map(KeyValue::Binary).boxed(),
        KeyKind::Text => "[\\x00\\x01aé😀]{0,3}".prop_map(KeyValue::Text).boxed(),
        KeyKind::DateTime => prop_oneof![Just(0), Just(TICKS_MAX.0), 0..=TICKS_MAX.0]
            .prop_map(|ticks| KeyValue::DateTime(Ticks(ticks)))
            .boxed(),
    }
}

fn values(kinds: Vec<KeyKind>) -> impl Strategy<Value = Vec<KeyValue>> {
    kinds.into_iter().map(value).collect::<Vec<_>>()
}

/// A type, two of its keys, and how many values of a third begin a bound.
fn keys() -> impl Strategy<Value = (KeyType, Vec<KeyValue>, Vec<KeyValue>, Vec<KeyValue>)> {
    proptest::collection::vec(kind(), 1..4).prop_flat_map(|kinds| {
        let key = KeyType::new(kinds.clone()).expect("a type");
        let bound = (values(kinds.clone()), 0..=kinds.len()).prop_map(|(mut values, length)| {
            values.truncate(length);
            values
        });
        (Just(key), values(kinds.clone()), values(kinds), bound)
    })
}

proptest! {
    #[test]
    fn encodings_are_ordered_as_keys_and_come_back((key, one, other, _) in keys()) {
        let (first, second) = (key.encode(&one).unwrap(), key.encode(&other).unwrap());
        prop_assert_eq!(one.cmp(&other), first.as_bytes().cmp(second.as_bytes()));
        prop_assert_eq!(key.decode(first.as_bytes()).unwrap(), one);
    }

    #[test]
    fn a_bound_cuts_where_its_values_do((key, one, _, begin) in keys()) {
        let (encoded, bound) = (key.encode(&one).unwrap(), key.bound(&begin).unwrap());
        let is_at_or_behind = one[..begin.len()] >= begin[..];
        prop_assert_eq!(bound.as_bytes() <= encoded.as_bytes(), is_at_or_behind);
        // One cut has one form.
        let back = key.decode_bound(bound.as_bytes()).unwrap();
        prop_assert_eq!(key.bound(&back).unwrap(), bound.clone());
        prop_assert!(begin.starts_with(&back));
        // The next bound is behind all keys that begin with the values, and before all others that are
        // behind.
        let after = key.bound_after(&begin).unwrap();
        let is_behind_all = after.is_some_and(|after| after.as_bytes() <= encoded.as_bytes());
        prop_assert_eq!(is_behind_all, one[..begin.len()] > begin[..]);
    }

    #[test]
    fn bounds_of_two_cuts_are_ordered_as_the_cuts((key, one, other, begin) in keys()) {
        let cut = key.bound(&begin).unwrap();
        for values in [one, other] {
            let whole = key.bound(&values).unwrap();
            prop_assert_eq!(cut <= whole, begin[..] <= values[..begin.len()]);
        }
    }

    #[test]
    fn any_bytes_are_a_key_or_refused(
        kinds in proptest::collection::vec(kind(), 1..4),
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255), any::<u8>()], 0..40),
    ) {
        let key = KeyType::new(kinds).unwrap();
        if let Ok(values) = key.decode(&bytes) {
            let encoded = key.encode(&values).unwrap();
            prop_assert_eq!(encoded.as_bytes(), bytes.as_slice());
        }
        if let Ok(values) = key.decode_bound(&bytes) {
            let bound = key.bound(&values).unwrap();
            prop_assert_eq!(bound.as_bytes(), bytes.as_slice());
        }
    }

    #[test]
    fn values_come_back_from_their_text(value in kind().prop_flat_map(value)) {
        prop_assert_eq!(KeyValue::parse(value.kind(), &value.text()).unwrap(), value);
    }
}

#[test]
fn values_of_another_type_are_refused_with_both_kinds() {
    let key = KeyType::new([KeyKind::Text, KeyKind::Int64]).expect("a type");
    for (values, message) in [
        (vec!["eu".into(), 17_i32.into()], "column 2 of the key is int64, and the value 17 is int32"),
        (vec![17_i64.into(), "eu".into()], "column 1 of the key is text, and the value 17 is int64"),
        (vec!["eu".into()], "the key is (text, int64), and 1 values were given"),
        (vec![], "the key is (text, int64), and 0 values were given"),
    ] {
        assert_eq!(key.encode(&values).expect_err("no key").to_string(), message);
    }
    let three = ["eu".into(), 17_i64.into(), 1_i64.into()];
    assert!(key.bound(&three).is_err() && key.bound(&["eu".into()]).is_ok() && key.bound(&[]).is_ok());
    assert!(key.bound(&[17_i64.into()]).is_err() && key.bound_after(&[17_i64.into()]).is_err());
}

#[test]
fn texts_that_are_no_value_are_refused_with_what_to_write() {
    for (kind, text, wanted) in [
        (KeyKind::Int32, "2147483648", "`2147483648` is no int32: write a whole number from -2147483648 to"),
        (KeyKind::Int64, "1.5", "`1.5` is no int64: write a whole number"),
        (KeyKind::Guid, "c9da6455", "is no guid: write 32 hexadecimal digits, as in"),
        (KeyKind::Binary, "0", "is no binary: write two hexadecimal digits for each byte"),
        (KeyKind::DateTime, "1600-12-31", "is no date-time: write an instant from 1601 to 9999"),
    ] {
        let error = KeyValue::parse(kind, text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(KeyKind::parse("int16").expect_err("no kind").to_string().contains("there are int32, int64"));
}

#[test]
fn types_and_keys_are_bounded() {
    assert_eq!(KeyType::new([]), Err(KeyError::Columns(0)));
    assert_eq!(KeyType::new([KeyKind::Int32; COLUMNS_MAX + 1]), Err(KeyError::Columns(9)));
    let key = KeyType::new([KeyKind::Text]).expect("a type");
    let longest = [KeyValue::Text("a".repeat(KEY_BYTES_MAX))];
    assert!(key.encode(&longest).is_ok() && key.bound_after(&longest).expect("a bound").is_some());
    let longer = [KeyValue::Text("a".repeat(KEY_BYTES_MAX + 1))];
    assert_eq!(key.encode(&longer), Err(KeyError::TooLong(KEY_BYTES_MAX + 1)));
    let late = KeyType::new([KeyKind::DateTime]).expect("a type");
    assert_eq!(late.encode(&[Ticks(TICKS_MAX.0 + 1).into()]), Err(KeyError::DateTimeTooLate(1)));
    assert_eq!(late.bound_after(&[TICKS_MAX.into()]), Ok(None));
    let int = KeyType::new([KeyKind::Int32, KeyKind::Int32]).expect("a type");
    assert_eq!(int.bound_after(&[1.into(), i32::MAX.into()]), int.bound(&[2.into()]).map(Some));
    assert_eq!(int.bound(&[i32::MIN.into()]), Ok(Bound::first()));
}
