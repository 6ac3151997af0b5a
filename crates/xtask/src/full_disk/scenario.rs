//! One disk: filled, emptied, written again, looked through.

use super::rows::{Answer, BINARY, BLOCK_BLOB, Client, Kind, Unit};
use super::small_disk::SmallDisk;
use crate::Outcome;
use crate::client::content::content;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use base::random::splitmix64;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const THREAD_COUNT: u64 = 8;
/// A thread has filled its part once it was refused so often in a row.
const REFUSALS_IN_A_ROW: u64 = 3;
/// What is written afterwards comes in blobs of this size.
const WRITTEN_SIZE_BYTES: u64 = 1_000_000;
const HALF_WITHIN: Duration = Duration::from_secs(60);
const HALF_SIZE_BYTES_MAX: u64 = 1 << 30;
const RATE_MB_MIN: f64 = 50.0;
/// Of what was deleted so much must be writable in the end; the rest is what collections leave dead.
const WRITABLE_PERCENT: u64 = 75;
/// Units that are read back at the end, at most.
const READ_UNIT_COUNT_MAX: usize = 4000;

/// Which units go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleted {
    /// Every second one.
    EverySecond,
    /// All, one by one in random order.
    All,
    /// The container, table or queue.
    Whole,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) size_mib: u64,
    pub(super) kind: Kind,
    pub(super) deleted: Deleted,
    /// Deletions come with pauses.
    pub(super) pauses: bool,
    /// The server is killed when the disk is full, in the middle of the deletions, and after them.
    pub(super) kills: bool,
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deleted = match self.deleted {
            Deleted::EverySecond => "every second one",
            Deleted::All => "all in random order",
            Deleted::Whole => "as a whole",
        };
        let pauses = if self.pauses { ", pauses" } else { "" };
        let kills = if self.kills { ", kills" } else { "" };
        write!(formatter, "{} MiB, {}, {deleted}{pauses}{kills}", self.size_mib, self.kind)
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Report {
    filled_bytes: u64,
    deletions: Deletions,
    rewrite: Rewrite,
    /// Bytes that reached the disk while it was filled.
    device_filled_bytes: u64,
    /// And from the first deletion until what was deleted was written again: collections and compactions are
    /// in it.
    device_written_bytes: u64,
    lost: u64,
    read: u64,
}

#[derive(Debug, Default)]
struct Deletions {
    deleted_bytes: u64,
    refused: u64,
    /// In the words of the first.
    refused_with: Option<String>,
    slowest: Duration,
    took: Duration,
}

/// What was deleted, written again.
#[derive(Debug, Default)]
struct Rewrite {
    written_bytes: u64,
    /// Half of what was deleted, or a GiB if that is less.
    half_bytes: u64,
    /// After the last deletion, until half was written.
    half_after: Option<Duration>,
    /// The same until all of it was.
    all_after: Option<Duration>,
    /// When all of it must be writable: half in time, the rest at the rate.
    all_within: Duration,
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = self
            .rewrite
            .half_after
            .map_or("never".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
        let all = self
            .rewrite
            .all_after
            .map_or("never".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
        write!(
            formatter,
            "{} MiB filled, {} MiB deleted in {:.1} s ({} refused, slowest {:.1} s), half writable after {half}, three quarters after \
             {all} (of {:.1} s), {} MiB written ({}), {} of {} lost, write amplification {:.1} and {:.1}",
            mib(self.filled_bytes),
            mib(self.deletions.deleted_bytes),
            self.deletions.took.as_secs_f64(),
            self.deletions.refused,
            self.deletions.slowest.as_secs_f64(),
            self.rewrite.all_within.as_secs_f64(),
            mib(self.rewrite.written_bytes),
            self.rate(),
            self.lost,
            self.read,
            self.device_filled_bytes as f64 / self.filled_bytes.max(1) as f64,
            self.device_written_bytes as f64 / self.rewrite.written_bytes.max(1) as f64,
        )
    }
}

impl Report {
    /// How fast what came after the first half was written.
    fn rate(&self) -> String {
        let rest_bytes = self.rewrite.written_bytes.saturating_sub(self.rewrite.half_bytes);
        match (self.rewrite.half_after, self.rewrite.all_after) {
            (Some(half), Some(all)) => {
                let seconds = (all - half).as_secs_f64().max(0.001);
                format!("the second half at {:.0} MB/s", rest_bytes as f64 / 1e6 / seconds)
            }
            _ => "not all".to_owned(),
        }
    }

