//! Clock and tasks of a simulated process, and the process itself: [`World::run`] is one life between
//! a start and a crash.

use crate::disk::SimDisk;
use crate::random::SimRandom;
use base::{BoxFuture, Clock, Environment, Metrics, Spawner, TaskThread, Ticks};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

/// Virtual time: it moves when every task waits. The wall clock can be moved by hand, backwards too.
pub struct SimClock {
    started: tokio::time::Instant,
    wall_at_start: Ticks,
    moved_ticks: AtomicI64,
}

impl SimClock {
    fn new(wall_at_start: Ticks) -> Self {
        SimClock { started: tokio::time::Instant::now(), wall_at_start, moved_ticks: AtomicI64::new(0) }
    }

    /// Moves the wall clock.
    pub fn move_wall(&self, by_ticks: i64) {
        self.moved_ticks.fetch_add(by_ticks, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Ticks {
        let wall = self.wall_at_start.plus(self.monotonic());
        Ticks(wall.0.saturating_add_signed(self.moved_ticks.load(Ordering::Relaxed)))
    }
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(sleep_for))
    }
}

/// Starts tasks on the simulated process.
#[derive(Default)]
pub struct SimSpawner {
    /// Threads that are still to be had; without it any number.
    threads_left: Option<AtomicUsize>,
}

impl SimSpawner {
    fn take_thread(&self) -> io::Result<()> {
        if let Some(left) = &self.threads_left {
            let less = |left: usize| left.checked_sub(1);
            let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            taken.map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "no more threads"))?;
        }
        Ok(())
    }
}

impl Spawner for SimSpawner {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.take_thread()?;
        self.spawn(name, task);
        Ok(())
    }
    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.spawn_dedicated(name, task)
    }
    fn start_thread(&self, _name: &'static str) -> io::Result<Arc<dyn TaskThread>> {
        self.take_thread()?;
        Ok(Arc::new(SimThread))
    }
}

/// No thread at all: its tasks run beside all others.
struct SimThread;

impl TaskThread for SimThread {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}

/// A disk and a source of chance that outlive the process.
pub struct World {
    /// The disk.
    pub disk: Arc<SimDisk>,
    /// The source of all chance.
    pub random: SimRandom,
    /// The wall clock at the next start.
    wall: Mutex<Ticks>,
    /// Threads that a process can start.
    threads_max: Mutex<Option<usize>>,
}

/// Where the wall clock of each world starts: 2026-01-01T00:00:00Z.
const WALL_AT_START: Duration = Duration::from_secs(1_767_225_600);

impl World {
    /// A new world with an empty disk.
    pub fn new(seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let disk = Arc::new(SimDisk::new(random.clone()));
        World {
            disk,
            random,
            wall: Mutex::new(Ticks::from_unix(WALL_AT_START)),
            threads_max: Mutex::default(),
        }
    }

    /// A world with the same files and wall clock, whose chance is another.
    pub fn copy(&self, seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let disk = Arc::new(self.disk.copy(random.clone()));
        World { disk, random, wall: Mutex::new(*self.wall.lock()), threads_max: Mutex::default() }
    }

    /// Lets each further life start so many threads; `None`: any number.
    pub fn set_threads_max(&self, count: Option<usize>) {
        *self.threads_max.lock() = count;
    }

    /// One life of the process: runs `life` to its end, or until the disk crashes (then the result is
    /// `None`); then every task is gone and the disk keeps what a power loss leaves.
    pub fn run<T, F, L>(&self, life: L) -> Option<T>
    where
        L: FnOnce(Environment, Arc<SimClock>) -> F,
        F: Future<Output = T>,
    {
        let outcome = self.live(life);
        self.disk.lose_power();
        outcome
    }

    /// As [`World::run`], but the power stays: the next life finds all that was written, synced or not, and a
    /// later power loss may still take what was not.
    pub fn run_until_killed<T, F, L>(&self, life: L) -> Option<T>
    where
        L: FnOnce(Environment, Arc<SimClock>) -> F,
        F: Future<Output = T>,
    {
        let outcome = self.live(life);
        self.disk.lose_process();
        outcome
    }

    fn live<T, F, L>(&self, life: L) -> Option<T>
    where
        L: FnOnce(Environment, Arc<SimClock>) -> F,
        F: Future<Output = T>,
    {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime =
            runtime.enable_time().start_paused(true).build().expect("a runtime without threads or sockets");
        let outcome = runtime.block_on(async {
            let clock = Arc::new(SimClock::new(*self.wall.lock()));
            let env = Environment {
                clock: clock.clone(),
                random: Arc::new(self.random.clone()),
                disk: self.disk.clone(),
                spawner: Arc::new(SimSpawner {
                    threads_left: (*self.threads_max.lock()).map(AtomicUsize::new),
                }),
                metrics: Metrics::default(),
            };
            let outcome = tokio::select! {
                biased;
                () = self.disk.crashed() => None,
                outcome = life(env, clock.clone()) => Some(outcome),
            };
            *self.wall.lock() = clock.now();
            outcome
        });
        drop(runtime);
        outcome
    }
}
