//! `larimar sas` as typed, with its help texts. `sas_settings` checks what it means.

use clap::{Args, value_parser};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Standard output has the token and then an address with it for each service that it is for; standard error says in words \
what it allows. Accounts and keys come from where `larimar serve` has them: --account NAME:KEY, --accounts-file, \
LARIMAR_ACCOUNTS or AZURITE_ACCOUNTS, else the development account.

Examples:
  larimar sas
      everything in the development account, for 24 hours
  larimar sas --account mine --accounts-file accounts --service blob --permissions rl --expiry 7d
      read and list all blobs of an account
  larimar sas --resource blob/photos/2026/cat.jpg --permissions r --expiry 2026-12-31
      read one blob; blob/photos would be for all blobs of the container
  larimar sas --resource queue/tasks --permissions ap --ip 10.0.0.1-10.0.0.9 --https-only
      add and get messages of a queue, from some machines, over TLS
  larimar sas --resource table/People --permissions r --token-only
      only the token, for a script";

/// Arguments of `larimar sas`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SasArguments {
    #[command(flatten)]
    pub(crate) signer: SignerArguments,
    #[command(flatten)]
    pub(crate) scope: SasScopeArguments,
    #[command(flatten)]
    pub(crate) terms: SasTermArguments,

    /// Print the bare token, and nothing else
    #[arg(long)]
    pub(crate) token_only: bool,

    #[command(flatten)]
    pub(crate) server: ServerAddressArguments,
}

/// Which key signs.
#[derive(Debug, Args)]
pub(crate) struct SignerArguments {
    /// Whose resources; it can be left out if there is one account only. With a key it need not be known
    /// otherwise
    #[arg(long, value_name = "NAME[:KEY[:KEY2]]")]
    pub(crate) account: Option<String>,

    /// A file with one NAME:KEY[:KEY2] a line; # starts a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) accounts_file: Option<PathBuf>,

    /// Which of the account's keys signs
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = value_parser!(u8).range(1..=2))]
    pub(crate) key: u8,
}

/// What the signature is for.
#[derive(Debug, Args)]
pub(crate) struct SasScopeArguments {
    /// Services, with commas between them. Without it all, or that of the resource
    #[arg(long, value_name = "blob,queue,table")]
    pub(crate) service: Option<String>,

    /// Types of resources of the account, with commas between them: the services themselves, containers (and
    /// queues and tables), objects (blobs, messages, entities). Or one resource: blob/CONTAINER,
    /// blob/CONTAINER/BLOB, queue/NAME, table/NAME
    #[arg(long, value_name = "TYPES or PATH", default_value = "service,container,object")]
    pub(crate) resource: String,

    /// Letters of what is allowed, in any order. Without it all that there are for the resource
    #[arg(long, value_name = "LETTERS")]
    pub(crate) permissions: Option<String>,
}

/// When, from where and how it can be used.
#[derive(Debug, Args)]
pub(crate) struct SasTermArguments {
    /// When it ends: after so many s, m, h, d or w (30m, 7d), or at a date (2026-12-31, 2026-12-31T10:00Z)
    #[arg(long, value_name = "DURATION or DATE", default_value = "24h")]
    pub(crate) expiry: String,

    /// When it begins, likewise. Without it at once
    #[arg(long, value_name = "DURATION or DATE")]
    pub(crate) start: Option<String>,

    /// The IPv4 address from which it can be used, or the first and the last one with a hyphen between them
    #[arg(long, value_name = "ADDRESS[-ADDRESS]")]
    pub(crate) ip: Option<String>,

    /// It can be used over TLS only, and the addresses begin with https
    #[arg(long)]
    pub(crate) https_only: bool,
}

/// Where the server is, in the addresses that are printed.
#[derive(Debug, Args)]
pub(crate) struct ServerAddressArguments {
    /// The server's address or name in the addresses that are printed
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,

    /// Its port of the Blob service
    #[arg(long, value_name = "PORT", default_value_t = 10000, value_parser = value_parser!(u16).range(1..))]
    pub(crate) blob_port: u16,

    /// Its port of the Queue service
    #[arg(long, value_name = "PORT", default_value_t = 10001, value_parser = value_parser!(u16).range(1..))]
    pub(crate) queue_port: u16,

    /// Its port of the Table service
    #[arg(long, value_name = "PORT", default_value_t = 10002, value_parser = value_parser!(u16).range(1..))]
    pub(crate) table_port: u16,
}