    /// Bounds that were not kept.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.deletions.refused > 0 {
            let words = self.deletions.refused_with.clone().unwrap_or_default();
            broken.push(format!("{} deletions were refused: {words}", self.deletions.refused));
        }
        if self.rewrite.half_after.is_none_or(|after| after > HALF_WITHIN) {
            broken.push("half of what was deleted was not writable in time".to_owned());
        }
        if self.rewrite.all_after.is_none_or(|after| after > self.rewrite.all_within) {
            broken.push(format!("the rest came later than at {RATE_MB_MIN} MB/s"));
        }
        if self.lost > 0 {
            broken.push(format!("{} are lost", self.lost));
        }
        broken
    }
}

/// The server on its disk, started anew when asked.
struct Stage<'a> {
    scenario: Scenario,
    binary: &'a Path,
    data: PathBuf,
    server: Option<ServerProcess>,
}

impl Stage<'_> {
    fn server(&self) -> Outcome<&ServerProcess> {
        self.server.as_ref().ok_or_else(|| "the server does not run".into())
    }

    fn kill_and_start(&mut self) -> Outcome<()> {
        if let Some(server) = self.server.take() {
            server.kill()?;
        }
        self.start()
    }

    fn start(&mut self) -> Outcome<()> {
        self.server = Some(ServerProcess::start_larimar_beside(self.binary, &self.data)?);
        Ok(())
    }

    /// Runs the same in several threads, each with connections of its own.
    fn in_threads<T: Send>(&self, work: impl Fn(u64, &mut Client) -> Outcome<T> + Sync) -> Outcome<Vec<T>> {
        let (server, kind, work) = (self.server()?, self.scenario.kind, &work);
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..THREAD_COUNT)
                .map(|thread| scope.spawn(move || work(thread, &mut Client::connect(server, kind)?)))
                .collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }
}

impl Scenario {
    pub(super) fn run(&self, binary: &Path, folder: &Path) -> Outcome<Report> {
        let disk = SmallDisk::create(folder, self.size_mib)?;
        let data = disk.path().join("data");
        let mut stage = Stage { scenario: *self, binary, data, server: None };
        let outcome = self.play(&mut stage, &disk);
        if outcome.is_err() {
            println!("{} MiB are free", mib(disk.free_bytes()?));
        }
        drop(stage);
        outcome
    }

    fn play(&self, stage: &mut Stage<'_>, disk: &SmallDisk) -> Outcome<Report> {
        let mut report = Report::default();
        stage.start()?;
        Client::connect(stage.server()?, self.kind)?.prepare()?;
        // The reserve is made some seconds after the start.
        std::thread::sleep(Duration::from_secs(7));
        let mut units = self.fill(stage)?;
        let unit_bytes = Client::unit_size_bytes(self.kind);
        report.filled_bytes = units.len() as u64 * unit_bytes;
        report.device_filled_bytes = disk.written_bytes()?;
        if self.kills {
            stage.kill_and_start()?;
        }
        let kept = self.delete(stage, &mut units, &mut report)?;
        report.deletions.deleted_bytes = report.filled_bytes - kept.len() as u64 * unit_bytes;
        let deleted_at = Instant::now();
        if self.kills {
            stage.kill_and_start()?;
        }
        self.write_again(stage, deleted_at, &mut report)?;
        report.device_written_bytes = disk.written_bytes()? - report.device_filled_bytes;
        self.look(stage, &kept, &mut report)?;
        Ok(report)
    }

