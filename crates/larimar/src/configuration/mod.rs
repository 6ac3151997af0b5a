//! Checked settings: what the arguments and the environment mean. Nothing is opened or changed here, but the
//! files with accounts, certificate and key are read, and the place of the ready file is looked at.

pub(crate) mod accounts;
pub(crate) mod certificate;
mod machine_memory;
pub(crate) mod memory_shares;
pub(crate) mod simulation;
pub(crate) mod stamp;

use crate::arguments::{AccessLogArguments, CollectorArguments, OauthMode, ServeArguments};
use crate::configuration::accounts::{AccountsDigest, AccountsError, GivenAccounts, given_accounts};
use crate::configuration::certificate::{Certificate, CertificateError};
use crate::configuration::simulation::{SimulateError, Simulated};
use crate::configuration::stamp::{StampConfiguration, StampMistake};
use crate::data_folder::folder_of;
use access_log::{AccessSettings, AccessTarget};
use blob::VersionedAccounts;
use front_end::accounts::{Account, Accounts, KEY_SIZE_BYTES_MIN, may_be_shown};
use http_client::Proxies;
use otlp::{ExportSettings, SettingsError};
use partition::{PartitionSettings, SettingError};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use stream::{IN_MEMORY_SEGMENT_SIZE_BYTES, StreamSettings};

/// Flags that more than one mistake names.
pub(crate) const BLOB_PORT_FLAG: &str = "--blob-port";
pub(crate) const QUEUE_PORT_FLAG: &str = "--queue-port";
pub(crate) const TABLE_PORT_FLAG: &str = "--table-port";
pub(crate) const ADMIN_PORT_FLAG: &str = "--admin-port";
/// Bytes of a memory table that becomes a checkpoint in a stamp: a take-over replays a few of them for each
/// range.
const STAMP_FLUSH_SIZE_BYTES_MAX: u64 = 16 << 20;
const HOST_FLAG: &str = "--host";
const ADMIN_HOST_FLAG: &str = "--admin-host";

/// Where the data lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In this folder.
    Folder(PathBuf),
    /// In memory, forgotten at the end.
    Memory,
    /// In the stores of a stamp of several processes.
    Stamp(Box<StampConfiguration>),
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Folder(path) => path.display().fmt(f),
            Storage::Memory => f.write_str("in memory"),
            Storage::Stamp(stamp) => write!(f, "stamp {}", stamp.name),
        }
    }
}

/// Where each service listens.
#[derive(Debug)]
pub(crate) struct ServiceAddresses {
    /// The host of all services.
    pub(crate) host: Host,
    pub(crate) blob: SocketAddr,
    pub(crate) queue: SocketAddr,
    pub(crate) table: SocketAddr,
    /// The admin side, if it is on.
    pub(crate) admin: Option<AdminAddress>,
}

/// The admin side.
#[derive(Clone, Debug)]
pub(crate) struct AdminAddress {
    pub(crate) address: SocketAddr,
    /// What was given, if others than this machine reach it: then connections are encrypted.
    pub(crate) beyond: Option<String>,
    /// Further names that requests may be for.
    pub(crate) names: Vec<String>,
    /// The file with its tokens, if one was given.
    pub(crate) token_file: Option<PathBuf>,
}

/// A host as it was given, and the address that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    given: String,
    address: IpAddr,
}

/// What the server is asked to be.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) storage: Storage,
    pub(crate) addresses: ServiceAddresses,
    pub(crate) accounts: Accounts,
    /// What the file with accounts held, if there is one.
    pub(crate) accounts_file: Option<AccountsDigest>,
    /// Those that keep versions of their blobs.
    pub(crate) versioned: VersionedAccounts,
    /// Whether the accounts are just the public development account.
    pub(crate) development_account: bool,
    pub(crate) ready_file: Option<PathBuf>,
    pub(crate) streams: StreamSettings,
    pub(crate) partitions: PartitionSettings,
    /// With it connections are encrypted.
    pub(crate) tls: Option<Certificate>,
    pub(crate) process: ProcessSettings,
    pub(crate) development: DevelopmentSettings,
}

