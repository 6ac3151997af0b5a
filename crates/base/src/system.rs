//! The real clock, randomness, disk and spawner.

use crate::disk::direct::{self, LargeWrites};
use crate::disk::reads::{self, Readers};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::{BoxFuture, Clock, Environment, Metrics, Random, Spawner, TaskThread, Ticks};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// The real environment over the folder `data`, with tasks on the runtime that is current at the call.
pub fn environment(data: &Path) -> Environment {
    environment_on(Arc::new(SystemDisk::new(data)))
}

/// The real clock, randomness and spawner over any disk.
pub fn environment_on(disk: Arc<dyn Disk>) -> Environment {
    Environment {
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::new()),
        disk,
        spawner: Arc::new(TokioSpawner::current()),
        metrics: Metrics::default(),
    }
}

/// The operating system's clocks.
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Monotonic time counts from here.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Ticks {
        Ticks::from_unix(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(sleep_for))
    }
}

/// The kernel's generator: who has seen numbers of it can't tell the next ones.
#[derive(Default)]
pub struct SystemRandom(());

thread_local! {
    /// The number of the worker that this thread is.
    static WORKER: Cell<usize> = const { Cell::new(0) };
    /// Numbers that were drawn and not given out. Each thread has its own: one store would go from core to
    /// core.
    static DRAWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Numbers that one call of the kernel brings. It gives so few bytes whole, without being interrupted.
const DRAWN_TOGETHER: usize = 32;

impl SystemRandom {
    /// Draws when it is asked.
    pub fn new() -> Self {
        SystemRandom::default()
    }
}

impl Random for SystemRandom {
    /// Panics if the kernel has no generator, as older ones than Linux 3.17 have not.
    fn next_u64(&self) -> u64 {
        DRAWN.with_borrow_mut(|drawn| {
            if drawn.is_empty() {
                let mut bytes = [0; 8 * DRAWN_TOGETHER];
                let size = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
                assert_eq!(size, Ok(bytes.len()), "the kernel gives random bytes");
                drawn.extend(bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)));
            }
            drawn.pop().unwrap_or_default()
        })
    }
}

/// After so many of its own tasks a worker looks for those that other threads woke. One of these is the group
/// commit, given its turn back by the journal's thread: behind all requests that are ready, the disk would
/// wait for it.
const TASKS_BETWEEN_LOOKS_ELSEWHERE: u32 = 4;

/// Worker threads with a single-threaded runtime each: a task stays on the thread it was started on, so that
/// its sockets, timers and memory are never fought over.
pub struct WorkerSpawner {
    workers: Vec<tokio::runtime::Handle>,
    next: AtomicUsize,
    /// Cores of threads that are no workers; empty: the kernel's choice.
    allowed: Vec<usize>,
    /// Dropping it ends the workers.
    _running: tokio::sync::watch::Sender<()>,
}

impl WorkerSpawner {
    /// Starts `count` workers, at least one. Workers that are `pinned` keep to one core each, if the process
    /// may use exactly one core for each: else the kernel places them.
    pub fn start(count: usize, pinned: bool) -> io::Result<Self> {
        let count = count.max(1);
        let running = tokio::sync::watch::Sender::new(());
        let mut workers = Vec::new();
        let allowed = if pinned { affinity::allowed_cores() } else { Vec::new() };
        let cores = if pinned { cores_for(count, &allowed) } else { vec![None; count] };
        // This thread has all cores, and so have those it starts.
        let readers = Arc::new(Readers::start(reads::WAITING_READS_MAX)?);
        for (number, core) in cores.into_iter().enumerate() {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime =
                runtime.enable_all().global_queue_interval(TASKS_BETWEEN_LOOKS_ELSEWHERE).build()?;
            workers.push(runtime.handle().clone());
            let worker = ThreadRuntime { runtime: Some(runtime) };
            let (readers, mut running) = (readers.clone(), running.subscribe());
            std::thread::Builder::new().name("worker".to_owned()).spawn(move || {
                core.into_iter().for_each(|core| affinity::keep_to(&[core]));
                reads::mark_as_worker(readers);
                WORKER.set(number);
                // An error means that the sender is gone: the end.
                worker.run(async move {
                    tokio::spawn(crate::wakes::relay());
                    while running.changed().await.is_ok() {}
                });
            })?;
        }
        Ok(WorkerSpawner { workers, next: AtomicUsize::new(0), allowed, _running: running })
    }

    fn next_worker(&self) -> &tokio::runtime::Handle {
        &self.workers[self.next.fetch_add(1, Ordering::Relaxed) % self.workers.len()]
    }
}

/// The runtime of one thread. It ends without waiting for what runs on it, so that it can be dropped
/// anywhere: where it was made, too, if it gets no thread.
struct ThreadRuntime {
    runtime: Option<tokio::runtime::Runtime>,
}

impl ThreadRuntime {
    fn run(&self, until: impl Future<Output = ()>) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(until);
        }
    }
}

impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Spawner for WorkerSpawner {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.next_worker().spawn(task);
    }
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        spawn_thread(self.next_worker().clone(), name, &self.allowed, task)
    }
    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        spawn_thread(self.next_worker().clone(), name, &self.allowed, offering_core(task))
    }
    fn start_thread(&self, name: &'static str) -> io::Result<Arc<dyn TaskThread>> {
        RuntimeThread::start(name, &self.allowed)
    }
    fn current_worker(&self) -> usize {
        WORKER.get()
    }
}

/// The core of each of `count` workers. Fewer workers than cores have a reason, such as a quota of processor
/// time, and must not gather on the first ones beside other programs that think the same.
fn cores_for(count: usize, allowed: &[usize]) -> Vec<Option<usize>> {
    if allowed.len() == count { allowed.iter().copied().map(Some).collect() } else { vec![None; count] }
}

/// Which cores threads run on.
mod affinity {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores that this process may use, by number; none if the system does not say.
    pub(super) fn allowed_cores() -> Vec<usize> {
        let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    /// A thread that a worker has started gets its one core from it; here it gets all that are `allowed`, if
    /// that is known.
    pub(super) fn keep_to_any(allowed: &[usize]) {
        if !allowed.is_empty() {
            keep_to(allowed);
        }
    }

    /// Keeps the calling thread to these cores. A kernel that refuses goes on placing it.
    pub(super) fn keep_to(cores: &[usize]) {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        let _ = sched_setaffinity(None, &set);
    }
}

/// The task; its thread offers its core whenever it gives way.
fn offering_core(mut task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    Box::pin(std::future::poll_fn(move |context| {
        let polled = task.as_mut().poll(context);
        if polled.is_pending() {
            std::thread::yield_now();
        }
        polled
    }))
}

/// Runs a task on a thread of its own, with the runtime's timers.
fn spawn_thread(
    runtime: tokio::runtime::Handle,
    name: &'static str,
    allowed: &[usize],
    task: BoxFuture<'static, ()>,
) -> io::Result<()> {
    let allowed = allowed.to_vec();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        affinity::keep_to_any(&allowed);
        runtime.block_on(task)
    });
    thread.map(|_| ())
}

/// A thread with a runtime of its own.
struct RuntimeThread {
    runtime: tokio::runtime::Handle,
    /// The thread runs until this and those of its tasks are dropped.
    running: mpsc::Sender<Infallible>,
}

impl RuntimeThread {
    fn start(name: &'static str, allowed: &[usize]) -> io::Result<Arc<dyn TaskThread>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let own = ThreadRuntime { runtime: Some(runtime) };
        let allowed = allowed.to_vec();
        // Nothing is ever sent.
        let (running, mut ended) = mpsc::channel(1);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            affinity::keep_to_any(&allowed);
            own.run(async move { while ended.recv().await.is_some() {} });
        })?;
        Ok(Arc::new(RuntimeThread { runtime: handle, running }))
    }
}

impl TaskThread for RuntimeThread {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        let running = self.running.clone();
        self.runtime.spawn(async move {
            task.await;
            drop(running);
        });
    }
}

/// Tasks on a tokio runtime, dedicated tasks on threads of their own.
pub struct TokioSpawner {
    runtime: tokio::runtime::Handle,
}

impl TokioSpawner {
    /// Spawns on the runtime that is current at the call.
    pub fn current() -> Self {
        TokioSpawner { runtime: tokio::runtime::Handle::current() }
    }
}

impl Spawner for TokioSpawner {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        spawn_thread(self.runtime.clone(), name, &[], task)
    }
    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        spawn_thread(self.runtime.clone(), name, &[], offering_core(task))
    }
    fn start_thread(&self, name: &'static str) -> io::Result<Arc<dyn TaskThread>> {
        RuntimeThread::start(name, &[])
    }
}

/// Lets this process have as many files and connections open at once as the operating system allows it
/// without privileges, and says how many those are.
pub fn raise_open_files_max() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let allowed = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: allowed.maximum, maximum: allowed.maximum };
    // A system that refuses leaves what there was.
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { allowed.current };
    allowed.unwrap_or(u64::MAX)
}

/// A folder of the real file system. Its futures block their thread while the kernel works.
pub struct SystemDisk {
    root: PathBuf,
    /// Folders that were synced once, by name: the layers have a handful. They stay open, because a later
    /// sync must not fail for want of a file descriptor after what it makes durable has happened.
    synced_folders: Mutex<BTreeMap<String, Arc<File>>>,
}

impl SystemDisk {
    /// Paths are relative to `root`, which must exist.
    pub fn new(root: &Path) -> Self {
        SystemDisk { root: root.to_owned(), synced_folders: Mutex::default() }
    }
    fn folder(&self, folder: &str) -> io::Result<Arc<File>> {
        let mut folders = self.synced_folders.lock();
        if let Some(open) = folders.get(folder) {
            return Ok(open.clone());
        }
        let open = Arc::new(File::open(self.path(folder))?);
        folders.insert(folder.to_owned(), open.clone());
        Ok(open)
    }
    fn path(&self, relative: &str) -> PathBuf {
        if relative.is_empty() { self.root.clone() } else { self.root.join(relative) }
    }
}

