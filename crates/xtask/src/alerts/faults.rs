//! The faults, each made against a server that a Prometheus scrapes, and the alerts that must fire of it.
//!
//! What always holds: an alert that no fault makes fire is a failed test.

use super::disk_fault::DiskFault;
use super::load::{Rows, insert_for, put_blobs};
use super::newcomer;
use super::watched::{Stage, Start, Watched};
use crate::Outcome;
use crate::full_disk::small_disk::SmallDisk;
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One fault.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// What must fire.
    pub(super) alerts: &'static [&'static str],
    /// Whether it is part of the short form: it needs neither root nor much time.
    pub(super) is_short: bool,
    make: fn(&Fault, &Stage, &Path) -> Outcome<Vec<String>>,
}

impl Fault {
    /// Makes it in a folder; the alerts that fired.
    pub(super) fn make(&self, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
        (self.make)(self, stage, folder)
    }
}

pub(super) const FAULTS: [Fault; 10] = [
    Fault { name: "killed", alerts: &["LarimarDown"], is_short: true, make: kill },
    Fault {
        name: "connections",
        alerts: &["LarimarConnectionsNearLimit"],
        is_short: true,
        make: hold_connections,
    },
    Fault { name: "killed again and again", alerts: &["LarimarRestarts"], is_short: false, make: kill_again },
    Fault {
        name: "disk filled by another program",
        alerts: &["LarimarDiskFull", "LarimarNotReady", "LarimarServerBusy"],
        is_short: false,
        make: fill_disk,
    },
    Fault {
        name: "disk that fails syncs",
        alerts: &["LarimarWritesStopped", "LarimarNotReady"],
        is_short: false,
        make: fail_syncs,
    },
    Fault {
        name: "disk with slow syncs",
        alerts: &["LarimarSyncSlow", "LarimarRequestsSlow"],
        is_short: false,
        make: slow_syncs,
    },
    Fault {
        name: "log of a range damaged",
        alerts: &["LarimarRangeDamaged", "LarimarServerErrors", "LarimarNotReady"],
        is_short: false,
        make: damage_range,
    },
    Fault {
        name: "extent of blobs damaged",
        alerts: &["LarimarExtentDamaged"],
        is_short: false,
        make: damage_extent,
    },
    Fault {
        name: "writes faster than flushes",
        alerts: &["LarimarWritesHeldBack"],
        is_short: false,
        make: write_much,
    },
    Fault {
        name: "more in memory than the budget",
        alerts: &["LarimarMemoryBeyondBudget"],
        is_short: false,
        make: take_memory,
    },
];

/// The path of the page for newcomers, which makes a fault of its own.
pub(super) const NEWCOMER: Fault = Fault {
    name: "docs/operate.md",
    alerts: &["LarimarDown"],
    is_short: false,
    make: |_, stage, folder| newcomer::run(stage, folder).map(|()| vec!["LarimarDown".to_owned()]),
};

const START_COUNT: usize = 4;
const DISK_SIZE_MIB: u64 = 300;
/// After a start the server sets its reserve for a full disk aside.
const RESERVED_AFTER: Duration = Duration::from_secs(7);
const SYNC_DELAY: Duration = Duration::from_millis(1500);
const OPEN_FILES_MAX: u32 = 1024;
/// Of the 170 that so few files allow.
const HELD_CONNECTIONS: usize = 140;
const ROW_COUNT: u64 = 200;
const ROW_SIZE_BYTES: usize = 4 << 10;
/// Where damage goes: no single flipped bits, which are mended.
const DAMAGED_EVERY_BYTES: u64 = 4 << 10;
const DAMAGED_UNTIL_BYTES: u64 = 256 << 10;
const DAMAGE: [u8; 32] = [0xa5; 32];
/// More than the journal of a small memory budget holds, which is 24 MiB.
const JOURNALED_BLOB_COUNT: u64 = 128;
const JOURNALED_BLOB_SIZE_BYTES: usize = 512 << 10;
const BLOB_SIZE_BYTES: usize = 16 << 20;
const PARTITION: &str = "p";

fn kill(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let mut watched = Watched::start(stage, folder, Start::on(&folder.join("data"), &[]))?;
    watched.kill()?;
    watched.expect(fault.alerts, || Ok(()))
}

fn hold_connections(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let start = Start { open_files_max: Some(OPEN_FILES_MAX), ..Start::on(&folder.join("data"), &[]) };
    let watched = Watched::start(stage, folder, start)?;
    let address = watched.server()?.address;
    let held: Result<Vec<TcpStream>, _> =
        (0..HELD_CONNECTIONS).map(|_| TcpStream::connect(address)).collect();
    let held = held?;
    let fired = watched.expect(fault.alerts, || Ok(()))?;
    drop(held);
    watched.expect_end()?;
    Ok(fired)
}

fn kill_again(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let mut watched = Watched::start(stage, folder, Start::on(&folder.join("data"), &[]))?;
    let mut started_at = watched.wait_for_start_after(0.0)?;
    for _ in 0..START_COUNT {
        watched.kill()?;
        watched.restart()?;
        started_at = watched.wait_for_start_after(started_at)?;
    }
    watched.expect(fault.alerts, || Ok(()))
}

fn fill_disk(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let disk = SmallDisk::create(folder, DISK_SIZE_MIB)?;
    // The server ends before the disk goes.
    let watched = Watched::start(stage, folder, Start::on(&disk.path().join("data"), &[]))?;
    let mut rows = Rows::connect(watched.server()?.address)?;
    rows.prepare()?;
    std::thread::sleep(RESERVED_AFTER);
    let foreign = disk.path().join("foreign");
    let fired = watched.expect(fault.alerts, || {
        fill(&foreign)?;
        rows.insert(PARTITION, ROW_SIZE_BYTES).map(drop)
    })?;
    std::fs::remove_file(&foreign)?;
    watched.expect_end()?;
    Ok(fired)
}

