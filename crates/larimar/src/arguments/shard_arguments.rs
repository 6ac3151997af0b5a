//! Arguments of `larimar shard`, with their help texts. `shard/` checks what they mean.

use super::shard_fan_out_arguments::FanOutArguments;
use super::shard_home_arguments::HomeArguments;
use super::shard_move_arguments::{
    ApplyArguments, PlanCommand, RepairArguments, StatusArguments, UndoArguments, VerifyArguments,
};
use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  larimar shard map init books.toml --home file:books.map      a home in a file, as the description says
  larimar shard map show --home file:books.map
  larimar shard map pin tenants b eu 17 --no-data --home postgres://app@db1/maps   a new tenant (eu, 17) on b
  larimar shard map lint books.toml --sample keys.csv
  larimar shard plan drain b --home file:books.map --schema books-schema.toml --out drain.json
  larimar shard apply drain.json --home file:books.map --schema books-schema.toml
  larimar shard fanout books --sum copies --home file:books.map --schema books-schema.toml
  larimar shard serve-map --home file:books.map

Homes: file:PATH, sqlite:PATH, postgres://USER@HOST/DATABASE (password in PGPASSWORD or PGPASSFILE), or table:NAME, with \
the account's connection string in LARIMAR_SHARD_CONNECTION or --home-connection-file. Descriptions are explained in \
docs/sharding.md.";

/// What `larimar shard` does.
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum ShardCommand {
    /// Make, change, look at and repair a shard map
    #[command(subcommand)]
    Map(Box<MapCommand>),
    /// Plan moves; nothing is changed
    ///
    /// Ends with 0 if all of it can be done, with 3 if something is refused or stays uneven.
    #[command(subcommand)]
    Plan(Box<PlanCommand>),
    /// Make a plan's changes and moves, or go on with moves that were interrupted
    ///
    /// Ends with 0 if all are done, with 3 if one failed or was undone, with 130 if it was interrupted.
    Apply(ApplyArguments),
    /// Undo moves that were not switched yet
    Undo(UndoArguments),
    /// Print moves, their states and certificates
    ///
    /// Ends with 0, or with 3 if a move failed.
    Status(StatusArguments),
    /// Check rules of integrity over all shards
    ///
    /// Ends with 0 if no rule is broken, with 3 if one is.
    Verify(VerifyArguments),
    /// Check, and delete copies of rows from shards that the map does not name for them
    ///
    /// Ends with 0 if all is as it should be then, with 3 if something is left.
    Repair(RepairArguments),
    /// Ask all shards once: rows of a table in an order, or what is computed of them
    ///
    /// Ends with 0, or with 3 if a shard did not answer and --partial is given.
    Fanout(Box<FanOutArguments>),
    /// Give other languages the map over HTTP, read-only, until it is stopped
    ServeMap(ServeMapArguments),
}

/// What `larimar shard map` does.
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Create a home with the shards and maps of a description
    Init(DescribedArguments),
    /// Add what a description has and the home has not: shards, maps, pins, ranges
    Add(AddArguments),
    /// Give a key a shard of its own; no data moves
    Pin(PinArguments),
    /// Take a key's pin away: it belongs to the range or virtual shard below; no data moves
    Unpin(UnpinArguments),
    /// Print shards and mappings
    Show(ShowArguments),
    /// Print the catalog's document
    Export(HomeArguments),
    /// Read all of the home, and compare it with the shards' copies if --shards or --connections is given
    ///
    /// Ends with 0 if all is as it should be, with 3 if a copy differs.
    Check(ReadArguments),
    /// Warn of shard keys that rise, change, or are skewed; the home is not needed
    ///
    /// Ends with 0 without warnings, with 3 if there are some.
    Lint(LintArguments),
    /// Print the changes of the past, oldest first
    History(HistoryArguments),
    /// Bring the shards' copies up to the map
    ///
    /// Ends with 0 if all are, with 3 if a shard is missing or waits.
    Publish(ChangeArguments),
    /// Make a map out of the shards' copies: the home is lost, or an old backup of it was restored
    Recover(RecoverArguments),
}

/// How shards are reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReachArguments {
    /// Reach the shards at their locations: sqlite:PATH, postgres://USER@HOST/DATABASE
    #[arg(long)]
    pub(crate) shards: bool,

    /// File with the connection strings of shards that are storage accounts: lines of NAME CONNECTION
    #[arg(long, value_name = "FILE")]
    pub(crate) connections: Option<PathBuf>,
}

/// A home and its shards, for reading.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadArguments {
    #[command(flatten)]
    pub(crate) home: HomeArguments,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}

/// A home and its shards, for a change.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArguments {
    #[command(flatten)]
    pub(crate) read: ReadArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A change by a description.
#[derive(Clone, Debug, Args)]
pub(crate) struct DescribedArguments {
    /// The description, in TOML
    #[arg(value_name = "FILE")]
    pub(crate) description: PathBuf,
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is added.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddArguments {
    #[command(flatten)]
    pub(crate) described: DescribedArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// What is known of rows.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DataArguments {
    /// Keys that go to another shard have no rows, or these are there already: no rows are moved
    #[arg(long)]
    pub(crate) no_data: bool,
}

/// A pin.
#[derive(Clone, Debug, Args)]
pub(crate) struct PinArguments {
    /// The map
    #[arg(value_name = "MAP")]
    pub(crate) map: String,

    /// The shard
    #[arg(value_name = "SHARD")]
    pub(crate) shard: String,

    /// The key: a value for each column
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A pin that goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct UnpinArguments {
    /// The map
    #[arg(value_name = "MAP")]
    pub(crate) map: String,

    /// The key: a value for each column
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArguments {
    /// Only this map's mappings
    #[arg(value_name = "MAP")]
    pub(crate) map: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// What is judged.
#[derive(Clone, Debug, Args)]
pub(crate) struct LintArguments {
    /// The description, in TOML
    #[arg(value_name = "FILE")]
    pub(crate) description: PathBuf,

    /// Keys as CSV or lines of JSON, in the order in which they were made
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,

    /// The map that the sample is of, if the description has several
    #[arg(long, value_name = "MAP")]
    pub(crate) map: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which changes.
#[derive(Clone, Debug, Args)]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// Changes after this epoch
    #[arg(long, value_name = "EPOCH", default_value_t = 0)]
    pub(crate) after: u64,

    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) count: u16,
}

/// A recovery.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecoverArguments {
    #[command(flatten)]
    pub(crate) change: ChangeArguments,

    /// Where a shard is that the home does not know, because the home is lost: NAME=LOCATION
    #[arg(long, value_name = "NAME=LOCATION")]
    pub(crate) shard: Vec<String>,

    /// Believe the copy of this shard only, and of others named so; without it of all
    #[arg(long, value_name = "SHARD")]
    pub(crate) believe: Vec<String>,
}

/// Arguments of `larimar shard serve-map`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeMapArguments {
    #[command(flatten)]
    pub(crate) home: HomeArguments,

    /// Address to listen on. Beyond this machine anyone who reaches it reads where all shards are
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// Port; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 10020)]
    pub(crate) port: u16,
}
