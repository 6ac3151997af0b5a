//! A host: its clocks, its tasks, and whether it runs. What always holds: a task of a host that is paused is
//! not polled, one of a host that was killed never again; what it sent is under way all the same.

use base::{BoxFuture, Clock, Spawner, TaskThread, Ticks};
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Parts in a million.
const MILLION: u128 = 1_000_000;

#[derive(Default)]
struct GateState {
    is_paused: bool,
    is_killed: bool,
    waiting: Vec<Waker>,
    tasks: Vec<AbortHandle>,
}

/// Lets the tasks of one life of a host run, or not.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
}

impl Gate {
    pub(crate) fn pause(&self) {
        self.state.lock().is_paused = true;
    }

    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.is_paused = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn kill(&self) {
        let mut state = self.state.lock();
        state.is_killed = true;
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        tasks.iter().for_each(AbortHandle::abort);
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.state.lock().is_killed
    }

    /// Starts a task of this life of the host.
    pub(crate) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        if self.is_killed() {
            return;
        }
        let gated = Gated { gate: self.clone(), task: Box::pin(task) };
        let handle = tokio::spawn(gated).abort_handle();
        let mut state = self.state.lock();
        if state.tasks.len() > 64 {
            state.tasks.retain(|task| !task.is_finished());
        }
        state.tasks.push(handle);
    }
}

struct Gated {
    gate: Arc<Gate>,
    task: BoxFuture<'static, ()>,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.gate.state.lock();
        if state.is_killed {
            return Poll::Ready(());
        }
        if state.is_paused {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        self.task.as_mut().poll(context)
    }
}

/// Starts tasks behind the gate of a host.
pub(crate) struct HostSpawner(pub(crate) Arc<Gate>);

impl Spawner for HostSpawner {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.spawn(name, task);
        Ok(())
    }
    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.spawn_dedicated(name, task)
    }
    fn start_thread(&self, _name: &'static str) -> io::Result<Arc<dyn TaskThread>> {
        Ok(Arc::new(HostThread(self.0.clone())))
    }
}

/// A thread of a host: its tasks are the host's.
struct HostThread(Arc<Gate>);

impl TaskThread for HostThread {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
}

/// The clocks of a host: both run too fast or too slow by the same part, and the wall clock jumps.
pub(crate) struct HostClock {
    started: tokio::time::Instant,
    /// Its seconds in a million true ones.
    rate: u128,
    wall_at_start: Ticks,
    moved_ticks: AtomicI64,
}

impl HostClock {
    /// A clock that gains so many seconds in a million, or loses them.
    pub(crate) fn new(gains: i64) -> Self {
        HostClock {
            started: tokio::time::Instant::now(),
            rate: MILLION.saturating_add_signed(i128::from(gains)),
            wall_at_start: Ticks::from_unix(Duration::from_secs(1_767_225_600)),
            moved_ticks: AtomicI64::new(0),
        }
    }

    pub(crate) fn move_wall(&self, by_ticks: i64) {
        self.moved_ticks.fetch_add(by_ticks, Ordering::Relaxed);
    }
}

fn scaled(time: Duration, by: u128, of: u128) -> Duration {
    Duration::from_nanos((time.as_nanos() * by / of).try_into().unwrap_or(u64::MAX))
}

impl Clock for HostClock {
    fn now(&self) -> Ticks {
        let wall = self.wall_at_start.plus(self.monotonic());
        Ticks(wall.0.saturating_add_signed(self.moved_ticks.load(Ordering::Relaxed)))
    }
    fn monotonic(&self) -> Duration {
        scaled(self.started.elapsed(), self.rate, MILLION)
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(scaled(sleep_for, MILLION, self.rate)))
    }
}