/// Takes what is free on a disk.
fn fill(path: &Path) -> Outcome<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    for size in [1 << 20, 4096] {
        let bytes = vec![7; size];
        while file.write_all(&bytes).is_ok() {}
    }
    Ok(())
}

fn fail_syncs(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let watched = Watched::start(stage, folder, Start::on(&folder.join("data"), &[]))?;
    let mut rows = Rows::connect(watched.server()?.address)?;
    rows.prepare()?;
    let _held = DiskFault::failing(watched.server()?.id())?;
    watched.expect(fault.alerts, || rows.insert(PARTITION, 100).map(drop))
}

fn slow_syncs(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let watched = Watched::start(stage, folder, Start::on(&folder.join("data"), &[]))?;
    let mut rows = Rows::connect(watched.server()?.address)?;
    rows.prepare()?;
    let held = DiskFault::slow(watched.server()?.id(), SYNC_DELAY)?;
    let fired = watched.expect(fault.alerts, || rows.insert(PARTITION, 100).map(drop))?;
    drop(held);
    Ok(fired)
}

/// Files of extents, the largest first.
fn extents(data: &Path) -> Outcome<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data.join("extents"))? {
        let entry = entry?;
        found.push((entry.metadata()?.len(), entry.path()));
    }
    found.sort();
    found.reverse();
    Ok(found)
}

/// Damages the extents one after the other until one is found without which rows are not served.
fn damage_range(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let data = folder.join("data");
    let start = Start::on(&data, &["--memory-budget", "64MiB"]);
    let mut watched = Watched::start(stage, folder, start)?;
    let mut rows = Rows::connect(watched.server()?.address)?;
    rows.prepare()?;
    for _ in 0..ROW_COUNT {
        rows.insert(PARTITION, ROW_SIZE_BYTES)?;
    }
    // What the journal still holds is mended from there, so other writes have to pass through it.
    put_blobs(watched.server()?, JOURNALED_BLOB_COUNT, JOURNALED_BLOB_SIZE_BYTES)?;
    watched.terminate()?;
    for (size, path) in extents(&data)? {
        let file = File::options().read(true).write(true).open(&path)?;
        let mut kept = vec![0; usize::try_from(size.min(DAMAGED_UNTIL_BYTES))?];
        file.read_exact_at(&mut kept, 0)?;
        for at in (0..kept.len() as u64).step_by(DAMAGED_EVERY_BYTES as usize) {
            file.write_all_at(&DAMAGE, at)?;
        }
        if watched.restart().is_ok() {
            let mut rows = Rows::connect(watched.server()?.address)?;
            if rows.get(PARTITION, 0)? == 500 && rows.get(PARTITION, ROW_COUNT - 1)? == 500 {
                return watched.expect(fault.alerts, || rows.get(PARTITION, 0).map(drop));
            }
            watched.kill()?;
        }
        file.set_len(size)?;
        file.write_all_at(&kept, 0)?;
    }
    Err("no extent is needed to serve the rows".into())
}

fn damage_extent(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let data = folder.join("data");
    let mut watched = Watched::start(stage, folder, Start::on(&data, &["--scrub-rate", "1GiB"]))?;
    // Two full extents and more.
    let extent_size_bytes = watched.extent_size_bytes_max()?;
    let count = extent_size_bytes * 2 / BLOB_SIZE_BYTES as u64 + 2;
    put_blobs(watched.server()?, count, BLOB_SIZE_BYTES)?;
    watched.terminate()?;
    // The oldest of those that are full: it takes no more, so it is scrubbed.
    let full = extents(&data)?.into_iter().filter(|(size, _)| *size >= extent_size_bytes / 2);
    let (size, path) = full.min_by(|one, other| one.1.cmp(&other.1)).ok_or("there are no extents")?;
    File::options().write(true).open(path)?.write_all_at(&DAMAGE, size / 2)?;
    watched.restart()?;
    watched.expect(fault.alerts, || Ok(()))
}

fn write_much(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let start = Start::on(&folder.join("data"), &["--memory-budget", "64MiB"]);
    let watched = Watched::start(stage, folder, start)?;
    let server = watched.server()?;
    Rows::connect(server.address)?.prepare()?;
    watched.expect(fault.alerts, || insert_for(server, 32, 30_000, Duration::from_secs(1)))
}

fn take_memory(fault: &Fault, stage: &Stage, folder: &Path) -> Outcome<Vec<String>> {
    let flags = ["--in-memory", "--memory-budget", "64MiB"].map(str::to_owned).to_vec();
    let watched = Watched::start(stage, folder, Start { flags, open_files_max: None })?;
    put_blobs(watched.server()?, 24, BLOB_SIZE_BYTES)?;
    watched.expect(fault.alerts, || Ok(()))
}

#[cfg(test)]
mod tests {
    use super::super::rules::alert_names;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_alert_has_a_fault_that_makes_it_fire() {
        let rules = alert_names(include_str!("../../../../deploy/prometheus/alerts.yml"));
        let rules: BTreeSet<&str> = rules.iter().map(String::as_str).collect();
        let made: BTreeSet<&str> = FAULTS.iter().flat_map(|fault| fault.alerts.iter().copied()).collect();
        assert_eq!(rules, made);
    }
}
