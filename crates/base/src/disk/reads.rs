//! Reads of files that don't let a worker stand still.
//!
//! A worker has a share of all connections: while it waits for a disk, which takes as long as some tens of
//! requests, all of them wait. So on a worker a read takes only what the kernel has in memory. For what it
//! has not, one of the readers waits. Other threads may wait, and read themselves.

use crate::disk::direct;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Reads of all workers that wait for a disk at the same time. Further ones queue: there are as many as
/// requests that read, which the front end bounds. A disk that is asked for so many blocks at once works as
/// fast as it can.
pub(crate) const WAITING_READS_MAX: usize = 32;

type Read = Box<dyn FnOnce() + Send>;

/// Threads that wait for a disk in place of workers. Dropping it ends them after what is queued.
///
/// All of them are there from the start: a system that gives no more threads says so then, not when a read
/// needs one. (tokio's pool for such calls starts threads when it needs them, and panics if it gets none.)
pub(crate) struct Readers {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    reads: VecDeque<Read>,
    closed: bool,
}

impl Readers {
    /// Starts `count` threads, which may use the cores that the calling one may use.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let readers = Readers { queue: Arc::default() };
        for _ in 0..count {
            let queue = readers.queue.clone();
            std::thread::Builder::new().name("read".to_owned()).spawn(move || {
                while let Some(read) = queue.next() {
                    // A panic is printed, and who waits for the read learns that it ended; the next one needs
                    // this thread.
                    let _ = catch_unwind(AssertUnwindSafe(read));
                }
            })?;
        }
        Ok(readers)
    }

    async fn read(
        &self,
        file: &Arc<File>,
        read: impl FnOnce(&File) -> io::Result<Bytes> + Send + 'static,
    ) -> io::Result<Bytes> {
        let (done, outcome) = oneshot::channel();
        let file = file.clone();
        // Who gave up waiting needs no outcome.
        let read = move || drop(done.send(read(&file)));
        self.queue.state.lock().reads.push_back(Box::new(read));
        self.queue.changed.notify_one();
        outcome.await.map_err(|_| io::Error::other("the thread that read from the disk panicked"))?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    /// Waits for a read. `None`: there will be none.
    fn next(&self) -> Option<Read> {
        let mut state = self.state.lock();
        loop {
            if let Some(read) = state.reads.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

thread_local! {
    /// The readers of a worker; other threads have none.
    static READERS: RefCell<Option<Arc<Readers>>> = const { RefCell::new(None) };
}

/// From now on this thread waits for no disk to read from: `readers` do.
pub(crate) fn mark_as_worker(readers: Arc<Readers>) {
    READERS.set(Some(readers));
}

/// Who waits for a disk in place of this thread.
fn readers() -> Option<Arc<Readers>> {
    READERS.with_borrow(Clone::clone)
}

/// Exactly `len` bytes from `offset`.
pub(crate) async fn read_exact_at(file: &Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; len];
    if let Some(readers) = readers()
        && let Some(count) = read_at_hand(file, &mut buffer, offset)
    {
        if count == len {
            return Ok(buffer.into());
        }
        let rest = move |file: &File| {
            file.read_exact_at(&mut buffer[count..], offset + count as u64)?;
            Ok(buffer.into())
        };
        return readers.read(file, rest).await;
    }
    file.read_exact_at(&mut buffer, offset)?;
    Ok(buffer.into())
}

/// Exactly `len` bytes from `offset`, which will not be read again soon.
pub(crate) async fn read_once_exact_at(file: &Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    match readers() {
        Some(readers) => readers.read(file, move |file| direct::read_exact_at(file, offset, len)).await,
        None => direct::read_exact_at(file, offset, len),
    }
}

/// How many bytes the kernel gave without waiting. `None`: it or the file system can't tell, or the read
/// fails; a read that may wait says more.
fn read_at_hand(file: &File, buffer: &mut [u8], offset: u64) -> Option<usize> {
    match preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(count) => Some(count),
        Err(Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Advice, fadvise};
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    /// The file's bytes, written and out of the kernel's memory, as far as the file system does that.
    fn cold_file(content: &[u8]) -> Arc<File> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        Arc::new(file)
    }

    #[tokio::test]
    async fn a_worker_and_any_other_thread_read_the_same() {
        let content: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
        for worker in [false, true] {
            let file = cold_file(&content);
            READERS.set(worker.then(|| Arc::new(Readers::start(3).unwrap())));
            // Warm the middle: reads across it find a part at hand.
            file.read_exact_at(&mut [0; 4096], 100_000).unwrap();
            for (offset, len) in
                [(0, 1), (95_000, 60_000), (100_001, 100), (0, 300_000), (299_999, 1), (7, 0)]
            {
                let expected = &content[offset..][..len];
                for read in 0..2 {
                    let once = read_once_exact_at(&file, offset as u64, len).await.unwrap();
                    assert_eq!(once, expected, "{len} at {offset} once, worker {worker}, read {read}");
                    let read_again = read_exact_at(&file, offset as u64, len).await.unwrap();
                    assert_eq!(read_again, expected, "{len} at {offset}, worker {worker}, read {read}");
                }
            }
            for (offset, len) in [(300_000, 1), (299_999, 2), (0, 300_001), (1 << 40, 1)] {
                let beyond = read_exact_at(&file, offset, len).await.unwrap_err();
                assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof, "{len} at {offset}, worker {worker}");
            }
        }
    }

    #[tokio::test]
    async fn as_many_reads_wait_as_there_are_readers_and_each_comes_to_its_end() {
        let readers = Arc::new(Readers::start(3).unwrap());
        let file = cold_file(b"content");
        // Three that go on when all three run, behind them more than there are threads.
        let together = Arc::new(Barrier::new(3));
        let reads = (0..30u8).map(|number| {
            let (together, readers, file) = (together.clone(), readers.clone(), file.clone());
            tokio::spawn(async move {
                let read = move |_: &File| {
                    if number < 3 {
                        together.wait();
                    }
                    assert!(super::readers().is_none(), "a reader is no worker");
                    Ok(Bytes::from(vec![number]))
                };
                readers.read(&file, read).await.unwrap()
            })
        });
        for (number, read) in reads.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(read.await.unwrap(), [number as u8].as_slice());
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_is_an_error_and_takes_no_reader_along() {
        let readers = Readers::start(1).unwrap();
        let file = cold_file(b"content");
        let reads = async {
            for _ in 0..3 {
                assert!(readers.read(&file, |_| panic!("as in a bug")).await.is_err());
            }
            readers.read(&file, |_| Ok(Bytes::from_static(b"read"))).await.unwrap()
        };
        let content = tokio::time::timeout(Duration::from_secs(20), reads).await.expect("a reader is left");
        assert_eq!(content, b"read".as_slice());
    }

    #[test]
    fn dropping_the_readers_ends_their_threads() {
        let readers = Readers::start(3).unwrap();
        let queue = Arc::downgrade(&readers.queue);
        drop(readers);
        let since = Instant::now();
        while queue.strong_count() > 0 {
            assert!(since.elapsed() < Duration::from_secs(20), "{} go on", queue.strong_count());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
