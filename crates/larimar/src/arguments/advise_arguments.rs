//! Arguments of `larimar advise`, with their help texts.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `larimar advise`.
#[derive(Debug, Args)]
pub(crate) struct AdviseArguments {
    /// The table: its entities are sampled unless --sample is given, and its lines of an access log are read
    #[arg(value_name = "TABLE", required_unless_present = "sample")]
    pub(crate) table: Option<String>,

    #[command(flatten)]
    pub(crate) reach: AdviseReachArguments,

    #[command(flatten)]
    pub(crate) sample: SampleArguments,

    /// What is done with the table: a file of TOML (docs/table-tools.md), or an access log of this server
    #[arg(long, value_name = "FILE")]
    pub(crate) mix: PathBuf,

    /// Answers to the questions of scale, query and availability; asked and written if the file is not there
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,

    /// Print the key functions of a design in this language instead of the report
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) emit: Option<EmitLanguage>,

    /// Which of the proposals is printed with --emit
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3))]
    pub(crate) design: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the table's account is reached; a file needs none.
#[derive(Debug, Args)]
pub(crate) struct AdviseReachArguments {
    /// Connection string of the account: of the live service, of an emulator, of this server
    #[arg(long, value_name = "CONNECTION", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    pub(crate) endpoint: Option<String>,

    /// Certificates that servers are trusted by, in PEM form; without it those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// How failed requests are repeated, as for larimar table. Without it dotnet
    #[arg(long, value_name = "POLICY")]
    pub(crate) retry: Option<String>,

    /// Workers, each with a connection
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    pub(crate) connections: u64,
}

/// What is sampled.
#[derive(Debug, Args)]
pub(crate) struct SampleArguments {
    /// Entities of a file of JSON lines, CSV or Parquet instead of a table's; its keys may be absent
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,

    /// Which share of all entities the file has, more than 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, requires = "sample", value_parser = parse_share)]
    pub(crate) share: f64,

    /// Which share of the entities is drawn. Without it 0.01 of a table, and all of a file
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) draw: Option<f64>,

    /// Draws the same entities each time
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A language of key functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitLanguage {
    /// Python 3
    Python,
    /// TypeScript
    Typescript,
    /// C#
    Csharp,
    /// Rust
    Rust,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "give a share of more than 0 and at most 1, such as 0.01".to_owned())
}