#[async_trait]
impl Disk for SystemDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = File::options();
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::Write => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
        };
        let file = Arc::new(options.open(self.path(path))?);
        Ok(Arc::new(SystemFile { file, large_writes: LargeWrites::default() }))
    }
    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path(folder))? {
            // A name that is not UTF-8 is none of ours; showing it lossily lets the caller name it.
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        std::fs::create_dir_all(self.path(folder))
    }
    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }
    async fn remove(&self, path: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(path))
    }
    async fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.folder(folder)?.sync_all()
    }
    async fn exists(&self, path: &str) -> io::Result<bool> {
        self.path(path).try_exists()
    }
    async fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
    async fn total_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }
}

struct SystemFile {
    file: Arc<File>,
    large_writes: LargeWrites,
}

#[async_trait]
impl DiskFile for SystemFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        reads::read_exact_at(&self.file, offset, len).await
    }
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()> {
        direct::write_all_at(&self.file, &self.large_writes, &bytes, offset)
    }
    async fn read_once_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        reads::read_once_exact_at(&self.file, offset, len).await
    }
    async fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    async fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
    async fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_numbers_do_not_repeat() {
        let random = SystemRandom::new();
        let drawn: std::collections::BTreeSet<u64> = (0..10_000).map(|_| random.next_u64()).collect();
        assert_eq!(drawn.len(), 10_000);
    }

    #[test]
    fn workers_take_turns_and_run_timers() {
        let workers = WorkerSpawner::start(2, false).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        for _ in 0..4 {
            let sender = sender.clone();
            workers.spawn(
                "test",
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    sender.send(std::thread::current().id()).unwrap();
                }),
            );
        }
        let mut threads: Vec<_> = (0..4).map(|_| format!("{:?}", receiver.recv().unwrap())).collect();
        threads.sort();
        threads.dedup();
        assert_eq!(threads.len(), 2, "two workers share four tasks");
    }

    #[test]
    fn a_dedicated_task_has_its_own_thread_and_the_timers() {
        let workers = WorkerSpawner::start(1, true).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let task = async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
        };
        workers.spawn_dedicated("test", Box::pin(task)).unwrap();
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("test"));
    }

    #[test]
    fn tasks_of_a_thread_share_it_until_the_last_has_ended() {
        let workers = WorkerSpawner::start(1, true).unwrap();
        let thread = workers.start_thread("test").unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (first, second) = (sender.clone(), sender);
        thread_local! {
            static UNTIL_THE_END: RefCell<Option<std::sync::mpsc::Sender<()>>> = const { RefCell::new(None) };
        }
        let (held, ended) = std::sync::mpsc::channel();
        // This one blocks the thread; that one is started by another thread meanwhile.
        let (begun, begins) = std::sync::mpsc::channel();
        let (goes_on, go_on) = std::sync::mpsc::channel::<()>();
        let here = || (std::thread::current().id(), std::thread::current().name().map(str::to_owned));
        thread.spawn(
            "first",
            Box::pin(async move {
                UNTIL_THE_END.set(Some(held));
                begun.send(()).unwrap();
                go_on.recv().unwrap();
                first.send(here()).unwrap();
            }),
        );
        begins.recv().unwrap();
        thread.spawn(
            "second",
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                second.send(here()).unwrap();
            }),
        );
        drop(thread);
        goes_on.send(()).unwrap();
        let (one, other) = (receiver.recv().unwrap(), receiver.recv().unwrap());
        assert_eq!(one, other);
        assert_eq!(one.1.as_deref(), Some("test"));
        assert!(receiver.recv().is_err(), "nobody else");
        let ended = ended.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected), "the thread ends");
    }

    #[test]
    fn the_process_gets_all_the_files_it_may_have() {
        let raised = raise_open_files_max();
        let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(raised, now.current.unwrap_or(u64::MAX));
        assert!(now.current == now.maximum && raised > 0, "{now:?}");
    }

    /// A folder was opened for each sync: without a free descriptor that failed after the fact, and writing
    /// stopped.
    #[tokio::test]
    async fn a_folder_that_was_synced_once_is_never_opened_again() {
        let root = tempfile::tempdir().unwrap();
        let disk = SystemDisk::new(root.path());
        disk.create_folder("folder").await.unwrap();
        disk.sync_folder("folder").await.unwrap();
        std::fs::remove_dir(root.path().join("folder")).unwrap();
        disk.sync_folder("folder").await.unwrap();
    }

    #[test]
    fn workers_have_a_core_each_or_none() {
        assert_eq!(cores_for(2, &[0, 3]), [Some(0), Some(3)]);
        assert_eq!(cores_for(2, &[0, 1, 2]), [None, None]);
        assert_eq!(cores_for(2, &[5]), [None, None]);
        assert_eq!(cores_for(1, &[]), [None]);
    }

    #[test]
    fn work_in_the_background_goes_on_after_it_gave_way() {
        let workers = WorkerSpawner::start(1, false).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let task = async move {
            for _ in 0..3 {
                crate::give_way().await;
            }
            sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
        };
        workers.spawn_background("test", Box::pin(task)).unwrap();
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("test"));
    }
}
