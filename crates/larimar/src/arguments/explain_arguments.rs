//! Arguments of `larimar explain`, with their help texts.

use crate::arguments::table_arguments::ReachArguments;
use clap::Args;

/// Arguments of `larimar explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    #[command(flatten)]
    pub(crate) reach: ReachArguments,

    /// The query's $filter; without it all entities
    #[arg(long, value_name = "FILTER", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,

    /// Entities that are wanted; without it all
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) top: Option<u64>,

    /// Properties to return, separated by commas; without it all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) select: Vec<String>,

    /// Pages that are requested at most; the live service bills each
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) pages: u64,

    /// Entities of the table that are counted at most, 1,000 a request, to know its size; 0: none
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub(crate) count: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
