//! Arguments of `larimar stress`, with their help texts. `stress/settings.rs` checks what they mean.

use crate::arguments::byte_size::parse_byte_size;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  larimar stress --endpoint UseDevelopmentStorage=true --mix insert --keys append
  larimar stress --endpoint \"$CONNECTION\" --rate 1500 --seconds 60 --html report.html
  larimar stress --endpoint \"$CONNECTION\" --service queue --mix mixed --until-rate 3000
  larimar stress --endpoint \"$CONNECTION\" --service blob --mix get --size 4KiB,1MiB

What is measured and how is in docs/stress.md.";

/// Arguments of `larimar stress`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StressArguments {
    #[command(flatten, next_help_heading = "Where")]
    pub(crate) place: PlaceArguments,
    #[command(flatten, next_help_heading = "What is done")]
    pub(crate) work: WorkArguments,
    #[command(flatten, next_help_heading = "How much at a time")]
    pub(crate) load: LoadArguments,
    #[command(flatten, next_help_heading = "Reports")]
    pub(crate) reports: ReportArguments,
}

/// What is loaded.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// Connection string of the account: of the live service, of an emulator, of this server
    #[arg(long, value_name = "CONNECTION", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    pub(crate) endpoint: String,

    /// The service that is loaded
    #[arg(long, value_name = "SERVICE", default_value = "table")]
    pub(crate) service: StressedService,

    /// Certificates that servers are trusted by, in PEM form; without it those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// The service that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StressedService {
    /// Entities of one table
    Table,
    /// Messages of one queue
    Queue,
    /// Blobs of one container
    Blob,
}

/// Operations and keys.
#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    /// Operations in which shares: of tables insert, update, get, batch, query or mixed, of queues put, get,
    /// peek, delete or mixed, of blobs put, get, range or mixed; or a file with weights
    #[arg(long, value_name = "MIX|FILE", default_value = "mixed")]
    pub(crate) mix: String,

    /// Which keys: uniform, zipf or zipf:EXPONENT, append (new keys are behind all others) or prepend
    #[arg(long, value_name = "KEYS")]
    pub(crate) keys: Option<String>,

    /// Rows, messages or blobs that are loaded first. Without it 10000, 1000 or 100
    #[arg(long, value_name = "COUNT")]
    pub(crate) key_count: Option<u64>,

    /// Partitions of the table that the rows are in
    #[arg(long, value_name = "COUNT")]
    pub(crate) partitions: Option<u64>,

    /// Size of an entity, a message or a blob, such as 4KiB; several, separated by commas, are taken in turn
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_byte_size)]
    pub(crate) size: Vec<u64>,

    /// Chooses keys and operations: the same seed makes the same requests of each client
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// How much at a time, and how long.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Clients, each with one connection and at most one request under way
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    pub(crate) clients: u64,

    /// Threads that they run on. Without it one for each core
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<u64>,

    /// How long, in seconds. Without it 30; with --until-rate so long for each step, without it 5
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,

    /// Seconds before that are not counted
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    pub(crate) warm_up: u64,

    /// Open loop: so many operations are due a second, whether the server keeps up or not. Without it each
    /// client sends its next request when the last one is answered
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<f64>,

    /// Open loop with a rate that rises step by step until it is reached, or the server no longer keeps up
    #[arg(long, value_name = "RATE", conflicts_with = "rate")]
    pub(crate) until_rate: Option<f64>,

    /// First a closed loop for so many seconds shows what the server does at most
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ceiling: Option<u64>,

    /// How failed attempts are repeated, as a well-known client does: none, storage-1, storage-11,
    /// python-storage, python-tables, javascript-storage, javascript-tables or dotnet. Without it dotnet, and
    /// nothing that may have been done and differs if it is done twice
    #[arg(long, value_name = "POLICY")]
    pub(crate) retry: Option<String>,
}

/// Where reports go beside standard output.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the report to this file as one page with plots, which loads nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
