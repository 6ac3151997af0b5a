//! Telling rows of deleted containers along a walk whose keys rise: the marks are read beside it, a bounded
//! number at a time.
//!
//! What always holds: a row is taken for dead only if a durable mark of its container was read; marks that
//! can't be read make a walk keep rows, or fail, as its caller chooses. A mark that is set while a walk is
//! under way may count for it or not.

use super::container_marks::{MarkRows, ReadMarks, marks_from};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::operation::{ObjectTable, RowRef, Scan, Visit};
use bytes::Bytes;
use std::sync::Arc;

/// Tells dead rows along a walk whose keys rise.
pub(crate) struct DeadFilter {
    /// `None`: there is no mark to be read any more.
    marks: Option<Arc<dyn MarkRows>>,
    table: ObjectTable,
    count_max: usize,
    /// Sorted; none starts another.
    prefixes: Vec<Bytes>,
    /// Those before it lie behind.
    at: usize,
    /// It knows of all marks from where the walk is up to here; `None`: of all that are left.
    known_until: Option<Bytes>,
}

impl DeadFilter {
    /// Of a table without marks.
    pub(crate) fn none(table: ObjectTable) -> Self {
        DeadFilter { marks: None, table, count_max: 1, prefixes: Vec::new(), at: 0, known_until: None }
    }

    /// Reads the marks of a table, at most so many at a time.
    pub(crate) fn over(marks: Arc<dyn MarkRows>, table: ObjectTable, count_max: usize) -> Self {
        let known_until = Some(Bytes::new());
        DeadFilter { marks: Some(marks), table, count_max, prefixes: Vec::new(), at: 0, known_until }
    }

    /// Whether it can tell about `key` without reading on.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.known_until.as_ref().is_none_or(|until| key < until)
    }

    /// Reads the marks that come next on a walk that is at `key`, unless they are known.
    pub(crate) async fn read_on(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        let Some(marks) = self.marks.as_ref().filter(|_| !self.knows(key)) else { return Ok(()) };
        let mut read = ReadMarks::new(self.count_max);
        marks.show(&marks_from(self.table, key), &mut read).await?;
        read.check()?;
        self.prefixes = read.found.into_iter().map(|(dead, _)| dead.prefix).collect();
        self.at = 0;
        self.known_until = read.next.map(|dead| dead.prefix);
        Ok(())
    }

    /// The same for a walk that frees space and must not fail for want of that: where marks don't read, no
    /// row is dead from here on.
    pub(crate) async fn read_on_or_end(&mut self, key: &[u8]) {
        if let Err(error) = self.read_on(key).await {
            let table = self.table.name();
            tracing::warn!(table, %error, "rows of deleted containers stay: their marks can't be read");
            *self = DeadFilter::none(self.table);
        }
    }

    /// Whether the row belongs to a dead container. Keys rise from call to call, and it knows this one.
    pub(crate) fn drops(&mut self, key: &[u8]) -> bool {
        while let Some(prefix) = self.prefixes.get(self.at) {
            if key.starts_with(prefix) {
                return true;
            }
            if key < prefix.as_ref() {
                return false;
            }
            self.at += 1;
        }
        false
    }

    /// Where the next dead rows begin, if those at the key that was asked about last are none.
    pub(crate) fn next_dead(&self) -> Option<&Bytes> {
        self.prefixes.get(self.at).or(self.known_until.as_ref())
    }
}

/// Shows a scan the rows of containers that are there. Its caller walks part after part.
pub(crate) struct AliveRows<S> {
    dead: DeadFilter,
    scan: S,
    rest: Option<KeyRange>,
}

impl<S: Scan> AliveRows<S> {
    pub(crate) fn new(dead: DeadFilter, keys: KeyRange, scan: S) -> Self {
        AliveRows { dead, scan, rest: Some(keys) }
    }

    /// The keys that are to be walked over next; `None`: the walk is at its end, or the scan stopped.
    pub(crate) async fn next_part(&mut self) -> Result<Option<KeyRange>, PartitionError> {
        let Some(KeyRange { start, end }) = self.rest.take() else { return Ok(None) };
        self.dead.read_on(&start).await?;
        let until = self.dead.known_until.clone().filter(|until| end.as_ref().is_none_or(|end| until < end));
        Ok(Some(match until {
            None => KeyRange { start, end },
            Some(until) => {
                self.rest = Some(KeyRange { start: until.clone(), end });
                KeyRange { start, end: Some(until) }
            }
        }))
    }

    /// The scan that has seen them.
    pub(crate) fn into_scan(self) -> S {
        self.scan
    }

    fn noting_the_end(&mut self, visit: Visit) -> Visit {
        if visit == Visit::StopBefore {
            self.rest = None;
        }
        visit
    }
}