/// How the process works, apart from its layers.
#[derive(Debug)]
pub(crate) struct ProcessSettings {
    /// Whether each worker thread keeps to a core.
    pub(crate) pin_workers: bool,
    /// What is logged of requests.
    pub(crate) access: AccessSettings,
    /// Where traces and metrics go.
    pub(crate) export: ExportSettings,
}

/// What is for development and tests only.
#[derive(Debug)]
pub(crate) struct DevelopmentSettings {
    /// How bearer tokens are judged; without it none is taken. Never without a certificate.
    pub(crate) oauth: Option<OauthMode>,
    /// Whether customers' keys are taken, although they encrypt nothing.
    pub(crate) takes_customer_keys: bool,
    /// What requests meet on purpose.
    pub(crate) simulated: Option<Simulated>,
}

impl Configuration {
    /// What addresses start with.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Why the settings can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    #[error(
        "--otlp: this build can't send traces and metrics; packages can, and cargo build --release --features otlp"
    )]
    NoExporter,
    #[error("{0}")]
    CollectorHeaders(SettingsError),
    #[error("--versioned-account {0}: there is no account of this name")]
    UnknownAccount(String),
    #[error("{flag} {host}: {why}; give an IP address or a host name of this machine")]
    Host { flag: &'static str, host: String, why: String },
    #[error("{flag}: the address is missing; give an IP address or a host name of this machine")]
    NoHost { flag: &'static str },
    #[error(
        "--admin-host {0}: others than this machine reach it there, so it needs --tls-cert and --tls-key"
    )]
    AdminInTheClear(String),
    #[error("--admin-name {0}: give a host name, such as db1.example, without a port")]
    AdminName(String),
    #[error("{first} and {second} are both {port}, and two services can't share a port; 0 picks a free one")]
    SharedPort { first: &'static str, second: &'static str, port: u16 },
    #[error(
        "account {name}: a key of {size_bytes} bytes is found by trying, so one under {KEY_SIZE_BYTES_MIN} bytes is not \
         taken where others reach the server (--host {host}); give the account a longer key, such as one that openssl \
         rand -base64 64 prints, or listen on 127.0.0.1"
    )]
    ShortKey { name: String, size_bytes: usize, host: IpAddr },
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("{flag}: {error}")]
    Setting { flag: &'static str, error: SettingError },
    #[error("--data: the name of a folder is missing")]
    NoDataFolder,
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error(transparent)]
    Stamp(#[from] StampMistake),
    #[error("--ready-file {}: it can't be written there: {error}", path.display())]
    ReadyFile { path: PathBuf, error: std::io::Error },
}

