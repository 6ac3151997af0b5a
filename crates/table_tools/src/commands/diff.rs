//! `larimar table diff`: what two tables do not have in common, by key and by value.
//!
//! Ranges of the first table are read, and of each the second one's rows are read along, as in the last step
//! of a merge sort. What always holds: both are read in the order of keys, or it is an error; of the
//! differences all are counted, and the first few by key kept.

use super::{Selection, query};
use crate::access::TableAccess;
use crate::environment::{Stop, ToolEnvironment};
use crate::error::ToolError;
use crate::lines::row::{Row, rows_of_page};
use crate::lines::same::first_difference;
use crate::place::TablePlace;
use crate::scan::key::Key;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use storage_client::Query;

/// Differences that are shown, at most.
const SHOWN_MAX: usize = 20;
/// Characters of a value that is shown, at most.
const VALUE_CHARACTERS_MAX: usize = 60;

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Entities that are the same in both.
    pub same: u64,
    /// Entities of the first table only.
    pub only_left: u64,
    /// Entities of the second table only.
    pub only_right: u64,
    /// Entities of both with other properties.
    pub differing: u64,
    /// The first ones, by key.
    pub first: Vec<Difference>,
}

/// One entity that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its `PartitionKey`.
    pub partition_key: String,
    /// Its `RowKey`.
    pub row_key: String,
    /// How.
    pub what: String,
}

impl Differences {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.only_left + self.only_right + self.differing == 0
    }

    fn add(&mut self, key: &Key, what: impl FnOnce() -> String) {
        // Ranges come in any order: each worker keeps the first of its own, by key.
        let is_before =
            |one: &Difference| key.cmp_parts(&one.partition_key, &one.row_key) == Ordering::Greater;
        let at = self.first.partition_point(is_before);
        if at < SHOWN_MAX {
            let (partition_key, row_key) = (key.partition.clone(), key.row.clone());
            self.first.insert(at, Difference { partition_key, row_key, what: what() });
            self.first.truncate(SHOWN_MAX);
        }
    }

    fn merge(&mut self, other: Self) {
        self.same += other.same;
        self.only_left += other.only_left;
        self.only_right += other.only_right;
        self.differing += other.differing;
        for Difference { partition_key, row_key, what } in other.first {
            self.add(&Key::new(partition_key, row_key), || what);
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Difference { partition_key, row_key, what } in &self.first {
            writeln!(f, "  {partition_key:?} {row_key:?}: {what}")?;
        }
        let Differences { same, only_left, only_right, differing, .. } = self;
        writeln!(
            f,
            "{same} entities are the same, {differing} differ, {only_left} are only in the first table, \
             {only_right} only in the second"
        )
    }
}

/// Compares the selected entities with those of another table.
pub fn diff<'a, 'e: 'a>(
    selection: &'a Selection,
    other: &'a TablePlace,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Differences, ToolError>> {
    Box::pin(async move {
        let table = other.checked(selection.filter.as_deref(), selection.connections, environment).await?;
        let stop = environment.stop.clone();
        let sink = || Comparer {
            table: TableAccess::of(&table),
            filter: selection.filter.clone(),
            stop: stop.clone(),
            left: Side::new(selection.place.url()),
            right: Side::new(other.url()),
            range: None,
            found: Differences::default(),
        };
        let sinks: Vec<Comparer> = (0..selection.connections).map(|_| sink()).collect();
        let compared = selection.scan("comparing", &[], sinks, environment).await;
        let (sinks, _) = compared.map_err(|(error, _)| error)?;
        let mut all = Differences::default();
        sinks.into_iter().for_each(|sink| all.merge(sink.found));
        Ok(all)
    })
}

/// A row of the second table that waits for its turn.
struct Waiting {
    key: Key,
    json: Vec<u8>,
}

/// A worker's reading of the second table.
struct Comparer {
    table: TableAccess,
    filter: Option<String>,
    stop: Stop,
    left: Side,
    right: Side,
    range: Option<Along>,
    found: Differences,
}

/// The second table's rows of a range.
struct Along {
    id: u64,
    query: Query,
    waiting: VecDeque<Waiting>,
    is_end: bool,
}

/// The order of a table's rows, which must be that of keys.
struct Side {
    url: String,
    last: Option<Key>,
}

impl Side {
    fn new(url: String) -> Self {
        Side { url, last: None }
    }

