//! Growth and churn: what deletions, overwrites and a steady flow leave behind, each workload on a server of
//! its own.
//!
//! Each part prints what it measured beside its target; the run fails for a missed one only with `--check`.
//! `docs/internals/compaction.md` explains the targets.

mod cache;
mod calls;
mod containers;
mod deletions;
mod flow;
mod growth;
mod memory;
mod neighbours;
mod rows;
mod scale;
mod small_blobs;
mod soak;
mod space;
mod writers;

use crate::bench::disk_usage::used_bytes;
use crate::bench::measured::MeasuredServer;
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{ACCOUNT, account_argument};
use crate::{Outcome, workspace};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A part of the bench.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The first rows of a partition are deleted, then all of them.
    Deletions,
    /// Rows in at the end of a partition and out at its start.
    Flow,
    /// Half of many small blobs are deleted.
    Blobs,
    /// Hot rows are overwritten again and again.
    Cache,
    /// Rows are put, overwritten and left alone with a small memory budget.
    Memory,
    /// One account's small requests beside another's many groups.
    Neighbours,
    /// More writers than flushes keep up with.
    Writers,
    /// Many new rows in scattered order with a small memory budget.
    Growth,
    /// Many queues are deleted, empty and full ones.
    Containers,
    /// The folder's size while many rows are put and compacted.
    Space,
    /// A table grows to several sizes. Only if it is named: it takes a quarter of an hour.
    Scale,
    /// A steady mix for a long time. Only if it is named.
    Soak,
}

impl Part {
    fn takes_long(self) -> bool {
        matches!(self, Part::Scale | Part::Soak)
    }
}

/// Compactions are over once the folder has not changed for so long.
const QUIET_FOR: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A new folder that has not grown for so long has all that it starts with.
const GROWS_FOR: Duration = Duration::from_secs(4);

#[derive(clap::Args)]
pub(crate) struct ChurnArguments {
    /// Only these parts; else all but scale and soak.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Rows of the partition of which the first sixth is deleted.
    #[arg(long, default_value_t = 3_000_000)]
    rows: u64,
    #[command(flatten)]
    flow: flow::FlowArguments,
    /// Small blobs of which half are deleted.
    #[arg(long, default_value_t = 300_000)]
    blobs: u64,
    #[command(flatten)]
    cache: cache::CacheArguments,
    #[command(flatten)]
    memory: memory::MemoryArguments,
    /// Seconds of each measurement of one account beside another.
    #[arg(long, default_value_t = 10)]
    neighbour_seconds: u64,
    #[command(flatten)]
    writers: writers::WritersArguments,
    #[command(flatten)]
    size: SizeArguments,
    #[command(flatten)]
    waits: WaitArguments,
    #[command(flatten)]
    server: MeasuredServer,
    /// Fail if a part misses its target.
    #[arg(long)]
    check: bool,
}

/// How much is stored, and for how long.
#[derive(clap::Args)]
struct SizeArguments {
    #[command(flatten)]
    growth: growth::GrowthArguments,
    #[command(flatten)]
    containers: containers::ContainersArguments,
    #[command(flatten)]
    space: space::SpaceArguments,
    #[command(flatten)]
    scale: scale::ScaleArguments,
    #[command(flatten)]
    soak: soak::SoakArguments,
}

/// How long the server is left alone.
#[derive(clap::Args)]
struct WaitArguments {
    /// Seconds of quiet in which tombstones must be gone.
    #[arg(long, default_value_t = 30)]
    quiet_seconds: u64,
    /// Seconds after which the space of what was deleted must be back.
    #[arg(long, default_value_t = 60)]
    space_seconds: u64,
}

impl ChurnArguments {
    /// A run so short that it shows that the bench still works, and that deletions go.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        Self {
            only: vec![Part::Deletions, Part::Flow, Part::Neighbours],
            rows: 60_000,
            flow: flow::FlowArguments { flow_seconds: 3, flow_rate: 5_000 },
            blobs: 2_000,
            cache: cache::CacheArguments { hot_rows: 5_000, overwrites: 2 },
            memory: memory::MemoryArguments { memory_rows: 10_000, memory_idle_seconds: 1 },
            neighbour_seconds: 1,
            writers: writers::WritersArguments {
                writers: vec![2, 4],
                writers_seconds: 1,
                writers_text_size: 1000,
            },
            size: SizeArguments {
                growth: growth::GrowthArguments { growth_rows: 10_000 },
                containers: containers::ContainersArguments { empty_queues: 10, full_queues: 10 },
                space: space::SpaceArguments { watched_rows: 10_000 },
                scale: scale::ScaleArguments { scale_rows: vec![10_000, 20_000] },
                soak: soak::SoakArguments { soak_minutes: 1 },
            },
            waits: WaitArguments { quiet_seconds: 12, space_seconds: 1 },
            server: MeasuredServer::smoke(bin),
            check: false,
        }
    }
}