impl Configuration {
    /// `known` is a host that was resolved before, and is not resolved again if it is given again.
    pub(crate) fn from_arguments(
        arguments: ServeArguments,
        environment: &dyn Fn(&str) -> Option<OsString>,
        known: Option<&Host>,
    ) -> Result<Self, ConfigurationError> {
        let GivenAccounts { accounts, file: accounts_file } = given_accounts(
            &arguments.accounts.accounts,
            arguments.accounts.accounts_file.as_deref(),
            environment,
        )?;
        let development_account = accounts.is_none();
        let accounts = accounts.unwrap_or_else(Accounts::development);
        if let Some(unknown) =
            arguments.accounts.versioned_accounts.iter().find(|name| accounts.find(name).is_none())
        {
            let shown = if may_be_shown(unknown) { unknown } else { "..." };
            return Err(ConfigurationError::UnknownAccount(shown.to_owned()));
        }
        let versioned = VersionedAccounts(arguments.accounts.versioned_accounts.iter().cloned().collect());
        let host = resolve(&arguments.addresses.host, known)?;
        check_keys(&accounts, host.address)?;
        let partitions = given_partition_settings(&arguments)?;
        let mut streams = StreamSettings {
            scrub_bytes_per_second: arguments.sizes.scrub_rate,
            ..StreamSettings::default()
        }
        .for_memory(partitions.memory_budget_size_bytes());
        let stamp = StampConfiguration::of(&arguments.stamp)?;
        let stamp = match stamp {
            Some(stamp) => Some(stamp.with_cache(&arguments.stamp_server)?),
            None if arguments.stamp_server.cache.is_some() => return Err(StampMistake::CacheAlone.into()),
            None => None,
        };
        let partitions = match stamp {
            Some(_) => partitions
                .with_flushes_of(STAMP_FLUSH_SIZE_BYTES_MAX)
                .with_replay_of(arguments.stamp_server.stamp_replay_max),
            None => partitions,
        };
        if arguments.storage.in_memory {
            streams.reserve_size_bytes = 0;
            streams.journal_segment_size_bytes = IN_MEMORY_SEGMENT_SIZE_BYTES;
        }
        let tls = given_certificate(&arguments)?;
        if arguments.storage.data.as_os_str().is_empty() {
            return Err(ConfigurationError::NoDataFolder);
        }
        let admin = given_admin(&arguments, tls.is_some())?;
        check_ports(&arguments)?;
        check_ready_file(&arguments)?;
        let simulated = arguments.simulation.simulate.as_deref().map(Simulated::read).transpose()?;
        Ok(Configuration {
            storage: match stamp {
                Some(stamp) => Storage::Stamp(Box::new(stamp)),
                None if arguments.storage.in_memory => Storage::Memory,
                None => Storage::Folder(arguments.storage.data),
            },
            addresses: ServiceAddresses {
                blob: SocketAddr::new(host.address, arguments.addresses.blob_port),
                queue: SocketAddr::new(host.address, arguments.addresses.queue_port),
                table: SocketAddr::new(host.address, arguments.addresses.table_port),
                admin,
                host,
            },
            accounts,
            accounts_file,
            versioned,
            development_account,
            ready_file: arguments.storage.ready_file,
            streams,
            partitions,
            tls,
            process: ProcessSettings {
                pin_workers: arguments.sizes.pin_workers,
                access: given_access(&arguments.access),
                export: given_export(arguments.collector)?,
            },
            development: DevelopmentSettings {
                oauth: arguments.security.oauth,
                takes_customer_keys: arguments.security.unencrypted_customer_keys,
                simulated,
            },
        })
    }
}

/// Refuses keys that guard nothing, unless only programs of this machine can reach the server.
fn check_keys(accounts: &Accounts, host: IpAddr) -> Result<(), ConfigurationError> {
    let is_short = |account: &&Account| account.shortest_key_size_bytes() < KEY_SIZE_BYTES_MIN;
    match accounts.iter().find(is_short) {
        Some(account) if !is_loopback(host) => Err(ConfigurationError::ShortKey {
            name: account.name().to_owned(),
            size_bytes: account.shortest_key_size_bytes(),
            host,
        }),
        _ => Ok(()),
    }
}

/// Whether only programs of this machine reach what listens there.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Sizes and budgets, checked.
fn given_partition_settings(arguments: &ServeArguments) -> Result<PartitionSettings, ConfigurationError> {
    let refused = |error: SettingError| {
        let flag = match error {
            SettingError::BudgetTooSmall { .. } | SettingError::TableTooLarge { .. } => "--memory-budget",
            SettingError::CacheShare { .. } => "--cache-share",
            SettingError::RangeTooSmall { .. } => "--range-size",
            SettingError::TooFewRanges { .. } => "--max-ranges",
        };
        ConfigurationError::Setting { flag, error }
    };
    let settings = PartitionSettings {
        range_size_bytes_max: arguments.sizes.range_size,
        range_count_max: arguments.sizes.max_ranges,
        heat_sample_one_in: arguments.sizes.heat_sample,
        ..PartitionSettings::default()
    };
    let budget = arguments.sizes.memory_budget.unwrap_or_else(machine_memory::default_budget);
    let settings = settings.with_memory_budget(budget, arguments.sizes.cache_share).map_err(refused)?;
    settings.check_chosen().map_err(refused)?;
    Ok(settings)
}

