//! Who writes large appends of blob data, large groups of the commit log, and row blocks of memory tables
//! that are flushed: threads of their own, because such an append writes and syncs its extent.
//!
//! What always holds: bytes of blob data that wait or run together stay under a bound, and those of one
//! account under its share; beyond it uploads wait. Accounts take turns. A range has one group of its log
//! under way, and a flush one batch of row blocks. Appends that are small enough for the journal don't come
//! here: they wait for its thread without blocking theirs.

use super::owner_shares::{Admitted, OwnerShares};
use super::round_robin::RoundRobin;
use crate::error::PartitionError;
use base::Spawner;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use stream::{Location, Owner, StreamName, Streams};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Threads that write blob data: one writes while another syncs.
const BLOB_DATA_WRITER_COUNT: usize = 2;
/// Appends that may wait for a thread, of all owners together.
const QUEUE_LEN_MAX: usize = 256;

/// Appends to streams for callers that must not block their thread, or have other work meanwhile.
pub(crate) struct DataWriter {
    queue: Arc<JobQueue>,
    in_flight: OwnerShares,
}

/// Appends that wait for a thread.
struct JobQueue {
    jobs: Mutex<RoundRobin<Bytes, Job>>,
    /// A permit for each job; closed when the writer is dropped.
    ready: Semaphore,
    /// A permit for each job that may wait besides.
    room: Arc<Semaphore>,
}

impl JobQueue {
    /// The next job; `None`: the writer is gone, and nothing is left.
    async fn next(&self) -> Option<Job> {
        if let Ok(permit) = self.ready.acquire().await {
            permit.forget();
        }
        self.jobs.lock().pop()
    }
}

impl Drop for DataWriter {
    fn drop(&mut self) {
        self.queue.ready.close();
    }
}

type Appended = Result<Vec<Location>, PartitionError>;

struct Job {
    stream: StreamName,
    by: Owner,
    blocks: Vec<Bytes>,
    reply: oneshot::Sender<Appended>,
    room: OwnedSemaphorePermit,
}

impl DataWriter {
    /// For blob data, of which so many bytes may be on their way, and large groups.
    pub(crate) fn start(
        spawner: &dyn Spawner,
        streams: &Arc<Streams>,
        in_flight_size_bytes_max: u64,
    ) -> Result<Arc<Self>, PartitionError> {
        let name = "blob-data";
        Self::start_threads(spawner, streams, name, BLOB_DATA_WRITER_COUNT, in_flight_size_bytes_max)
    }

    /// For the row blocks of memory tables that are flushed.
    pub(crate) fn start_for_flushes(
        spawner: &dyn Spawner,
        streams: &Arc<Streams>,
    ) -> Result<Arc<Self>, PartitionError> {
        Self::start_threads(spawner, streams, "row-data", 1, 0)
    }

    /// Starts the threads; they end when the writer is dropped.
    fn start_threads(
        spawner: &dyn Spawner,
        streams: &Arc<Streams>,
        name: &'static str,
        count: usize,
        in_flight_size_bytes_max: u64,
    ) -> Result<Arc<Self>, PartitionError> {
        let in_flight_kib_max = u32::try_from(in_flight_size_bytes_max / 1024).unwrap_or(u32::MAX);
        let queue = Arc::new(JobQueue {
            jobs: Mutex::new(RoundRobin::new()),
            ready: Semaphore::new(0),
            room: Arc::new(Semaphore::new(QUEUE_LEN_MAX)),
        });
        let writer = DataWriter { queue: queue.clone(), in_flight: OwnerShares::new(in_flight_kib_max) };
        for _ in 0..count {
            spawner
                .spawn_dedicated(name, Box::pin(run(queue.clone(), streams.clone())))
                .map_err(PartitionError::no_thread(name))?;
        }
        Ok(Arc::new(writer))
    }

    /// Waits until there is room for an append of so many bytes, within the owner's share.
    pub(crate) async fn admit(
        &self,
        owner: &Bytes,
        size_bytes: usize,
    ) -> Result<Admitted<'_>, PartitionError> {
        let permits = u32::try_from(size_bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        self.in_flight.admit(owner.clone(), permits).await.ok_or_else(closing)
    }

    /// Appends all blocks or none, when it is the owner's turn; durable when it returns.
    pub(crate) async fn append_of(
        &self,
        owner: &Bytes,
        stream: &StreamName,
        by: Owner,
        blocks: Vec<Bytes>,
    ) -> Appended {
        self.begin_append_of(owner.clone(), stream, by, blocks).await?.outcome().await
    }

    /// The same for what all accounts have part in, such as a group of the commit log.
    pub(crate) async fn append(&self, stream: &StreamName, by: Owner, blocks: Vec<Bytes>) -> Appended {
        self.begin_append(stream, by, blocks).await?.outcome().await
    }

    /// Begins to append all blocks or none, once there is room in the queue.
    pub(crate) async fn begin_append(
        &self,
        stream: &StreamName,
        by: Owner,
        blocks: Vec<Bytes>,
    ) -> Result<UnderWay, PartitionError> {
        self.begin_append_of(Bytes::new(), stream, by, blocks).await
    }

    async fn begin_append_of(
        &self,
        owner: Bytes,
        stream: &StreamName,
        by: Owner,
        blocks: Vec<Bytes>,
    ) -> Result<UnderWay, PartitionError> {
        let room = self.queue.room.clone().acquire_owned().await.map_err(|_| closing())?;
        let (reply, outcome) = oneshot::channel();
        let job = Job { stream: stream.clone(), by, blocks, reply, room };
        self.queue.jobs.lock().push(owner, job);
        self.queue.ready.add_permits(1);
        Ok(UnderWay(State::GoingOn(outcome)))
    }
}

/// An append that goes on by itself, or has ended.
pub(crate) struct UnderWay(State);

enum State {
    GoingOn(oneshot::Receiver<Appended>),
    Ended(Vec<Location>),
}

impl UnderWay {
    /// One that has ended well.
    pub(crate) fn ended(locations: Vec<Location>) -> Self {
        UnderWay(State::Ended(locations))
    }

    /// What became of it; if it was appended, it is durable.
    pub(crate) async fn outcome(self) -> Appended {
        match self.0 {
            State::GoingOn(outcome) => outcome.await.unwrap_or_else(|_| Err(closing())),
            State::Ended(locations) => Ok(locations),
        }
    }
}

async fn run(queue: Arc<JobQueue>, streams: Arc<Streams>) {
    while let Some(Job { stream, by, blocks, reply, room }) = queue.next().await {
        // Its place in the queue is free while it is written.
        drop(room);
        let appended = streams.append(&stream, by, blocks).await;
        // An uploader that went away leaves bytes that no row names.
        let _ = reply.send(appended.map_err(PartitionError::from));
    }
}

fn closing() -> PartitionError {
    PartitionError::Unavailable("the server is stopping".to_owned())
}
