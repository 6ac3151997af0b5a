//! The command line as typed, with its help texts. `configuration` checks what it means.

pub(crate) mod admin_arguments;
pub(crate) mod advise_arguments;
pub(crate) mod blob_arguments;
pub(crate) mod byte_size;
mod collector_arguments;
pub(crate) mod explain_arguments;
pub(crate) mod folder_arguments;
pub(crate) mod migrate_arguments;
pub(crate) mod queue_arguments;
pub(crate) mod sas_arguments;
pub(crate) mod shard_arguments;
pub(crate) mod shard_fan_out_arguments;
pub(crate) mod shard_home_arguments;
pub(crate) mod shard_move_arguments;
pub(crate) mod stamp_arguments;
pub(crate) mod stamp_command_arguments;
pub(crate) mod stress_arguments;
pub(crate) mod table_arguments;

use crate::arguments::admin_arguments::AdminArguments;
use crate::arguments::advise_arguments::AdviseArguments;
use crate::arguments::blob_arguments::BlobCommand;
use crate::arguments::byte_size::parse_byte_size;
pub(crate) use crate::arguments::collector_arguments::CollectorArguments;
use crate::arguments::explain_arguments::ExplainArguments;
pub(crate) use crate::arguments::folder_arguments::{CheckArguments, RepairArguments};
use crate::arguments::migrate_arguments::MigrateArguments;
use crate::arguments::queue_arguments::QueueCommand;
use crate::arguments::sas_arguments::SasArguments;
use crate::arguments::shard_arguments::ShardCommand;
use crate::arguments::stamp_arguments::{StampArguments, StampServerArguments};
use crate::arguments::stamp_command_arguments::StampCommand;
use crate::arguments::stress_arguments::StressArguments;
use crate::arguments::table_arguments::TableCommand;
use crate::output::log;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use front_end::{BearerAuthority, UnverifiedTokens};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Version, commit and its date.
pub(crate) const VERSION: &str = env!("LARIMAR_VERSION");

const AFTER_HELP: &str = "\
Examples:
  larimar                                     serve ./larimar-data on ports 10000 to 10002
  larimar --in-memory --table-port 0          serve what is forgotten at the end, tables on a free port
  larimar serve --data /srv/larimar --host 0.0.0.0 --accounts-file accounts --tls-cert c.pem --tls-key k.pem
  larimar --in-memory --simulate azure        serve with the limits and page boundaries of the live service
  larimar --config /etc/larimar.toml          serve as the file says; larimar config example prints one
  larimar admin status                        tell how the server on this machine is
  larimar check /srv/larimar                  tell what is damaged in a folder that no server holds
  larimar repair /srv/larimar --apply         make it whole, and tell what is lost
  larimar sas --resource blob/c/b --permissions r   a signature that reads one blob
  larimar stress --endpoint UseDevelopmentStorage=true   what one partition of a table does at most
  larimar table export People people.jsonl --endpoint UseDevelopmentStorage=true   a table as a file, and back
  larimar shard map init books.toml --home file:books.map   which shard holds which key: a map of them
  larimar stamp status --stamp prod --store s3://b --etcd http://e:2379   who serves a stamp of several processes
  larimar completions bash > /etc/bash_completion.d/larimar
  larimar man | man -l -

Accounts: without --account, --accounts-file, LARIMAR_ACCOUNTS or AZURITE_ACCOUNTS (NAME:KEY[:KEY2];NAME:KEY…) the \
well-known development account devstoreaccount1 is served, so UseDevelopmentStorage=true works unchanged. Clients that \
take neither keys nor connection strings use a shared access signature: larimar sas makes one.

Settings: what a flag of the server sets can stand in a variable, too (LARIMAR_TABLE_PORT for --table-port; several in \
LARIMAR_ACCOUNTS and LARIMAR_VERSIONED_ACCOUNTS, with ; between them), and in the file that --config names. Flags beat \
variables, which beat the file.

Logs: --log, or LARIMAR_LOG for every command, for example LARIMAR_LOG=info.";