/// The certificate and its key, if they are given; the command line has them together or not at all.
fn given_certificate(arguments: &ServeArguments) -> Result<Option<Certificate>, CertificateError> {
    match (&arguments.security.tls_cert, &arguments.security.tls_key) {
        (Some(certificate), Some(key)) => Certificate::read(certificate, key).map(Some),
        _ => Ok(None),
    }
}

fn given_access(arguments: &AccessLogArguments) -> AccessSettings {
    let target = arguments.access_log.clone().map(|path| match path.as_os_str() == "-" {
        true => AccessTarget::StandardOutput,
        false => AccessTarget::File(path),
    });
    let slow_from =
        Some(Duration::from_millis(arguments.slow_requests)).filter(|slow_from| !slow_from.is_zero());
    AccessSettings { target, file_size_bytes_max: arguments.access_log_size, slow_from }
}

/// Headers of deliveries to a collector, as every exporter takes them: they may be secrets, so no flag has
/// them.
const COLLECTOR_HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

fn given_export(arguments: CollectorArguments) -> Result<ExportSettings, ConfigurationError> {
    if arguments.otlp.is_some() && !otlp::CAN_EXPORT {
        return Err(ConfigurationError::NoExporter);
    }
    let headers = std::env::var(COLLECTOR_HEADERS_VARIABLE).unwrap_or_default();
    // Without a collector nobody looks at them.
    let headers = arguments.otlp.as_ref().map(|_| otlp::headers_of(&headers)).transpose();
    Ok(ExportSettings {
        endpoint: arguments.otlp,
        headers: headers.map_err(ConfigurationError::CollectorHeaders)?.unwrap_or_default(),
        share: match arguments.otlp_one_in {
            0 => 0.0,
            one_in => 1.0 / one_in as f64,
        },
        metrics_every: Duration::from_secs(arguments.otlp_metrics_every),
        proxies: Proxies::from_environment(),
    })
}

/// Where the admin side listens, if it is on: beyond this machine only encrypted.
fn given_admin(
    arguments: &ServeArguments,
    encrypts: bool,
) -> Result<Option<AdminAddress>, ConfigurationError> {
    let Some(port) = arguments.addresses.admin_port.0 else { return Ok(None) };
    let given = arguments.addresses.admin_host.clone();
    let address = address_of(ADMIN_HOST_FLAG, &given)?;
    let beyond = (!is_loopback(address)).then_some(given);
    if let Some(given) = beyond.as_ref().filter(|_| !encrypts) {
        return Err(ConfigurationError::AdminInTheClear(given.clone()));
    }
    let token_file = arguments.addresses.admin_token_file.clone();
    let names = arguments.addresses.admin_names.clone();
    if let Some(name) = names.iter().find(|name| !is_host_name(name)) {
        return Err(ConfigurationError::AdminName(name.clone()));
    }
    Ok(Some(AdminAddress { address: SocketAddr::new(address, port), beyond, names, token_file }))
}

/// Whether a text is a host's name as a `Host` header may have it, without a port.
fn is_host_name(text: &str) -> bool {
    const LEN_MAX: usize = 253;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=LEN_MAX).contains(&text.len()) && text.bytes().all(is_of_name)
}

/// Whether each service has a port of its own.
fn check_ports(arguments: &ServeArguments) -> Result<(), ConfigurationError> {
    let ports = [
        (BLOB_PORT_FLAG, arguments.addresses.blob_port),
        (QUEUE_PORT_FLAG, arguments.addresses.queue_port),
        (TABLE_PORT_FLAG, arguments.addresses.table_port),
    ];
    for (index, &(second, port)) in ports.iter().enumerate() {
        if let Some(&(first, _)) = ports[..index].iter().find(|other| port != 0 && other.1 == port) {
            return Err(ConfigurationError::SharedPort { first, second, port });
        }
    }
    Ok(())
}

