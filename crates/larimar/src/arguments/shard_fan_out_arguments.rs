//! Arguments of `larimar shard fanout`.

use super::shard_move_arguments::RowsArguments;
use clap::Args;

/// One question to all shards.
#[derive(Clone, Debug, Args)]
pub(crate) struct FanOutArguments {
    /// The sharded table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) rows: RowsArguments,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    #[command(flatten)]
    pub(crate) computed: ComputedArguments,
    #[command(flatten)]
    pub(crate) bounds: FanOutBounds,
}

/// Which rows.
#[derive(Clone, Debug, Args)]
pub(crate) struct WantedArguments {
    /// Print these columns only
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Only rows that this holds for: COLUMN=VALUE, or another comparison: != < <= > >=; several must all
    /// hold
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,

    /// Sort by a column; without it by the primary key
    #[arg(long, value_name = "COLUMN")]
    pub(crate) order_by: Option<String>,

    /// The greatest first
    #[arg(long)]
    pub(crate) descending: bool,

    /// Rows, at most: 100,000, and 10,000 if they are sorted by a column
    #[arg(
        long, value_name = "COUNT", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) limit: u32,
}

/// What is computed in place of rows.
#[derive(Clone, Debug, Args)]
pub(crate) struct ComputedArguments {
    /// Count rows, or with --count=COLUMN its values that are not NULL
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub(crate) count: Vec<String>,

    /// Add up a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sum: Vec<String>,

    /// The least value of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) min: Vec<String>,

    /// The greatest value of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) max: Vec<String>,

    /// The mean of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) avg: Vec<String>,
}

/// Bounds of a fan-out.
#[derive(Clone, Debug, Args)]
pub(crate) struct FanOutBounds {
    /// Print what there is if a shard does not answer, name it, and end with 3; without it that ends all
    #[arg(long)]
    pub(crate) partial: bool,

    /// The longest wait for a shard: for each batch of rows, or for all of it if something is computed or
    /// sorted
    #[arg(
        long, value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    pub(crate) shard_timeout: u32,

    /// Shards that are asked at a time, at most
    #[arg(
        long, value_name = "COUNT", default_value_t = 128,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) shards_at_once: u16,
}
