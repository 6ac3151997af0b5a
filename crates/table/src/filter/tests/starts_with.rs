//! `startswith` of the extended grammar: the keys that it reads, and that it means the same as a plain
//! evaluator says.

use super::key_ranges::{assert_disjoint, holds};
use super::model::{ModelEntity, any_entity, any_extended_expression, evaluate, print};
use super::*;
use crate::queries::query_class::QueryClass;
use partition::RowKey;

fn parse_extended(text: &str) -> Filter {
    Filter::parse_extended(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The naive evaluation compares UTF-16 units; the ranges are of encoded keys.
    #[test]
    fn filters_with_prefixes_match_and_read_what_a_plain_evaluator_says(
        expression in any_extended_expression(),
        entities in prop::collection::vec(any_entity(), 1..12),
        style in any::<u64>(),
    ) {
        let text = print(&expression, style);
        let filter = parse_extended(&text);
        let spans = filter.ranges().spans(&container(), None);
        assert_disjoint(&spans);
        for entity in &entities {
            let expected = evaluate(&expression, entity);
            prop_assert_eq!(matches(&filter, entity), expected, "{} on {:?}", text, entity);
            let key = entity.key();
            let is_read = spans.iter().any(|span| holds(span, key.as_bytes()));
            prop_assert!(is_read || !expected, "{} does not read {:?}", text, entity);
        }
    }

    /// Of any texts: the range of a prefix has exactly the keys that begin so, and its complement the others.
    #[test]
    fn the_range_of_a_prefix_is_exact(prefix: String, rest: String, other: String) {
        let literal = prefix.replace('\'', "''");
        let of = |text: String| parse_extended(&text).ranges().spans(&container(), None);
        let rows = of(format!("PartitionKey eq 'p' and startswith(RowKey,'{literal}')"));
        let partitions = of(format!("startswith(PartitionKey,'{literal}')"));
        let others = of(format!("not startswith(PartitionKey,'{literal}')"));
        for text in [prefix.clone(), format!("{prefix}{rest}"), other, rest, String::new(), "\u{10ffff}".into()] {
            let begins = text.starts_with(&prefix);
            let is_in = |spans: &[partition::Span], key: RowKey| spans.iter().any(|span| holds(span, key.as_bytes()));
            prop_assert_eq!(is_in(&rows, RowKey::new("acct", 7, "p", &text)), begins, "{:?} of {:?}", text, prefix);
            prop_assert_eq!(is_in(&partitions, RowKey::new("acct", 7, &text, "r")), begins, "{:?} of {:?}", text, prefix);
            prop_assert_eq!(is_in(&others, RowKey::new("acct", 7, &text, "r")), !begins, "{:?} of {:?}", text, prefix);
        }
    }

    #[test]
    fn any_call_is_read_or_refused(
        words in prop::collection::vec(prop::sample::select(&["startswith", "(", ")", ",", "A", "RowKey", "'x'", "5", " ", "eq", "not", "and"][..]), 0..12),
    ) {
        let text = words.concat();
        if let Err(error) = Filter::parse_extended(&text) {
            let position = error.position().expect("it is short");
            prop_assert!(position <= text.encode_utf16().count(), "{} of {}", position, text);
        }
    }
}

#[test]
fn a_prefix_of_a_key_is_a_range() {
    use QueryClass::*;
    for (text, class, span_count) in [
        ("startswith(PartitionKey,'a')", PartitionRange, 1),
        ("startswith(PartitionKey,'')", TableScan, 1),
        ("not startswith(PartitionKey,'')", Point, 0),
        ("not startswith(PartitionKey,'a')", PartitionRange, 2),
        ("PartitionKey eq 'a' and startswith(RowKey,'1')", RowRange, 1),
        ("PartitionKey eq 'a' and (startswith(RowKey,'1') or startswith(RowKey,'3'))", RowRange, 2),
        // A neighbour of the first, and a part of it.
        ("PartitionKey eq 'a' and (startswith(RowKey,'1') or startswith(RowKey,'2'))", RowRange, 1),
        ("PartitionKey eq 'a' and startswith(RowKey,'12') and startswith(RowKey,'1')", RowRange, 1),
        ("startswith(PartitionKey,'a') and startswith(PartitionKey,'b')", Point, 0),
        ("startswith(PartitionKey,'a') and PartitionKey eq 'ab' and RowKey eq ''", Point, 1),
        ("startswith(RowKey,'1')", TableScan, 1),
        ("startswith(Name,'a')", TableScan, 1),
        ("startswith(PartitionKey,'\u{10ffff}')", PartitionRange, 1),
        ("startswith(PartitionKey,'a\0')", PartitionRange, 1),
    ] {
        let ranges = parse_extended(text);
        let ranges = ranges.ranges();
        assert_eq!(ranges.class(), class, "{text}");
        assert_eq!(ranges.spans(&container(), None).len(), span_count, "{text}");
    }
}

#[test]
fn own_properties_match_if_they_are_texts() {
    let entity = ModelEntity::new(
        "p",
        "r",
        vec![
            ("Name", EdmValue::String("Zoë".to_owned())),
            ("Number", EdmValue::Int32(12)),
            ("startswith", EdmValue::Boolean(true)),
        ],
    );
    for (text, expected) in [
        ("startswith(Name,'Zo')", true),
        ("startswith( Name , 'Zoë' )", true),
        ("startswith(Name,'Zoë!')", false),
        ("startswith(Name,'zo')", false),
        ("startswith(Name,'')", true),
        ("startswith(Number,'1')", false),
        ("startswith(Missing,'')", false),
        ("not startswith(Missing,'')", true),
        ("not startswith(Name,'Z') or Number eq 12", true),
        // It may be a property, too.
        ("startswith", true),
        ("startswith eq true and startswith(Name,'Z')", true),
    ] {
        assert_eq!(matches(&parse_extended(text), &entity), expected, "{text}");
    }
}

#[test]
fn tables_are_found_by_the_start_of_their_name_in_any_case() {
    let filter = parse_extended("startswith(TableName,'orders')");
    for (name, expected) in
        [("Orders2026", true), ("ORDERS", true), ("Order", false), ("", false), ("Sorders", false)]
    {
        assert_eq!(filter.matches_table(TableNameRow { name }), Ok(expected), "{name}");
    }
}

#[test]
fn calls_that_are_none_name_their_place() {
    for (text, position) in [
        ("startswith()", 11),
        ("startswith(RowKey)", 17),
        ("startswith(RowKey,5)", 18),
        ("startswith(RowKey,'a'", 21),
        ("startswith(RowKey,'a','b')", 21),
        ("startswith('a',RowKey)", 11),
        ("startswith(Timestamp,'a')", 11),
        ("startswith(startswith(A,'a'),'a')", 21),
    ] {
        match Filter::parse_extended(text) {
            Err(FilterError::Call { position: at, message }) => {
                assert_eq!(at, position, "{text}");
                assert!(message.contains(&format!("position {position}")), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    // Other functions are not served either way.
    assert!(matches!(
        Filter::parse_extended("endswith(A,'b')"),
        Err(FilterError::Syntax { position: 8, .. })
    ));
    // It is a comparison as others are.
    let terms = |count: usize| vec!["startswith(A,'a')"; count].join(" or ");
    assert!(Filter::parse_extended(&terms(FILTER_COMPARISONS_MAX)).is_ok());
    let more = Filter::parse_extended(&terms(FILTER_COMPARISONS_MAX + 1));
    assert!(matches!(more, Err(FilterError::TooComplex(_))));
}

/// Whoever does not ask for it gets the answers of the protocol, positions included.
#[test]
fn the_protocol_has_no_functions() {
    for (text, position) in [
        ("startswith(RowKey,'a')", 10),
        ("startswith (RowKey,'a')", 11),
        ("not startswith(RowKey,'a')", 14),
        ("A eq 1 and startswith(RowKey,'a')", 21),
        ("A,", 1),
    ] {
        let expected = FilterError::Syntax { position, text: text.to_owned() };
        assert_eq!(Filter::parse(text).unwrap_err(), expected);
    }
}
