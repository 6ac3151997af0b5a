//! Where a page of entities ends before it has to: at partitions where a range of the service might end,
//! before its first row, and after some rows.
//!
//! A place is chosen by a hash of its keys, not by counting requests, so that a boundary stays where it is,
//! as on the live service, and clients at once find the same. What always holds: following the tokens gives
//! each row once and comes to an end. A page shows a row, or is empty and has a token of exactly its first
//! row, and a page that starts exactly at its first row is not empty.

use super::chance::{hash, share};

/// Where pages end. The usual value ends none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Boundaries {
    /// The share of partitions before whose first row a page ends, with a token of the PartitionKey only.
    pub(crate) partitions: f64,
    /// The share of rows before which a page ends that has none yet.
    pub(crate) empty: f64,
    /// Rows of a page at most, also of lists of tables, queues, containers and blobs.
    pub(crate) page_rows: Option<usize>,
    /// Rows that a page examines at most, whether they match or not: what a budget of time comes to.
    pub(crate) examined_rows: Option<u64>,
}

/// A key of a row: PartitionKey and RowKey.
pub(crate) type KeyPair<'a> = (&'a str, &'a str);

/// Where a page ends: how many of its rows it keeps, and what its token names. Without a RowKey that leads to
/// the partition's first row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageEnd<'a> {
    pub(crate) row_count: usize,
    pub(crate) partition_key: &'a str,
    pub(crate) row_key: Option<String>,
}

impl Boundaries {
    /// Whether any page of entities may end early.
    pub(crate) fn are_none(&self) -> bool {
        *self == Boundaries::default()
    }

