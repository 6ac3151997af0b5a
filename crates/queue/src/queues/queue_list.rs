//! A page of an account's queues, in the order of their names.

use crate::error::QueueError;
use crate::limits::PAGE_QUEUES_MAX;
use crate::rows::queue_row::{Metadata, QueueRow};
use base::codec::DecodeError;
use partition::Partitions;
use service::{ContainerListQuery, PASSED_OVER_ROWS_MAX, SERVICE_QUEUE, read_container_page};

/// Which queues to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueListQuery {
    /// Only queues whose names start with it.
    pub prefix: String,
    /// The first name of the page: the last page's `next`.
    pub start: Option<String>,
    /// Queues in the page at most; it is capped at [`PAGE_QUEUES_MAX`].
    pub count_max: usize,
}

/// One queue of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// Metadata that a client attached.
    pub metadata: Metadata,
}

/// A page of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueListPage {
    /// The queues; where many were deleted, a page with a next one may hold few or none.
    pub queues: Vec<QueueSummary>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

/// Reads a page.
pub(crate) async fn read_queue_page(
    partitions: &Partitions,
    account: &str,
    query: &QueueListQuery,
) -> Result<QueueListPage, QueueError> {
    let list = ContainerListQuery {
        account,
        service: SERVICE_QUEUE,
        prefix: &query.prefix,
        start: query.start.as_deref(),
        count_max: query.count_max.min(PAGE_QUEUES_MAX),
        passed_over_max: PASSED_OVER_ROWS_MAX,
    };
    let (queues, next) = read_container_page(partitions, list, summarize).await?;
    Ok(QueueListPage { queues, next })
}

fn summarize(row: &[u8]) -> Result<Option<QueueSummary>, DecodeError> {
    let QueueRow { name, metadata, .. } = QueueRow::decode(row)?;
    Ok(Some(QueueSummary { name, metadata }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue_service::QueueService;
    use bytes::Bytes;
    use partition::{
        Decision, ObjectTable, Operation, PartitionSettings, PlantedFault, Read, RowChange, RowVersion, Rows,
    };
    use service::container::container_key;
    use sim::World;
    use std::ops::Range;
    use std::sync::Arc;
    use stream::{StreamSettings, Streams};

    const ACCOUNT: &str = "acct";
    const DELETED: u64 = PASSED_OVER_ROWS_MAX + 50_000;

    /// Rows of queues come, or go, which leaves tombstones of those that were there.
    enum ChangeQueues {
        Put(Range<u64>),
        Delete(Range<u64>),
    }

    impl Operation for ChangeQueues {
        type Reply = ();

        fn object_table(&self) -> ObjectTable {
            ObjectTable::Container
        }

        fn reads(&self) -> Vec<Read> {
            vec![Read::Point(container_key(ACCOUNT, SERVICE_QUEUE, ""))]
        }

        fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
            let key = |number| container_key(ACCOUNT, SERVICE_QUEUE, &format!("m{number:06}"));
            let value = Bytes::from_static(b"is deleted before it is read");
            let changes = match self {
                ChangeQueues::Put(numbers) => numbers
                    .clone()
                    .map(|number| RowChange::Put { key: key(number), value: value.clone() })
                    .collect(),
                ChangeQueues::Delete(numbers) => {
                    numbers.clone().map(|number| RowChange::Delete { key: key(number) }).collect()
                }
            };
            Decision { changes, reply: () }
        }
    }

    /// A page once read over the tombstones of all deleted queues: with very many of them it took longer than
    /// its client waited, and each retry began at the same place.
    #[test]
    fn a_page_ends_among_very_many_deleted_queues_and_the_next_one_continues() {
        let finished = World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            // The tombstones stay.
            let settings = PartitionSettings {
                compaction_count_min: 1000,
                memory_table_size_bytes: 1 << 20,
                memory_tables_size_bytes_max: 8 << 20,
                planted_fault: Some(PlantedFault::StuckTombstones),
                ..PartitionSettings::tiny()
            };
            let partitions = Arc::new(Partitions::open(&env, streams, settings).await.unwrap());
            let service = QueueService::new(partitions.clone(), env.clock.clone(), env.random.clone());
            for name in ["before", "zbehind"] {
                service.create_queue(ACCOUNT, name, vec![]).await.unwrap();
            }
            for change in [ChangeQueues::Put, ChangeQueues::Delete] {
                for start in (0..DELETED).step_by(1000) {
                    partitions.execute(change(start..start + 1000)).await.unwrap();
                }
            }
            let mut query = QueueListQuery { count_max: 10, ..QueueListQuery::default() };
            let mut pages = Vec::new();
            loop {
                let page = service.list_queues(ACCOUNT, &query).await.unwrap();
                pages.push(page.queues.into_iter().map(|queue| queue.name).collect::<Vec<_>>());
                assert!(page.next.is_none() || page.next > query.start, "the next page starts later");
                query.start = page.next;
                if query.start.is_none() {
                    break;
                }
            }
            assert_eq!(pages, [["before"], ["zbehind"]]);
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