    fn check(&mut self, partition: &str, row: &str) -> Result<(), ToolError> {
        let is_behind =
            self.last.as_ref().is_none_or(|last| last.cmp_parts(partition, row) == Ordering::Less);
        if !is_behind {
            let url = &self.url;
            return Err(ToolError::Refused(format!(
                "{url}: {partition:?} {row:?} comes out of the order of keys, so it can't be compared"
            )));
        }
        self.last = Some(Key::new(partition, row));
        Ok(())
    }
}

impl Comparer {
    /// The next row of the second table stays in front of the queue; whether there is one.
    async fn fill(&mut self) -> Result<bool, ToolError> {
        let Some(along) = &mut self.range else { return Ok(false) };
        let mut body = Vec::new();
        while along.waiting.is_empty() && !along.is_end {
            // It may have much that the first one has not.
            if self.stop.is_set() {
                return Err(ToolError::Stopped);
            }
            along.query.from = self.table.page(&along.query, &mut body).await?;
            along.is_end = along.query.from.is_none();
            for row in rows_of_page(&body).map_err(ToolError::Refused)? {
                self.right.check(&row.partition_key, &row.row_key)?;
                let mut json = Vec::new();
                row.put_json(&mut json);
                let key = Key::new(row.partition_key, row.row_key);
                along.waiting.push_back(Waiting { key, json });
            }
        }
        Ok(!along.waiting.is_empty())
    }

    fn front(&self) -> Option<&Waiting> {
        self.range.as_ref()?.waiting.front()
    }

    fn pop(&mut self) -> Option<Waiting> {
        self.range.as_mut()?.waiting.pop_front()
    }

    async fn compare(&mut self, row: &Row<'_>) -> Result<(), ToolError> {
        self.left.check(&row.partition_key, &row.row_key)?;
        while self.fill().await? {
            let order = self.front().map(|front| front.key.cmp_parts(&row.partition_key, &row.row_key));
            if order == Some(Ordering::Greater) {
                break;
            }
            let Some(Waiting { key, json }) = self.pop() else { break };
            if order == Some(Ordering::Less) {
                self.only_right(&key);
                continue;
            }
            let text = std::str::from_utf8(&json).unwrap_or_default();
            let other = Row::parse(text).map_err(|error| ToolError::Refused(error.to_string()))?;
            match first_difference(row, &other) {
                None => self.found.same += 1,
                Some(difference) => {
                    let shown = |side: Option<(crate::lines::token::EdmType, String)>| match side {
                        None => "absent".to_owned(),
                        Some((kind, text)) => {
                            let text: String = text.chars().take(VALUE_CHARACTERS_MAX).collect();
                            format!("{} {text}", kind.name())
                        }
                    };
                    let (left, right) = (shown(difference.left), shown(difference.right));
                    self.found.differing += 1;
                    self.found.add(&key, || format!("{} is {left}, and {right}", difference.name));
                }
            }
            return Ok(());
        }
        let key = Key::new(&*row.partition_key, &*row.row_key);
        self.found.only_left += 1;
        self.found.add(&key, || "only in the first table".to_owned());
        Ok(())
    }

    fn only_right(&mut self, key: &Key) {
        self.found.only_right += 1;
        self.found.add(key, || "only in the second table".to_owned());
    }
}

impl Sink for Comparer {
    fn take<'a>(
        &'a mut self,
        place: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            if self.range.as_ref().is_none_or(|along| along.id != place.range.id) {
                let query = query(place.range.range.filter_and(self.filter.as_deref()));
                (self.left.last, self.right.last) = (None, None);
                self.range =
                    Some(Along { id: place.range.id, query, waiting: VecDeque::new(), is_end: false });
            }
            for row in rows {
                self.compare(row).await?;
            }
            while place.is_end && self.fill().await? {
                let Some(Waiting { key, .. }) = self.pop() else { break };
                let stop = place.stop.as_ref();
                if stop.is_some_and(|stop| stop.cmp_parts(&key.partition, &key.row) != Ordering::Greater) {
                    break;
                }
                self.only_right(&key);
            }
            Ok(Vec::new())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each worker kept those that it had met first.
    #[test]
    fn the_first_differences_are_those_of_the_least_keys() {
        let mut workers = [Differences::default(), Differences::default()];
        for number in (0..100).rev() {
            let key = Key::new(format!("{:02}", number * 7 % 100), "r");
            workers[number % 2].add(&key, || number.to_string());
        }
        let mut all = Differences::default();
        workers.into_iter().for_each(|one| all.merge(one));
        let found: Vec<String> = all.first.into_iter().map(|one| one.partition_key).collect();
        assert_eq!(found, (0..SHOWN_MAX).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    }
}