/// Whether the ready file can be written once the server listens, so that nobody learns only then that it
/// can't be.
fn check_ready_file(arguments: &ServeArguments) -> Result<(), ConfigurationError> {
    let Some(path) = &arguments.storage.ready_file else { return Ok(()) };
    let failed = |error| ConfigurationError::ReadyFile { path: path.clone(), error };
    if path.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    let folder = folder_of(path);
    // The data folder may be yet to be made, and the folders that it lies in with it.
    let is_made = |data: PathBuf| {
        !folder.exists() && std::path::absolute(folder).is_ok_and(|folder| data.starts_with(folder))
    };
    let has_folder = !arguments.storage.in_memory && arguments.stamp.stamp.is_none();
    if has_folder && std::path::absolute(&arguments.storage.data).is_ok_and(is_made) {
        return Ok(());
    }
    if !std::fs::metadata(folder).map_err(failed)?.is_dir() {
        return Err(failed(ErrorKind::NotADirectory.into()));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))
}

fn resolve(host: &str, known: Option<&Host>) -> Result<Host, ConfigurationError> {
    if let Some(known) = known.filter(|known| known.given == host) {
        return Ok(known.clone());
    }
    address_of(HOST_FLAG, host).map(|address| Host { given: host.to_owned(), address })
}

