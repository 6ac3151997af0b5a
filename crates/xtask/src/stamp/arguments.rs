//! What a trial is made of: flags, and the plan that follows from them.
//!
//! What always holds: the short form changes only what no flag says.

use super::fault_kind::Fault;
use super::measured::Demand;
use std::path::PathBuf;
use std::time::Duration;

/// Of a process: memory tables hold much more than what must not be in checkpoints before they are frozen
/// early.
const MEMORY_BUDGET: &str = "2GiB";

/// What the processes keep their bytes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum StoreKind {
    /// A folder of this machine.
    File,
    /// Ceph with its S3 gateway, from Debian's packages; needs root.
    Ceph,
}

/// What a rehearsal spoils behind the ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BreakKind {
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
    /// Rounds of each fault; without it 10, short 1.
    #[arg(long)]
    rounds: Option<usize>,
    /// Faults, with commas between; without it all that the store allows, short a kill and a pause.
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Fault>,
    /// Few rows, blobs and messages, a short lease, one kill and one pause, unless flags say otherwise.
    #[arg(long)]
    short: bool,
    /// One ordinary process on a data folder in place of a stamp, started again as the take-over.
    #[arg(long)]
    rehearse: bool,
    /// Three stand-ins in place of the processes, which take over by a lock: without leases, so that a pause
    /// must fail.
    #[arg(long, conflicts_with = "rehearse")]
    stand_ins: bool,
    /// Spoils something in the first round, or of what was migrated into a stamp, which must be found.
    #[arg(long = "break", value_enum)]
    pub(super) spoil: Option<BreakKind>,
    #[command(flatten)]
    pub(super) instead: Instead,
    /// Seed of the clients' choices; else a new one, printed.
    #[arg(long)]
    pub(super) seed: Option<u64>,

    /// The server; else this checkout's, built now.
    #[arg(long)]
    pub(super) bin: Option<PathBuf>,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    processes: Processes,
}

/// What is done in place of faults.
#[derive(clap::Args)]
pub(super) struct Instead {
    /// Only starts etcd and the store, tries them, and ends them again.
    #[arg(long)]
    pub(super) services_only: bool,
    /// The official Python clients' tests in place of faults, each server a process of a stamp of its own.
    #[arg(long, conflicts_with_all = ["rehearse", "stand_ins"])]
    pub(super) clients: bool,
    /// A data folder in place of faults: filled by an ordinary server, migrated into a stamp and back into
    /// another folder, each time killed twice on the way, and compared after each.
    #[arg(long, conflicts_with_all = ["rehearse", "stand_ins", "clients"])]
    pub(super) migrate: bool,
}

#[derive(clap::Args)]
struct Sizes {
    /// Writers of table rows.
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Rows before the first fault; without it 1,000,000, short 8,000.
    #[arg(long)]
    entities: Option<usize>,
    /// Bytes of text in a row, which hardly compress.
    #[arg(long, default_value_t = 700)]
    row_size: usize,
    /// Blobs before the first fault; without it 10,000, short 200.
    #[arg(long)]
    blobs: Option<usize>,
    /// All rows and blobs are read back after so many rounds, and after the last one: what an earlier round
    /// lost is found, but not which one it was.
    #[arg(long, default_value_t = 1)]
    read_back_every: usize,
    /// Messages that wait in a queue all the time; without it 100,000, short 500.
    #[arg(long)]
    messages: Option<usize>,
}

#[derive(clap::Args)]
struct Processes {
    /// A round that serves again late, and is right in all else, is no failure: for busy machines
    #[arg(long)]
    takes_late: bool,

    /// Their lease, such as 4s; without it 10 s, short 4 s.
    #[arg(long, value_parser = seconds)]
    lease: Option<Duration>,
    /// Members of etcd: 1 or 3; without it 3, short 1.
    #[arg(long, value_parser = one_or_three)]
    etcd_members: Option<usize>,
    /// Ranges at most.
    #[arg(long, default_value_t = 20)]
    ranges: usize,
    /// A range of rows is split once it has more bytes than this.
    #[arg(long, default_value = "32MiB")]
    range_size: String,
    /// Ranges that there must be before each fault; without it 20, short 6, and never more than --ranges.
    #[arg(long)]
    ranges_min: Option<usize>,
    /// Log that must not be in checkpoints before each fault, such as 256MiB; without it 256MiB, short 4MiB.
    #[arg(long, value_parser = bytes)]
    log_min: Option<u64>,
    /// How long it may take until both are there, such as 900s; then the trial ends, and says what there was.
    #[arg(long, value_parser = seconds, default_value = "900s")]
    prepared_within: Duration,
    /// One more argument of the server, such as --server-argument=--memory-budget=1GiB, which is 2GiB without
    /// it; repeat for more.
    #[arg(long = "server-argument", allow_hyphen_values = true)]
    server_arguments: Vec<String>,
}

