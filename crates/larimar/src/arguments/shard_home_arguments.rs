//! Arguments that all of `larimar shard` has: where the map is.

use clap::Args;
use std::path::PathBuf;

/// Where the map is.
#[derive(Clone, Debug, Args)]
pub(crate) struct HomeArguments {
    /// The map's home: file:PATH, sqlite:PATH, postgres://USER@HOST/DATABASE or table:NAME
    #[arg(long, value_name = "HOME", env = "LARIMAR_SHARD_HOME")]
    pub(crate) home: String,

    /// File with the connection string of the account that has the table; else LARIMAR_SHARD_CONNECTION
    #[arg(long, value_name = "FILE")]
    pub(crate) home_connection_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