    /// Puts units until all threads are refused.
    fn fill(&self, stage: &Stage<'_>) -> Outcome<Vec<Unit>> {
        // Each must find room while the others' are under way.
        let writers = if self.kind.is_huge() { 1 } else { THREAD_COUNT };
        let filled = stage.in_threads(|thread, client| {
            let (mut units, mut number, mut refusals) = (Vec::new(), thread, 0);
            while thread < writers && refusals < REFUSALS_IN_A_ROW {
                let (answer, unit) = client.put(number)?;
                match answer {
                    Answer::Done => {
                        units.push(unit);
                        refusals = 0;
                    }
                    Answer::Refused(_) => {
                        refusals += 1;
                        std::thread::sleep(Duration::from_millis(100));
                    }
                    Answer::Missing => return Err("what is filled is missing".into()),
                }
                number += writers;
            }
            Ok(units)
        })?;
        let mut units: Vec<Unit> = filled.into_iter().flatten().collect();
        let mut random = self.size_mib;
        // In random order.
        for index in (1..units.len()).rev() {
            units.swap(index, (splitmix64(&mut random) % (index as u64 + 1)) as usize);
        }
        Ok(units)
    }

    /// Deletes units; those that stay come back.
    fn delete(
        &self,
        stage: &mut Stage<'_>,
        units: &mut Vec<Unit>,
        report: &mut Report,
    ) -> Outcome<Vec<Unit>> {
        let began_at = Instant::now();
        let (gone, kept): (Vec<Unit>, Vec<Unit>) = match self.deleted {
            Deleted::EverySecond => units.drain(..).partition(|unit| unit.number % 2 == 0),
            Deleted::All | Deleted::Whole => (std::mem::take(units), Vec::new()),
        };
        if self.deleted == Deleted::Whole {
            let mut client = Client::connect(stage.server()?, self.kind)?;
            while let Answer::Refused(words) = client.delete_all()? {
                report.deletions.refused += 1;
                report.deletions.refused_with.get_or_insert(words);
                if began_at.elapsed() > HALF_WITHIN {
                    break;
                }
            }
            report.deletions.slowest = began_at.elapsed();
        } else {
            let parts = if self.kills { 2 } else { 1 };
            for part in gone.chunks(gone.len().div_ceil(parts).max(1)) {
                if self.kills && !std::ptr::eq(part.as_ptr(), gone.as_ptr()) {
                    stage.kill_and_start()?;
                }
                self.delete_part(stage, part, report)?;
            }
        }
        report.deletions.took = began_at.elapsed();
        Ok(kept)
    }

