//! The facade of the Queue service: each method checks what it is given, finds the queue, and runs one
//! operation or scan.

use crate::error::QueueError;
use crate::expiry::sweep::{self, Sweeper};
use crate::limits::{MESSAGE_SIZE_BYTES_MAX, MESSAGES_TAKEN_MAX};
use crate::messages::delete_message::DeleteMessage;
use crate::messages::front::{next_read_count, read_count};
use crate::messages::low_waters::LowWaters;
use crate::messages::message::{Message, UpdatedMessage};
use crate::messages::message_handle::MessageHandle;
use crate::messages::message_id::{MessageId, PopReceipt};
use crate::messages::peek_messages::PeekMessages;
use crate::messages::put_message::PutMessage;
use crate::messages::take_messages::TakeMessages;
use crate::messages::update_message::UpdateMessage;
use crate::queues::change_queue::{ChangeQueue, QueueChange};
use crate::queues::create_queue::CreateQueue;
use crate::queues::queue_list::{QueueListPage, QueueListQuery, read_queue_page};
use crate::rows::head_row::HeadRow;
use crate::rows::message_store::{MessageStore, Position};
use crate::rows::queue_row::{Metadata, QueueRow, check_metadata, messages_id_of};
use base::{Clock, Random, Spawner, Ticks};
use bytes::Bytes;
use partition::{ObjectTable, Partitions, Row};
use service::container::{container_key, settings_key};
use service::policy::check_policies;
use service::{
    ContainerKind, DeleteContainer, RowMemo, SERVICE_QUEUE, ServiceProperties, ServicePropertiesUpdate,
    SetServiceProperties, StoredPolicy, check_container_name, read_service_properties,
};
use std::sync::Arc;
use std::time::Duration;

/// The object tables of queues and their messages.
const QUEUES: ContainerKind =
    ContainerKind { service: SERVICE_QUEUE, objects: ObjectTable::Message, read_id: messages_id_of };

/// The outcome of a request to create a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatedQueue {
    /// It is new.
    New,
    /// It existed, with the same metadata.
    AlreadyThere,
}

/// The properties of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProperties {
    /// Metadata that a client attached.
    pub metadata: Metadata,
    /// Messages in it, invisible ones included, and expired ones that the sweep has not removed yet.
    pub message_count: u64,
}

/// The facade of the Queue service. Account names are trusted; everything else is checked here.
pub struct QueueService {
    pub(crate) partitions: Arc<Partitions>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    low_waters: LowWaters,
    /// Messages ids of queues.
    messages_ids: RowMemo<u64>,
    sweeper: Arc<Sweeper>,
}

impl QueueService {
    /// The service over these partitions.
    pub fn new(partitions: Arc<Partitions>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        QueueService {
            sweeper: Arc::new(Sweeper { partitions: partitions.clone() }),
            partitions,
            clock,
            random,
            low_waters: LowWaters::default(),
            messages_ids: RowMemo::default(),
        }
    }

    /// Starts the sweep of expired messages, which runs until the service is dropped.
    pub fn start_sweeping(self: &Arc<Self>, spawner: &dyn Spawner) {
        let sweeping = sweep::run(Arc::downgrade(&self.sweeper), self.clock.clone());
        spawner.spawn("queue sweep", Box::pin(sweeping));
    }

    /// Creates a queue. A queue of that name with other metadata is `QueueAlreadyExists`.
    pub async fn create_queue(
        &self,
        account: &str,
        name: &str,
        metadata: Metadata,
    ) -> Result<CreatedQueue, QueueError> {
        check_container_name(name)?;
        check_metadata(&metadata)?;
        let key = container_key(account, SERVICE_QUEUE, name);
        match self.partitions.execute(CreateQueue { key, name: name.to_owned(), metadata }).await?? {
            true => Ok(CreatedQueue::New),
            false => Ok(CreatedQueue::AlreadyThere),
        }
    }

    /// Deletes a queue with its messages.
    pub async fn delete_queue(&self, account: &str, name: &str) -> Result<(), QueueError> {
        check_container_name(name)?;
        let key = container_key(account, SERVICE_QUEUE, name);
        let row = self.partitions.execute(DeleteContainer { key }).await?;
        // The queue is deleted even if this fails.
        QUEUES.retire(&self.partitions, account, &row.ok_or(QueueError::QueueNotFound)?).await;
        Ok(())
    }

    /// Bytes of disk space that have to become free before writes are admitted again; 0: they are admitted.
    pub fn missing_space_bytes(&self) -> u64 {
        self.partitions.missing_space_bytes()
    }

