//! Arguments of `larimar table`, with their help texts. `table_commands/settings.rs` checks what they mean.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What `larimar table` does.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Write a table's entities to a file of JSON lines, CSV or Parquet
    ///
    /// The file appears once all is in it. Stopped or killed, the same command goes on. Ends with 2 if
    /// something is wrong, with 130 if it was stopped.
    Export(ExportArguments),
    /// Write the entities of a file of JSON lines, CSV or Parquet to a table
    ///
    /// Stopped or killed, the same command goes on. Ends with 2 if something is wrong, with 130 if it was
    /// stopped.
    Import(ImportArguments),
    /// Copy a table's entities to another table, of any endpoint, changed on the way if wanted
    Copy(Box<CopyArguments>),
    /// Count a table's entities
    Count(CountArguments),
    /// Compare two tables, of any endpoints, by key and by value
    ///
    /// Ends with 0 if they are the same, with 1 if not.
    Diff(DiffArguments),
    /// Delete a table's entities by filter, of one partition, or all; the table stays
    Delete(DeleteArguments),
    /// Show what is in a table: properties, types, sizes, what is largest, what is beyond bounds
    Schema(SchemaArguments),
}

/// A table, and how it is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    #[command(flatten)]
    pub(crate) reach: ReachArguments,

    /// Workers, each with a connection. Without it 8, of an import 64
    #[arg(long, value_name = "COUNT")]
    pub(crate) connections: Option<u64>,
}

/// How an account is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReachArguments {
    /// Connection string of the account: of the live service, of an emulator, of this server
    #[arg(long, value_name = "CONNECTION", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    pub(crate) endpoint: String,

    /// Certificates that servers are trusted by, in PEM form; without it those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// How failed requests are repeated, as a well-known client does: none, storage-1, storage-11,
    /// python-storage, python-tables, javascript-storage, javascript-tables or dotnet. Without it dotnet
    #[arg(long, value_name = "POLICY")]
    pub(crate) retry: Option<String>,
}

/// Which entities.
#[derive(Clone, Debug, Args)]
pub(crate) struct SelectionArguments {
    /// Only entities that match, as a query's $filter says it: "Score gt 5 and Name eq 'x'"
    #[arg(long, value_name = "FILTER", value_parser = parse_filter)]
    pub(crate) filter: Option<String>,

    /// Only entities of this partition
    #[arg(long, value_name = "KEY")]
    pub(crate) partition: Option<String>,
}

/// How entities are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// A line of JSON an entity
    Jsonl,
    /// A line of names, a line of types, a record an entity
    Csv,
    /// Columns, a row an entity; in a build with the feature parquet
    Parquet,
}

/// What becomes of an entity whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conflict {
    /// It ends the work
    Fail,
    /// It replaces the one that is there
    Replace,
    /// It is merged into the one that is there
    Merge,
    /// It is left out
    Skip,
}

/// Arguments of `larimar table export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Its format. Without it what its name ends with: .jsonl, .ndjson, .json, .csv or .parquet
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FileFormat>,

    /// Only entities that match, as a query's $filter says it
    #[arg(long, value_name = "FILTER", value_parser = parse_filter)]
    pub(crate) filter: Option<String>,

    /// Only these properties, separated by commas, beside the keys
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) select: Vec<String>,

    /// Write entities in the order of their keys, read by one worker
    #[arg(long)]
    pub(crate) ordered: bool,

    /// Export entities as they are at one moment; for this server only
    #[arg(long)]
    pub(crate) snapshot: bool,

    /// Replace a file that is there
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Begin anew, whatever an earlier run has left
    #[arg(long)]
    pub(crate) restart: bool,
}

/// Arguments of `larimar table import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Its format. Without it what its name ends with: .jsonl, .ndjson, .json, .csv or .parquet
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FileFormat>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

/// How a table is written to.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArguments {
    /// What becomes of an entity whose key is there already
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) on_conflict: Conflict,

    /// Make the table unless it is there
    #[arg(long)]
    pub(crate) create: bool,

    /// Read and check everything, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Begin anew, whatever an earlier run has left
    #[arg(long)]
    pub(crate) restart: bool,
}

/// Arguments of `larimar table copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    /// The table to copy to
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    /// Connection string of the target's account; without it the same account
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) to: Option<String>,

    #[command(flatten)]
    pub(crate) selection: SelectionArguments,

    /// Set a key or a property: NAME=EXPRESSION, as docs/table-tools.md says; repeat for more
    #[arg(long, value_name = "NAME=EXPRESSION")]
    pub(crate) set: Vec<String>,

    /// Leave properties out, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,

    /// Keep in this file how far the copy is, so that the same command goes on after a kill
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
}

/// Arguments of `larimar table count`.
#[derive(Debug, Args)]
pub(crate) struct CountArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    #[command(flatten)]
    pub(crate) selection: SelectionArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `larimar table schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    #[command(flatten)]
    pub(crate) count: CountArguments,
}

/// Arguments of `larimar table diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    /// The table to compare with
    #[arg(value_name = "OTHER")]
    pub(crate) other: String,

    /// Connection string of the other table's account; without it the same account
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) to: Option<String>,

    #[command(flatten)]
    pub(crate) selection: SelectionArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `larimar table delete`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true).args(["filter", "partition", "all"]))]
pub(crate) struct DeleteArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,

    #[command(flatten)]
    pub(crate) selection: SelectionArguments,

    /// All entities
    #[arg(long, conflicts_with_all = ["filter", "partition"])]
    pub(crate) all: bool,

    /// Count what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A service takes an empty filter for one that everything matches: a variable that a script did not set
/// would delete a table.
fn parse_filter(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("it is empty; say what matches, or leave it out".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_filter_is_none() {
        assert!(parse_filter("").is_err() && parse_filter(" \t").is_err());
        assert_eq!(parse_filter("A eq 1"), Ok("A eq 1".to_owned()));
        let words = ["larimar", "--filter", ""];
        assert!(
            <SelectionArguments as clap::Args>::augment_args(clap::Command::new("x"))
                .try_get_matches_from(words)
                .is_err()
        );
    }
}