/// What was measured beside what it must be.
struct Verdict {
    what: String,
    holds: bool,
}

impl Verdict {
    fn at_most(what: &str, measured: f64, most: f64, unit: &str) -> Self {
        Verdict { what: format!("{what}: {measured:.1} {unit}, at most {most:.1}"), holds: measured <= most }
    }
}

/// A server on a new folder.
struct Stage<'a> {
    arguments: &'a ChurnArguments,
    binary: &'a Path,
    server: ServerProcess,
    scratch: workspace::Scratch,
}

impl Stage<'_> {
    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// MiB that the folder takes, but for the journal, whose size does not follow what is stored.
    fn stored_mib(&self) -> Outcome<f64> {
        let (used, journal) = used_bytes(&self.data())?;
        Ok(mib(used - journal))
    }

    /// The same of a folder that nothing was written to yet, with what the server keeps back of the disk.
    fn empty_mib(&self) -> Outcome<f64> {
        let mut empty_mib = self.stored_mib()?;
        loop {
            std::thread::sleep(GROWS_FOR);
            let now_mib = self.stored_mib()?;
            if now_mib <= empty_mib {
                return Ok(now_mib);
            }
            empty_mib = now_mib;
        }
    }

    fn resident_mib(&self) -> Outcome<f64> {
        Ok(mib(self.server.resident_bytes()?))
    }

    /// MiB that were resident at the peak since the start or the last look; says so.
    fn peak_mib(&self, what: &str) -> Outcome<f64> {
        let peak_mib = mib(self.server.peak_resident_bytes()?);
        println!("  {what}: {peak_mib:.0} MiB resident at the peak");
        self.server.reset_peak()?;
        Ok(peak_mib)
    }

    /// Stops the server gently and starts it again; how long until it serves.
    fn restart(&mut self) -> Outcome<Duration> {
        let next = |stage: &Self| ServerProcess::start_larimar(stage.binary, &stage.data());
        // The folder is locked until the former one has ended.
        self.server.end()?;
        let began_at = Instant::now();
        self.server = next(self)?;
        Ok(began_at.elapsed())
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

pub(crate) fn run(arguments: &ChurnArguments) -> Outcome<()> {
    let programs = arguments.server.programs()?;
    let accounts = [ACCOUNT, neighbours::QUIET_ACCOUNT].map(account_argument);
    let budget = format!("{}MiB", memory::BUDGET_MIB);
    let flags = ["--account", &accounts[0], "--account", &accounts[1], "--memory-budget", &budget];
    let mut verdicts = Vec::new();
    for part in Part::value_variants().iter().copied() {
        let is_named = arguments.only.contains(&part);
        if !is_named && (!arguments.only.is_empty() || part.takes_long()) {
            continue;
        }
        println!("{part:?}");
        let scratch = workspace::Scratch::create("bench-churn")?;
        let flags = if matches!(part, Part::Memory | Part::Growth) { &flags[..] } else { &flags[..4] };
        let server =
            ServerProcess::start_larimar_with(&programs.larimar, &scratch.path().join("data"), flags)?;
        let mut stage = Stage { arguments, binary: &programs.larimar, server, scratch };
        let of_part = match part {
            Part::Deletions => deletions::run(&mut stage)?,
            Part::Flow => flow::run(&stage)?,
            Part::Blobs => small_blobs::run(&stage)?,
            Part::Cache => cache::run(&stage)?,
            Part::Memory => memory::run(&stage)?,
            Part::Neighbours => neighbours::run(&stage)?,
            Part::Writers => writers::run(&stage)?,
            Part::Growth => growth::run(&stage)?,
            Part::Containers => containers::run(&mut stage)?,
            Part::Space => space::run(&stage)?,
            Part::Scale => scale::run(&mut stage)?,
            Part::Soak => soak::run(&stage)?,
        };
        let status = stage.server.terminate()?;
        if !status.success() {
            return Err(format!("the server ended with {status}").into());
        }
        verdicts.extend(of_part);
    }
    for verdict in &verdicts {
        println!("{} {}", if verdict.holds { "ok    " } else { "MISSED" }, verdict.what);
    }
    match verdicts.iter().filter(|verdict| !verdict.holds).count() {
        missed if missed > 0 && arguments.check => Err(format!("{missed} targets are missed").into()),
        _ => Ok(()),
    }
}

/// Until compactions are over, as far as that shows, or it has taken too long.
fn wait_for_quiet(stage: &Stage<'_>, waits_for_max: Duration) -> Outcome<()> {
    let began_at = Instant::now();
    let (mut stored_mib, mut since) = (stage.stored_mib()?, began_at);
    while since.elapsed() < QUIET_FOR && began_at.elapsed() < waits_for_max {
        std::thread::sleep(LOOK_EVERY);
        let now_mib = stage.stored_mib()?;
        if (now_mib - stored_mib).abs() >= 1.0 {
            (stored_mib, since) = (now_mib, Instant::now());
        }
    }
    Ok(())
}