    /// Starts a task that retires orphaned messages of deleted queues now and then, until the partitions are
    /// dropped.
    pub fn start_retiring(&self, spawner: &dyn Spawner) {
        let retiring = QUEUES.keep_retiring_lost(Arc::downgrade(&self.partitions), self.clock.clone());
        spawner.spawn("queue retire-lost", Box::pin(retiring));
    }

    /// Retires orphaned messages: those of queues that were deleted but not retired, because the process
    /// ended or the request was dropped in between. Returns the number of such queues.
    pub async fn retire_lost_queues(&self) -> Result<u64, QueueError> {
        Ok(QUEUES.retire_lost(&self.partitions).await?)
    }

    /// A page of the account's queues.
    pub async fn list_queues(
        &self,
        account: &str,
        query: &QueueListQuery,
    ) -> Result<QueueListPage, QueueError> {
        read_queue_page(&self.partitions, account, query).await
    }

    /// The queue's metadata and its number of messages.
    pub async fn queue_properties(&self, account: &str, name: &str) -> Result<QueueProperties, QueueError> {
        let queue = QueueRow::decode(&self.queue_row(account, name).await?.value)?;
        let store = MessageStore { account: account.to_owned(), messages_id: queue.messages_id };
        let message_count = self.head(&store).await?.message_count;
        Ok(QueueProperties { metadata: queue.metadata, message_count })
    }

    /// Replaces the queue's metadata.
    pub async fn set_queue_metadata(
        &self,
        account: &str,
        name: &str,
        metadata: Metadata,
    ) -> Result<(), QueueError> {
        check_metadata(&metadata)?;
        self.change_queue(account, name, QueueChange::Metadata(metadata)).await.map(drop)
    }

    /// The queue's stored access policies.
    pub async fn queue_policies(&self, account: &str, name: &str) -> Result<Vec<StoredPolicy>, QueueError> {
        Ok(QueueRow::decode(&self.queue_row(account, name).await?.value)?.policies)
    }

    /// Replaces the queue's stored access policies.
    pub async fn set_queue_policies(
        &self,
        account: &str,
        name: &str,
        policies: Vec<StoredPolicy>,
    ) -> Result<(), QueueError> {
        check_policies(&policies)?;
        self.change_queue(account, name, QueueChange::Policies(policies)).await.map(drop)
    }

    /// Removes all messages.
    pub async fn clear_messages(&self, account: &str, name: &str) -> Result<(), QueueError> {
        let before = self.change_queue(account, name, QueueChange::Clear).await?;
        // The messages are unreachable even if this fails.
        QUEUES.retire(&self.partitions, account, &before).await;
        Ok(())
    }

    /// Puts a message that is invisible for `invisible_for`, and that lives for `lives_for`, or for ever.
    pub async fn put_message(
        &self,
        account: &str,
        queue: &str,
        text: Bytes,
        invisible_for: Duration,
        lives_for: Option<Duration>,
    ) -> Result<Message, QueueError> {
        check_text(&text)?;
        let store = self.store(account, queue).await?;
        let put = PutMessage {
            store: store.clone(),
            chance: self.random.next_u64(),
            receipt_number: self.random.next_u64(),
            text,
            invisible_for,
            lives_for,
            low_water: self.low_waters.get(&store),
        };
        self.partitions.execute(put).await?
    }

    /// Takes up to `count` messages, and hides them from other clients for `invisible_for`.
    pub async fn take_messages(
        &self,
        account: &str,
        queue: &str,
        count: usize,
        invisible_for: Duration,
    ) -> Result<Vec<Message>, QueueError> {
        let store = self.store(account, queue).await?;
        let count = count.min(MESSAGES_TAKEN_MAX);
        let receipt_numbers: Vec<u64> = (0..count).map(|_| self.random.next_u64()).collect();
        let mut read_count = read_count(count);
        loop {
            let take = TakeMessages {
                store: store.clone(),
                low_water: self.low_water(&store).await?,
                until: store.now(&self.partitions)?,
                receipt_numbers: receipt_numbers.clone(),
                read_count,
                invisible_for,
            };
            let taken = self.partitions.execute(take).await??;
            self.low_waters.raise(&store, taken.low_water);
            if !taken.may_have_more {
                return Ok(taken.messages);
            }
            read_count = next_read_count(read_count);
        }
    }