    /// Where a page that starts at `start` and has the rows `keys`, in their order, ends instead of behind
    /// them. `table` names the table among all, `seed` chooses the places.
    pub(crate) fn choose_page_end<'a>(
        &self,
        seed: u64,
        table: &[&str; 2],
        start: Option<(&str, Option<&str>)>,
        keys: impl IntoIterator<Item = KeyPair<'a>>,
    ) -> Option<PageEnd<'a>> {
        let chance =
            |what: &str, keys: [&str; 2]| share(hash(seed, &[what, table[0], table[1], keys[0], keys[1]]));
        let mut keys = keys.into_iter();
        let mut before = keys.next()?;
        let (first_partition, first_row) = before;
        let starts_at_first = match start {
            None => false,
            Some((partition, row)) => partition == first_partition && row == Some(first_row),
        };
        if !starts_at_first && chance("empty", [first_partition, first_row]) < self.empty {
            // Without the RowKey only where no earlier row of the partition was seen.
            let is_begun = start.is_some_and(|(partition, _)| partition == first_partition);
            let row_key = is_begun.then(|| first_row.to_owned());
            return Some(PageEnd { row_count: 0, partition_key: first_partition, row_key });
        }
        for (index, (partition_key, row_key)) in keys.enumerate() {
            let row_count = index + 1;
            let is_new_partition = partition_key != before.0;
            if is_new_partition && chance("partition", [partition_key, ""]) < self.partitions {
                return Some(PageEnd { row_count, partition_key, row_key: None });
            }
            if self.page_rows.is_some_and(|max| row_count >= max) {
                return Some(match self.empty > 0.0 {
                    // The least key behind the last row, so that the next page may be empty.
                    true => PageEnd {
                        row_count,
                        partition_key: before.0,
                        row_key: Some(format!("{}\0", before.1)),
                    },
                    false => PageEnd { row_count, partition_key, row_key: Some(row_key.to_owned()) },
                });
            }
            before = (partition_key, row_key);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: [&str; 2] = ["account", "table"];

    fn end<'a>(
        boundaries: Boundaries,
        start: Option<(&str, Option<&str>)>,
        keys: &[KeyPair<'a>],
    ) -> Option<(usize, &'a str, Option<String>)> {
        let end = boundaries.choose_page_end(1, &TABLE, start, keys.iter().copied());
        end.map(|end| (end.row_count, end.partition_key, end.row_key))
    }

    #[test]
    fn where_a_page_ends() {
        let none = Boundaries::default();
        let partitions = Boundaries { partitions: 1.0, ..none };
        let empty = Boundaries { empty: 1.0, ..none };
        let rows = Boundaries { page_rows: Some(2), ..none };
        let every = Boundaries { partitions: 1.0, empty: 1.0, page_rows: Some(1), examined_rows: None };
        let keys = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")];
        for (boundaries, start, keys, expected) in [
            (none, None, &keys[..], None),
            (partitions, None, &keys, Some((3, "b", None))),
            (partitions, Some(("a", None)), &keys[..3], None),
            (rows, None, &keys, Some((2, "a", Some("3")))),
            (rows, None, &keys[..2], None),
            // An empty page leads to its first row, and the page that starts there has it.
            (empty, None, &keys, Some((0, "a", None))),
            (empty, Some(("a", None)), &keys, Some((0, "a", Some("1")))),
            (empty, Some(("a", Some("1"))), &keys, None),
            (empty, Some(("a", Some("0"))), &keys, Some((0, "a", Some("1")))),
            (empty, Some(("Z", Some("9"))), &keys, Some((0, "a", None))),
            (empty, None, &[], None),
            (every, Some(("a", Some("1"))), &keys, Some((1, "a", Some("1\0")))),
            (every, Some(("a", Some("1\0"))), &keys[1..], Some((0, "a", Some("2")))),
            (every, Some(("a", Some("3"))), &keys[2..], Some((1, "b", None))),
        ] {
            let expected = expected.map(|(count, partition, row)| (count, partition, row.map(str::to_owned)));
            assert_eq!(end(boundaries, start, keys), expected, "{boundaries:?} from {start:?}");
        }
    }

    #[test]
    fn a_seed_chooses_some_places_and_they_stay() {
        let half = Boundaries { partitions: 0.5, ..Boundaries::default() };
        let names: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
        let ends = |seed: u64| -> Vec<bool> {
            let pairs = names.windows(2).map(|pair| [(pair[0].as_str(), ""), (pair[1].as_str(), "")]);
            pairs.map(|pair| half.choose_page_end(seed, &TABLE, None, pair).is_some()).collect()
        };
        let chosen = ends(5).iter().filter(|end| **end).count();
        assert!((70..130).contains(&chosen), "{chosen}");
        assert_eq!(ends(5), ends(5));
        assert_ne!(ends(5), ends(6));
    }

    proptest! {
        /// A client that follows the tokens sees each row once, and ends.
        #[test]
        fn tokens_lead_to_each_row_once(
            rows in prop::collection::btree_set((0u8..6, 0u8..6), 0..30),
            partitions in 0.0f64..=1.0,
            empty in 0.0f64..=1.0,
            page_rows in prop::option::of(1usize..5),
            server_rows in 1usize..12,
            seed in any::<u64>(),
        ) {
            let boundaries = Boundaries { partitions, empty, page_rows, examined_rows: None };
            let rows: Vec<(String, String)> =
                rows.into_iter().map(|(partition, row)| (format!("p{partition}"), format!("r{row}"))).collect();
            let mut start: Option<(String, Option<String>)> = None;
            let mut seen = Vec::new();
            for _ in 0..=4 * rows.len() {
                let at = start.as_ref().map(|(partition, row)| (partition.as_str(), row.as_deref().unwrap_or("")));
                let rest: Vec<KeyPair<'_>> = rows
                    .iter()
                    .map(|(partition, row)| (partition.as_str(), row.as_str()))
                    .filter(|key| at.is_none_or(|at| *key >= at))
                    .collect();
                let page = &rest[..rest.len().min(server_rows)];
                let from = start.as_ref().map(|(partition, row)| (partition.as_str(), row.as_deref()));
                let (count, next) = match boundaries.choose_page_end(seed, &TABLE, from, page.iter().copied()) {
                    Some(end) => {
                        (end.row_count, Some((end.partition_key.to_owned(), end.row_key)))
                    }
                    None => {
                        let next = rest.get(page.len());
                        (page.len(), next.map(|(partition, row)| (partition.to_string(), Some(row.to_string()))))
                    }
                };
                seen.extend(page[..count].iter().map(|(partition, row)| (partition.to_string(), row.to_string())));
                start = next;
                if start.is_none() {
                    break;
                }
            }
            prop_assert_eq!(start, None, "the tokens lead to an end");
            prop_assert_eq!(seen, rows);
        }
    }
}
