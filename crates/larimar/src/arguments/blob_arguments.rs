//! Arguments of `larimar blob`, with their help texts.

use crate::arguments::table_arguments::ReachArguments;
use clap::{Args, Subcommand};

/// What `larimar blob` does.
#[derive(Debug, Subcommand)]
pub(crate) enum BlobCommand {
    /// Copy the block blobs of a container to another one, of any endpoint, and verify their MD5
    ///
    /// Blobs that are there with the same size and MD5 are left as they are, so that a copy that was stopped
    /// is simply repeated.
    Copy(CopyBlobsArguments),
}

/// Arguments of `larimar blob copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyBlobsArguments {
    /// The container
    #[arg(value_name = "CONTAINER")]
    pub(crate) container: String,

    /// The container to copy to
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    #[command(flatten)]
    pub(crate) reach: ReachArguments,

    /// Connection string of the target's account; without it the same account
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) to: Option<String>,

    /// Only blobs whose names begin so
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) prefix: String,

    /// Blobs at a time
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    pub(crate) connections: u64,

    /// Make the container unless it is there
    #[arg(long)]
    pub(crate) create: bool,

    /// List and compare, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
