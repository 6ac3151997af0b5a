//! Recomputes the counters of queues from the stored messages, and leaves each message one row: for an
//! offline repair that has lost rows of either.
//!
//! One operation moves a message: it deletes the message's row and puts another. If damage has taken the
//! delete but not the put, because they lay in different blocks of checkpoints, the message has two rows, and
//! would be delivered from both. The row that was written last counts; the others are removed.
//!
//! What always holds: afterwards a message has one row, the count is that of the rows, and no stored message
//! lies before the low water or expires before the head's expiries.

use crate::rows::head_row::HeadRow;
use crate::rows::message_store::{MessageStore, Position, position_of};
use base::BoxFuture;
use base::Ticks;
use partition::{
    Decision, ObjectTable, Operation, PartitionError, Partitions, Read, Row, RowChange, RowKey, RowRef,
    RowVersion, Rows, Scan, ScanEnd, Visit,
};
use std::collections::BTreeMap;

/// Messages in memory at once: a queue with more is read several times.
const MESSAGES_AT_ONCE_MAX: usize = 1 << 20;
/// Rows that one operation removes at most.
const REMOVED_TOGETHER_MAX: usize = 32;

/// What a recount has found and changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecountReport {
    /// Queues whose stored count was wrong or unreadable.
    pub queue_count: u64,
    /// Messages that had several rows and have one now.
    pub settled: Vec<SettledMessage>,
}

/// A message that had several rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledMessage {
    /// The key of the row that was kept: the one that was written last.
    pub kept: RowKey,
    /// The rows that were removed.
    pub removed: Vec<Row>,
}

/// Leaves each message of every queue one row, counts the messages, and stores the counts. The queues must
/// not be in use meanwhile.
pub fn recount_messages<'a>(
    partitions: &'a Partitions,
) -> BoxFuture<'a, Result<RecountReport, PartitionError>> {
    Box::pin(async move {
        let mut done = RecountReport::default();
        let mut after: Option<(String, u64)> = None;
        loop {
            let place = after.as_ref().map(|(account, id)| (account.as_str(), *id));
            let Some((account, messages_id)) = partitions.next_container(ObjectTable::Message, place).await?
            else {
                return Ok(done);
            };
            let store = MessageStore { account: account.clone(), messages_id };
            let message_count = count(partitions, &store, MESSAGES_AT_ONCE_MAX, &mut done.settled).await?;
            done.queue_count += u64::from(partitions.execute(SetHead { store, message_count }).await?);
            after = Some((account, messages_id));
        }
    })
}

/// Counts the messages of a queue, and removes rows that are not the newest of their message.
async fn count(
    partitions: &Partitions,
    store: &MessageStore,
    at_once_max: usize,
    settled: &mut Vec<SettledMessage>,
) -> Result<u64, PartitionError> {
    let mut counted = 0;
    let mut from = Some(0);
    while let Some(first) = from {
        let mut newest = NewestRows::new(first, at_once_max);
        let mut range = store.messages_from(Position::first_at(Ticks(0)), Ticks(u64::MAX));
        loop {
            let (scan, end) = partitions.scan(ObjectTable::Message, range.clone(), newest).await?;
            newest = scan;
            match end {
                ScanEnd::Complete => break,
                ScanEnd::More(next) => range.start = next,
            }
        }
        counted += newest.rows.len() as u64;
        for (kept, stale) in newest.stale() {
            let mut removed = Vec::new();
            for stale in stale.chunks(REMOVED_TOGETHER_MAX) {
                let keys = stale.iter().map(|position| store.message_key(*position)).collect();
                removed.extend(partitions.execute(RemoveRows { keys }).await?);
            }
            settled.push(SettledMessage { kept: store.message_key(kept), removed });
        }
        from = newest.continue_at;
    }
    Ok(counted)
}

/// The rows of up to `at_once_max` messages, from the insertion `first` on.
struct NewestRows {
    first: u64,
    at_once_max: usize,
    /// By insertion.
    rows: BTreeMap<u64, MessageRows>,
    /// Messages from this insertion on are left to the next read of the queue.
    continue_at: Option<u64>,
}

/// The rows of one message.
struct MessageRows {
    newest: (RowVersion, Position),
    stale: Vec<Position>,
}

impl NewestRows {
    fn new(first: u64, at_once_max: usize) -> Self {
        NewestRows { first, at_once_max, rows: BTreeMap::new(), continue_at: None }
    }

