//! A metadata store from its URLs.

use crate::error::OpenError;
use crate::etcd::keys::EtcdKeys;
use crate::etcd::login::Login;
use crate::etcd::members::{Member, Members};
use crate::etcd::settings::KeyValueSettings;
use crate::etcd::watch::{SILENCE_FOR, SharedWatch};
use crate::exchange::Service;
use crate::requests::counted_keys::CountedKeys;
use crate::requests::counts::RequestCounts;
use crate::secret::Secret;
use crate::surroundings::{StoreSurroundings, proxies};
use http_client::{Dialer, Endpoint, TlsIdentity, TlsRoots};
use stamp_streams::KeyValues;
use std::sync::Arc;

/// Members, at most.
const MEMBERS_MAX: usize = 16;
/// Bytes of a prefix, at most.
const PREFIX_SIZE_BYTES_MAX: usize = 256;

/// A metadata store, and what is counted of it.
pub struct OpenedKeyValues {
    /// The store.
    pub store: Arc<dyn KeyValues>,
    /// What was sent to it.
    pub counts: Arc<RequestCounts>,
}

/// Opens etcd at the URLs of its members, `http://HOST:2379` or of `https`. No member is reached for yet.
///
/// # Errors
///
/// If a URL or a setting makes no sense, or a file of certificates or keys can't be read.
pub async fn open_key_values(
    urls: &[String],
    settings: &KeyValueSettings,
    surroundings: &StoreSurroundings,
) -> Result<OpenedKeyValues, OpenError> {
    let endpoints = parse_members(urls).map_err(|why| OpenError::setting("the URLs of etcd", why))?;
    let prefix = &settings.prefix;
    if prefix.len() > PREFIX_SIZE_BYTES_MAX || prefix.chars().any(char::is_control) {
        let why = format!("it has a control character, or more than {PREFIX_SIZE_BYTES_MAX} bytes");
        return Err(OpenError::setting("the prefix of keys in etcd", why));
    }
    let dialer = Arc::new(dialer(settings, surroundings).await?);
    let http = &surroundings.http;
    let member = |endpoint: Endpoint| {
        let service = |part_for, answer_for| {
            let connections = settings.connections(part_for);
            Service::new(endpoint.clone(), dialer.clone(), http, connections, answer_for)
        };
        Member {
            reads: service(settings.read_for, settings.read_for),
            commits: service(settings.commit_for, settings.commit_for),
            watches: service(SILENCE_FOR, settings.read_for),
        }
    };
    let members =
        Members::new(endpoints.into_iter().map(member).collect(), Login::new(user(settings, surroundings)?));
    let keys = EtcdKeys {
        members,
        base: prefix.clone(),
        clock: http.clock.clone(),
        wait_for: settings.wait_for,
        watch: SharedWatch::new(),
    };
    let counts = Arc::new(RequestCounts::default());
    let store = Arc::new(CountedKeys { store: keys, counts: counts.clone(), clock: http.clock.clone() });
    Ok(OpenedKeyValues { store, counts })
}

fn parse_members(urls: &[String]) -> Result<Vec<Endpoint>, String> {
    if urls.is_empty() || urls.len() > MEMBERS_MAX {
        return Err(format!("there are {}; give 1 to {MEMBERS_MAX}", urls.len()));
    }
    let parse = |url: &String| Endpoint::parse(url.trim());
    urls.iter()
        .enumerate()
        .map(|(index, url)| parse(url).map_err(|why| format!("number {}: {why}", index + 1)))
        .collect()
}

async fn dialer(settings: &KeyValueSettings, surroundings: &StoreSurroundings) -> Result<Dialer, OpenError> {
    let named = |setting: &Option<String>, variable: &str| {
        setting.clone().or_else(|| surroundings.variable(variable).map(str::to_owned))
    };
    let read = async |path: String| {
        let read = surroundings.read_file(&path).await;
        read.map(|bytes| bytes.to_vec())
            .map_err(|error| OpenError::setting(format!("the file {path}"), error.to_string()))
    };
    let roots = match named(&settings.ca_file, "ETCDCTL_CACERT") {
        Some(path) => TlsRoots::Pem(read(path).await?),
        None => TlsRoots::System,
    };
    let certificate = named(&settings.certificate_file, "ETCDCTL_CERT");
    let identity = match (certificate, named(&settings.key_file, "ETCDCTL_KEY")) {
        (Some(certificate), Some(key)) => {
            Some(TlsIdentity { certificates: read(certificate).await?, key: read(key).await? })
        }
        (None, None) => None,
        _ => return Err(OpenError::setting("the client's certificate", "certificate and key go together")),
    };
    let connector = surroundings.http.connector.clone();
    Ok(Dialer::new(connector, proxies(surroundings), roots).identified_by(identity))
}

/// User and password; `ETCDCTL_USER` may have both, with a colon between them.
fn user(
    settings: &KeyValueSettings,
    surroundings: &StoreSurroundings,
) -> Result<Option<(String, Secret)>, OpenError> {
    let given = settings.user.clone().or_else(|| surroundings.variable("ETCDCTL_USER").map(str::to_owned));
    let Some(given) = given else { return Ok(None) };
    let password = settings.password.clone();
    let password = password.or_else(|| surroundings.variable("ETCDCTL_PASSWORD").map(Secret::new));
    match (password, given.split_once(':')) {
        (Some(password), _) => Ok(Some((given, password))),
        (None, Some((name, password))) => Ok(Some((name.to_owned(), Secret::new(password)))),
        (None, None) => {
            Err(OpenError::setting("the user of etcd", "it has no password: set ETCDCTL_PASSWORD"))
        }
    }
}
