//! A page of an account's containers (queues, blob containers), in the order of their names.
//!
//! What always holds: a page ends after a bounded number of rows, deleted ones included, and says where the
//! next one begins, which is behind them; so following pages ends.

use crate::container::{container_key, containers_with_prefix};
use base::codec::DecodeError;
use partition::key::parse_row_key;
use partition::{ObjectTable, PartitionError, Partitions, RowRef, Scan, ScanEnd, Visit};

/// Deleted rows, still stored, that a page of containers is led over; then it ends, short or empty.
pub const PASSED_OVER_ROWS_MAX: u64 = 200_000;

/// Which containers to list.
#[derive(Clone, Copy, Debug)]
pub struct ContainerListQuery<'a> {
    /// Whose.
    pub account: &'a str,
    /// Of which service, such as [`crate::SERVICE_BLOB`].
    pub service: &'a str,
    /// What names start with.
    pub prefix: &'a str,
    /// The first name of the page, as the last page gave it.
    pub start: Option<&'a str>,
    /// Containers at most.
    pub count_max: usize,
    /// Deleted rows that are passed over, about; [`PASSED_OVER_ROWS_MAX`] but in tests.
    pub passed_over_max: u64,
}

/// Reads a page, each row with `decode`, which leaves out what is not to be listed, and the name where the
/// next page begins, if there may be one. The page may be short, or empty, and have a next one.
///
/// # Errors
/// What the partition layer says; a row that can't be read is [`PartitionError::Storage`].
pub async fn read_container_page<T: Send + 'static>(
    partitions: &Partitions,
    query: ContainerListQuery<'_>,
    decode: fn(&[u8]) -> Result<Option<T>, DecodeError>,
) -> Result<(Vec<T>, Option<String>), PartitionError> {
    let ContainerListQuery { account, service, prefix, start, count_max, passed_over_max } = query;
    let mut range = containers_with_prefix(account, service, prefix);
    if let Some(start) = start {
        range.start = range.start.max(container_key(account, service, start).as_bytes().clone());
    }
    if range.is_empty() {
        return Ok((Vec::new(), None));
    }
    let scan = ContainerScan {
        decode,
        rows: Vec::new(),
        count_max,
        passed_over_left: passed_over_max,
        damage: None,
    };
    let (scan, end) = partitions.scan(ObjectTable::Container, range, scan).await?;
    let damaged = |damage: DecodeError| PartitionError::Storage(format!("stored row: {damage}"));
    match (scan.damage, end) {
        (Some(damage), _) => Err(damaged(damage)),
        (None, ScanEnd::Complete) => Ok((scan.rows, None)),
        (None, ScanEnd::More(key)) => {
            let parts = parse_row_key(&key).ok_or(DecodeError("container key")).map_err(damaged)?;
            Ok((scan.rows, Some(parts.object_name)))
        }
    }
}

struct ContainerScan<T> {
    decode: fn(&[u8]) -> Result<Option<T>, DecodeError>,
    rows: Vec<T>,
    count_max: usize,
    passed_over_left: u64,
    damage: Option<DecodeError>,
}

impl<T: Send + 'static> Scan for ContainerScan<T> {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.rows.len() >= self.count_max || self.passed_over_left == 0 {
            return Visit::StopBefore;
        }
        match (self.decode)(row.value) {
            Ok(row) => {
                self.rows.extend(row);
                Visit::Continue
            }
            Err(damage) => {
                self.damage = Some(damage);
                Visit::StopBefore
            }
        }
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.passed_over_left = self.passed_over_left.saturating_sub(unseen);
        if self.passed_over_left > 0 { Visit::Continue } else { Visit::StopBefore }
    }
}
