//! What the server tells whoever started it: where it listens, a connection string and signed addresses to
//! copy, the ready file.

use crate::arguments::OauthMode;
use crate::configuration::{Configuration, Storage, is_loopback};
use crate::sas::life::length_text;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use front_end::accounts::{
    Account, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, STRONG_KEY_SIZE_BYTES_MIN,
};
use front_end::{SasResourceType, SasScope, SasService, SasTerms, make_sas};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the signatures live that are printed at the start.
const START_SAS_LIVES_FOR: Duration = Duration::from_secs(7 * 86_400);

/// Where the admin side listens.
#[derive(Clone, Debug)]
pub(crate) struct AdminPlace {
    pub(crate) address: SocketAddr,
    pub(crate) scheme: &'static str,
    /// The file with its tokens, if there are any.
    pub(crate) token_file: Option<PathBuf>,
}

/// Where the services listen.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) blob: SocketAddr,
    pub(crate) queue: SocketAddr,
    pub(crate) table: SocketAddr,
    /// Of the admin side, if it is there.
    pub(crate) admin: Option<AdminPlace>,
}

/// Says where the server listens and how to connect.
pub(crate) fn started(configuration: &Configuration, addresses: &Addresses, sas: Option<&StartSas>) {
    // A closed standard output is no reason to stop serving.
    let _ = std::io::stdout().write_all(started_text(configuration, addresses, sas).as_bytes());
}

/// Addresses for clients that take neither keys nor connection strings, each with a signature that allows
/// everything.
#[derive(Debug)]
pub(crate) struct StartSas {
    blob: String,
    queue: String,
    table: String,
    expiry: Ticks,
}

impl StartSas {
    /// Only of the development account, and only where nobody else reaches the server: its key is public
    /// anyway, but what a start prints may go to a log that others read.
    pub(crate) fn new(configuration: &Configuration, addresses: &Addresses, now: Ticks) -> Option<Self> {
        let are_local =
            [addresses.blob, addresses.queue, addresses.table].iter().all(|at| is_loopback(at.ip()));
        if !configuration.development_account || !are_local {
            return None;
        }
        let services = vec![SasService::Blob, SasService::Queue, SasService::Table];
        let resource_types =
            vec![SasResourceType::Service, SasResourceType::Container, SasResourceType::Object];
        let scope = SasScope::Account { services, resource_types };
        let expiry = now.plus(START_SAS_LIVES_FOR);
        let terms = SasTerms {
            permissions: scope.served_permissions(),
            start: None,
            expiry: Ticks(expiry.0 - expiry.0 % TICKS_PER_SECOND),
            addresses: None,
            https_only: false,
        };
        let token = make_sas(&Account::development(), 0, &scope, &terms).ok()?;
        let scheme = configuration.scheme();
        let address = |at: SocketAddr| format!("{scheme}://{at}/{DEVELOPMENT_ACCOUNT_NAME}?{token}");
        Some(StartSas {
            blob: address(addresses.blob),
            queue: address(addresses.queue),
            table: address(addresses.table),
            expiry: terms.expiry,
        })
    }
}

