//! Makes the counters of queues anew from the messages that are there: for an offline repair that has lost rows of either.
//!
//! What always holds: afterwards the count is that of the rows, and nothing that is there lies before the low water or expires
//! before the counters say.

use crate::head_row::HeadRow;
use crate::message_store::{MessageStore, Position, position_of};
use base::Ticks;
use partition::{
    Decision, ObjectTable, Operation, PartitionError, Partitions, Read, RowRef, RowVersion, Rows, Scan,
    ScanEnd, Visit,
};

/// Counts the messages of every queue, and stores what they are. Nobody may use the queues meanwhile. Returns how many queues
/// had other counters.
pub async fn recount_messages(partitions: &Partitions) -> Result<u64, PartitionError> {
    let mut changed = 0;
    let mut after: Option<(String, u64)> = None;
    loop {
        let place = after.as_ref().map(|(account, id)| (account.as_str(), *id));
        let Some((account, messages_id)) = partitions.next_container(ObjectTable::Message, place).await?
        else {
            return Ok(changed);
        };
        let store = MessageStore { account: account.clone(), messages_id };
        let message_count = count(partitions, &store).await?;
        changed += u64::from(partitions.execute(SetHead { store, message_count }).await?);
        after = Some((account, messages_id));
    }
}

async fn count(partitions: &Partitions, store: &MessageStore) -> Result<u64, PartitionError> {
    let mut range = store.messages_from(Position::first_at(Ticks(0)), Ticks(u64::MAX));
    let mut counted = CountMessages(0);
    loop {
        let (scan, end) = partitions.scan(ObjectTable::Message, range.clone(), counted).await?;
        counted = scan;
        match end {
            ScanEnd::Complete => return Ok(counted.0),
            ScanEnd::More(next) => range.start = next,
        }
    }
}

struct CountMessages(u64);

impl Scan for CountMessages {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.0 += u64::from(position_of(row.key).is_some());
        Visit::Continue
    }
}

/// Stores counters that say nothing but the count: the next look at the queue finds out the rest.
struct SetHead {
    store: MessageStore,
    message_count: u64,
}

impl Operation for SetHead {
    /// Whether the counters were others.
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
    use partition::{Row, RowChange};

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
