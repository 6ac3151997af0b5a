//! Arguments of `larimar admin`, with their help texts. `operate/` does what they say.

use crate::admin::Role;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  larimar admin status                                what the server on this machine is like
  larimar admin ranges --table entity --json          its ranges, for a script
  larimar admin heat --hours 4                        which partitions are hot, and when
  larimar admin log-level warn,partition=debug        log more, until the settings are read again
  larimar admin drain                                 have balancers look elsewhere; --undo: here again
  larimar admin token rotate read                     the token of role read opens nothing any more
  larimar admin --endpoint https://db1:10010 --ca ca.pem --token-file token status

The token is the one that opens most in --token-file, else in DIR/admin-tokens of --data. Ends with 0, with 3 if the \
server refuses, and with 1 if it can't be reached.";

/// Arguments of `larimar admin`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct AdminArguments {
    #[command(flatten)]
    pub(crate) connection: AdminConnectionArguments,

    /// Print the server's answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

/// Which server, and what opens it.
#[derive(Debug, Args)]
pub(crate) struct AdminConnectionArguments {
    /// The admin side's address
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:10010",
        env = "LARIMAR_ADMIN_ENDPOINT",
        hide_env_values = true,
        global = true
    )]
    pub(crate) endpoint: String,

    /// The file with the tokens; the start of a server in memory prints where it is
    #[arg(
        long,
        value_name = "FILE",
        env = "LARIMAR_ADMIN_TOKEN_FILE",
        hide_env_values = true,
        global = true
    )]
    pub(crate) token_file: Option<PathBuf>,

    /// The server's data folder, which holds the tokens
    #[arg(
        long,
        value_name = "DIR",
        default_value = "larimar-data",
        env = "LARIMAR_DATA",
        hide_env_values = true,
        global = true
    )]
    pub(crate) data: PathBuf,

    /// Certificates that the server is trusted by, in PEM form, instead of the system's
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,
}

/// What `larimar admin` does.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Print how the server is: ready, memory, disk, ranges, what it has done
    Status,
    /// Print all ranges: key bounds, size, rate, epoch, memory table, checkpoints, compaction
    Ranges(TableArguments),
    /// Print what ranges are asked for, the hottest first
    Loads(TableArguments),
    /// Print the hottest partitions, a map of keys and time, and whether a range takes appends at one end
    ///
    /// Of a sample of all requests (--heat-sample of the server), kept for four hours.
    Heat(HeatArguments),
    /// Print the slow requests of late and where their time went, the latest first (--slow-requests)
    Slow,
    /// Print what is logged, or log something else until the settings are read again
    LogLevel {
        /// Such as info or warn,partition=debug
        #[arg(value_name = "LEVELS")]
        levels: Option<String>,
    },
    /// Bring memory tables to checkpoints
    Flush(RangeArguments),
    /// Compact what is worth it, without waiting until it is idle
    Compact(RangeArguments),
    /// Split a range in the middle of what it holds
    Split {
        /// The object table: map, container, entity, message or blob
        table: String,
        /// The range's number, which larimar admin ranges prints
        range: u64,
    },
    /// Have /ready answer 503, so that balancers look elsewhere; requests are served on
    Drain {
        /// Have it say again whether requests are served
        #[arg(long)]
        undo: bool,
    },
    /// Print what is simulated, or simulate another profile until settings or rules are read again
    Simulate {
        /// azure or azure-large
        profile: Option<String>,
    },
    /// Print all settings with the values in force, and where they come from
    Settings,
    /// Read the file of settings again, as SIGHUP does
    Reload,
    /// Print tokens, or make other ones
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Which ranges are printed.
#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// Only those of this object table: map, container, entity, message or blob
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
}

/// What of the heat is printed.
#[derive(Debug, Args)]
pub(crate) struct HeatArguments {
    /// Only ranges of this object table: map, container, entity, message or blob
    #[arg(long, value_name = "TABLE", value_parser = object_table)]
    pub(crate) table: Option<&'static str>,

    /// So many partitions, the hottest first. Without it 20; 1000 at most
    #[arg(long, value_name = "COUNT")]
    pub(crate) top: Option<u64>,

    /// Only ranges with this number, which larimar admin ranges prints; each table has one at most
    #[arg(long, value_name = "NUMBER")]
    pub(crate) range: Option<u64>,

    /// Of the last so many hours. Without it 1; 4 at most
    #[arg(long, value_name = "HOURS")]
    pub(crate) hours: Option<u64>,

    /// Rows of the map, all ranges together. Without it 32; 512 at most
    #[arg(long, value_name = "COUNT")]
    pub(crate) rows: Option<u64>,
}

/// Which ranges something is done to.
#[derive(Debug, Args)]
pub(crate) struct RangeArguments {
    /// Only those of this object table: map, container, entity, message or blob
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,

    /// Only the range with this number, which larimar admin ranges prints
    #[arg(long, value_name = "NUMBER")]
    pub(crate) range: Option<u64>,
}

/// What `larimar admin token` does.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print the token of a role, from the file
    Show {
        /// read, operate or admin
        #[arg(value_parser = role)]
        role: Role,
    },
    /// Make another token of a role, and print it; the one before opens nothing any more
    Rotate {
        /// read, operate or admin
        #[arg(value_parser = role)]
        role: Role,
    },
}

/// A name that a query can have as it is.
fn object_table(text: &str) -> Result<&'static str, String> {
    let known = ["map", "container", "entity", "message", "blob"].into_iter().find(|known| *known == text);
    known.ok_or_else(|| "give map, container, entity, message or blob".to_owned())
}

fn role(text: &str) -> Result<Role, String> {
    Role::of_name(text).ok_or_else(|| "give read, operate or admin".to_owned())
}
