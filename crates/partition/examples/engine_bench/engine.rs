//! The layers as the server opens them, and work for many tasks at once.

use crate::measured_disk::MeasuredDisk;
use crate::{Arguments, Outcome};
use base::system::{SystemDisk, WorkerSpawner};
use base::{Clock, Environment, Spawner};
use partition::{PartitionSettings, Partitions};
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};
use tokio::sync::mpsc;

/// The open layers.
pub(crate) struct Engine {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) disk: Arc<MeasuredDisk>,
    spawner: Arc<dyn Spawner>,
    streams: Arc<Streams>,
}

/// Runs a phase to its end.
pub(crate) fn run(phase: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(phase)
}

/// Settings under the memory budget of the arguments.
pub(crate) fn settings(arguments: &Arguments) -> Outcome<PartitionSettings> {
    let budget = arguments.memory_budget_mib << 20;
    Ok(PartitionSettings::default().with_memory_budget(budget, None)?)
}

impl Engine {
    /// Opens the layers over the folder of the arguments.
    pub(crate) async fn open(arguments: &Arguments, settings: PartitionSettings) -> Outcome<Self> {
        let disk = Arc::new(MeasuredDisk::new(Arc::new(SystemDisk::new(&arguments.folder))));
        let mut env: Environment = base::system::environment_on(disk.clone());
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        env.spawner = Arc::new(WorkerSpawner::start(cores, true)?);
        let streams = Streams::open(&env, StreamSettings::default()).await?;
        let partitions = Arc::new(Partitions::open(&env, streams.clone(), settings).await?);
        Ok(Engine { clock: env.clock, partitions, disk, spawner: env.spawner, streams })
    }

    /// Runs `count` tasks on the server's kind of workers and gathers what they return; the first failure
    /// ends it.
    pub(crate) async fn gather<T, F>(&self, count: u64, task: impl Fn(u64) -> F) -> Outcome<Vec<T>>
    where
        T: Send + 'static,
        F: Future<Output = Outcome<T>> + Send + 'static,
    {
        let (sender, mut outcomes) = mpsc::channel(count.max(1) as usize);
        for number in 0..count {
            let (work, sender) = (task(number), sender.clone());
            let run = async move {
                // The receiver leaves only after the first failure.
                let _ = sender.send(work.await).await;
            };
            self.spawner.spawn("bench", Box::pin(run));
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(outcome) = outcomes.recv().await {
            all.push(outcome?);
        }
        if all.len() as u64 == count { Ok(all) } else { Err("a task of the bench has panicked".into()) }
    }

    /// Waits until nothing is flushed and merged any more.
    pub(crate) async fn settle(&self) {
        const IDLE_FOR: u32 = 10;
        let mut idle = 0;
        let mut before = self.partitions.statistics();
        while idle < IDLE_FOR {
            self.clock.sleep(Duration::from_millis(200)).await;
            let now = self.partitions.statistics();
            let written = crate::process::written_bytes().unwrap_or(0);
            self.clock.sleep(Duration::from_millis(100)).await;
            let writes_on = crate::process::written_bytes().unwrap_or(0) > written + (1 << 20);
            let same = (now.flushes, now.compactions) == (before.flushes, before.compactions) && !writes_on;
            idle = if same { idle + 1 } else { 0 };
            before = now;
        }
    }

    /// Closes as the server does.
    pub(crate) async fn close(self) {
        self.partitions.close().await;
        self.streams.close().await;
    }
}