/// All sizes and faults of a trial. Its fields are so many because each is a choice of its own, made by a
/// flag.
pub(super) struct Plan {
    pub(super) is_rehearsal: bool,
    pub(super) has_stand_ins: bool,
    /// Whether a round that serves again late, and is right in all else, is no failure.
    pub(super) takes_late: bool,
    pub(super) store: StoreKind,
    pub(super) rounds: usize,
    /// So many rounds have one reading back of everything.
    pub(super) read_back_every: usize,
    /// None: all that the store allows.
    pub(super) faults: Vec<Fault>,
    pub(super) lease: Duration,
    pub(super) etcd_members: usize,
    pub(super) writers: usize,
    pub(super) entities: usize,
    pub(super) row_size: usize,
    pub(super) blobs: usize,
    pub(super) messages: usize,
    /// What there must be before each fault.
    pub(super) demand: Demand,
    /// Of each process, besides those of its ports and of the stamp.
    pub(super) server_arguments: Vec<String>,
}

impl StampArguments {
    /// The plan that follows.
    pub(super) fn plan(&self) -> Plan {
        let StampArguments { sizes, processes, .. } = self;
        let size = |asked: Option<usize>, long, short| asked.unwrap_or(if self.short { short } else { long });
        let mut faults = self.faults.clone();
        if faults.is_empty() && self.short {
            faults = vec![Fault::Kill, Fault::Pause];
        }
        let ranges = processes.ranges.to_string();
        let mut server_arguments =
            ["--range-size", &processes.range_size, "--max-ranges", &ranges].map(str::to_owned).to_vec();
        if !processes.server_arguments.iter().any(|argument| argument.starts_with("--memory-budget")) {
            server_arguments.extend(["--memory-budget".to_owned(), MEMORY_BUDGET.to_owned()]);
        }
        server_arguments.extend(processes.server_arguments.iter().cloned());
        let demand = Demand {
            ranges: processes.ranges_min.unwrap_or(size(None, 20, 6).min(processes.ranges)) as u64,
            log_bytes: processes.log_min.unwrap_or(if self.short { 4 << 20 } else { 256 << 20 }),
            within: processes.prepared_within,
        };
        let lease = Duration::from_secs(if self.short { 4 } else { 10 });
        Plan {
            is_rehearsal: self.rehearse,
            has_stand_ins: self.stand_ins,
            takes_late: processes.takes_late,
            store: self.store,
            rounds: size(self.rounds, 10, 1),
            read_back_every: sizes.read_back_every.max(1),
            faults,
            lease: processes.lease.unwrap_or(lease),
            etcd_members: size(processes.etcd_members, 3, 1),
            writers: sizes.writers.max(1),
            entities: size(sizes.entities, 1_000_000, 8000),
            row_size: sizes.row_size,
            blobs: size(sizes.blobs, 10_000, 200),
            messages: size(sizes.messages, 100_000, 500),
            demand,
            server_arguments,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').and_then(|number| number.parse().ok());
    number
        .filter(|number| *number > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text} is not like 4s"))
}

fn bytes(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("MiB").and_then(|number| number.parse::<u64>().ok());
    number.and_then(|number| number.checked_mul(1 << 20)).ok_or_else(|| format!("{text} is not like 256MiB"))
}

fn one_or_three(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("1 or 3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: StampArguments,
    }

    fn plan(line: &str) -> Plan {
        Line::parse_from(line.split(' ')).arguments.plan()
    }

    #[test]
    fn the_short_form_changes_only_what_no_flag_says() {
        let long = plan("stamp");
        assert_eq!((long.entities, long.rounds, long.etcd_members), (1_000_000, 10, 3));
        assert!(long.faults.is_empty());
        assert_eq!(long.read_back_every, 1);
        let within = Duration::from_secs(900);
        assert_eq!(long.demand, Demand { ranges: 20, log_bytes: 256 << 20, within });
        let short = plan("stamp --short");
        assert_eq!((short.entities, short.rounds, short.etcd_members), (8000, 1, 1));
        assert_eq!((short.lease, short.faults.len()), (Duration::from_secs(4), 2));
        assert_eq!(short.demand, Demand { ranges: 6, log_bytes: 4 << 20, within });
        let few = plan("stamp --ranges 8 --log-min 12MiB --server-argument=--memory-budget=1GiB");
        assert_eq!(few.demand, Demand { ranges: 8, log_bytes: 12 << 20, within });
        assert!(!few.server_arguments.iter().any(|argument| argument == MEMORY_BUDGET));
        let mixed = plan("stamp --short --entities 7 --lease 9s --faults kill-osd,cut-etcd --etcd-members 3");
        assert_eq!((mixed.entities, mixed.blobs, mixed.etcd_members), (7, 200, 3));
        assert_eq!(
            (mixed.lease, mixed.faults),
            (Duration::from_secs(9), vec![Fault::KillOsd, Fault::CutEtcd])
        );
    }

    #[test]
    fn a_size_is_a_number_of_mebibytes() {
        assert_eq!(bytes("256MiB"), Ok(256 << 20));
        for wrong in ["256", "MiB", "1GiB", "-1MiB", ""] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lease_is_a_number_of_seconds() {
        assert_eq!(seconds("4s"), Ok(Duration::from_secs(4)));
        for wrong in ["4", "0s", "s", "4m", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