    fn add(&mut self, position: Position, version: RowVersion) {
        let insertion = position.insertion;
        if insertion < self.first || self.continue_at.is_some_and(|continue_at| insertion >= continue_at) {
            return;
        }
        let found = (version, position);
        self.rows
            .entry(insertion)
            .and_modify(|rows| {
                let older = found.min(rows.newest);
                rows.newest = found.max(rows.newest);
                rows.stale.push(older.1);
            })
            .or_insert_with(|| MessageRows { newest: found, stale: Vec::new() });
        if self.rows.len() > self.at_once_max {
            self.continue_at = self.rows.pop_last().map(|(insertion, _)| insertion);
        }
    }

    /// The messages that have several rows: the position of the newest row and those of the others.
    fn stale(&mut self) -> Vec<(Position, Vec<Position>)> {
        let several = self.rows.values_mut().filter(|rows| !rows.stale.is_empty());
        several.map(|rows| (rows.newest.1, std::mem::take(&mut rows.stale))).collect()
    }
}

impl Scan for NewestRows {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if let Some(position) = position_of(row.key) {
            self.add(position, row.version);
        }
        Visit::Continue
    }
}

/// Removes rows of one queue. The counters stay as they are, because they are recomputed afterwards.
struct RemoveRows {
    keys: Vec<RowKey>,
}

impl Operation for RemoveRows {
    /// The rows that were removed.
    type Reply = Vec<Row>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        self.keys.iter().cloned().map(Read::Point).collect()
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Vec<Row>> {
        let changes = self.keys.iter().map(|key| RowChange::Delete { key: key.clone() }).collect();
        let found = (0..self.keys.len()).filter_map(|index| rows.point(index).cloned());
        Decision { changes, reply: found.collect() }
    }
}

/// Stores counters that claim nothing but the count: the next get or sweep of the queue determines the rest.
struct SetHead {
    store: MessageStore,
    message_count: u64,
}

impl Operation for SetHead {
    /// Whether the stored count was wrong or unreadable.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.store.head_key())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<bool> {
        let found = HeadRow::open(rows.point(0));
        let same_count = found.as_ref().is_ok_and(|head| head.message_count == self.message_count);
        let head = HeadRow::of_unknown(self.message_count);
        Decision { changes: vec![head.put(self.store.head_key())], reply: !same_count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_that_was_written_last_is_what_a_message_is() {
        let position = |(visible_at, insertion)| Position { visible_at: Ticks(visible_at), insertion };
        // Where a row lies, its message, its version; the second message has three rows, the fourth two.
        let rows = [(1, 1, 1), (2, 2, 2), (3, 3, 3), (5, 4, 9), (7, 2, 8), (8, 2, 5), (9, 4, 4)];
        for at_once_max in 1..6 {
            let (mut from, mut count, mut stale) = (Some(0), 0, Vec::new());
            while let Some(first) = from {
                let mut newest = NewestRows::new(first, at_once_max);
                for (visible_at, insertion, version) in rows {
                    newest.add(position((visible_at, insertion)), RowVersion(version));
                }
                assert!(newest.rows.len() <= at_once_max);
                count += newest.rows.len();
                stale.extend(newest.stale());
                from = newest.continue_at;
            }
            let second = (position((7, 2)), [(2, 2), (8, 2)].map(position).to_vec());
            let fourth = (position((5, 4)), [(9, 4)].map(position).to_vec());
            assert_eq!((count, stale), (4, vec![second, fourth]), "{at_once_max}");
        }
    }

    #[test]
    fn the_counters_say_what_was_counted_and_nothing_else() {
        let store = MessageStore { account: "acct".to_owned(), messages_id: 7 };
        let operation = SetHead { store: store.clone(), message_count: 5 };
        let head = HeadRow { low_water: Ticks(900), ..HeadRow::of_unknown(5) };
        let row = |head: &HeadRow| match head.put(store.head_key()) {
            RowChange::Put { key, value } => Row { key, version: RowVersion(1), value },
            RowChange::Delete { .. } => panic!("a head is put"),
        };
        for (found, changed) in [(None, true), (Some(HeadRow::of_unknown(4)), true), (Some(head), false)] {
            let rows = Rows::new(vec![found.iter().map(row).collect()]);
            let decided = operation.decide(&rows, RowVersion(2));
            assert_eq!(decided.reply, changed, "{found:?}");
            assert_eq!(decided.changes, [HeadRow::of_unknown(5).put(store.head_key())]);
        }
    }
}
