//! Proves a stamp of several processes: etcd, a store and three processes, faults under load, and a verdict on
//! each: nothing acknowledged is lost, no read is stale, no write of a former owner lands, and the stamp serves
//! again in time.
//!
//! What always holds: all that it starts ends with it; a round without any acknowledged write or checked read
//! has failed. The rehearsal runs the same load, ledgers and verdicts on one ordinary process.

mod blobs;
mod ceph;
mod child;
mod cluster;
mod etcd;
mod faults;
mod ledger;
mod load;
mod proxy;
mod queues;
mod router;
mod tables;
mod timeline;
mod verdict;

use crate::{Outcome, workspace};
use cluster::Cluster;
use faults::{Fault, TAKE_OVER_BEYOND_LEASE};
use load::Load;
use std::path::{Path, PathBuf};
use std::time::Duration;
use verdict::Round;

/// Load before a fault.
const WARM_UP: Duration = Duration::from_secs(3);
/// Load after all that a take-over may take, to see whether it lasts.
const OBSERVED_BEYOND: Duration = Duration::from_secs(3);
/// Sizes of the short form.
const SHORT_ENTITIES: usize = 8000;
const SHORT_BLOBS: usize = 200;
const SHORT_MESSAGES: usize = 500;

/// What the processes keep their bytes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// A folder of this machine.
    File,
    /// Ceph with its S3 gateway, from Debian's packages; needs root.
    Ceph,
}

/// What a rehearsal spoils behind the ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BreakKind {
    /// Deletes a row.
    Row,
    /// Writes an earlier value into a row.
    OldValue,
    /// Writes a value into a row that its writer never sent.
    NewValue,
    /// Deletes a blob.
    Blob,
    /// Clears the queue of messages that wait.
    Message,
}

#[derive(clap::Args)]
pub(crate) struct StampArguments {
    /// What the processes keep their bytes in.
    #[arg(long, value_enum, default_value_t = StoreKind::File)]
    store: StoreKind,
    /// Rounds of each fault.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Faults, with commas between; else all that the store allows.
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Fault>,
    /// The lease of the processes, such as 4s.
    #[arg(long, default_value = "10s", value_parser = seconds)]
    lease: Duration,
    /// Members of etcd: 1 or 3.
    #[arg(long, default_value_t = 3)]
    etcd_members: usize,
    /// Writers of table rows.
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Rows before the first fault.
    #[arg(long, default_value_t = 1_000_000)]
    entities: usize,
    /// Bytes of text in a row, which hardly compress.
    #[arg(long, default_value_t = 700)]
    row_size: usize,
    /// Blobs before the first fault.
    #[arg(long, default_value_t = 10_000)]
    blobs: usize,
    /// Messages that wait in a queue all the time.
    #[arg(long, default_value_t = 100_000)]
    messages: usize,
    /// Ranges at most.
    #[arg(long, default_value_t = 20)]
    ranges: usize,
    /// A range of rows is split once it has more bytes than this.
    #[arg(long, default_value = "32MiB")]
    range_size: String,
    /// Few rows, blobs and messages, one kill and one pause, unless flags say otherwise.
    #[arg(long)]
    short: bool,
    /// One ordinary process on a data folder in place of a stamp, started again as the take-over.
    #[arg(long)]
    rehearse: bool,
    /// In a rehearsal: spoils something in the first round, which must be found.
    #[arg(long = "break", value_enum, requires = "rehearse")]
    spoil: Option<BreakKind>,
    /// Only starts etcd and the store, and ends them again.
    #[arg(long)]
    services_only: bool,
    /// Seed of rows, blobs and clients; else a new one, printed.
    #[arg(long)]
    seed: Option<u64>,
    /// The server; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').and_then(|number| number.parse().ok());
    number
        .filter(|number| *number > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text} is not like 4s"))
}

impl StampArguments {
    /// With the sizes of the short form where flags say nothing else.
    fn resolved(mut self) -> Self {
        let asked_for = |flag: &str| std::env::args().any(|argument| argument.starts_with(flag));
        if self.short {
            let keep = |flag: &str, size: &mut usize, short: usize| {
                if !asked_for(flag) {
                    *size = short;
                }
            };
            keep("--entities", &mut self.entities, SHORT_ENTITIES);
            keep("--blobs", &mut self.blobs, SHORT_BLOBS);
            keep("--messages", &mut self.messages, SHORT_MESSAGES);
            keep("--rounds", &mut self.rounds, 1);
            keep("--etcd-members", &mut self.etcd_members, 1);
            if self.faults.is_empty() {
                self.faults = vec![Fault::Kill, Fault::Pause];
            }
            if !asked_for("--lease") {
                self.lease = Duration::from_secs(4);
            }
        }
        self
    }
}

