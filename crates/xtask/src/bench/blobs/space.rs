//! Space that comes back: ten times the disk budget is written over and deleted while readers read, then the
//! data folder shrinks to what is alive and a little more.
//!
//! The journal's files have a fixed size and are counted apart. Each blob's bytes follow from its number and
//! how often it was written, so a reader can tell which of its lives it got, and that it got all of one.

use super::{BLOCK_BLOB, Bench, CONTAINER, CONTENT_TYPE, Verdict, mib};
use crate::Outcome;
use crate::bench::disk_usage::used_bytes;
use crate::client::content::content;
use crate::client::service_client::ServiceClient;
use base::random::splitmix64;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITER_COUNT: u64 = 3;
const READER_COUNT: u64 = 2;
const BLOB_SIZE_BYTES_MIN: u64 = 64 << 10;
const BLOB_SIZE_BYTES_MAX: u64 = 4 << 20;
const MEAN_SIZE_BYTES: u64 = (BLOB_SIZE_BYTES_MIN + BLOB_SIZE_BYTES_MAX) / 2;
const WRITTEN_TIMES_BUDGET: u64 = 10;
/// One change of this many is a deletion.
const DELETE_ONE_IN: u64 = 8;
const USED_PERCENT_MAX: f64 = 120.0;

/// What is known of a blob.
#[derive(Clone, Copy, Default)]
struct Life {
    /// How often it was written or deleted; what is being written now has the next number.
    number: u64,
    is_there: bool,
    is_changing: bool,
}

fn seed_of(blob: u64, life: u64) -> u64 {
    blob << 32 | life
}

fn size_of(blob: u64, life: u64) -> u64 {
    let mut state = seed_of(blob, life) ^ 0x5151;
    BLOB_SIZE_BYTES_MIN + splitmix64(&mut state) % (BLOB_SIZE_BYTES_MAX - BLOB_SIZE_BYTES_MIN)
}

fn path_of(blob: u64) -> String {
    format!("{CONTAINER}/b{blob}")
}

