//! A page of an account's queues, in the order of their names.

use crate::error::QueueError;
use crate::limits::PAGE_QUEUES_MAX;
use crate::queue_row::{Metadata, QueueRow};
use base::codec::DecodeError;
use partition::{ObjectTable, Partitions, RowRef, Scan, ScanEnd, Visit};
use service::SERVICE_QUEUE;
use service::container::{container_key, containers_with_prefix};

/// Which queues to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueListQuery {
    /// What names start with.
    pub prefix: String,
    /// The first name of the page, as the last page gave it.
    pub start: Option<String>,
    /// How many at most; more than [`PAGE_QUEUES_MAX`] are not listed at once.
    pub count_max: usize,
}

/// One queue of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// What its user attached.
    pub metadata: Metadata,
}

/// A page of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueListPage {
    /// The queues.
    pub queues: Vec<QueueSummary>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

struct QueueScan {
    page: QueueListPage,
    count_max: usize,
    damage: Option<DecodeError>,
}

impl QueueScan {
    fn take(&mut self, row: RowRef<'_>) -> Result<Visit, DecodeError> {
        let queue = QueueRow::decode(row.value)?;
        if self.page.queues.len() == self.count_max {
            self.page.next = Some(queue.name);
            return Ok(Visit::StopBefore);
        }
        self.page.queues.push(QueueSummary { name: queue.name, metadata: queue.metadata });
        Ok(Visit::Continue)
    }
}

impl Scan for QueueScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.take(row).unwrap_or_else(|damage| {
            self.damage = Some(damage);
            Visit::StopBefore
        })
    }
}

/// Reads a page.
pub(crate) async fn read_queue_page(
    partitions: &Partitions,
    account: &str,
    query: &QueueListQuery,
) -> Result<QueueListPage, QueueError> {
    let mut range = containers_with_prefix(account, SERVICE_QUEUE, &query.prefix);
    if let Some(start) = &query.start {
        let start = container_key(account, SERVICE_QUEUE, start);
        range.start = range.start.max(start.as_bytes().clone());
    }
    let count_max = query.count_max.min(PAGE_QUEUES_MAX);
    let mut scan = QueueScan { page: QueueListPage::default(), count_max, damage: None };
    while !range.is_empty() {
        let end;
        (scan, end) = partitions.scan(ObjectTable::Container, range.clone(), scan).await?;
        if let Some(damage) = scan.damage {
            return Err(damage.into());
        }
        match end {
            ScanEnd::Complete => break,
            ScanEnd::More(_) if scan.page.next.is_some() => break,
            // The layer below ended at a bound of its own: the page goes on.
            ScanEnd::More(key) => range.start = key,
        }
    }
    Ok(scan.page)
}