fn address_of(flag: &'static str, host: &str) -> Result<IpAddr, ConfigurationError> {
    if host.is_empty() {
        return Err(ConfigurationError::NoHost { flag });
    }
    let failed = |why: String| ConfigurationError::Host { flag, host: host.to_owned(), why };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Ok(address);
    }
    let mut addresses = (host, 0).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    addresses.next().map(|address| address.ip()).ok_or_else(|| failed("it has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

    fn configure(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Configuration, String> {
        let arguments = Arguments::try_parse_from([&["larimar"], arguments].concat()).unwrap().serve();
        let lookup = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Configuration::from_arguments(arguments, &lookup, None).map_err(|error| error.to_string())
    }

    fn names(configuration: &Configuration) -> Vec<&str> {
        configuration.accounts.names().collect()
    }

    #[test]
    fn without_anything_it_is_the_development_account_on_the_peers_port() {
        let configuration = configure(&[], &[]).unwrap();
        assert_eq!(names(&configuration), ["devstoreaccount1"]);
        assert!(configuration.development_account);
        assert_eq!(configuration.addresses.table.to_string(), "127.0.0.1:10002");
        assert_eq!(configuration.addresses.queue.to_string(), "127.0.0.1:10001");
        assert_eq!(configuration.storage, Storage::Folder("larimar-data".into()));
    }

    #[test]
    fn sizes_and_budgets_are_checked() {
        let settings = |arguments: &[&str]| configure(arguments, &[]).map(|found| found.partitions);
        let small =
            settings(&["--memory-budget", "256MiB", "--cache-share", "25", "--range-size", "1GiB"]).unwrap();
        assert!(small.cache_size_bytes_max.abs_diff(64 << 20) < 100);
        assert!(small.memory_tables_size_bytes_max.abs_diff(192 << 20) < 100);
        assert_eq!(small.range_size_bytes_max, 1 << 30);
        for (arguments, flag) in [
            (["--memory-budget", "1MiB"], "--memory-budget"),
            (["--cache-share", "99"], "--cache-share"),
            (["--range-size", "1MiB"], "--range-size"),
            (["--max-ranges", "1"], "--max-ranges"),
        ] {
            let refused = settings(&arguments).unwrap_err();
            assert!(
                refused.starts_with(flag) && refused.contains("at least") | refused.contains("between"),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_command_line_beats_the_environment_and_ours_beats_the_peers() {
        let account = |name: &str| format!("{name}:{KEY}");
        let environment = [("LARIMAR_ACCOUNTS", account("ours")), ("AZURITE_ACCOUNTS", account("theirs"))];
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(names(&configure(&["--account", &account("typed")], &environment).unwrap()), ["typed"]);
        assert_eq!(names(&configure(&[], &environment).unwrap()), ["ours"]);
        assert_eq!(names(&configure(&[], &environment[1..]).unwrap()), ["theirs"]);
    }

    #[test]
    fn a_ready_file_may_lie_in_a_data_folder_that_is_yet_to_be_made() {
        let ready = ["--ready-file", "/does/not/exist/ready", "--data", "/does/not/exist"];
        assert!(configure(&ready, &[]).is_ok());
        assert!(configure(&["--blob-port", "0", "--queue-port", "0", "--table-port", "0"], &[]).is_ok());
    }

    /// A name server that does not answer holds up whoever asks it.
    #[test]
    fn a_host_that_is_known_is_not_resolved_again() {
        let known = Host { given: "absent.invalid".to_owned(), address: [192, 0, 2, 7].into() };
        assert_eq!(resolve("absent.invalid", Some(&known)).expect("known"), known);
        assert!(resolve("absent.invalid", None).is_err());
        let other = resolve("127.0.0.2", Some(&known)).expect("an address");
        assert_eq!((other.given.as_str(), other.address), ("127.0.0.2", [127, 0, 0, 2].into()));
    }

    #[test]
    fn short_keys_are_taken_where_nobody_else_reaches_them() {
        let short = ["--account", "abc:AAEC", "--host"];
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(configure(&[&short[..], &[host]].concat(), &[]).is_ok(), "{host}");
        }
        let of_16_bytes = format!("abc:{KEY}");
        assert!(configure(&["--account", &of_16_bytes, "--host", "0.0.0.0"], &[]).is_ok());
    }

    #[test]
    fn wrong_settings_say_where_they_come_from() {
        for (arguments, environment, part) in [
            (&["--account", "x"][..], &[][..], "--account"),
            (&[], &[("AZURITE_ACCOUNTS", "nokey")], "AZURITE_ACCOUNTS"),
            (&[], &[("LARIMAR_ACCOUNTS", "")], "LARIMAR_ACCOUNTS is set but names no account"),
            (&[], &[("AZURITE_ACCOUNTS", " ; ")], "AZURITE_ACCOUNTS is set but names no account"),
            (&["--host", "256.1.1.1.1"], &[], "--host"),
            (&["--host", ""], &[], "--host: the address is missing"),
            (&["--admin-host", ""], &[], "--admin-host: the address is missing"),
            (&["--admin-host", "0.0.0.0"], &[], "--admin-host 0.0.0.0: others than this machine"),
            (&["--admin-name", "db1:10010"], &[], "--admin-name db1:10010: give a host name"),
            (&["--admin-name", "db1", "--admin-name", "*"], &[], "--admin-name *: give a host name"),
            (&["--blob-port", "7", "--table-port", "7"], &[], "--blob-port and --table-port are both 7"),
            (&["--queue-port", "10002"], &[], "--queue-port and --table-port are both 10002"),
            (&["--ready-file", "/does/not/exist"], &[], "--ready-file /does/not/exist"),
            (&["--ready-file", "/proc"], &[], "is a directory"),
            (&["--ready-file", "/proc/version/ready"], &[], "not a directory"),
            (
                &["--host", "0.0.0.0", "--account", "abc:AAECAwQFBgcICQoLDA0O"],
                &[],
                "account abc: a key of 15",
            ),
            (&["--host", "::"], &[("AZURITE_ACCOUNTS", "abc:AAEC")], "account abc: a key of 3 bytes"),
            (&["--versioned-account", "nobody"], &[], "nobody"),
            (&["--versioned-account", "abc:AAECAwQFBgcICQoLDA0ODw=="], &[], "--versioned-account ...:"),
            (&["--accounts-file", "abc:AAECAwQFBgcICQoLDA0ODw=="], &[], "wants the name of a file"),
            (&["--accounts-file", "/does/not/exist"], &[], "/does/not/exist"),
            (&["--simulate", "azur"], &[], "no file of this name; did you mean azure?"),
        ] {
            let error = configure(arguments, environment).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
