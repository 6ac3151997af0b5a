//! Arguments of `larimar queue`, with their help texts.

use crate::arguments::table_arguments::ReachArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What `larimar queue` does.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Show the messages at a queue's head, as lines of JSON; nothing is changed
    Peek(PeekArguments),
    /// Put a queue's messages into another queue, too, of any endpoint
    ///
    /// They are received for that, which raises their counts of deliveries, and visible again at the end.
    Copy(CopyMessagesArguments),
    /// Move a queue's messages to the end of a file, as lines of JSON
    Drain(DrainArguments),
    /// Move messages from a poison queue back to their queue
    Requeue(RequeueArguments),
}

/// A queue, and how it is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct QueueArguments {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: String,

    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}

/// Arguments of `larimar queue peek`.
#[derive(Debug, Args)]
pub(crate) struct PeekArguments {
    #[command(flatten)]
    pub(crate) queue: QueueArguments,

    /// Messages, 32 at most
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    pub(crate) count: u32,
}

/// How messages are taken.
#[derive(Clone, Debug, Args)]
pub(crate) struct TakingArguments {
    /// So many messages at most; without it all
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,

    /// For how many seconds nobody else receives a message that is being worked on
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) invisible: u64,

    /// Count what is at the queue's head, 32 at most, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `larimar queue copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyMessagesArguments {
    #[command(flatten)]
    pub(crate) queue: QueueArguments,

    /// The queue to copy to
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    /// Connection string of the target's account; without it the same account
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) to: Option<String>,

    #[command(flatten)]
    pub(crate) taking: TakingArguments,
}

/// Arguments of `larimar queue drain`.
#[derive(Debug, Args)]
pub(crate) struct DrainArguments {
    #[command(flatten)]
    pub(crate) queue: QueueArguments,

    /// The file; what is in it stays
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) taking: TakingArguments,
}

/// Arguments of `larimar queue requeue`.
#[derive(Debug, Args)]
pub(crate) struct RequeueArguments {
    #[command(flatten)]
    pub(crate) queue: QueueArguments,

    /// The poison queue. Without it QUEUE-poison
    #[arg(long, value_name = "QUEUE")]
    pub(crate) poison: Option<String>,

    #[command(flatten)]
    pub(crate) taking: TakingArguments,
}
