//! Arguments of `larimar stamp`, as typed.

use crate::arguments::stamp_arguments::{StampArguments, parse_seconds};
use clap::{Args, Subcommand};

/// What `larimar stamp` does.
#[derive(Debug, Subcommand)]
pub(crate) enum StampCommand {
    /// Say who serves the stamp, who stands by, how much there is and what waits for collection
    Status(StampLookArguments),
    /// List the stamp's streams with their extents and lengths, and who owns them
    List(StampLookArguments),
    /// Make the stamp without serving it; ends with 2 if it is there
    ///
    /// Tries the object store with racing creations, and refuses one that overwrites or keeps versions.
    Init(StampArguments),
    /// Take out a process that is gone for good
    ///
    /// A process that is stopped (SIGTERM) leaves by itself. One whose lease lives is not touched: only it
    /// knows that it has dropped everything. One that is gone and is still named as the owner is not either:
    /// its last beat proves its silence to whoever takes the stamp. What is left of any other is removed.
    Leave(StampLeaveArguments),
    /// Rebuild a lost etcd from the object store: from the newest backup and from the parts that are younger
    ///
    /// etcd must not have the stamp. Waits for the lease time and its margin first, so that no process of the
    /// time before can write any more; a process that wakes up later is fenced. Nothing that was
    /// acknowledged is lost.
    RestoreMetadata(StampRestoreArguments),
}

/// Arguments of the commands that only look.
#[derive(Debug, Args)]
pub(crate) struct StampLookArguments {
    #[command(flatten)]
    pub(crate) stamp: StampArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `larimar stamp leave`.
#[derive(Debug, Args)]
pub(crate) struct StampLeaveArguments {
    #[command(flatten)]
    pub(crate) stamp: StampArguments,

    /// The process, as larimar stamp status names it
    #[arg(long, value_name = "INCARNATION")]
    pub(crate) process: String,
}

/// Arguments of `larimar stamp restore-metadata`.
#[derive(Debug, Args)]
pub(crate) struct StampRestoreArguments {
    #[command(flatten)]
    pub(crate) stamp: StampArguments,

    /// The longest --lease that any process of the stamp has had: so long, and a margin, it waits before
    /// anything is read, so that none of them can write any more
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, required_unless_present = "all_stopped")]
    pub(crate) longest_lease: Option<u64>,

    /// Do not wait: all processes of the stamp have ended, and none is paused
    #[arg(long, conflicts_with = "longest_lease")]
    pub(crate) all_stopped: bool,

    /// Do not tell how far it is
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
