//! The table, queue or container that a run makes, loads and drops again.
//!
//! What always holds: it has a name of its own, so nothing that was there is touched; it is dropped whatever
//! happened, and if that can't be done, that is said.

use super::calls::Caller;
use super::calls::blob::{BlobCaller, blob_name, blob_size};
use super::calls::filler::Filler;
use super::calls::queue::QueueCaller;
use super::calls::table::{TableCaller, entity};
use super::calls::table_access::TableAccess;
use super::stop::Stop;
use crate::measure::recorder::Recorder;
use crate::plan::Plan;
use crate::workload::chance::Chance;
use crate::workload::key_space::{KeySpace, LoadGroup};
use crate::workload::mix::Sizes;
use crate::workload::operation::OperationKind;
use futures_util::future::try_join_all;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use storage_client::{
    BlobWrite, ContainerClient, Error, GROUP_OPERATIONS_MAX, GroupOperation, PutMessage, QueueClient,
    Service, StorageAccount, TableClient,
};

/// Requests under way while it is loaded.
pub(crate) const LOADERS: usize = 16;
/// Bytes of entities that are loaded in one request.
const LOAD_GROUP_SIZE_BYTES: u64 = 1 << 20;

/// What is loaded.
#[derive(Clone)]
pub(crate) enum Place {
    Table(TableClient),
    Queue(QueueClient),
    Blob(ContainerClient),
}

/// What the clients of a worker share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) keys: Arc<KeySpace>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) filler: Filler,
}

/// A name that nothing has: for a table, a queue or a container.
pub(crate) fn new_name(random: &dyn base::Random) -> String {
    format!("stress{:016x}", random.next_u64())
}

impl Place {
    pub(crate) fn of(account: &StorageAccount, service: Service, name: &str) -> Self {
        match service {
            Service::Table => Place::Table(account.table(name)),
            Service::Queue => Place::Queue(account.queue(name)),
            Service::Blob => Place::Blob(account.container(name)),
        }
    }

    /// For messages: `table stress1f…`.
    pub(crate) fn title(&self) -> String {
        match self {
            Place::Table(table) => format!("table {}", table.name()),
            Place::Queue(queue) => format!("queue {}", queue.name()),
            Place::Blob(container) => format!("container {}", container.name()),
        }
    }

    pub(crate) async fn create(&self) -> Result<(), Error> {
        match self {
            Place::Table(table) => table.create().await,
            Place::Queue(queue) => queue.create(&BTreeMap::new()).await.map(drop),
            Place::Blob(container) => container.create(&BTreeMap::new()).await,
        }
    }

    /// Drops it with all that is in it; that it is not there is no error.
    pub(crate) async fn delete(&self) -> Result<(), Error> {
        let deleted = match self {
            Place::Table(table) => table.delete().await,
            Place::Queue(queue) => queue.delete().await,
            Place::Blob(container) => container.delete().await,
        };
        match deleted {
            Err(error) if error.is_not_found() || error.code().ends_with("BeingDeleted") => Ok(()),
            deleted => deleted,
        }
    }

    /// Loads what is to be there; `loaded` counts it. Ends early, without error, when it is to stop.
    pub(crate) async fn load(
        &self,
        keys: &KeySpace,
        sizes: &Sizes,
        loaded: &AtomicU64,
        stop: &Stop,
    ) -> Result<(), Error> {
        let group_size = match self {
            Place::Table(_) => {
                (LOAD_GROUP_SIZE_BYTES / sizes.largest_item().max(1)).clamp(1, GROUP_OPERATIONS_MAX as u64)
            }
            Place::Queue(_) | Place::Blob(_) => 1,
        };
        let groups = keys.load_groups(group_size);
        let filler = Filler::new(sizes.largest_item());
        let next = AtomicUsize::new(0);
        let loaders = (0..LOADERS).map(|_| async {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.is_set() {
                    break;
                }
                self.load_group(*group, keys, sizes, &filler).await?;
                loaded.fetch_add(group.numbers().count() as u64, Ordering::Relaxed);
            }
            Ok(())
        });
        try_join_all(loaders).await.map(drop)
    }

    async fn load_group(
        &self,
        group: LoadGroup,
        keys: &KeySpace,
        sizes: &Sizes,
        filler: &Filler,
    ) -> Result<(), Error> {
        let mut all = group.numbers().map(|number| keys.loaded(number));
        match self {
            Place::Table(table) => {
                let entities = all.map(|key| GroupOperation::InsertOrReplace(entity(&key, sizes, filler)));
                table.submit(&entities.collect::<Vec<_>>()).await.map(drop)
            }
            Place::Queue(queue) => {
                let size = sizes.of_item(all.next().map_or(0, |key| key.row));
                queue.put(filler.text(size), PutMessage::default()).await.map(drop)
            }
            Place::Blob(container) => {
                let Some(key) = all.next() else { return Ok(()) };
                let content = filler.bytes(blob_size(&key, sizes));
                container.blob(blob_name(&key)).put(content, &BlobWrite::default()).await.map(drop)
            }
        }
    }

    /// A client of it; clients of a run differ by their number.
    pub(crate) fn caller(&self, plan: &Plan, shared: &Shared, number: u64) -> Caller {
        let Shared { keys, recorder, filler } = shared.clone();
        let (sizes, chance) = (plan.mix.sizes.clone(), Chance::of(plan.seed, number));
        match self.clone() {
            Place::Table(table) => {
                let (partition, row) = (String::new(), String::new());
                let table = TableAccess::of(table);
                let caller = TableCaller { table, keys, recorder, sizes, filler, chance, partition, row };
                Caller::Table(Box::new(caller))
            }
            Place::Queue(queue) => {
                let held = plan.mix.has(OperationKind::Delete).then(VecDeque::new);
                Caller::Queue(Box::new(QueueCaller { queue, sizes, filler, chance, held }))
            }
            Place::Blob(container) => {
                Caller::Blob(Box::new(BlobCaller { container, keys, recorder, sizes, filler, chance }))
            }
        }
    }
}