/// A self-hosted storage server that speaks the Azure Storage protocol. Every acknowledged write is on disk.
#[derive(Debug, Parser)]
#[command(name = "larimar", version = VERSION, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server (what happens without a command, too)
    Serve(Box<ServeArguments>),
    /// Look at a server that runs, and change how it runs, through its admin side
    Admin(Box<AdminArguments>),
    /// Read a data folder that no server holds, or a stamp, and tell what is damaged; nothing is changed
    ///
    /// Ends with 0 if it is healthy, 3 if something is damaged, 1 if it could not be looked at. A stamp may
    /// be served meanwhile: it is read as it was at one moment.
    Check(Box<CheckArguments>),
    /// Plan the repair of a damaged folder that no server holds, and tell what is lost; with --apply, do it
    ///
    /// Without --apply nothing is changed. Ends with 0 if there is nothing to do, or all is done and the
    /// folder is whole; with 3 if there is something to do; with 1 if that could not be found out, or not be
    /// done.
    Repair(RepairArguments),
    /// Copy a data folder that no server holds into a stamp of several processes, or such a stamp into a
    /// folder
    ///
    /// Every byte is read back and compared before the copy can be served. A run that was cut off goes on
    /// when it is repeated. Ends with 0 if all is copied, 2 if what was typed can't be, 1 if it could not be
    /// done, 130 if it was stopped.
    Migrate(Box<MigrateArguments>),
    /// Look for mistakes in settings, show them and where they come from, or print a commented file of them
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Make a shared access signature for an account, or for one container, blob, queue or table
    Sas(Box<SasArguments>),
    /// Work with a map that says which shard holds which key
    #[command(subcommand)]
    Shard(ShardCommand),
    /// Look at a stamp that several processes keep, make one, restore its metadata
    #[command(subcommand)]
    Stamp(Box<StampCommand>),
    /// Load one partition of a table, a queue or some blobs of any endpoint, and report what it does
    ///
    /// Makes a table, queue or container of its own, loads it, runs operations on it for a while, and deletes
    /// it again, after Ctrl-C, too. Ends with 130 if it was stopped, and with 1 if something stays behind.
    Stress(Box<StressArguments>),
    /// Export, import, copy, count, compare, delete and describe the entities of tables of any endpoint
    #[command(subcommand)]
    Table(TableCommand),
    /// Say what a filter makes a query read, run it, say what it cost, and how it would cost less
    ///
    /// Rows read are those that this server counts; of other services it says what can be seen. Ends with 2
    /// if the filter can't be read, with a caret under the place.
    Explain(Box<ExplainArguments>),
    /// Propose keys for entities, from a sample of them and a mix of queries, and predict what each does
    ///
    /// Three designs with the index tables and second rows that they need; with --emit the functions that
    /// make the keys of one. The same input gives the same report.
    Advise(Box<AdviseArguments>),
    /// Look at, copy and move the messages of queues of any endpoint
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Copy the blobs of containers of any endpoint
    #[command(subcommand)]
    Blob(BlobCommand),
    /// Print what a shell needs to complete command lines
    Completions(CompletionsArguments),
    /// Print the manual page of larimar, or of one of its commands
    Man(ManArguments),
}

/// What `larimar config` does.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Look for mistakes in the file of settings, the environment and the flags, without starting
    ///
    /// Ends with 0 if there is none, or with 2 and a line for each.
    Check(Box<ServeArguments>),
    /// Print each setting with the value that holds, and where that comes from
    Show(Box<ServeArguments>),
    /// Print a file of settings with everything as comments: defaults, units, bounds
    Example,
}

/// Arguments of `larimar completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `larimar man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The command; else the whole program
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

/// What the program is asked to do.
#[derive(Debug)]
pub(crate) enum Chore {
    Serve(Box<ServeArguments>),
    Admin(Box<AdminArguments>),
    Check(Box<CheckArguments>),
    Repair(RepairArguments),
    Migrate(Box<MigrateArguments>),
    Config(ConfigCommand),
    Sas(Box<SasArguments>),
    Shard(ShardCommand),
    Stamp(Box<StampCommand>),
    Stress(Box<StressArguments>),
    Table(TableCommand),
    Explain(Box<ExplainArguments>),
    Advise(Box<AdviseArguments>),
    Queue(QueueCommand),
    Blob(BlobCommand),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Exit code for a command line that makes no sense, or asks for what can't be.
pub(crate) const EXIT_BAD_ARGUMENTS: u8 = 2;

impl Arguments {
    /// What these words mean. Help goes to standard output, and the process ends.
    pub(crate) fn from_words(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(words).inspect_err(|error| {
            if !error.use_stderr() {
                error.exit();
            }
        })
    }