pub(crate) fn run(arguments: StampArguments) -> Outcome<()> {
    let arguments = arguments.resolved();
    let scratch = workspace::Scratch::create("stamp")?;
    if arguments.services_only {
        return try_services(&arguments, scratch.path());
    }
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    let what = if arguments.rehearse { "rehearsal of a stamp" } else { "stamp" };
    println!("{what}: store {:?}, lease {:?}, seed {seed}", arguments.store, arguments.lease);
    let outcome = run_rounds(&arguments, seed, &binary, scratch.path());
    if outcome.is_err() {
        println!("{what}: logs and data are kept in {}", scratch.keep().display());
    }
    outcome
}

/// etcd and the store alone, each with what shows that it works.
fn try_services(arguments: &StampArguments, folder: &Path) -> Outcome<()> {
    etcd::set_up()?;
    let started_at = std::time::Instant::now();
    let etcd = etcd::Etcd::start(arguments.etcd_members, folder)?;
    println!("etcd: {} members up in {:?}", etcd.addresses().len(), started_at.elapsed());
    if arguments.store == StoreKind::Ceph {
        let started_at = std::time::Instant::now();
        ceph::set_up()?;
        println!("ceph: packages there in {:?}", started_at.elapsed());
        let started_at = std::time::Instant::now();
        let mut ceph = ceph::Ceph::start(folder)?;
        println!("ceph: up in {:?}; creates of one name: 200, then 412", started_at.elapsed());
        let started_at = std::time::Instant::now();
        ceph.kill_osd(1);
        println!("ceph: next create after an OSD was killed: {:?}", ceph.create("after-an-osd")?);
        ceph.start_osd_again(1)?;
        ceph.kill_gateway();
        ceph.start_gateway()?;
        println!("ceph: OSD and gateway killed and up again in {:?}", started_at.elapsed());
    }
    Ok(())
}

fn run_rounds(arguments: &StampArguments, seed: u64, binary: &Path, folder: &Path) -> Outcome<()> {
    let started_at = std::time::Instant::now();
    let mut cluster = Cluster::start(arguments, binary, folder)?;
    println!("up in {:?}", started_at.elapsed());
    let mut load = Load::new(arguments, &cluster, seed);
    let filled_at = std::time::Instant::now();
    load.fill(arguments)?;
    println!("filled in {:?}: {}", filled_at.elapsed(), load.description());
    let mut faults = arguments.faults.clone();
    if faults.is_empty() {
        faults = Fault::all_of(&cluster);
    }
    if let Some(fault) = faults.iter().find(|fault| !fault.is_for(&cluster)) {
        return Err(format!("{fault:?} needs another store, or no rehearsal").into());
    }
    let mut rounds: Vec<Round> = Vec::new();
    println!("{}", verdict::HEAD);
    for fault in faults.iter().cycle().take(faults.len() * arguments.rounds) {
        let number = rounds.len() + 1;
        let is_last = number == faults.len() * arguments.rounds;
        let spoil = arguments.spoil.filter(|_| number == 1);
        let round = run_round(number, *fault, spoil, is_last, &mut cluster, &mut load)?;
        println!("{}", round.line());
        for problem in &round.counts.shown {
            println!("      {problem}");
        }
        rounds.push(round);
    }
    cluster.stop()?;
    let failed = rounds.iter().filter(|round| !round.has_passed()).count();
    println!("{} rounds, {failed} failed, in {:?}; seed {seed}", rounds.len(), started_at.elapsed());
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} rounds of a stamp failed", rounds.len()).into()),
    }
}

/// One fault under load, and what it showed.
fn run_round(
    number: usize,
    fault: Fault,
    spoil: Option<BreakKind>,
    is_last: bool,
    cluster: &mut Cluster,
    load: &mut Load,
) -> Outcome<Round> {
    cluster.wait_until_served()?;
    let hits_all = fault.hits_all(cluster);
    let allowed = cluster.lease + TAKE_OVER_BEYOND_LEASE;
    let spoiler = load.spoiler()?;
    let (from, seen) = load.run_during(|| {
        std::thread::sleep(WARM_UP);
        let struck = fault.strike(cluster, number)?;
        std::thread::sleep(struck.lasts_for);
        let ended_at = struck.end(cluster)?;
        let from = if hits_all { ended_at } else { struck.at };
        // From the later of both, so that what comes back late is seen, too.
        std::thread::sleep((from + allowed).saturating_duration_since(std::time::Instant::now()));
        if let Some(kind) = spoil {
            spoiler.spoil(kind)?;
        }
        std::thread::sleep(OBSERVED_BEYOND);
        Ok(from)
    })?;
    cluster.wait_until_served()?;
    cluster.check()?;
    let verified = load.verify(is_last)?;
    let counts = load.take_counts();
    println!(
        "      read back: {} rows, {} blobs, {} messages",
        verified.rows, verified.blobs, verified.messages
    );
    let outage = timeline::outage(&seen.gaps, from);
    let (writes, unknown, reads) = (seen.writes, seen.unknown, seen.reads);
    Ok(Round { number, fault, writes, unknown, reads, counts, outage, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_number_of_seconds() {
        assert_eq!(seconds("4s"), Ok(Duration::from_secs(4)));
        for wrong in ["4", "0s", "s", "4m", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
