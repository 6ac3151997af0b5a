//! Which rows a filter reads: never too few, and for common filters no more than needed.

use super::super::key_ranges::BOXES_MAX;
use super::model::{ModelEntity, any_entity, any_expression, evaluate, print};
use super::{container, parse};
use crate::queries::query_class::QueryClass;
use partition::{KeyRange, RowKey, Span};
use proptest::prelude::*;

pub(super) fn holds(span: &Span, key: &[u8]) -> bool {
    match span {
        Span::Point(point) => point.as_bytes().as_ref() == key,
        Span::Range(range) => range.contains(key),
    }
}

/// Spans must be walked in key order and show no row twice.
pub(super) fn assert_disjoint(spans: &[Span]) {
    let mut end_before: Option<Vec<u8>> = Some(Vec::new());
    for span in spans {
        let (start, end) = match span {
            Span::Point(key) => (key.as_bytes().to_vec(), Some(key.successor().to_vec())),
            Span::Range(range) => (range.start.to_vec(), range.end.as_ref().map(|end| end.to_vec())),
        };
        let before = end_before.expect("nothing comes after a span without end");
        assert!(before <= start, "{spans:?}");
        assert!(end.as_ref().is_none_or(|end| *end > start), "{spans:?}");
        end_before = end;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// A row that a filter matches but the ranges omit would be lost silently.
    #[test]
    fn rows_outside_the_ranges_never_match(
        expression in any_expression(),
        entities in prop::collection::vec(any_entity(), 1..12),
        start in any_entity(),
    ) {
        let filter = parse(&print(&expression, 0));
        let spans = filter.ranges().spans(&container(), None);
        assert_disjoint(&spans);
        let start = start.key();
        let later = filter.ranges().spans(&container(), Some(start.as_bytes()));
        assert_disjoint(&later);
        for entity in &entities {
            let key = entity.key();
            let key = key.as_bytes();
            let held = spans.iter().any(|span| holds(span, key));
            if evaluate(&expression, entity) {
                prop_assert!(held, "{:?} is outside of {:?}", entity, spans);
            }
            let held_later = later.iter().any(|span| holds(span, key));
            prop_assert_eq!(held_later, held && key >= start.as_bytes());
        }
        for span in &spans {
            if let Span::Range(range) = span {
                prop_assert!(range.start >= container().start && range.end.is_some());
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// As above, with so many comparisons that boxes have to be joined, or one side of an `and` left out.
    #[test]
    fn many_boxes_are_joined_without_losing_rows(
        partitions in prop::collection::vec(0u32..250, 1..200),
        excluded in prop::collection::btree_set(0u32..250, 0..8),
        row_excluded in prop::option::of(0u32..3),
        excluded_first: bool,
    ) {
        let points: Vec<_> = partitions.iter().map(|name| format!("PartitionKey eq '{name:03}'")).collect();
        let mut terms = vec![format!("({})", points.join(" or "))];
        terms.extend(excluded.iter().map(|name| format!("PartitionKey ne '{name:03}'")));
        terms.extend(row_excluded.map(|row| format!("(RowKey lt '{row}' or RowKey gt '{row}')")));
        if excluded_first {
            terms.reverse();
        }
        let text = terms.join(" and ");
        let spans = parse(&text).ranges().spans(&container(), None);
        assert_disjoint(&spans);
        prop_assert!(spans.len() <= BOXES_MAX);
        for partition in 0..250 {
            for row in 0..3 {
                let key = RowKey::new("acct", 7, &format!("{partition:03}"), &row.to_string());
                let expected = partitions.contains(&partition)
                    && !excluded.contains(&partition)
                    && row_excluded != Some(row);
                if expected {
                    let held = spans.iter().any(|span| holds(span, key.as_bytes()));
                    prop_assert!(held, "{} {} {}", partition, row, text);
                }
            }
        }
    }
}

/// A range of keys as in shared access signatures, and so many terms that their product with it has too many
/// boxes.
fn ranged(terms: &[String], range: &str, range_first: bool) -> String {
    let terms = terms.join(" or ");
    if range_first { format!("{range} and ({terms})") } else { format!("({terms}) and {range}") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A filter with many boxes once lost the range beside it, and the whole table was read.
    #[test]
    fn many_boxes_stay_inside_the_range_beside_them(
        terms in prop::collection::vec((0u32..12, 0u32..12, 0usize..6, 0usize..6), 30..120),
        start in (0u32..12, prop::option::of(0u32..12)),
        end in (0u32..12, prop::option::of(0u32..12)),
        range_first: bool,
    ) {
        const WORDS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
        let holds_for = |word: usize, a: u32, b: u32| match WORDS[word] {
            "eq" => a == b,
            "ne" => a != b,
            "lt" => a < b,
            "le" => a <= b,
            "gt" => a > b,
            _ => a >= b,
        };
        let texts: Vec<String> = (terms.iter())
            .map(|&(partition, row, by_partition, by_row)| {
                let (by_partition, by_row) = (WORDS[by_partition], WORDS[by_row]);
                format!("(PartitionKey {by_partition} '{partition:02}' and RowKey {by_row} '{row:02}')")
            })
            .collect();
        let bound = |(partition, row): (u32, Option<u32>), beyond: &str, at: &str| match row {
            None => format!("PartitionKey {at} '{partition:02}'"),
            Some(row) => format!(
                "(PartitionKey {beyond} '{partition:02}' or (PartitionKey eq '{partition:02}' and RowKey {at} '{row:02}'))"
            ),
        };
        let range = format!("{} and {}", bound(start, "gt", "ge"), bound(end, "lt", "le"));
        let text = ranged(&texts, &range, range_first);
        let spans = parse(&text).ranges().spans(&container(), None);
        assert_disjoint(&spans);
        prop_assert!(spans.len() <= BOXES_MAX);
        for (partition, row) in (0..12).flat_map(|partition| (0..12).map(move |row| (partition, row))) {
            let key = RowKey::new("acct", 7, &format!("{partition:02}"), &format!("{row:02}"));
            let held = spans.iter().any(|span| holds(span, key.as_bytes()));
            let matches = terms.iter().any(|&(of_partition, of_row, by_partition, by_row)| {
                holds_for(by_partition, partition, of_partition) && holds_for(by_row, row, of_row)
            });
            let in_range = (partition, row) >= (start.0, start.1.unwrap_or(0))
                && (partition, row) <= (end.0, end.1.unwrap_or(u32::MAX));
            prop_assert!(held || !(matches && in_range), "{} {} {}", partition, row, text);
            prop_assert!(!held || (start.0..=end.0).contains(&partition), "{} {} {}", partition, row, text);
        }
    }
}

#[test]
fn a_range_beside_many_boxes_narrows_each_of_them() {
    let terms: Vec<String> =
        (0..120).map(|row| format!("(PartitionKey ge 'a' and RowKey eq 'r{row}')")).collect();
    let range = "(PartitionKey gt 'm' or (PartitionKey eq 'm' and RowKey ge 'a')) and \
        (PartitionKey lt 'm' or (PartitionKey eq 'm' and RowKey le 'z'))";
    for range_first in [false, true] {
        let filter = parse(&ranged(&terms, range, range_first));
        assert_eq!(filter.ranges().class(), QueryClass::Point);
        assert_eq!(filter.ranges().spans(&container(), None).len(), 120);
    }
}

/// The keys of a small table that lie in the spans of a filter.
fn keys_read(text: &str) -> Vec<&'static str> {
    const KEYS: [&str; 9] = ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"];
    let spans = parse(text).ranges().spans(&container(), None);
    assert_disjoint(&spans);
    let is_read = |key: &&str| {
        let key = ModelEntity::new(&key[..1], &key[1..], vec![]).key();
        spans.iter().any(|span| holds(span, key.as_bytes()))
    };
    KEYS.into_iter().filter(is_read).collect()
}

#[test]
fn the_class_is_that_of_the_rows_a_filter_reads() {
    use QueryClass::*;
    for (text, class) in [
        ("", TableScan),
        ("A eq 1", TableScan),
        ("PartitionKey ge ''", TableScan),
        ("RowKey eq '1'", TableScan),
        ("PartitionKey eq 'a' or A eq 1", TableScan),
        ("PartitionKey gt 'a'", PartitionRange),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", PartitionRange),
        ("not (PartitionKey lt 'b')", PartitionRange),
        ("PartitionKey ne 'a'", PartitionRange),
        ("PartitionKey eq 'a'", RowRange),
        ("PartitionKey eq 'a' and A", RowRange),
        ("PartitionKey eq 'a' and RowKey gt '1'", RowRange),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", RowRange),
        ("PartitionKey ge 'a' and PartitionKey le 'a'", RowRange),
        ("PartitionKey eq 'a' and RowKey eq '1'", Point),
        ("'1' eq RowKey and A gt 5 and 'a' eq PartitionKey", Point),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", Point),
        ("not (PartitionKey ne 'a' or RowKey ne '1')", Point),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", Point),
        ("PartitionKey eq 1", Point),
        ("false", Point),
        ("true", TableScan),
    ] {
        assert_eq!(parse(text).ranges().class(), class, "{text}");
    }
}

#[test]
fn ranges_are_as_tight_as_key_order_allows() {
    let all = ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"];
    for (text, expected) in [
        ("A eq 1", &all[..]),
        ("PartitionKey eq 'b'", &all[3..6]),
        ("PartitionKey eq 'b' and RowKey ge '2'", &all[4..6]),
        ("PartitionKey eq 'b' and RowKey gt '1' and RowKey lt '3' and A", &all[4..5]),
        ("PartitionKey eq 'b' and RowKey eq '3'", &all[5..6]),
        // The next page by keys, as clients write it.
        ("(PartitionKey eq 'b' and RowKey gt '2') or PartitionKey gt 'b'", &all[5..]),
        // A partition range is cut at both ends.
        ("PartitionKey ge 'a' and PartitionKey le 'b' and RowKey ge '2' and RowKey lt '3'", &all[1..5]),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '3')", &["a1", "a3"]),
        // A point that touches the end of a range.
        ("PartitionKey eq 'b' and (RowKey lt '2' or RowKey eq '2')", &all[3..5]),
        ("PartitionKey ne 'b'", &["a1", "a2", "a3", "c1", "c2", "c3"]),
        ("not (PartitionKey eq 'b' and A eq 1)", &all[..]),
        ("not (PartitionKey eq 'b' or A eq 1)", &["a1", "a2", "a3", "c1", "c2", "c3"]),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", &[]),
        ("PartitionKey gt 'a' and PartitionKey lt 'b'", &[]),
        ("PartitionKey lt 5 and PartitionKey eq 'c'", &all[6..]),
    ] {
        assert_eq!(keys_read(text), expected, "{text}");
    }
}

#[test]
fn a_point_is_a_row_and_a_list_of_them_is_not_a_range() {
    let filter = parse("PartitionKey eq 'p' and (RowKey eq '2' or RowKey eq '1' or RowKey eq '2')");
    let points = ["1", "2"].map(|row_key| Span::Point(RowKey::new("acct", 7, "p", row_key)));
    assert_eq!(filter.ranges().spans(&container(), None), points);

    let filter = parse("PartitionKey eq 'p' and (RowKey eq '1' or RowKey ge '1')");
    let spans = filter.ranges().spans(&container(), None);
    let partition = KeyRange::partition("acct", 7, "p");
    let start = RowKey::new("acct", 7, "p", "1").as_bytes().clone();
    assert_eq!(spans, [Span::Range(KeyRange { start, end: partition.end })]);
}

#[test]
fn a_hundred_points_stay_points() {
    let rows: Vec<_> = (0..100).map(|row| format!("RowKey eq '{row:03}'")).collect();
    let filter = parse(&format!("PartitionKey eq 'p' and ({})", rows.join(" or ")));
    assert_eq!(filter.ranges().class(), QueryClass::Point);
    assert_eq!(filter.ranges().spans(&container(), None).len(), 100);
}