    /// What to do, whichever way it was asked for.
    pub(crate) fn chore(self) -> Chore {
        match self.command {
            Some(Command::Serve(serve)) => Chore::Serve(serve),
            Some(Command::Admin(admin)) => Chore::Admin(admin),
            Some(Command::Check(check)) => Chore::Check(check),
            Some(Command::Repair(repair)) => Chore::Repair(repair),
            Some(Command::Migrate(migrate)) => Chore::Migrate(migrate),
            Some(Command::Config(config)) => Chore::Config(config),
            Some(Command::Sas(sas)) => Chore::Sas(sas),
            Some(Command::Shard(shard)) => Chore::Shard(shard),
            Some(Command::Stamp(stamp)) => Chore::Stamp(stamp),
            Some(Command::Stress(stress)) => Chore::Stress(stress),
            Some(Command::Table(command)) => Chore::Table(command),
            Some(Command::Blob(command)) => Chore::Blob(command),
            Some(Command::Queue(command)) => Chore::Queue(command),
            Some(Command::Explain(arguments)) => Chore::Explain(arguments),
            Some(Command::Advise(arguments)) => Chore::Advise(arguments),
            Some(Command::Completions(completions)) => Chore::Completions(completions),
            Some(Command::Man(man)) => Chore::Man(man),
            None => Chore::Serve(Box::new(self.serve)),
        }
    }

    /// What to serve; tests ask for nothing else.
    #[cfg(test)]
    pub(crate) fn serve(self) -> ServeArguments {
        match self.chore() {
            Chore::Serve(serve) => *serve,
            other => panic!("{other:?} serves nothing"),
        }
    }
}

/// How bearer tokens are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OauthMode {
    /// Issuer, audience, times and algorithm are checked, the signature is not
    Basic,
}

impl OauthMode {
    /// Who judges them.
    pub(crate) fn authority(self) -> Arc<dyn BearerAuthority> {
        match self {
            OauthMode::Basic => Arc::new(UnverifiedTokens),
        }
    }
}

/// Arguments of `larimar serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten, next_help_heading = "Settings and log")]
    pub(crate) settings: SettingsArguments,
    #[command(flatten, next_help_heading = "Data")]
    pub(crate) storage: StorageArguments,
    #[command(flatten, next_help_heading = "Stamp of several processes")]
    pub(crate) stamp: StampArguments,
    #[command(flatten, next_help_heading = "Stamp of several processes")]
    pub(crate) stamp_server: StampServerArguments,
    #[command(flatten, next_help_heading = "Addresses")]
    pub(crate) addresses: AddressArguments,
    #[command(flatten, next_help_heading = "Accounts")]
    pub(crate) accounts: AccountArguments,
    #[command(flatten, next_help_heading = "Encryption and tokens")]
    pub(crate) security: SecurityArguments,
    #[command(flatten, next_help_heading = "Memory, ranges and threads")]
    pub(crate) sizes: SizeArguments,
    #[command(flatten, next_help_heading = "Simulation")]
    pub(crate) simulation: SimulationArguments,
    #[command(flatten, next_help_heading = "Access log")]
    pub(crate) access: AccessLogArguments,
    #[command(flatten, next_help_heading = "Traces and metrics")]
    pub(crate) collector: CollectorArguments,
}

/// Where else settings are, and what is logged.
#[derive(Debug, Args)]
pub(crate) struct SettingsArguments {
    /// File of settings in TOML, or LARIMAR_CONFIG; larimar config example prints one. Variables
    /// (LARIMAR_TABLE_PORT for --table-port) beat it, flags beat both. It is read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// What is logged: off, error, warn, info, debug or trace, or several such as warn,partition=debug
    #[arg(long, value_name = "LEVELS", default_value = log::USUAL)]
    pub(crate) log: String,
}

/// What is logged of requests.
#[derive(Debug, Args)]
pub(crate) struct AccessLogArguments {
    /// A line of JSON for each request goes to this file, or with - to standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) access_log: Option<PathBuf>,

    /// The file is put aside as FILE.1 once it has so many bytes, and four such files are kept; 0: never
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_byte_size)]
    pub(crate) access_log_size: u64,

    /// Requests that take so many milliseconds are slow: larimar admin slow prints those of late, and --log
    /// info logs them; 0: none are
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pub(crate) slow_requests: u64,
}

