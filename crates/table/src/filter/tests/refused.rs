//! Filters that are refused, and how.

use super::*;

#[test]
fn syntax_errors_name_the_position() {
    for (text, position) in [
        ("(1 === 1)", 3),
        ("(1)", 1),
        ("(1 1 1)", 3),
        ("(\"a\" eq \"a\")", 1),
        ("(PartitionKey eq 'a' eq 5.0)", 21),
        ("(PartitionKey eq eq 'a') and (D eq 5)", 17),
        ("(PartitionKey eq 'a') and and (D gt 4)", 26),
        ("PartitionKey eq", 15),
        ("PartitionKey eq 'a", 16),
        ("A eq 1 B eq 2", 7),
        ("(A eq 1", 7),
        ("A eq 1)", 6),
        ("and", 0),
        ("()", 1),
        ("not", 3),
        ("A eq 1 AND B eq 2", 7),
        ("A EQ 1", 2),
        ("A eq 5x", 5),
        ("A eq 1.", 5),
        ("A eq 1e", 5),
        ("A eq .5", 5),
        ("A eq 1.5L", 5),
        ("A eq -", 5),
        ("A eq foo'x'", 8),
        ("'\u{1f600}' eq A %", 10),
        ("A in (1, 2)", 2),
        ("startswith(A, 'b')", 10),
        ("5", 0),
        ("'a' and A", 0),
        ("null", 0),
        ("1L or A", 0),
        ("A and datetime'0001-01-01'", 6),
        ("A add 1 eq 2", 2),
        ("A/B eq 2", 1),
    ] {
        let expected = FilterError::Syntax { position, text: text.to_owned() };
        assert_eq!(Filter::parse(text).unwrap_err(), expected);
    }
    let error = Filter::parse("A eq").unwrap_err();
    assert_eq!(error.to_string(), "Syntax error at position 4 in 'A eq'.");
}

#[test]
fn literals_that_their_type_cannot_hold() {
    for (text, edm_type) in [
        ("A eq 2147483648", "Edm.Int32"),
        ("A eq -2147483649", "Edm.Int32"),
        ("A eq 9223372036854775808L", "Edm.Int64"),
        ("A eq 1e400", "Edm.Double"),
        ("A eq guid'1'", "Edm.Guid"),
        ("A eq X'1'", "Edm.Binary"),
        ("A eq X'zz'", "Edm.Binary"),
        ("A eq datetime'yesterday'", "Edm.DateTime"),
        ("A eq datetime'0000-01-01T00:00:00Z'", "Edm.DateTime"),
        ("A eq datetime'9999-12-31T23:59:59-00:01'", "Edm.DateTime"),
    ] {
        match Filter::parse(text) {
            Err(FilterError::Literal { message, .. }) => assert!(message.contains(edm_type), "{message}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn null_is_only_an_error() {
    for text in ["A eq null", "null ne A", "null eq null", "null eq 5"] {
        assert!(matches!(Filter::parse(text), Err(FilterError::Null { .. })), "{text}");
    }
    let error = Filter::parse("A lt null").unwrap_err();
    assert_eq!(
        error.to_string(),
        "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported."
    );
}

#[test]
fn what_is_readable_but_not_served() {
    for text in [
        "A eq B",
        "1 eq 1",
        "'a' lt 'b'",
        "PartitionKey eq RowKey",
        "(A eq 1) eq true",
        "A eq (B eq 1)",
        "true eq true",
    ] {
        assert!(matches!(Filter::parse(text), Err(FilterError::NotImplemented { .. })), "{text}");
    }
}

/// A caret under the place needs one, whatever is wrong.
#[test]
fn each_mistake_has_a_place() {
    for (text, position) in [
        ("A eq B", 2),
        ("'\u{1f600}' eq A and A eq B", 16),
        ("A lt null", 2),
        ("A eq 1 and A eq 2147483648", 16),
        ("A eqq 1", 2),
    ] {
        assert_eq!(Filter::parse(text).unwrap_err().position(), Some(position), "{text}");
    }
    assert_eq!(Filter::parse(&"(".repeat(FILTER_DEPTH_MAX + 1)).unwrap_err().position(), None);
}

#[test]
fn bounds() {
    let long = format!("A eq '{}'", "x".repeat(FILTER_BYTES_MAX));
    assert!(matches!(Filter::parse(&long), Err(FilterError::TooComplex(_))));
    let terms = |count: usize| vec!["A eq 1"; count].join(" or ");
    assert!(Filter::parse(&terms(FILTER_COMPARISONS_MAX)).is_ok());
    assert!(matches!(Filter::parse(&terms(FILTER_COMPARISONS_MAX + 1)), Err(FilterError::TooComplex(_))));
}
