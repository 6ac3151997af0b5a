//! A range of keys as a query's filter: of whole partitions, or of rows of one partition.

use serde::{Deserialize, Serialize};
use storage_client::Value;

/// Keys between two bounds: the lower one is in it, the upper one is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeyRange {
    /// Of whole partitions.
    Partitions { from: Option<String>, before: Option<String> },
    /// Of one partition.
    Rows { partition: String, from: Option<String>, before: Option<String> },
}

impl KeyRange {
    /// All keys.
    pub(crate) fn all() -> Self {
        KeyRange::Partitions { from: None, before: None }
    }

    /// The range of one partition.
    pub(crate) fn partition(partition: impl Into<String>) -> Self {
        KeyRange::Rows { partition: partition.into(), from: None, before: None }
    }

    /// The filter that the range is; none of all keys.
    pub(crate) fn filter(&self) -> Option<String> {
        let mut parts = Vec::new();
        let mut bounds = |name: &str, from: &Option<String>, before: &Option<String>| {
            for (operator, bound) in [("ge", from), ("lt", before)] {
                if let Some(bound) = bound {
                    parts.push(format!("{name} {operator} {}", literal(bound)));
                }
            }
        };
        match self {
            KeyRange::Partitions { from, before } => bounds("PartitionKey", from, before),
            KeyRange::Rows { partition, from, before } => {
                bounds("RowKey", from, before);
                parts.insert(0, format!("PartitionKey eq {}", literal(partition)));
            }
        }
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// The filter of this range and another one.
    pub(crate) fn filter_and(&self, other: Option<&str>) -> Option<String> {
        match (self.filter(), other) {
            (Some(own), Some(other)) => Some(format!("({own}) and ({other})")),
            (own, other) => own.or_else(|| other.map(str::to_owned)),
        }
    }

    /// The same range from another lower bound.
    pub(crate) fn from(&self, bound: &str) -> Self {
        let mut range = self.clone();
        let (KeyRange::Partitions { from, .. } | KeyRange::Rows { from, .. }) = &mut range;
        *from = Some(bound.to_owned());
        range
    }

    /// The same range below another upper bound.
    pub(crate) fn before(&self, bound: Option<&str>) -> Self {
        let mut range = self.clone();
        let (KeyRange::Partitions { before, .. } | KeyRange::Rows { before, .. }) = &mut range;
        *before = bound.map(str::to_owned);
        range
    }
}

fn literal(text: &str) -> String {
    Value::from(text).literal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_filters() {
        let all = KeyRange::all();
        assert_eq!((all.filter(), all.filter_and(None)), (None, None));
        assert_eq!(all.filter_and(Some("A eq 1")).as_deref(), Some("A eq 1"));
        let range = all.from("a'b").before(Some("c"));
        assert_eq!(range.filter().as_deref(), Some("PartitionKey ge 'a''b' and PartitionKey lt 'c'"));
        assert_eq!(
            range.before(None).filter_and(Some("A eq 1 or B")).as_deref(),
            Some("(PartitionKey ge 'a''b') and (A eq 1 or B)")
        );
        let rows = KeyRange::partition("p");
        assert_eq!(rows.filter().as_deref(), Some("PartitionKey eq 'p'"));
        assert_eq!(rows.from("r").filter().as_deref(), Some("PartitionKey eq 'p' and RowKey ge 'r'"));
    }
}
