//! Who writes large appends of blob data and large groups of the commit log: threads of their own, because such an
//! append writes and syncs its extent.
//!
//! What always holds: bytes of blob data that wait or run together stay under a bound; beyond it uploads wait. A range
//! has one group of its log under way. Appends
//! that are small enough for the journal don't come here: they wait for its thread without blocking theirs.

use crate::error::PartitionError;
use base::Spawner;
use bytes::Bytes;
use std::sync::Arc;
use stream::{Location, OwnerEpoch, StreamName, Streams};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc, oneshot};

/// Threads that write: one writes while another syncs.
const WRITER_COUNT: usize = 2;
/// Appends that may wait for a thread.
const QUEUE_LEN_MAX: usize = 16;
/// Bytes of blob data on their way to the disk, in KiB: uploads of all clients together.
const IN_FLIGHT_KIB_MAX: usize = 64 << 10;

/// Appends blob data to streams.
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
    /// Starts the threads; they end when the writer is dropped.
    pub(crate) fn start(spawner: &dyn Spawner, streams: &Arc<Streams>) -> Result<Arc<Self>, PartitionError> {
        let (queue, jobs) = mpsc::channel(QUEUE_LEN_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..WRITER_COUNT {
            spawner
                .spawn_dedicated("blob-data", Box::pin(run(jobs.clone(), streams.clone())))
                .map_err(PartitionError::no_thread("blob-data"))?;
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
        let (reply, outcome) = oneshot::channel();
        let job = Job { stream: stream.clone(), epoch, blocks, reply };
        self.queue.send(job).await.map_err(|_| closing())?;
        outcome.await.unwrap_or_else(|_| Err(closing()))
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
