//! The commit pipeline of a range: operations are admitted, decided one after the other (`execute`, `fetch`),
//! appended to the log in groups (`commit`), and answered once their group is durable. Writers wait while
//! flushes lag (`back_pressure`).

mod back_pressure;
pub(super) mod commit;
pub(super) mod execute;
mod fetch;
pub(super) mod range_time;

use crate::error::PartitionError;
use crate::map::range_load::RangeLoad;
use crate::range_partition::commit_pipeline::range_time::RangeTime;
use crate::range_partition::data::RangeData;
use crate::range_partition::range_tree::{RangeTree, Standing};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Semaphore;

/// Operations that may be between their decision and their durability; further ones wait.
const PENDING_OPERATION_COUNT_MAX: usize = 8192;

/// Takes operations of a range from admission to reply.
pub(crate) struct CommitPipeline {
    pub(crate) core: Arc<RangeTree>,
    /// For tables with blob data.
    pub(crate) data: Option<Arc<RangeData>>,
    /// What the range is asked for.
    pub(crate) load: Arc<RangeLoad>,
    pub(crate) time: RangeTime,
    /// Until then, in milliseconds of the clock, what gives space back takes what there is.
    pub(crate) floor_waived_until_ms: AtomicU64,
    pub(crate) admission: Semaphore,
}

impl CommitPipeline {
    /// It takes operations at once; what they wait for comes from `commit::run`.
    pub(crate) fn new(core: Arc<RangeTree>, data: Option<Arc<RangeData>>, load: Arc<RangeLoad>) -> Self {
        let time = RangeTime::new(core.visible(), core.shared.clock.monotonic());
        CommitPipeline {
            core,
            data,
            load,
            time,
            floor_waived_until_ms: AtomicU64::new(0),
            admission: Semaphore::new(PENDING_OPERATION_COUNT_MAX),
        }
    }

    /// Refuses further operations. The group commit ends when those under way have.
    pub(crate) fn refuse(&self) {
        {
            let mut serial = self.core.serial.lock();
            if serial.standing == Standing::Open {
                let why = PartitionError::Unavailable("the server is stopping".to_owned());
                serial.standing = Standing::Closed(why);
            }
        }
        self.core.log.wake.notify_one();
        // Whoever waits for a flush holds a permit, and no flush may come any more.
        self.core.tell_waiting_writers();
    }

    /// The same, and waits for those under way.
    pub(crate) async fn close(&self) {
        self.refuse();
        // All permits are free once every pending operation has its outcome. The semaphore is never closed.
        let _ = self.admission.acquire_many(PENDING_OPERATION_COUNT_MAX as u32).await;
    }
}