    /// Up to `count` messages that could be taken, without taking them.
    pub async fn peek_messages(
        &self,
        account: &str,
        queue: &str,
        count: usize,
    ) -> Result<Vec<Message>, QueueError> {
        let store = self.store(account, queue).await?;
        let mut from = Position::first_at(self.low_water(&store).await?);
        let until = store.now(&self.partitions)?;
        let count = count.min(MESSAGES_TAKEN_MAX);
        let mut read_count = read_count(count);
        loop {
            let peek = PeekMessages { store: store.clone(), from, until, count, read_count };
            let peeked = self.partitions.execute(peek).await??;
            match peeked.continue_at {
                Some(behind) => from = behind,
                None => return Ok(peeked.messages),
            }
            read_count = next_read_count(read_count);
        }
    }

    /// Checks that the queue exists.
    pub async fn find_queue(&self, account: &str, queue: &str) -> Result<(), QueueError> {
        self.store(account, queue).await.map(|_| ())
    }

    /// Hides a message for `invisible_for` from now on, and replaces its text if one is given. A message that
    /// does not exist and a receipt that is not its last one are `MessageNotFound`.
    pub async fn update_message(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: PopReceipt,
        invisible_for: Duration,
        text: Option<Bytes>,
    ) -> Result<UpdatedMessage, QueueError> {
        text.as_ref().map_or(Ok(()), check_text)?;
        let store = self.store(account, queue).await?;
        let handle = MessageHandle { id, receipt };
        let receipt_number = self.random.next_u64();
        let update = UpdateMessage { store, handle, invisible_for, receipt_number, text };
        self.partitions.execute(update).await??.ok_or(QueueError::MessageNotFound)
    }

    /// Deletes a message. It is refused like an update.
    pub async fn delete_message(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: PopReceipt,
    ) -> Result<(), QueueError> {
        let store = self.store(account, queue).await?;
        let low_water = self.low_waters.get(&store);
        let delete = DeleteMessage { store, handle: MessageHandle { id, receipt }, low_water };
        match self.partitions.execute(delete).await?? {
            true => Ok(()),
            false => Err(QueueError::MessageNotFound),
        }
    }

    /// The service's settings; defaults if they were never set.
    pub async fn service_properties(&self, account: &str) -> Result<ServiceProperties, QueueError> {
        let key = settings_key(account, SERVICE_QUEUE);
        let row = self.partitions.get(ObjectTable::Container, &key).await?;
        Ok(read_service_properties(row.as_ref())?)
    }

    /// Changes the roots that are given.
    pub async fn set_service_properties(
        &self,
        account: &str,
        update: ServicePropertiesUpdate,
    ) -> Result<(), QueueError> {
        update.check()?;
        let key = settings_key(account, SERVICE_QUEUE);
        Ok(self.partitions.execute(SetServiceProperties { key, update }).await??)
    }

    /// The queue's low water: the cached one, or the stored one if none is cached.
    async fn low_water(&self, store: &MessageStore) -> Result<Ticks, QueueError> {
        let mut low_water = self.low_waters.get(store);
        if low_water == Ticks(0) {
            low_water = self.head(store).await?.low_water;
            self.low_waters.raise(store, low_water);
        }
        Ok(low_water)
    }

    async fn head(&self, store: &MessageStore) -> Result<HeadRow, QueueError> {
        let row = self.partitions.get(ObjectTable::Message, &store.head_key()).await?;
        Ok(HeadRow::open(row.as_ref())?)
    }

    async fn change_queue(
        &self,
        account: &str,
        name: &str,
        change: QueueChange,
    ) -> Result<Bytes, QueueError> {
        check_container_name(name)?;
        let key = container_key(account, SERVICE_QUEUE, name);
        self.partitions.execute(ChangeQueue { key, change }).await?
    }

    async fn queue_row(&self, account: &str, name: &str) -> Result<Row, QueueError> {
        check_container_name(name)?;
        let key = container_key(account, SERVICE_QUEUE, name);
        let row = self.partitions.get(ObjectTable::Container, &key).await?;
        row.ok_or(QueueError::QueueNotFound)
    }

    async fn store(&self, account: &str, queue: &str) -> Result<MessageStore, QueueError> {
        let key = || {
            check_container_name(queue)?;
            Ok(container_key(account, SERVICE_QUEUE, queue))
        };
        let read = |row: Option<&Row>| Ok(messages_id_of(&row.ok_or(QueueError::QueueNotFound)?.value)?);
        let messages_id =
            self.messages_ids.find::<QueueError>(&self.partitions, (account, queue), key, read).await?;
        Ok(MessageStore { account: account.to_owned(), messages_id })
    }
}

fn check_text(text: &Bytes) -> Result<(), QueueError> {
    if text.len() > MESSAGE_SIZE_BYTES_MAX { Err(QueueError::MessageTooLarge) } else { Ok(()) }
}
