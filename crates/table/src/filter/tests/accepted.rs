//! Filters that clients write, and what they match.

use super::model::ModelEntity;
use super::{matches, parse};
use crate::edm::{EdmValue, parse_date_time, parse_guid};

fn entity() -> ModelEntity {
    let at = parse_date_time("2020-01-02T03:04:05.6789Z").unwrap();
    let guid = parse_guid("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
    ModelEntity::new(
        "p",
        "it's",
        vec![
            ("S", EdmValue::String("text".to_owned())),
            ("Empty", EdmValue::String(String::new())),
            ("B", EdmValue::Binary(vec![1, 255])),
            ("On", EdmValue::Boolean(true)),
            ("Off", EdmValue::Boolean(false)),
            ("I", EdmValue::Int32(5)),
            ("L", EdmValue::Int64(5)),
            ("D", EdmValue::Double(5.0)),
            ("G", EdmValue::Guid(guid)),
            ("T", EdmValue::DateTime(at)),
            ("_x", EdmValue::Int32(-1)),
        ],
    )
}

fn assert_matches(cases: &[(&str, bool)]) {
    for (text, expected) in cases {
        assert_eq!(matches(&parse(text), &entity()), *expected, "{text}");
    }
}

#[test]
fn literals() {
    assert_matches(&[
        ("S eq 'text'", true),
        ("RowKey eq 'it''s'", true),
        ("Empty eq ''", true),
        ("S eq ''''", false),
        ("B eq X'01ff'", true),
        ("B eq x'01FF'", true),
        ("B eq binary'01ff'", true),
        ("B gt X''", true),
        ("On eq true", true),
        ("On eq TRue", true),
        ("Off eq FALSE", true),
        ("I eq 5", true),
        ("I eq +5", true),
        ("_x eq -1", true),
        ("L eq 5L", true),
        ("L eq 5l", true),
        ("L lt 9223372036854775807L", true),
        ("D eq 5.0", true),
        ("D eq 5e0", true),
        ("D lt 1e+16", true),
        ("D eq 5d", true),
        ("D gt -2.5E-3", true),
        ("D lt INF and D gt -INF and D ne NaN", true),
        ("D eq NaN", false),
        ("G eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", true),
        ("G eq GUID'C9DA6455-213D-42C9-9A79-3E9149A57833'", true),
        ("T eq datetime'2020-01-02T03:04:05.6789Z'", true),
        ("T eq datetime'2020-01-02T04:04:05.678900000+01:00'", true),
        ("T gt datetime'2020-01-02'", true),
        ("Timestamp ge datetime'2019-01-01T00:00:00Z' and Timestamp lt datetime'2020-01-01T00:00:00'", true),
    ]);
}

/// They were once refused, though .NET programs send its least date-time when there is no lower bound.
#[test]
fn date_times_before_1601_are_before_all_that_are_stored() {
    let first = parse_date_time("1601-01-01T00:00:00Z").unwrap();
    let entity = ModelEntity::new(
        "p",
        "r",
        vec![
            ("First", EdmValue::DateTime(first)),
            ("I", EdmValue::Int32(5)),
            ("D", EdmValue::Double(f64::NAN)),
        ],
    );
    for early in
        ["0001-01-01T00:00:00Z", "0001-01-01", "1600-12-31T23:59:59.9999999Z", "1601-01-01T00:00+00:01"]
    {
        // A property of another type ranks below the constant, a missing one never matches.
        for (property, holding) in [
            ("First", &["gt", "ge", "ne"][..]),
            ("Timestamp", &["gt", "ge", "ne"][..]),
            ("I", &["lt", "le", "ne"][..]),
            ("D", &["lt", "le", "ne"][..]),
            ("RowKey", &["lt", "le", "ne"][..]),
            ("Missing", &[][..]),
        ] {
            for (operator, swapped) in
                [("eq", "eq"), ("ne", "ne"), ("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")]
            {
                let expected = holding.contains(&operator);
                for text in [
                    format!("{property} {operator} datetime'{early}'"),
                    format!("datetime'{early}' {swapped} {property}"),
                    format!("not (not ({property} {operator} datetime'{early}') or false)"),
                ] {
                    assert_eq!(matches(&parse(&text), &entity), expected, "{text}");
                }
            }
        }
    }
}

#[test]
fn binding_and_blanks() {
    assert_matches(&[
        ("I eq 5 or I eq 6 and I eq 7", true),
        ("(I eq 5 or I eq 6) and I eq 7", false),
        ("not I eq 6", true),
        ("not I eq 6 and I eq 6", false),
        ("not (I eq 6 and I eq 6)", true),
        ("not not I eq 5", true),
        ("  PartitionKey   eq\t'p'  ", true),
        ("(PartitionKey eq 'p')and(I lt 6)and(On)", true),
        ("(PartitionKey eq 'p')and (On eq true )", true),
        ("not(Off)", true),
        ("(I) eq (5)", true),
        ("((I eq 5))", true),
    ]);
}

#[test]
fn sides_and_bare_booleans() {
    assert_matches(&[
        ("5 eq I", true),
        ("4 lt I", true),
        ("I lt 4", false),
        ("6 le I", false),
        ("'p' eq PartitionKey", true),
        ("On", true),
        ("Off", false),
        ("not Off and On", true),
        ("Missing", false),
        ("S", false),
        ("true", true),
        ("not true", false),
        ("(true and I eq 5) and ((false or I eq 1) or L eq 5) or D eq 6.0", true),
    ]);
}

#[test]
fn missing_properties_fail_every_comparison() {
    assert_matches(&[
        ("Missing eq 'x'", false),
        ("Missing ne 'x'", false),
        ("Missing lt 'x'", false),
        ("Missing ge 'x'", false),
        ("not (Missing ne 'x')", true),
        ("missing eq 5 or i eq 5", false),
    ]);
}

#[test]
fn types_widen_one_way_and_rank_below_otherwise() {
    assert_matches(&[
        ("L eq 5", true),
        ("D eq 5", true),
        ("D eq 5L", true),
        ("I eq 5L", false),
        ("I eq 5.0", false),
        ("I lt 1L", true),
        ("I le 1.0", true),
        ("I ne 5L", true),
        ("I gt 1L", false),
        ("I ge 1L", false),
        ("L eq 5.0", false),
        ("G eq 'c9da6455-213d-42c9-9a79-3e9149a57833'", false),
        ("S eq 5", false),
        ("S ne 5", true),
        ("PartitionKey ne 5", true),
        ("PartitionKey eq 5", false),
        ("Timestamp eq '2020'", false),
        ("Timestamp lt 1", true),
    ]);
}

#[test]
fn text_is_ordered_by_utf16() {
    let entity = ModelEntity::new("p", "\u{1f600}", vec![("S", EdmValue::String("\u{1f600}".to_owned()))]);
    for property in ["S", "RowKey"] {
        assert!(matches(&parse(&format!("{property} lt '\u{e000}'")), &entity));
        assert!(matches(&parse(&format!("{property} gt '\u{d7ff}'")), &entity));
    }
}

#[test]
fn an_empty_filter_matches_everything() {
    assert_matches(&[("", true), ("  \r\n", true)]);
}