impl<S: Scan> Scan for AliveRows<S> {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.dead.drops(row.key) {
            return Visit::Continue;
        }
        let visit = self.scan.visit(row);
        self.noting_the_end(visit)
    }

    fn needs_overflow(&self) -> bool {
        self.scan.needs_overflow()
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        let visit = self.scan.pass_over(unseen);
        self.noting_the_end(visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use crate::map::container_marks::{DeadContainer, MarkContainers};
    use crate::map::map_copy::MapContent;
    use crate::operation::{Operation, RowChange, RowVersion, Rows};
    use base::Ticks;

    const TABLE: ObjectTable = ObjectTable::Entity;

    /// Containers with marks among so many of each of two accounts.
    fn is_dead(id: u64) -> bool {
        id.is_multiple_of(3) || (20..40).contains(&id)
    }

    /// Marks of these, as a map's content.
    fn marks_of<'a>(dead: impl Iterator<Item = (ObjectTable, &'a str, u64)>) -> MapContent {
        let mut content = MapContent::default();
        for (table, account, id) in dead {
            let dead = vec![DeadContainer::new(table, account, id)];
            let mark = MarkContainers { dead, since: Some(Ticks(1)) };
            for change in mark.decide(&Rows::new(vec![vec![]]), RowVersion(1)).changes {
                if let RowChange::Put { key, value } = change {
                    content.rows.insert(key, (RowVersion(1), value));
                }
            }
        }
        content
    }

    fn filter(count_max: usize) -> DeadFilter {
        let entity = ["a", "b"].into_iter().flat_map(|account| (0..60).map(move |id| (TABLE, account, id)));
        let others = (0..60).map(|id| (ObjectTable::Container, "a", id));
        let dead = entity.filter(|(_, _, id)| is_dead(*id)).chain(others);
        DeadFilter::over(Arc::new(marks_of(dead)), TABLE, count_max)
    }

    fn rows() -> impl Iterator<Item = (RowKey, bool)> {
        let containers =
            ["", "a", "aa", "b", "c"].into_iter().flat_map(|account| (0..60).map(move |id| (account, id)));
        containers.flat_map(|(account, id)| {
            let gone = is_dead(id) && ["a", "b"].contains(&account);
            ["p", "q"].map(|name| (RowKey::new(account, id, name, "r"), gone))
        })
    }

    #[tokio::test]
    async fn a_walk_drops_the_rows_of_dead_containers_and_no_others() {
        for count_max in [0, 1, 2, 7, 1000] {
            // Walks that see every row, or few: they skip many marks.
            for step in [1, 5, 37, 250] {
                let mut filter = filter(count_max);
                for (key, gone) in rows().step_by(step) {
                    filter.read_on(key.as_bytes()).await.unwrap();
                    assert!(filter.prefixes.len() <= count_max.max(1), "{} at hand", filter.prefixes.len());
                    assert_eq!(filter.drops(key.as_bytes()), gone, "{count_max}, {step}: {key:?}");
                    if !gone {
                        let next = rows().find(|(other, gone)| *gone && other > &key).map(|(key, _)| key);
                        let told = filter.next_dead().cloned();
                        assert_eq!(
                            told.is_some_and(|told| next
                                .as_ref()
                                .is_some_and(|next| next.as_bytes().starts_with(&told))),
                            next.is_some(),
                            "{count_max}, {step}: behind {key:?}"
                        );
                    }
                }
            }
        }
    }

    /// Takes keys, up to a number.
    struct Take(Vec<Bytes>, usize);

    impl Scan for Take {
        fn visit(&mut self, row: RowRef<'_>) -> Visit {
            if self.0.len() == self.1 {
                return Visit::StopBefore;
            }
            self.0.push(Bytes::copy_from_slice(row.key));
            Visit::Continue
        }
    }

    #[tokio::test]
    async fn a_scan_is_shown_the_other_rows_part_after_part() {
        for (count_max, taken_max) in [(1, 1000), (1, 50), (3, 1000), (1000, 1000), (1000, 50)] {
            let expected: Vec<Bytes> =
                rows().filter(|(_, gone)| !gone).map(|(key, _)| key.as_bytes().clone()).collect();
            let mut alive = AliveRows::new(filter(count_max), KeyRange::all(), Take(Vec::new(), taken_max));
            while let Some(part) = alive.next_part().await.unwrap() {
                for (key, _) in rows().filter(|(key, _)| part.contains(key.as_bytes())) {
                    let row = RowRef { key: key.as_bytes(), version: RowVersion(1), value: &[] };
                    if alive.visit(row) == Visit::StopBefore {
                        break;
                    }
                }
            }
            let taken = alive.into_scan().0;
            assert!(taken == expected[..expected.len().min(taken_max)], "{count_max}, {taken_max}");
        }
    }
}
