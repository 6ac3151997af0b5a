//! The serial section: operations of a range are decided one after the other, against durable and not yet durable
//! rows, and queued for group commit.
//!
//! What always holds: a reply leaves after everything its decision saw or changed is durable, refusals included.

use super::{RangePartition, commit};
use crate::error::PartitionError;
use crate::key::{KeyRange, partition_prefix};
use crate::operation::{Operation, Read, Row, RowChange, RowVersion, Rows};
use crate::{RowKey, commit_log};
use bytes::Bytes;

/// Bytes of changes that may wait for one group.
const PENDING_SIZE_BYTES_MAX: usize = 32 << 20;

impl RangePartition {
    /// Decides `operation`; durable and visible when it returns.
    pub(crate) async fn execute<O: Operation>(&self, operation: O) -> Result<O::Reply, PartitionError> {
        let _admitted = self
            .admission
            .acquire()
            .await
            .map_err(|_| PartitionError::Unavailable("range is closed".to_owned()))?;
        let reads = operation.reads();
        let (reply, durable) = {
            let mut serial = self.serial.lock();
            if let Some(error) = &serial.closed {
                return Err(error.clone());
            }
            if serial.pending.size_bytes() > PENDING_SIZE_BYTES_MAX {
                return Err(PartitionError::Busy);
            }
            let version = next_version(self.clock.now().0, serial.last_version);
            let rows = Rows::new(reads.iter().map(|read| self.newest(read)).collect());
            let decision = operation.decide(&rows, version);
            if !decision.changes.is_empty() {
                check_changes(&decision.changes, &self.range)?;
                serial.last_version = version;
                commit_log::put_operation(serial.pending.group(), version, &decision.changes);
                for change in decision.changes {
                    serial.pending.note(change.key(), version);
                    match change {
                        RowChange::Put { key, value } => {
                            self.memory.insert(key.as_bytes(), version, Some(value))
                        }
                        RowChange::Delete { key } => self.memory.insert(key.as_bytes(), version, None),
                    }
                }
            }
            if serial.last_version == self.visible() {
                return Ok(decision.reply);
            }
            (decision.reply, serial.pending.wait())
        };
        self.commit_wake.notify_one();
        commit::outcome(durable).await?;
        Ok(reply)
    }

    /// What a read finds now, not yet durable changes included.
    fn newest(&self, read: &Read) -> Vec<Row> {
        let newest = RowVersion(u64::MAX);
        match read {
            Read::Point(key) => match self.memory.get(key.as_bytes(), newest) {
                Some(found) => found
                    .value
                    .map(|value| Row { key: key.clone(), version: found.version, value })
                    .into_iter()
                    .collect(),
                None => Vec::new(),
            },
            Read::Range { range, limit } => {
                let mut rows = Vec::new();
                self.memory.scan(range, newest, |key, version, value| {
                    if let Some(value) = value {
                        let key = RowKey::from_bytes(Bytes::copy_from_slice(key));
                        rows.push(Row { key, version, value: value.clone() });
                    }
                    rows.len() < *limit
                });
                rows
            }
        }
    }
}

/// Server time, bumped when the clock stands still or runs backwards.
fn next_version(now_ticks: u64, last: RowVersion) -> RowVersion {
    RowVersion(now_ticks.max(last.0 + 1))
}

/// An operation's changes lie in one partition name of this range.
fn check_changes(changes: &[RowChange], range: &KeyRange) -> Result<(), PartitionError> {
    let prefix =
        partition_prefix(changes[0].key().as_bytes()).ok_or(PartitionError::Operation("not a row key"))?;
    for change in changes {
        let key = change.key().as_bytes();
        if !key.starts_with(prefix) {
            return Err(PartitionError::Operation("changes of two partition names"));
        }
        if !range.contains(key) {
            return Err(PartitionError::Operation("a change outside the range"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_whatever_the_clock_does() {
        assert_eq!(next_version(100, RowVersion(50)), RowVersion(100));
        assert_eq!(next_version(100, RowVersion(100)), RowVersion(101));
        assert_eq!(next_version(7, RowVersion(100)), RowVersion(101));
    }

    #[test]
    fn changes_stay_in_one_partition_name_of_the_range() {
        let put = |partition: &str| RowChange::Delete { key: RowKey::new("a", 1, partition, "r") };
        let range = KeyRange::container("a", 1);
        assert_eq!(check_changes(&[put("p"), put("p")], &range), Ok(()));
        assert!(check_changes(&[put("p"), put("q")], &range).is_err());
        assert!(check_changes(&[put("p")], &KeyRange::container("a", 2)).is_err());
    }
}
