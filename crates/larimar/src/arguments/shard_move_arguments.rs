//! Arguments of `larimar shard plan`, `apply`, `undo`, `status`, `verify` and `repair`.

use super::shard_home_arguments::HomeArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What a plan is to reach.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Move the mapping that holds a key to a shard
    Move(PlanMoveArguments),
    /// Make shards even by size, with the fewest moves
    Rebalance(PlanArguments),
    /// Move everything off a shard, and put nothing more on it
    Drain(PlanDrainArguments),
    /// Make two ranges of one, and move the second one if a shard is named
    Split(PlanSplitArguments),
    /// Add a shard, and move its part to it
    Add(PlanAddArguments),
}

/// The home, the shards and their tables.
#[derive(Clone, Debug, Args)]
pub(crate) struct RowsArguments {
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// The tables of the map's shards, in TOML
    #[arg(long, value_name = "FILE", env = "LARIMAR_SHARD_SCHEMA")]
    pub(crate) schema: PathBuf,

    /// File with the connection strings of shards that are storage accounts: lines of NAME CONNECTION.
    /// Without a line that of a shard is LARIMAR_SHARD_CONNECTION_NAME, with the shard's name in capitals and
    /// _ for -
    #[arg(long, value_name = "FILE")]
    pub(crate) connections: Option<PathBuf>,
}

/// What every plan has.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) rows: RowsArguments,

    /// Write the plan to a file, for apply; one that is there is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Plan moves that keep readers away, too, where the shards allow nothing better
    #[arg(long)]
    pub(crate) offline: bool,

    /// By how much of the mean a shard may have more than the mean, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    pub(crate) tolerance: u16,

    /// Move mappings to shards with other tags, too, when shards are made even (rebalance, add)
    #[arg(long)]
    pub(crate) cross_tags: bool,
}

/// A move.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanMoveArguments {
    /// The map
    #[arg(value_name = "MAP")]
    pub(crate) map: String,

    /// The shard that is to have it
    #[arg(value_name = "SHARD")]
    pub(crate) shard: String,

    /// The key: a value for each column
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,

    /// Move this key alone: it is pinned where it is first, which moves nothing
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
}

/// A shard that is emptied.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanDrainArguments {
    /// The shard
    #[arg(value_name = "SHARD")]
    pub(crate) shard: String,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
}

/// A split.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanSplitArguments {
    /// The map
    #[arg(value_name = "MAP")]
    pub(crate) map: String,

    /// The key that the second range begins with
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,

    /// The shard that the second range goes to; without it, it stays
    #[arg(long, value_name = "SHARD")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
}

/// A further shard.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanAddArguments {
    /// Its name
    #[arg(value_name = "SHARD")]
    pub(crate) shard: String,

    /// Where it is: sqlite:PATH or postgres://USER@HOST/DATABASE, with the tables of the schema
    #[arg(value_name = "LOCATION")]
    pub(crate) location: String,

    /// A tag: NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) tag: Vec<String>,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
}

/// What is applied.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The plan; without it all moves that are not at their end go on
    #[arg(value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,

    /// Afterwards delete the rows that sources of finished moves still have
    #[arg(long)]
    pub(crate) delete_sources: bool,
    #[command(flatten)]
    pub(crate) rows: RowsArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is undone.
#[derive(Clone, Debug, Args)]
pub(crate) struct UndoArguments {
    /// Ids of moves; without any all that are not switched yet
    #[arg(value_name = "MOVE")]
    pub(crate) moves: Vec<String>,
    #[command(flatten)]
    pub(crate) rows: RowsArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArguments {
    /// Ids of moves; without any all
    #[arg(value_name = "MOVE")]
    pub(crate) moves: Vec<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// What is checked.
#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) rows: RowsArguments,

    /// Rules of integrity, in TOML; without it rows where the map has them, and keys once
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
}

/// What is repaired.
#[derive(Clone, Debug, Args)]
pub(crate) struct RepairArguments {
    #[command(flatten)]
    pub(crate) verify: VerifyArguments,

    /// Show what would be deleted, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
