//! Ranges and classes in words.

use std::ops::Bound;
use table::{KeyBounds, PlanClass, PlannedRange};

/// A range in words of keys: `PartitionKey = 'a', RowKey from '1' to before '2'`.
pub fn range_text(range: &PlannedRange) -> String {
    let row = bounds_text("RowKey", &range.row);
    let partition = bounds_text("PartitionKey", &range.partition);
    match (partition, row) {
        (None, None) => "all rows".to_owned(),
        (Some(partition), None) => partition,
        (partition, Some(row)) if range.reads_between() => {
            let partition = partition.unwrap_or_else(|| "all partitions".to_owned());
            format!("{partition}, and all rows between; {row} only decides what matches")
        }
        (Some(partition), Some(row)) => format!("{partition}, {row}"),
        (None, Some(row)) => row,
    }
}

fn bounds_text(name: &str, bounds: &KeyBounds) -> Option<String> {
    let from = match &bounds.0 {
        Bound::Included(text) => Some(format!("from {}", quoted(text))),
        Bound::Excluded(text) => Some(format!("after {}", quoted(text))),
        Bound::Unbounded => None,
    };
    let to = match &bounds.1 {
        Bound::Included(text) => Some(format!("to {}", quoted(text))),
        Bound::Excluded(text) => Some(format!("to before {}", quoted(text))),
        Bound::Unbounded => None,
    };
    match (&bounds.0, &bounds.1, from, to) {
        // No key is less than the empty one, which as a bound is no bound.
        (Bound::Included(low), Bound::Included(high), ..) if low == high => {
            Some(format!("{name} = {}", quoted(low)))
        }
        (Bound::Unbounded, Bound::Included(high), ..) if high.is_empty() => Some(format!("{name} = ''")),
        (.., None, None) => None,
        (.., Some(from), None) => Some(format!("{name} {from}")),
        (.., None, Some(to)) => Some(format!("{name} {to}")),
        (.., Some(from), Some(to)) => Some(format!("{name} {from} {to}")),
    }
}

/// As it stands in a filter.
pub(crate) fn quoted(text: &str) -> String {
    let text: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    format!("'{}'", text.replace('\'', "''"))
}

/// What the live service is documented to do with a query of that class.
pub fn service_text(class: PlanClass) -> &'static str {
    match class {
        PlanClass::Nothing => "it may read what the keys that are compared name",
        PlanClass::Point => "one row is read",
        PlanClass::Points => {
            "rows that are joined by or are found by a scan of their partition, and over several partitions by \
             one of the table"
        }
        PlanClass::RowRange => "the rows between the two RowKeys are read",
        PlanClass::PartitionScan => "the whole partition is read",
        PlanClass::Partitions => {
            "it promises nothing for several PartitionKeys by or: count on a scan of the table"
        }
        PlanClass::PartitionRange => {
            "all partitions between the two are read, over several servers, with a token at each boundary"
        }
        PlanClass::TableScan => {
            "the whole table is read, over all its servers, with a token at each boundary"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::FilterPlan;

    #[test]
    fn ranges_are_read_as_sentences() {
        for (filter, expected) in [
            ("", "all rows"),
            ("PartitionKey eq 'it''s'", "PartitionKey = 'it''s'"),
            ("PartitionKey eq ''", "PartitionKey = ''"),
            (
                "PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2'",
                "PartitionKey = 'a', RowKey from '1' to before '2'",
            ),
            ("PartitionKey gt 'a' and PartitionKey le 'b'", "PartitionKey after 'a' to 'b'"),
            ("PartitionKey lt 'b'", "PartitionKey to before 'b'"),
            ("RowKey eq '1'", "all partitions, and all rows between; RowKey = '1' only decides what matches"),
        ] {
            let plan = FilterPlan::parse(filter).expect("a filter");
            assert_eq!(range_text(&plan.ranges[0]), expected, "{filter}");
        }
    }
}
