//! Who writes large appends of blob data, large groups of the commit log, and row blocks of memory tables
//! that are flushed: threads of their own, because such an append writes and syncs its extent.
//!
//! What always holds: bytes of blob data that wait or run together stay under a bound; beyond it uploads
//! wait. A range has one group of its log under way, and a flush one batch of row blocks. Appends that are
//! small enough for the journal don't come here: they wait for its thread without blocking theirs.

use crate::error::PartitionError;
use base::Spawner;
use bytes::Bytes;
use std::sync::Arc;
use stream::{Location, OwnerEpoch, StreamName, Streams};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc, oneshot};

/// Threads that write blob data: one writes while another syncs.
const BLOB_DATA_WRITER_COUNT: usize = 2;
/// Appends that may wait for a thread.
const QUEUE_LEN_MAX: usize = 16;
/// Bytes of blob data on their way to the disk, in KiB: uploads of all clients together.
const IN_FLIGHT_KIB_MAX: usize = 64 << 10;

/// Appends to streams for callers that must not block their thread, or have other work meanwhile.
pub(crate) struct DataWriter {
    queue: mpsc::Sender<Job>,
    in_flight: Semaphore,
}

type Appended = Result<Vec<Location>, PartitionError>;

struct Job {
    stream: StreamName,
    epoch: OwnerEpoch,
    blocks: Vec<Bytes>,
    reply: oneshot::Sender<Appended>,
}

impl DataWriter {
    /// For blob data and large groups.
    pub(crate) fn start(spawner: &dyn Spawner, streams: &Arc<Streams>) -> Result<Arc<Self>, PartitionError> {
        Self::start_threads(spawner, streams, "blob-data", BLOB_DATA_WRITER_COUNT)
    }

    /// For the row blocks of memory tables that are flushed.
    pub(crate) fn start_for_flushes(
        spawner: &dyn Spawner,
        streams: &Arc<Streams>,
    ) -> Result<Arc<Self>, PartitionError> {
        Self::start_threads(spawner, streams, "row-data", 1)
    }

    /// Starts the threads; they end when the writer is dropped.
    fn start_threads(
        spawner: &dyn Spawner,
        streams: &Arc<Streams>,
        name: &'static str,
        count: usize,
    ) -> Result<Arc<Self>, PartitionError> {
        let (queue, jobs) = mpsc::channel(QUEUE_LEN_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..count {
            spawner
                .spawn_dedicated(name, Box::pin(run(jobs.clone(), streams.clone())))
                .map_err(PartitionError::no_thread(name))?;
        }
        Ok(Arc::new(DataWriter { queue, in_flight: Semaphore::new(IN_FLIGHT_KIB_MAX) }))
    }

    /// Waits until there is room for an append of so many bytes.
    pub(crate) async fn admit(&self, size_bytes: usize) -> Result<SemaphorePermit<'_>, PartitionError> {
        let permits = size_bytes.div_ceil(1024).min(IN_FLIGHT_KIB_MAX) as u32;
        self.in_flight.acquire_many(permits).await.map_err(|_| closing())
    }

    /// Appends all blocks or none; durable when it returns.
    pub(crate) async fn append(
        &self,
        stream: &StreamName,
        epoch: OwnerEpoch,
        blocks: Vec<Bytes>,
    ) -> Appended {
        self.begin_append(stream, epoch, blocks).await?.outcome().await
    }

    /// Begins to append all blocks or none, once there is room in the queue.
    pub(crate) async fn begin_append(
        &self,
        stream: &StreamName,
        epoch: OwnerEpoch,
        blocks: Vec<Bytes>,
    ) -> Result<UnderWay, PartitionError> {
        let (reply, outcome) = oneshot::channel();
        let job = Job { stream: stream.clone(), epoch, blocks, reply };
        self.queue.send(job).await.map_err(|_| closing())?;
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

async fn run(jobs: Arc<Mutex<mpsc::Receiver<Job>>>, streams: Arc<Streams>) {
    loop {
        let job = jobs.lock().await.recv().await;
        let Some(Job { stream, epoch, blocks, reply }) = job else { return };
        let appended = streams.append(&stream, epoch, blocks).await;
        // An uploader that went away leaves bytes that no row names.
        let _ = reply.send(appended.map_err(PartitionError::from));
    }
}

fn closing() -> PartitionError {
    PartitionError::Unavailable("the server is stopping".to_owned())
}
