//! `larimar migrate` as typed.

use crate::arguments::stamp_arguments::StampArguments;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `larimar migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Copy this data folder into the stamp, which is made if there is none. No server may hold the folder,
    /// and nothing of it is changed
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,

    /// Copy the stamp, which no process may serve, into this data folder, which is made and must be empty.
    /// Nothing of the stamp is changed
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub(crate) to: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stamp: StampArguments,

    /// Drop what an unfinished migration into the stamp has copied
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) abandon: bool,

    /// Do not tell how far it is
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
