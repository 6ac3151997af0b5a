//! A start with 0 bytes free, because somebody else filled the disk: the server starts, reads and deletes,
//! says of writes what is missing, and goes on by itself once there is space. Again and again, too: then it
//! is killed, and the disk filled, after each start.

use super::rows::{Answer, Client, Kind, Unit};
use super::small_disk::SmallDisk;
use crate::Outcome;
use crate::client::server_process::ServerProcess;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE_MIB: u64 = 300;
const KIND: Kind = Kind::Blob(1_000_000);
const UNIT_COUNT: u64 = 80;
const WRITABLE_WITHIN: Duration = Duration::from_secs(60);
/// Words of the refusal, and of the log.
const FULL: &str = "full";

/// Whether the disk fills up while the server runs, or while it does not.
pub(super) const NAMES: [&str; 3] = [
    "0 bytes free, filled while it runs",
    "0 bytes free, filled while it is down",
    "0 bytes free, filled and killed again and again",
];

/// How often the third one starts the server.
const START_COUNT: usize = 10;
/// What goes through the journal: groups of entities.
const SMALL_KIND: Kind = Kind::Entity(1 << 10);
const SMALL_UNIT_COUNT: u64 = 60;
/// Somebody else takes what is free so often.
const FILL_EVERY: Duration = Duration::from_millis(20);
/// Deletions of each kind after a start.
const DELETED_PER_START: usize = 3;

pub(super) fn run(name: &str, binary: &Path, folder: &Path) -> Outcome<String> {
    if name == NAMES[2] {
        return run_again_and_again(binary, folder);
    }
    let disk = SmallDisk::create(folder, SIZE_MIB)?;
    let data = disk.path().join("data");
    let foreign = disk.path().join("foreign");
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    let mut client = Client::connect(&server, KIND)?;
    client.prepare()?;
    std::thread::sleep(Duration::from_secs(7));
    let mut units = Vec::new();
    for number in 0..UNIT_COUNT {
        units.push(put(&mut client, number)?);
    }
    if name == NAMES[0] {
        fill(&foreign)?;
        // Something is in the journal only.
        let _ = client.put(UNIT_COUNT)?;
        server.kill()?;
    } else {
        server.kill()?;
        fill(&foreign)?;
    }
    let began_at = Instant::now();
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    let started_after = began_at.elapsed();
    let mut client = Client::connect(&server, KIND)?;
    for unit in &units {
        if client.is_whole(unit)? != Some(true) {
            return Err(format!("blob {} is not what was put", unit.number).into());
        }
    }
    expect_refusal(&mut client, &disk, &foreign)?;
    let (gone, kept) = units.split_at(units.len() / 2);
    for unit in gone {
        if client.delete(unit)? != Answer::Done {
            return Err(format!("blob {} can't be deleted with 0 bytes free", unit.number).into());
        }
    }
    std::fs::remove_file(&foreign)?;
    let writable_after = wait_until_writable(&mut client)?;
    for unit in kept {
        if client.is_whole(unit)? != Some(true) {
            return Err(format!("blob {} is not what was put", unit.number).into());
        }
    }
    let status = server.terminate()?;
    Ok(format!(
        "started in {} ms, {} blobs read, {} deleted, writable {:.1} s after there was space, ended with {status}",
        started_after.as_millis(),
        units.len(),
        gone.len(),
        writable_after.as_secs_f64()
    ))
}

/// The units of one kind: those that must be there, and those that must not.
struct Units {
    kind: Kind,
    kept: Vec<Unit>,
    gone: Vec<Unit>,
}

impl Units {
    fn put(server: &ServerProcess, kind: Kind, count: u64) -> Outcome<Self> {
        let mut client = Client::connect(server, kind)?;
        let kept: Outcome<Vec<Unit>> = (0..count).map(|number| put(&mut client, number)).collect();
        Ok(Units { kind, kept: kept?, gone: Vec::new() })
    }

    fn check(&self, server: &ServerProcess) -> Outcome<()> {
        let mut client = Client::connect(server, self.kind)?;
        for (units, expected) in [(&self.kept, true), (&self.gone, false)] {
            for unit in units {
                if client.is_whole(unit)? != Some(expected) {
                    let what = if expected { "is not what was put" } else { "was deleted and is there" };
                    return Err(format!("unit {} of {} {what}", unit.number, self.kind).into());
                }
            }
        }
        Ok(())
    }