fn started_text(configuration: &Configuration, addresses: &Addresses, sas: Option<&StartSas>) -> String {
    let mut text = format!("Larimar {}\n", env!("CARGO_PKG_VERSION"));
    let name = configuration.accounts.names().next().unwrap_or(DEVELOPMENT_ACCOUNT_NAME);
    let scheme = configuration.scheme();
    let blob = format!("{scheme}://{}/{name}", addresses.blob);
    let queue = format!("{scheme}://{}/{name}", addresses.queue);
    let table = format!("{scheme}://{}/{name}", addresses.table);
    // Writing to a string does not fail.
    let _ = match &configuration.storage {
        Storage::Folder(path) => {
            writeln!(text, "  data   {} (every acknowledged write is on disk)", path.display())
        }
        Storage::Stamp(stamp) => writeln!(text, "  data   stamp {} in {}", stamp.name, stamp.store),
        Storage::Memory => writeln!(text, "  data   in memory, forgotten when the server stops"),
    };
    let _ = writeln!(text, "  blob   {blob}");
    let _ = writeln!(text, "  queue  {queue}");
    let _ = writeln!(text, "  table  {table}");
    if let Some(AdminPlace { address, scheme, token_file }) = &addresses.admin {
        let _ = writeln!(
            text,
            "  admin  {scheme}://{address} (/health, /ready, /version, /metrics; larimar admin)"
        );
        if let Some(token_file) = token_file {
            let _ = writeln!(text, "         tokens in {}", token_file.display());
        }
    }
    let key = if configuration.development_account { DEVELOPMENT_ACCOUNT_KEY } else { "<your key>" };
    let _ = writeln!(
        text,
        "  connection string\n\
         DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};BlobEndpoint={blob};QueueEndpoint={queue};\
         TableEndpoint={table};"
    );
    if let Some(StartSas { blob, queue, table, expiry }) = sas {
        let _ = writeln!(
            text,
            "  signed addresses, for clients that take no key (they allow everything for {}, until {}; larimar sas makes \
             others)\n{blob}\n{queue}\n{table}",
            length_text(START_SAS_LIVES_FOR),
            service::date_time_text(*expiry)
        );
    }
    if addresses.table.ip().is_unspecified() {
        let _ = writeln!(
            text,
            "  note: other machines put this machine's name or address in the place of {}",
            addresses.table.ip()
        );
    }
    if configuration.development_account && !addresses.table.ip().is_loopback() {
        let _ = writeln!(
            text,
            "  warning: everybody knows the key of the development account, and {} can be reached from other \
             machines; give accounts of your own with --account",
            addresses.table.ip()
        );
    }
    for account in configuration.accounts.iter() {
        let size_bytes = account.shortest_key_size_bytes();
        if size_bytes < STRONG_KEY_SIZE_BYTES_MIN {
            let _ = writeln!(
                text,
                "  warning: account {} has a key of {size_bytes} bytes, and one under {STRONG_KEY_SIZE_BYTES_MIN} can be \
                 found by trying; give it a longer one, such as one that openssl rand -base64 64 prints",
                account.name()
            );
        }
    }
    if let Some(simulated) = &configuration.development.simulated {
        let _ = writeln!(
            text,
            "  note: --simulate {}: requests meet limits and faults on purpose; their answers have the header \
             x-larimar-simulated, and LARIMAR_LOG=info logs them",
            simulated.given.display()
        );
    }
    if let Some(OauthMode::Basic) = configuration.development.oauth {
        let _ = writeln!(
            text,
            "  WARNING: --oauth basic takes bearer tokens WITHOUT VERIFYING THEIR SIGNATURES: whoever reaches {} can \
             write one and do everything; for development only",
            addresses.table.ip()
        );
    }
    text
}

/// Bytes of a ready file at most.
const READY_FILE_SIZE_BYTES_MAX: u64 = 4096;

/// Removes what an earlier server left, so that nobody takes it for this one's.
pub(crate) fn remove_ready_file(path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("--ready-file {}: {error}", path.display());
    match is_replaceable(path).map_err(failed)? {
        None => Ok(()),
        Some(true) => std::fs::remove_file(path).map_err(failed),
        Some(false) => Err(format!(
            "--ready-file {}: a file is there that is none of a server's; remove it, or give another path",
            path.display()
        )),
    }
}

/// Whether what is at the place of a ready file is one, or is an empty file: somebody may have named the
/// wrong file, such as one of the data folder's. `None`: nothing is there.
fn is_replaceable(path: &Path) -> std::io::Result<Option<bool>> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !found.is_file() || found.len() > READY_FILE_SIZE_BYTES_MAX {
        return Ok(Some(false));
    }
    let content: Option<serde_json::Value> = serde_json::from_slice(&std::fs::read(path)?).ok();
    Ok(Some(found.len() == 0 || content.is_some_and(|content| content.get("pid").is_some())))
}

