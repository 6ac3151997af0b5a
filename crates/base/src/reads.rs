//! Reads of files that don't let a worker stand still.
//!
//! A worker has a share of all connections: while it waits for a disk, which takes as long as some tens of requests, all of
//! them wait. So on a worker a read takes only what the kernel has in memory. For what it has not, a thread of the worker's
//! pool waits. Other threads may wait, and read themselves.

use crate::direct;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// Reads of one worker that wait for a disk at the same time. Further ones queue: there are as many as requests that read,
/// which the front end bounds. A disk that is asked for so many blocks at once works as fast as it can.
pub(crate) const WAITING_READS_MAX: usize = 32;

/// How long a thread of the pool waits for its next read: as good as for ever, because another time the system may have
/// no thread to give.
pub(crate) const READER_KEPT_FOR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread waits for no disk to read from.
pub(crate) fn mark_as_worker() {
    IS_WORKER.set(true);
}

/// Exactly `len` bytes from `offset`.
pub(crate) async fn read_exact_at(file: &Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; len];
    let at_hand = if IS_WORKER.get() { read_at_hand(file, &mut buffer, offset) } else { None };
    match at_hand {
        Some(count) if count == len => {}
        Some(count) => {
            let rest = move |file: &File| {
                file.read_exact_at(&mut buffer[count..], offset + count as u64)?;
                Ok(buffer.into())
            };
            return in_the_pool(file, rest).await;
        }
        None => file.read_exact_at(&mut buffer, offset)?,
    }
    Ok(buffer.into())
}

/// Exactly `len` bytes from `offset`, which will not be read again soon.
pub(crate) async fn read_once_exact_at(file: &Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    if IS_WORKER.get() {
        return in_the_pool(file, move |file| direct::read_exact_at(file, offset, len)).await;
    }
    direct::read_exact_at(file, offset, len)
}

/// How many bytes the kernel gave without waiting. `None`: it or the file system can't tell, or the read fails; a read that
/// may wait says more.
fn read_at_hand(file: &File, buffer: &mut [u8], offset: u64) -> Option<usize> {
    match preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(count) => Some(count),
        Err(Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

async fn in_the_pool(
    file: &Arc<File>,
    read: impl FnOnce(&File) -> io::Result<Bytes> + Send + 'static,
) -> io::Result<Bytes> {
    let file = file.clone();
    // An error says that the runtime ends.
    tokio::task::spawn_blocking(move || read(&file)).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Advice, fadvise};

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
            IS_WORKER.set(worker);
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
        IS_WORKER.set(false);
    }

    #[tokio::test]
    async fn the_pools_threads_are_no_workers() {
        IS_WORKER.set(true);
        let file = cold_file(b"content");
        let there = |_: &File| Ok(Bytes::from(vec![u8::from(IS_WORKER.get())]));
        assert_eq!(in_the_pool(&file, there).await.unwrap(), [0].as_slice());
        IS_WORKER.set(false);
    }
}