    /// Deletes some, as far as that is taken.
    fn delete_some(&mut self, server: &ServerProcess) -> Outcome<()> {
        let mut client = Client::connect(server, self.kind)?;
        for _ in 0..DELETED_PER_START {
            let Some(unit) = self.kept.pop() else { break };
            match client.delete(&unit)? {
                Answer::Done => self.gone.push(unit),
                Answer::Refused(words) if words.contains(FULL) => self.kept.insert(0, unit),
                other => return Err(format!("a deletion ended with {other:?}").into()),
            }
        }
        Ok(())
    }
}

fn run_again_and_again(binary: &Path, folder: &Path) -> Outcome<String> {
    let disk = SmallDisk::create(folder, SIZE_MIB)?;
    let data = disk.path().join("data");
    let foreign = disk.path().join("foreign");
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    Client::connect(&server, KIND)?.prepare()?;
    std::thread::sleep(Duration::from_secs(7));
    let mut all =
        [Units::put(&server, KIND, UNIT_COUNT)?, Units::put(&server, SMALL_KIND, SMALL_UNIT_COUNT)?];
    // What the journal has is not in its extents yet.
    server.kill()?;
    let mut slowest_start = Duration::ZERO;
    for number in 0..START_COUNT {
        fill(&foreign)?;
        let filler = Filler::start(&foreign);
        let began_at = Instant::now();
        let server = ServerProcess::start_larimar_beside(binary, &data);
        let server = server.map_err(|error| format!("start {number}: {error}"))?;
        slowest_start = slowest_start.max(began_at.elapsed());
        for units in &mut all {
            units.check(&server).map_err(|error| format!("start {number}: {error}"))?;
            units.delete_some(&server).map_err(|error| format!("start {number}: {error}"))?;
        }
        expect_refusal(&mut Client::connect(&server, KIND)?, &disk, &foreign)?;
        server.kill()?;
        drop(filler);
    }
    fill(&foreign)?;
    let server = ServerProcess::start_larimar_beside(binary, &data)?;
    std::fs::remove_file(&foreign)?;
    let writable_after = wait_until_writable(&mut Client::connect(&server, KIND)?)?;
    for units in &all {
        units.check(&server)?;
    }
    let status = server.terminate()?;
    let [blobs, groups] = all.map(|units| units.gone.len());
    if blobs == 0 || groups == 0 {
        return Err("no deletion was taken".into());
    }
    Ok(format!(
        "{} starts, the slowest in {} ms, {blobs} blobs and {groups} groups deleted, writable {:.1} s after there was \
         space, ended with {status}",
        START_COUNT + 1,
        slowest_start.as_millis(),
        writable_after.as_secs_f64()
    ))
}

/// A write on the full disk is refused with words that say what is missing.
fn expect_refusal(client: &mut Client, disk: &SmallDisk, foreign: &Path) -> Outcome<()> {
    fill(foreign)?;
    let refused_with = loop {
        match client.put(UNIT_COUNT + 1)?.0 {
            Answer::Refused(words) => break words,
            _ if disk.free_bytes()? > 0 => fill(foreign)?,
            other => return Err(format!("a write on a full disk ended with {other:?}").into()),
        }
    };
    if !refused_with.contains(FULL) || !refused_with.contains("MiB") {
        return Err(format!("the refusal does not say what is missing: {refused_with}").into());
    }
    Ok(())
}

/// How long it takes until a write is taken.
fn wait_until_writable(client: &mut Client) -> Outcome<Duration> {
    let freed_at = Instant::now();
    while client.put(UNIT_COUNT + 2)?.0 != Answer::Done {
        if freed_at.elapsed() > WRITABLE_WITHIN {
            return Err("it does not go on though there is space again".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(freed_at.elapsed())
}

fn put(client: &mut Client, number: u64) -> Outcome<Unit> {
    match client.put(number)? {
        (Answer::Done, unit) => Ok(unit),
        (other, _) => Err(format!("a put ended with {other:?}").into()),
    }
}

/// Fills the disk again and again whenever there is space, until it is dropped.
struct Filler {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filler {
    fn start(path: &Path) -> Self {
        let (ends, path) = (Arc::new(AtomicBool::new(false)), path.to_owned());
        let told = ends.clone();
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) && fill(&path).is_ok() {
                std::thread::sleep(FILL_EVERY);
            }
        });
        Filler { ends, thread: Some(thread) }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // It has said nothing that is still to be known.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Fills the disk to the last byte.
fn fill(path: &Path) -> Outcome<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    for size in [1 << 20, 4096, 512, 1] {
        let bytes = vec![7; size];
        while file.write_all(&bytes).is_ok() {}
    }
    let _ = file.sync_all();
    Ok(())
}