struct Stage {
    lives: Vec<Mutex<Life>>,
    written: AtomicU64,
    to_write: u64,
    read: AtomicU64,
    done: AtomicBool,
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Verdict>> {
    let budget = bench.arguments.budget_mib << 20;
    let blob_count = (budget / 2 / MEAN_SIZE_BYTES).max(WRITER_COUNT);
    let stage = Stage {
        lives: (0..blob_count).map(|_| Mutex::default()).collect(),
        written: AtomicU64::new(0),
        to_write: budget * WRITTEN_TIMES_BUDGET,
        read: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    println!("\nspace: a budget of {:.0} MiB, {blob_count} blobs, ten times as much is written", mib(budget));
    let data = bench.folder.join("data");
    let started_at = Instant::now();
    std::thread::scope(|scope| {
        let stage = &stage;
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|writer| scope.spawn(move || stage.write(bench, writer))).collect();
        let readers: Vec<_> =
            (0..READER_COUNT).map(|reader| scope.spawn(move || stage.read(bench, reader))).collect();
        let outcome = follow(stage, &data, started_at, &writers);
        let written: Outcome<()> =
            writers.into_iter().try_for_each(|thread| thread.join().expect("no panic"));
        let settled = outcome
            .and(written)
            .and_then(|()| settle(stage, &data, Duration::from_secs(bench.arguments.settled_within)));
        stage.done.store(true, Ordering::SeqCst);
        let read: Outcome<()> = readers.into_iter().try_for_each(|thread| thread.join().expect("no panic"));
        read.and(settled)
    })
}

/// Prints how it goes until the writers are done.
fn follow<T>(
    stage: &Stage,
    data: &Path,
    started_at: Instant,
    writers: &[std::thread::ScopedJoinHandle<'_, T>],
) -> Outcome<()> {
    let (mut next, mut most) = (1, 0);
    while !writers.iter().all(|writer| writer.is_finished()) {
        std::thread::sleep(Duration::from_millis(500));
        let written = stage.written.load(Ordering::Relaxed);
        let used = used_bytes(data)?.0;
        most = most.max(used);
        if written >= stage.to_write / 5 * next {
            println!(
                "{:>5.0} s: {:.0} MiB written, {:.0} MiB alive, {:.0} MiB used",
                started_at.elapsed().as_secs_f64(),
                mib(written),
                mib(stage.alive_bytes()),
                mib(used)
            );
            next += 1;
        }
    }
    println!("at most {:.0} MiB were used", mib(most));
    Ok(())
}

fn settle(stage: &Stage, data: &Path, within: Duration) -> Outcome<Vec<Verdict>> {
    let alive = stage.alive_bytes();
    let written_at = Instant::now();
    loop {
        let (used, journal) = used_bytes(data)?;
        let percent = 100.0 * (used - journal) as f64 / alive as f64;
        let holds = percent <= USED_PERCENT_MAX;
        if !holds && written_at.elapsed() < within {
            std::thread::sleep(Duration::from_millis(250));
            continue;
        }
        let what = format!(
            "{:.0} s after {:.0} MiB were written, {:.0} MiB of {:.0} MiB alive are used: {percent:.1} % \
             ({USED_PERCENT_MAX} %; {:.0} MiB of journal apart); {:.0} MiB were read meanwhile",
            written_at.elapsed().as_secs_f64(),
            mib(stage.written.load(Ordering::Relaxed)),
            mib(used - journal),
            mib(alive),
            mib(journal),
            mib(stage.read.load(Ordering::Relaxed))
        );
        return Ok(vec![Verdict { what, holds }]);
    }
}

impl Stage {
    fn alive_bytes(&self) -> u64 {
        let lives = self.lives.iter().enumerate();
        lives
            .map(|(blob, life)| {
                let life = *life.lock().expect("no panic");
                if life.is_there { size_of(blob as u64, life.number) } else { 0 }
            })
            .sum()
    }

    /// Each writer has blobs of its own.
    fn write(&self, bench: &Bench<'_>, writer: u64) -> Outcome<()> {
        let mut client = ServiceClient::connect(bench.address, CONTENT_TYPE)?;
        let mut random = writer;
        let own = (self.lives.len() as u64 - writer).div_ceil(WRITER_COUNT);
        while self.written.load(Ordering::Relaxed) < self.to_write {
            let blob = splitmix64(&mut random) % own * WRITER_COUNT + writer;
            let life = &self.lives[blob as usize];
            let before = {
                let mut life = life.lock().expect("no panic");
                life.is_changing = true;
                *life
            };
            let number = before.number + 1;
            let deletes = before.is_there && splitmix64(&mut random).is_multiple_of(DELETE_ONE_IN);
            if deletes {
                client.expect("DELETE", &path_of(blob), &[], &[], b"", &[202])?;
            } else {
                let bytes = content(seed_of(blob, number), size_of(blob, number) as usize);
                client.expect("PUT", &path_of(blob), &[], &[BLOCK_BLOB], &bytes, &[201])?;
                self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            *life.lock().expect("no panic") = Life { number, is_there: !deletes, is_changing: false };
        }
        Ok(())
    }

    /// Reads blobs at random; each must be what it was when the read began, or any life since.
    fn read(&self, bench: &Bench<'_>, reader: u64) -> Outcome<()> {
        let mut client = ServiceClient::connect(bench.address, CONTENT_TYPE)?;
        let mut random = !reader;
        while !self.done.load(Ordering::SeqCst) {
            let blob = splitmix64(&mut random) % self.lives.len() as u64;
            let state = || *self.lives[blob as usize].lock().expect("no panic");
            let before = state();
            let answer = client.send("GET", &path_of(blob), &[], &[], b"")?;
            let after = state();
            let last = after.number + u64::from(after.is_changing);
            let is_right = match answer.status {
                200 => (before.number..=last).any(|life| {
                    size_of(blob, life) == answer.body.len() as u64
                        && content(seed_of(blob, life), answer.body.len()) == answer.body
                }),
                404 => !before.is_there || last > before.number,
                _ => false,
            };
            if !is_right {
                return Err(
                    format!("blob {blob} reads wrong: {} {}", answer.status, answer.body.len()).into()
                );
            }
            self.read.fetch_add(answer.body.len() as u64, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
