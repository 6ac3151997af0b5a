//! What filters make queries read: the class of each of 60, and the ranges in words of keys.

use super::super::plan::{FilterPlan, PlanClass};
use super::parse;
use std::ops::Bound;

fn plan(text: &str) -> FilterPlan {
    FilterPlan::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// 60 filters. Their class, and the class that answers say.
#[test]
fn the_class_of_sixty_filters() {
    use PlanClass::*;
    let table: [(&str, PlanClass, &str); 60] = [
        ("", TableScan, "table-scan"),
        ("  ", TableScan, "table-scan"),
        ("true", TableScan, "table-scan"),
        ("A eq 1", TableScan, "table-scan"),
        ("A", TableScan, "table-scan"),
        ("not A", TableScan, "table-scan"),
        ("RowKey eq '1'", TableScan, "table-scan"),
        ("RowKey ge '1' and RowKey lt '2'", TableScan, "table-scan"),
        ("Timestamp gt datetime'2026-01-01T00:00:00Z'", TableScan, "table-scan"),
        ("PartitionKey ge ''", TableScan, "table-scan"),
        ("PartitionKey ne 5", TableScan, "table-scan"),
        ("PartitionKey eq 'a' or A eq 1", TableScan, "table-scan"),
        ("PartitionKey eq 'a' or RowKey eq '1'", TableScan, "table-scan"),
        ("not (PartitionKey eq 'a' and A eq 1)", TableScan, "table-scan"),
        ("PartitionKey lt 'm' or PartitionKey ge 'm'", PartitionRange, "partition-range"),
        ("PartitionKey gt 'a'", PartitionRange, "partition-range"),
        ("PartitionKey lt 'a'", PartitionRange, "partition-range"),
        ("'a' lt PartitionKey", PartitionRange, "partition-range"),
        ("PartitionKey ne 'a'", PartitionRange, "partition-range"),
        ("not (PartitionKey eq 'a')", PartitionRange, "partition-range"),
        ("not (PartitionKey lt 'b')", PartitionRange, "partition-range"),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", PartitionRange, "partition-range"),
        ("PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq '1'", PartitionRange, "partition-range"),
        ("PartitionKey ge 'a' and PartitionKey lt 'b' and A eq 1", PartitionRange, "partition-range"),
        ("PartitionKey eq 'a' or PartitionKey gt 'm'", PartitionRange, "partition-range"),
        (
            "PartitionKey gt 'a' and PartitionKey lt 'c' and PartitionKey ne 'b'",
            PartitionRange,
            "partition-range",
        ),
        ("(PartitionKey eq 'b' and RowKey gt '2') or PartitionKey gt 'b'", PartitionRange, "partition-range"),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", Partitions, "row-range"),
        ("PartitionKey eq 'a' or PartitionKey eq 'b' or PartitionKey eq 'c'", Partitions, "row-range"),
        ("(PartitionKey eq 'a' or PartitionKey eq 'b') and A eq 1", Partitions, "row-range"),
        ("(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey ge '5'", Partitions, "row-range"),
        ("(PartitionKey eq 'a' and RowKey eq '1') or PartitionKey eq 'b'", Partitions, "row-range"),
        ("not (PartitionKey ne 'a' and PartitionKey ne 'b')", Partitions, "row-range"),
        ("PartitionKey eq 'a'", PartitionScan, "row-range"),
        ("PartitionKey eq ''", PartitionScan, "row-range"),
        ("'a' eq PartitionKey and A gt 5", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and A", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and RowKey ge ''", PartitionScan, "row-range"),
        ("PartitionKey ge 'a' and PartitionKey le 'a'", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and (RowKey eq '1' or A eq 1)", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and Timestamp lt datetime'2026-01-01T00:00:00Z'", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and RowKey ne 5", PartitionScan, "row-range"),
        ("PartitionKey eq 'a' and RowKey gt '1'", RowRange, "row-range"),
        ("PartitionKey eq 'a' and RowKey lt '1'", RowRange, "row-range"),
        ("PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2'", RowRange, "row-range"),
        ("PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2' and A eq 1", RowRange, "row-range"),
        ("PartitionKey eq 'a' and RowKey ne '1'", RowRange, "row-range"),
        ("PartitionKey eq 'a' and (RowKey lt '1' or RowKey gt '5')", RowRange, "row-range"),
        ("PartitionKey eq 'a' and not (RowKey lt '1')", RowRange, "row-range"),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", Points, "point"),
        ("(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq '1'", Points, "point"),
        ("PartitionKey eq 'a' and RowKey eq '1' or PartitionKey eq 'b' and RowKey eq '2'", Points, "point"),
        ("PartitionKey eq 'a' and RowKey eq '1'", Point, "point"),
        ("'1' eq RowKey and A gt 5 and 'a' eq PartitionKey", Point, "point"),
        ("not (PartitionKey ne 'a' or RowKey ne '1')", Point, "point"),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '1')", Point, "point"),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", Nothing, "point"),
        ("PartitionKey eq 1", Nothing, "point"),
        ("PartitionKey eq 'a' and RowKey gt '5' and RowKey lt '1'", Nothing, "point"),
        ("false", Nothing, "point"),
    ];
    for (text, class, header) in table {
        let plan = plan(text);
        assert_eq!((plan.class, plan.query_class.name()), (class, header), "{text}");
        // What answers say is derived another way.
        assert_eq!(parse(text).ranges().class(), plan.query_class, "{text}");
    }
}

#[test]
fn ranges_are_in_words_of_keys() {
    let text = |text: &str| text.to_owned();
    let filter =
        "(PartitionKey eq 'b' and RowKey gt '2') or (PartitionKey gt 'b' and PartitionKey lt 'it''s')";
    let ranges = plan(filter).ranges;
    assert_eq!(ranges[0].partition, (Bound::Included(text("b")), Bound::Included(text("b"))));
    assert_eq!(ranges[0].row, (Bound::Excluded(text("2")), Bound::Unbounded));
    assert_eq!(ranges[1].partition, (Bound::Excluded(text("b")), Bound::Excluded(text("it's"))));
    assert_eq!(ranges[1].row, (Bound::Unbounded, Bound::Unbounded));
    assert!(!ranges[1].reads_between());
    let plan_of = plan(filter);
    assert_eq!((plan_of.span_count, plan_of.partition_count), (1, None), "they touch each other");
    assert!(plan("PartitionKey gt 'a' and RowKey eq '\u{e000}'").ranges[0].reads_between());
    let several = plan("PartitionKey eq 'a' or PartitionKey eq 'c'");
    assert_eq!((several.span_count, several.partition_count), (2, Some(2)));
}

#[test]
fn comparisons_are_listed_with_what_is_around_them() {
    let plan = plan("PartitionKey eq 'a' and not (A gt 1 or 'b' le B)");
    let listed: Vec<_> = (plan.comparisons.iter())
        .map(|one| (one.property.as_str(), one.operator, one.is_alternative, one.is_negated))
        .collect();
    let expected = [("PartitionKey", "eq", false, false), ("A", "gt", true, true), ("B", "ge", true, true)];
    assert_eq!(listed, expected);
    assert!(plan.comparisons[0].is_of_key() && !plan.comparisons[1].is_of_key());
}