/// Where the data is.
#[derive(Debug, Args)]
pub(crate) struct StorageArguments {
    /// Folder that holds the data; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "larimar-data", conflicts_with = "stamp")]
    pub(crate) data: PathBuf,

    /// Keep everything in memory and forget it at the end
    #[arg(long, conflicts_with_all = ["data", "stamp"])]
    pub(crate) in_memory: bool,

    /// Written once the server listens: JSON with the addresses, the signed ones included
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

/// Where the services listen.
#[derive(Debug, Args)]
pub(crate) struct AddressArguments {
    /// Address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,

    /// Port of the Blob service; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 10000)]
    pub(crate) blob_port: u16,

    /// Port of the Queue service; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 10001)]
    pub(crate) queue_port: u16,

    /// Port of the Table service; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 10002)]
    pub(crate) table_port: u16,

    /// Address that the admin side listens on; beyond this machine it needs --tls-cert, and every request a
    /// token
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) admin_host: String,

    /// A further host name by which the admin side is reached; given again for more
    #[arg(id = "admin_names", long = "admin-name", value_name = "NAME")]
    pub(crate) admin_names: Vec<String>,

    /// Port of the admin side: /health, /ready, /version, /metrics, and what larimar admin uses; none: it is
    /// off
    #[arg(long, value_name = "PORT|none", default_value_t = AdminPort(Some(10010)), value_parser = AdminPort::parse)]
    pub(crate) admin_port: AdminPort,

    /// File with the tokens of the admin side, made if it is missing. Without it DIR/admin-tokens of --data;
    /// with --in-memory a file that the start prints and the end removes
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// Where the admin side listens, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdminPort(pub(crate) Option<u16>);

impl AdminPort {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(AdminPort(None)),
            port => port
                .parse()
                .map(|port| AdminPort(Some(port)))
                .map_err(|_| "give a port from 1 to 65535, 0 for a free one, or none".to_owned()),
        }
    }
}

impl fmt::Display for AdminPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(port) => port.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// Whose data is served.
#[derive(Debug, Args)]
pub(crate) struct AccountArguments {
    /// An account to serve, with one or two Base64 keys; repeat for more
    #[arg(long = "account", value_name = "NAME:KEY[:KEY2]")]
    pub(crate) accounts: Vec<String>,

    /// A file with one NAME:KEY[:KEY2] a line; # starts a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) accounts_file: Option<PathBuf>,

    /// An account that keeps former versions of its blobs; repeat for more
    #[arg(long = "versioned-account", value_name = "NAME")]
    pub(crate) versioned_accounts: Vec<String>,
}

/// What is encrypted, and which tokens are taken.
#[derive(Debug, Args)]
pub(crate) struct SecurityArguments {
    /// A certificate (or a chain of them) in PEM form: connections are encrypted, and others are not served.
    /// Looked at every minute, so it can be renewed while the server runs
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's private key in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Take bearer tokens, too. For development only: their signatures are not verified
    #[arg(long, value_name = "MODE", requires = "tls_cert")]
    pub(crate) oauth: Option<OauthMode>,

    /// Take customers' keys and encryption scopes of blobs, too. For development only: nothing is encrypted
    /// with them
    #[arg(long)]
    pub(crate) unencrypted_customer_keys: bool,
}

/// How much of the machine is used.
#[derive(Debug, Args)]
pub(crate) struct SizeArguments {
    /// Memory for rows on their way to disk and for cached blocks together, such as 512MiB. Without it a
    /// quarter of the memory that the process may use, at most 4GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    pub(crate) memory_budget: Option<u64>,

    /// Share of the memory budget for cached blocks. Without it half, or all but 512MiB
    #[arg(long, value_name = "PERCENT")]
    pub(crate) cache_share: Option<u64>,

    /// A range of rows is split once it has more bytes than this
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_byte_size)]
    pub(crate) range_size: u64,

    /// Ranges at most; then none is split any more
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    pub(crate) max_ranges: usize,

    /// One request in so many is noted for larimar admin heat; 0: none
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u64).range(0..=65_536))]
    pub(crate) heat_sample: u64,

    /// Bytes a second at which stored data is read again in the background to notice damage; 0: never
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_byte_size)]
    pub(crate) scrub_rate: u64,

    /// Keep each worker thread on one core. false: the kernel moves them, for machines with other busy
    /// programs
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) pin_workers: bool,
}