/// Writes the ready file in one step, so that whoever waits for it never reads half of it.
pub(crate) fn write_ready_file(
    path: &Path,
    configuration: &Configuration,
    addresses: &Addresses,
    sas: Option<&StartSas>,
) -> Result<(), String> {
    let mut content = serde_json::json!({
        "blob": format!("{}://{}", configuration.scheme(), addresses.blob),
        "queue": format!("{}://{}", configuration.scheme(), addresses.queue),
        "table": format!("{}://{}", configuration.scheme(), addresses.table),
        "pid": std::process::id(),
    });
    if let Some(admin) = &addresses.admin {
        content["admin"] = format!("{}://{}", admin.scheme, admin.address).into();
        if let Some(token_file) = &admin.token_file {
            content["admin_token_file"] = token_file.display().to_string().into();
        }
    }
    if let Some(StartSas { blob, queue, table, .. }) = sas {
        content["sas"] = serde_json::json!({ "blob": blob, "queue": queue, "table": table });
    }
    // One may have come since the start began, such as a file of the data folder.
    remove_ready_file(path)?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    std::fs::write(&unfinished, format!("{content}\n"))
        .and_then(|()| std::fs::rename(&unfinished, path))
        .map_err(|error| format!("--ready-file {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    fn text(arguments: &[&str], address: &str) -> String {
        let arguments = Arguments::try_parse_from([&["larimar"], arguments].concat()).unwrap().serve();
        let configuration = Configuration::from_arguments(arguments, &|_| None, None).unwrap();
        let address = address.parse().unwrap();
        let addresses = Addresses { blob: address, queue: address, table: address, admin: None };
        let now = service::parse_date_time("2026-11-26T10:00:00.5Z").unwrap();
        started_text(&configuration, &addresses, StartSas::new(&configuration, &addresses, now).as_ref())
    }

    #[test]
    fn signed_addresses_are_those_of_the_development_account_on_loopback_only() {
        let signed = |text: &str| text.contains("sig=");
        for address in ["127.0.0.1:10002", "[::1]:10002"] {
            let text = text(&[], address);
            assert!(signed(&text) && text.contains("for 7 days, until 2026-12-03T10:00:00Z"), "{text}");
            assert!(text.contains(&format!("\nhttp://{address}/devstoreaccount1?sv=")), "{text}");
        }
        for address in ["0.0.0.0:10002", "[::]:10002", "192.168.0.7:10002"] {
            assert!(!signed(&text(&[], address)), "{address}");
        }
        assert!(!signed(&text(&["--account", "mine:AAECAwQFBgcICQoLDA0ODw=="], "127.0.0.1:10002")));
        // Also if somebody gives it by name: it may have another key then.
        let named = format!("{DEVELOPMENT_ACCOUNT_NAME}:{DEVELOPMENT_ACCOUNT_KEY}");
        assert!(!signed(&text(&["--account", &named], "127.0.0.1:10002")));
    }

    #[test]
    fn short_keys_are_warned_about_by_name() {
        let warned = |account: &str| text(&["--account", account], "127.0.0.1:10002");
        let short = warned("mine:AAECAwQFBgcICQoLDA0ODw==");
        assert!(short.contains("warning: account mine has a key of 16 bytes"), "{short}");
        let of_32_bytes = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert!(!warned(&format!("mine:{of_32_bytes}")).contains("warning"));
        // The shorter one is what is found.
        let second = warned(&format!("mine:{of_32_bytes}:AAEC"));
        assert!(second.contains("warning: account mine has a key of 3 bytes"), "{second}");
    }

    #[test]
    fn the_connection_string_can_be_copied_and_own_keys_are_not_shown() {
        let development = text(&[], "127.0.0.1:10002");
        assert!(
            development.contains("TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"),
            "{development}"
        );
        assert!(
            development.contains("BlobEndpoint=http://127.0.0.1:10002/devstoreaccount1;"),
            "{development}"
        );
        assert!(
            development.contains("QueueEndpoint=http://127.0.0.1:10002/devstoreaccount1;"),
            "{development}"
        );
        assert!(!development.contains("warning"), "{development}");
        let own = text(&["--account", "mine:AAECAwQFBgcICQoLDA0ODw=="], "127.0.0.1:10002");
        assert!(own.contains("AccountName=mine") && !own.contains("AAECAw"), "{own}");
    }

    #[test]
    fn the_public_key_on_a_public_address_is_warned_about() {
        assert!(text(&["--host", "0.0.0.0"], "0.0.0.0:10002").contains("warning"));
    }

    #[test]
    fn an_address_that_stands_for_all_is_explained() {
        for (address, explains) in [
            ("0.0.0.0:10002", true),
            ("[::]:10002", true),
            ("192.168.0.7:10002", false),
            ("127.0.0.1:10002", false),
        ] {
            assert_eq!(text(&[], address).contains("this machine's name"), explains, "{address}");
        }
    }
}
