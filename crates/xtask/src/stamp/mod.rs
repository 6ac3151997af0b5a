//! Proves a stamp of several processes: etcd, a store and three processes, faults under load, and a verdict
//! on each: nothing acknowledged is lost, no read is stale, no write of a former owner lands, and the stamp
//! serves again in time.
//!
//! What always holds: all that it starts ends with it; a round in which one kind of client did nothing has
//! failed. The rehearsal runs the same load, ledgers and verdicts on one ordinary process.

mod arguments;
mod blobs;
pub(crate) mod ceph;
pub(crate) mod child;
mod clients;
mod cluster;
pub(crate) mod etcd;
mod fault_kind;
mod faults;
mod groups;
mod ledger;
mod load;
mod lost_etcd;
mod measured;
mod migrate;
mod preparation;
mod proxy;
mod queues;
mod router;
pub(crate) mod stand_in;
mod tables;
mod timeline;
mod verdict;

use crate::{Outcome, workspace};
pub(crate) use arguments::StampArguments;
use arguments::{BreakKind, Plan, StoreKind};
use cluster::Cluster;
use fault_kind::Fault;
use faults::TAKE_OVER_BEYOND_LEASE;
use load::Load;
use std::path::Path;
use std::time::{Duration, Instant};
use verdict::Round;

/// Load before a fault.
const WARM_UP: Duration = Duration::from_secs(3);
/// Load after all that a take-over may take, to see whether it lasts.
const OBSERVED_BEYOND: Duration = Duration::from_secs(3);

/// The short form of `cargo xtask test`: a folder, a kill and a pause, of this server. How soon it serves
/// again is printed, and is no test there: the machine may be busy.
pub(crate) fn run_short(binary: &Path) -> Outcome<()> {
    run_alone(&["stamp", "--short", "--takes-late"], binary)
}

/// The short form of the migration for `cargo xtask test`, of this program.
pub(crate) fn run_short_migration(binary: &Path) -> Outcome<()> {
    run_alone(&["stamp", "--short", "--migrate"], binary)
}

fn run_alone(words: &[&str], binary: &Path) -> Outcome<()> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: StampArguments,
    }
    let words = words.iter().chain(&["--bin"]).map(std::ffi::OsStr::new).chain([binary.as_os_str()]);
    run(&<Alone as clap::Parser>::try_parse_from(words)?.arguments)
}

pub(crate) fn run(arguments: &StampArguments) -> Outcome<()> {
    let plan = arguments.plan();
    let scratch = workspace::Scratch::create("stamp")?;
    if arguments.instead.services_only {
        return try_services(&plan, scratch.path());
    }
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    let instead: Option<Outcome<()>> = if arguments.instead.clients {
        Some(clients::run(&plan, &binary, scratch.path()))
    } else if arguments.instead.migrate {
        println!("migration of a stamp: store {:?}, lease {:?}, seed {seed}", plan.store, plan.lease);
        Some(migrate::run(&plan, arguments.spoil, seed, &binary, scratch.path()))
    } else {
        None
    };
    if let Some(outcome) = instead {
        if outcome.is_err() {
            println!("stamp: logs and data are kept in {}", scratch.keep().display());
        }
        return outcome;
    }
    let what = if plan.is_rehearsal { "rehearsal of a stamp" } else { "stamp" };
    println!("{what}: store {:?}, lease {:?}, seed {seed}", plan.store, plan.lease);
    let outcome = run_rounds(&plan, arguments.spoil, seed, &binary, scratch.path());
    if outcome.is_err() {
        println!("{what}: logs and data are kept in {}", scratch.keep().display());
    }
    outcome
}

/// etcd and the store alone, each with what shows that it works.
fn try_services(plan: &Plan, folder: &Path) -> Outcome<()> {
    etcd::set_up()?;
    let started_at = Instant::now();
    let etcd = etcd::Etcd::start(plan.etcd_members, folder)?;
    println!("etcd: {} members up in {:?}", etcd.addresses().len(), started_at.elapsed());
    if plan.store == StoreKind::Ceph {
        let started_at = Instant::now();
        ceph::set_up()?;
        println!("ceph: packages there in {:?}", started_at.elapsed());
        let started_at = Instant::now();
        let mut ceph = ceph::Ceph::start(folder)?;
        println!("ceph: up in {:?}; creates of one name: 200, then 412", started_at.elapsed());
        let started_at = Instant::now();
        ceph.kill_osd(1);
        println!("ceph: next create after an OSD was killed: {:?}", ceph.create("after-an-osd")?);
        ceph.start_osd_again(1)?;
        ceph.kill_gateway();
        ceph.start_gateway()?;
        println!("ceph: OSD and gateway killed and up again in {:?}", started_at.elapsed());
    }
    Ok(())
}