    fn delete_part(&self, stage: &Stage<'_>, gone: &[Unit], report: &mut Report) -> Outcome<()> {
        let (next, slowest) = (AtomicU64::new(0), AtomicU64::new(0));
        let refusals: Mutex<(u64, Option<String>)> = Mutex::default();
        let pause_each = (gone.len() as u64 / 20).max(1);
        stage.in_threads(|_, client| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = gone.get(at as usize) else { return Ok(()) };
                if self.pauses && at.is_multiple_of(pause_each) {
                    std::thread::sleep(Duration::from_secs(1));
                }
                let asked_at = Instant::now();
                // As clients do: again and again, but not for ever.
                for attempt in 0..4 {
                    match client.delete(unit)? {
                        Answer::Done => break,
                        Answer::Missing if attempt > 0 => break,
                        Answer::Missing => return Err(format!("unit {} is missing", unit.number).into()),
                        Answer::Refused(words) => {
                            let mut refusals = refusals.lock().expect("no panic");
                            refusals.0 += 1;
                            refusals.1.get_or_insert(words);
                        }
                    }
                }
                slowest.fetch_max(asked_at.elapsed().as_millis() as u64, Ordering::Relaxed);
            }
        })?;
        let (count, words) = refusals.into_inner()?;
        report.deletions.refused += count;
        report.deletions.refused_with = report.deletions.refused_with.take().or(words);
        report.deletions.slowest =
            report.deletions.slowest.max(Duration::from_millis(slowest.load(Ordering::Relaxed)));
        Ok(())
    }

    /// Writes until so much was written as was deleted, nearly.
    fn write_again(&self, stage: &Stage<'_>, deleted_at: Instant, report: &mut Report) -> Outcome<()> {
        let half = (report.deletions.deleted_bytes / 2).min(HALF_SIZE_BYTES_MAX);
        let target = (report.deletions.deleted_bytes / 100 * WRITABLE_PERCENT).max(half);
        // Half in time, the rest at the rate, and as much again for whoever is late.
        let rest = Duration::from_secs_f64((target - half) as f64 / 1e6 / RATE_MB_MIN);
        let give_up_at = deleted_at + 2 * (HALF_WITHIN + rest);
        let address = stage.server()?.blob_address.ok_or("no blob service")?;
        let container = [("restype", "container")];
        let mut client = ServiceClient::connect(address, BINARY)?;
        while client.send("PUT", "again", &container, &[], b"")?.status != 201 {
            if Instant::now() > give_up_at {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let (written, next) = (AtomicU64::new(0), AtomicU64::new(0));
        let half_at: Mutex<Option<Instant>> = Mutex::default();
        stage.in_threads(|thread, _| {
            let mut client = ServiceClient::connect(address, BINARY)?;
            let body = content(thread, WRITTEN_SIZE_BYTES as usize);
            if thread >= 4 {
                return Ok(());
            }
            while written.load(Ordering::Relaxed) < target && Instant::now() < give_up_at {
                let path = format!("again/b{}", next.fetch_add(1, Ordering::Relaxed));
                let Ok(sent) = client.send("PUT", &path, &[], &[BLOCK_BLOB], &body) else {
                    // A refusal that comes before the body ends the connection.
                    client = ServiceClient::connect(address, BINARY)?;
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                match sent.status {
                    201 => {
                        let now =
                            written.fetch_add(WRITTEN_SIZE_BYTES, Ordering::Relaxed) + WRITTEN_SIZE_BYTES;
                        if now >= half {
                            half_at.lock().expect("no panic").get_or_insert_with(Instant::now);
                        }
                    }
                    503 => std::thread::sleep(Duration::from_millis(100)),
                    status => return Err(format!("PUT {path}: {status}").into()),
                }
            }
            Ok(())
        })?;
        let ended_at = Instant::now();
        report.rewrite.written_bytes = written.into_inner();
        let half_at = half_at.into_inner()?;
        report.rewrite.half_after = half_at.map(|at| at - deleted_at);
        report.rewrite.all_after = (report.rewrite.written_bytes >= target).then(|| ended_at - deleted_at);
        report.rewrite.all_within = HALF_WITHIN + rest;
        report.rewrite.half_bytes = half;
        Ok(())
    }

    /// Reads what must be there.
    fn look(&self, stage: &Stage<'_>, kept: &[Unit], report: &mut Report) -> Outcome<()> {
        if let Kind::Message(_) = self.kind {
            let there = Client::connect(stage.server()?, self.kind)?.message_count()?;
            report.read = kept.len() as u64;
            report.lost = report.read.saturating_sub(there);
            return Ok(());
        }
        let looked_at = &kept[..kept.len().min(READ_UNIT_COUNT_MAX)];
        let next = AtomicU64::new(0);
        let lost = stage.in_threads(|_, client| {
            let mut lost = 0;
            while let Some(unit) = looked_at.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                lost += u64::from(client.is_whole(unit)? == Some(false));
            }
            Ok(lost)
        })?;
        report.read = looked_at.len() as u64;
        report.lost = lost.into_iter().sum();
        Ok(())
    }
}