/// What requests meet on purpose.
#[derive(Debug, Args)]
pub(crate) struct SimulationArguments {
    /// Behave like the live service on purpose: its limits, page boundaries and balancing as in the profile
    /// azure or azure-large, or the limits and faults of a rule file, which is read again on SIGHUP
    #[arg(long, value_name = "PROFILE|FILE")]
    pub(crate) simulate: Option<OsString>,
}

/// Bytes of a mistaken command that are shown at most.
const COMMAND_SHOWN_SIZE_BYTES_MAX: usize = 12;

/// A mistake's first paragraph without its line breaks: what follows it is the usage, which `--help` tells
/// too. Of an argument that nothing asks for it tells the name of an option or of a would-be command: a long
/// one may be a key, after a blank in the place of a colon.
pub(crate) fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Its text is a whole page of help.
        let text = error.to_string();
        let commands = [
            "larimar shard map",
            "larimar shard",
            "larimar admin token",
            "larimar admin",
            "larimar table",
            "larimar queue",
            "larimar blob",
        ];
        for command in commands {
            if text.contains(&format!("Usage: {command} ")) {
                return format!("{command} does nothing alone; {command} --help lists its commands");
            }
        }
        return "larimar config does nothing alone: give check, show or example".to_owned();
    }
    if error.kind() == ErrorKind::MissingSubcommand
        && let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand)
    {
        return format!("{command} does nothing alone; {command} --help lists its commands");
    }
    let mut text = error.to_string();
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        if let Some(ContextValue::String(given)) = error.get(kind)
            && !given.starts_with('-')
            && given.len() > COMMAND_SHOWN_SIZE_BYTES_MAX
        {
            text = text.replace(given.as_str(), "...");
        }
    }
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let line = words.join(" ");
    format!("{}; larimar --help tells what can be given", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn serve_is_what_happens_without_a_command() {
        let bare = Arguments::try_parse_from(["larimar", "--table-port", "7"]).unwrap().serve();
        let named = Arguments::try_parse_from(["larimar", "serve", "--table-port", "7"]).unwrap().serve();
        assert_eq!(bare.addresses.table_port, 7);
        assert_eq!(
            (bare.addresses.table_port, bare.storage.data),
            (named.addresses.table_port, named.storage.data)
        );
        assert!(Arguments::try_parse_from(["larimar", "--in-memory", "--data", "x"]).is_err());
        assert!(Arguments::try_parse_from(["larimar", "--table-port", "70000"]).is_err());
    }

    #[test]
    fn mistakes_are_one_line() {
        for (typed, part) in [
            (&["--nonsense"][..], "--nonsense"),
            (&["brew"], "brew"),
            (&["--table-port", "x"], "'x'"),
            (&["--table-port"], "--table-port"),
            (&["--memory-budget", "much"], "--memory-budget"),
            (&["--range-size", "1.5GiB"], "--range-size"),
            (&["check"], "DIR"),
            (&["config"], "check, show or example"),
            (&["admin"], "larimar admin does nothing alone"),
            (&["admin", "--json"], "larimar admin does nothing alone"),
            (&["admin", "token"], "larimar admin token does nothing alone"),
            (&["repair", "--apply"], "DIR"),
            (&["--in-memory", "--data", "x"], "--in-memory"),
            (&["--tls-cert", "x"], "--tls-key"),
            (&["--oauth", "basic"], "--tls-cert"),
            (&["--oauth", "full", "--tls-cert", "x", "--tls-key", "y"], "full"),
        ] {
            let error = Arguments::try_parse_from([&["larimar"], typed].concat()).unwrap_err();
            let line = one_line(&error);
            assert!(line.contains(part) && line.lines().count() == 1, "{line}");
            assert!(!line.contains("Usage") && !line.starts_with("error"), "{line}");
        }
        let key = "AAECAwQFBgcICQoLDA0ODw==";
        for typed in [&["--account", "abc", key][..], &["--account", "abc", key, "serve"], &["serve", key]] {
            let line = one_line(&Arguments::try_parse_from([&["larimar"], typed].concat()).unwrap_err());
            assert!(!line.contains(&key[..8]), "{line}");
        }
    }
}