fn run_rounds(plan: &Plan, spoil: Option<BreakKind>, seed: u64, binary: &Path, folder: &Path) -> Outcome<()> {
    let started_at = Instant::now();
    let mut cluster = Cluster::start(plan, binary, folder)?;
    println!("up in {:?}", started_at.elapsed());
    let mut load = Load::new(plan, &cluster, seed);
    let filled_at = Instant::now();
    load.fill(plan)?;
    println!("filled in {:?}: {}", filled_at.elapsed(), load.description());
    let mut faults = plan.faults.clone();
    if faults.is_empty() {
        faults = Fault::all_of(&cluster);
    }
    if let Some(fault) = faults.iter().find(|fault| !fault.is_for(&cluster)) {
        return Err(format!("{fault:?} needs another store, or no rehearsal").into());
    }
    let mut rounds: Vec<Round> = Vec::new();
    println!("{}", verdict::HEAD);
    for fault in faults.iter().cycle().take(faults.len() * plan.rounds) {
        let number = rounds.len() + 1;
        let is_last = number == faults.len() * plan.rounds;
        let spoil = spoil.filter(|_| number == 1);
        let (cluster, load) = (&mut cluster, &mut load);
        let round = run_round(number, *fault, spoil, is_last, plan, cluster, load)
            .map_err(|error| format!("round {number} ({fault:?}): {error}"))?;
        println!("{}", round.line());
        for name in round.idle() {
            println!("      no {name}");
        }
        for problem in &round.counts.shown {
            println!("      {problem}");
        }
        rounds.push(round);
    }
    cluster.stop()?;
    let is_fine = |round: &&Round| round.has_passed() || (plan.takes_late && round.is_only_late());
    let failed = rounds.iter().filter(|round| !is_fine(round)).count();
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
    plan: &Plan,
    cluster: &mut Cluster,
    load: &mut Load,
) -> Outcome<Round> {
    cluster.wait_until_served()?;
    let allowed = cluster.lease + TAKE_OVER_BEYOND_LEASE;
    let spoiler = load.spoiler()?;
    let ((from, until), seen) = load.run_during(|fills| {
        std::thread::sleep(WARM_UP);
        let started_at = Instant::now();
        let measured = preparation::prepare(cluster, plan.demand, fills)?;
        println!("      before the fault: {measured} (after {:.1?} of groups)", started_at.elapsed());
        let struck = fault.strike(cluster, number)?;
        std::thread::sleep(struck.lasts_for);
        let ended_at = struck.end(cluster)?;
        let from = struck.counts_from(ended_at, cluster);
        if let Some(remark) = struck.remark() {
            println!("      {remark}");
        }
        // From the later of both, so that what comes back late is seen, too.
        std::thread::sleep((from + allowed).saturating_duration_since(Instant::now()));
        if let Some(kind) = spoil {
            spoiler.spoil(kind)?;
        }
        std::thread::sleep(OBSERVED_BEYOND);
        // What comes back disturbs the store once more, which is not this fault.
        let mut until = cluster.serving().map(|_| Instant::now());
        struck.clean_up(cluster)?;
        if cluster.serving().is_none() {
            // It is late by now; the clients go on, so that it is seen how late.
            cluster.wait_until_served()?;
            std::thread::sleep(OBSERVED_BEYOND);
            until = None;
        }
        Ok((from, until))
    })?;
    cluster.wait_until_served()?;
    cluster.check()?;
    let messages = load.drain(is_last)?;
    if is_last || number.is_multiple_of(plan.read_back_every) {
        let verified = load.verify()?;
        println!(
            "      read back: {} rows, {} blobs ({} deleted so far), {messages} messages",
            verified.rows, verified.blobs, verified.deleted_blobs
        );
    }
    let counts = load.take_counts();
    let until = until.unwrap_or(seen.until);
    let outage = timeline::worst_outage(&timeline::until(&seen.gaps, until), from, allowed, until);
    let load::Seen { writes, unknown, reads, uploads, messages, .. } = seen;
    Ok(Round { number, fault, writes, unknown, reads, uploads, messages, counts, outage, allowed })
}
