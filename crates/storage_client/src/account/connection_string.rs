//! Connection strings: `Name=Value;Name=Value`, names in any case and order.
//!
//! ```text
//! UseDevelopmentStorage=true[;DevelopmentStorageProxyUri=http://host]
//! [DefaultEndpointsProtocol=https;]AccountName=a;AccountKey=k[;EndpointSuffix=core.windows.net]
//! [BlobEndpoint=U;BlobSecondaryEndpoint=U;]…            the same for Queue and Table
//! BlobEndpoint=U;SharedAccessSignature=sv=…&sig=…
//! ```
//!
//! What always holds: an unknown name, a name given twice and a value that can't be used are refused by
//! their name; neither a key nor a signature is in an error's text.

use super::credentials::{AccountKey, Credentials};
use super::endpoint::{AccountEndpoint, Service, parse_endpoint};
use base::nearest::changes;
use http_client::Endpoint;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The emulators' account.
pub const DEVELOPMENT_ACCOUNT_NAME: &str = "devstoreaccount1";

/// The emulators' public key.
pub const DEVELOPMENT_ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const DEFAULT_SUFFIX: &str = "core.windows.net";
const DEFAULT_PROTOCOL: &str = "https";

/// All names that are read, in lower case, and as they are written.
const NAMES: [(&str, &str); 13] = [
    ("usedevelopmentstorage", "UseDevelopmentStorage"),
    ("developmentstorageproxyuri", "DevelopmentStorageProxyUri"),
    ("defaultendpointsprotocol", "DefaultEndpointsProtocol"),
    ("accountname", "AccountName"),
    ("accountkey", "AccountKey"),
    ("endpointsuffix", "EndpointSuffix"),
    ("sharedaccesssignature", "SharedAccessSignature"),
    ("blobendpoint", "BlobEndpoint"),
    ("queueendpoint", "QueueEndpoint"),
    ("tableendpoint", "TableEndpoint"),
    ("blobsecondaryendpoint", "BlobSecondaryEndpoint"),
    ("queuesecondaryendpoint", "QueueSecondaryEndpoint"),
    ("tablesecondaryendpoint", "TableSecondaryEndpoint"),
];

/// A name of other services, which well-formed strings of other tools hold.
const IGNORED: [&str; 2] = ["fileendpoint", "filesecondaryendpoint"];

/// Why a connection string can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionStringError {
    /// It is empty.
    #[error("the connection string is empty")]
    Empty,
    /// A part has no `=`.
    #[error("part {0} of the connection string has no '='; write Name=Value;Name=Value")]
    NoEquals(usize),
    /// A name is unknown.
    #[error("the connection string has the unknown name '{name}'; did you mean '{nearest}'?")]
    UnknownName {
        /// As it was given.
        name: String,
        /// A name that is known.
        nearest: &'static str,
    },
    /// A name comes twice.
    #[error("the connection string has '{0}' twice")]
    Twice(&'static str),
    /// Something is missing.
    #[error("the connection string has no {0}")]
    Missing(&'static str),
    /// A value can't be used.
    #[error("{name} of the connection string can't be used: {why}")]
    Value {
        /// Whose value.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Two names exclude each other.
    #[error("the connection string has both {0} and {1}; give one of them")]
    Conflict(&'static str, &'static str),
}

/// Where an account is, and what opens it.
#[derive(Clone, Debug)]
pub struct AccountAddress {
    /// The account; empty if only a signature for explicit endpoints is known.
    pub(crate) name: String,
    pub(crate) credentials: Credentials,
    /// For each service its primary endpoint and the secondary, if they are known.
    pub(crate) endpoints: BTreeMap<Service, (Endpoint, Option<Endpoint>)>,
}

type Values = BTreeMap<&'static str, String>;

impl AccountAddress {
    /// What the connection string says.
    pub fn parse(text: &str) -> Result<Self, ConnectionStringError> {
        let mut values = split(text)?;
        if let Some(value) = values.remove("UseDevelopmentStorage") {
            if !value.eq_ignore_ascii_case("true") {
                let why = "it must be 'true' or left out".to_owned();
                return Err(ConnectionStringError::Value { name: "UseDevelopmentStorage", why });
            }
            return development(values);
        }
        if values.contains_key("DevelopmentStorageProxyUri") {
            return Err(ConnectionStringError::Missing("UseDevelopmentStorage"));
        }
        explicit(&values)
    }

    /// An account whose endpoints are given one by one; an anonymous one, too.
    pub fn of(name: impl Into<String>, credentials: Credentials) -> Self {
        AccountAddress { name: name.into(), credentials, endpoints: BTreeMap::new() }
    }

    /// The same account with an endpoint, whose secondary is found by the service's rule.
    pub fn with_endpoint(mut self, service: Service, url: &str) -> Result<Self, ConnectionStringError> {
        let primary =
            parse_endpoint(url).map_err(|why| ConnectionStringError::Value { name: "the endpoint", why })?;
        let secondary = primary.secondary(&self.name);
        self.endpoints.insert(service, (primary, secondary));
        Ok(self)
    }

    /// The account's name; empty if it is unknown.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What opens it.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The primary endpoint of a service, if it is known.
    pub fn endpoint_url(&self, service: Service) -> Option<String> {
        self.endpoints.get(&service).map(|(primary, _)| primary.url())
    }

    /// Whether both have a service at the same place, however that is spelt: names of hosts in any case,
    /// names of this machine as one, the usual ports of both schemes as one. That two names of hosts mean one
    /// is not known here.
    pub fn has_same_endpoint(&self, other: &Self, service: Service) -> bool {
        let place = |address: &Self| address.endpoints.get(&service).map(|(primary, _)| place_of(primary));
        place(self).is_some() && place(self) == place(other)
    }

    /// The emulators' account on this machine.
    pub fn development() -> Self {
        match development(Values::new()) {
            Ok(address) => address,
            Err(error) => unreachable!("the development account is well formed: {error}"),
        }
    }
}

/// Host, port and path in one spelling.
fn place_of(endpoint: &Endpoint) -> (String, Option<u16>, String) {
    let Endpoint { origin, path, .. } = endpoint;
    let host = origin.host.trim_end_matches('.').to_ascii_lowercase();
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost",
    };
    let host = if is_loopback { "localhost".to_owned() } else { host };
    let usual = if origin.is_tls { 443 } else { 80 };
    (host, Some(origin.port).filter(|port| *port != usual), path.to_ascii_lowercase())
}

fn split(text: &str) -> Result<Values, ConnectionStringError> {
    let mut values = Values::new();
    for (index, part) in text.split(';').map(str::trim).enumerate() {
        if part.is_empty() {
            continue;
        }
        // The part may be a key: it is named by its place.
        let (name, value) = part.split_once('=').ok_or(ConnectionStringError::NoEquals(index + 1))?;
        let lower = name.trim().to_ascii_lowercase();
        if IGNORED.contains(&lower.as_str()) {
            continue;
        }
        let Some((_, known)) = NAMES.iter().find(|(known, _)| *known == lower) else {
            let name = name.trim().to_owned();
            return Err(ConnectionStringError::UnknownName { nearest: nearest(&lower), name });
        };
        if values.insert(known, value.trim().to_owned()).is_some() {
            return Err(ConnectionStringError::Twice(known));
        }
    }
    if values.is_empty() { Err(ConnectionStringError::Empty) } else { Ok(values) }
}

/// Characters of an unknown name that are compared.
const COMPARED_LEN: usize = 64;

/// The known name with the fewest changes from `lower`.
fn nearest(lower: &str) -> &'static str {
    let lower: String = lower.chars().take(COMPARED_LEN).collect();
    NAMES.iter().min_by_key(|(known, _)| changes(known, &lower)).map_or("", |(_, name)| name)
}

fn development(mut values: Values) -> Result<AccountAddress, ConnectionStringError> {
    let host = match values.remove("DevelopmentStorageProxyUri") {
        None => "http://127.0.0.1".to_owned(),
        Some(uri) => uri.trim_end_matches('/').to_owned(),
    };
    if let Some(name) = values.keys().next() {
        return Err(ConnectionStringError::Conflict("UseDevelopmentStorage", name));
    }
    let mut endpoints = BTreeMap::new();
    for (service, port) in [(Service::Blob, 10000), (Service::Queue, 10001), (Service::Table, 10002)] {
        let at = |account: String| {
            let url = format!("{host}:{port}/{account}");
            parse_endpoint(&url)
                .map_err(|why| ConnectionStringError::Value { name: "DevelopmentStorageProxyUri", why })
        };
        let secondary = at(format!("{DEVELOPMENT_ACCOUNT_NAME}-secondary"))?;
        endpoints.insert(service, (at(DEVELOPMENT_ACCOUNT_NAME.to_owned())?, Some(secondary)));
    }
    let credentials = Credentials::Key(key(DEVELOPMENT_ACCOUNT_KEY)?);
    Ok(AccountAddress { name: DEVELOPMENT_ACCOUNT_NAME.to_owned(), credentials, endpoints })
}

fn key(text: &str) -> Result<AccountKey, ConnectionStringError> {
    AccountKey::from_base64(text).map_err(|why| ConnectionStringError::Value { name: "AccountKey", why })
}

fn explicit(values: &Values) -> Result<AccountAddress, ConnectionStringError> {
    let value = |name| values.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let credentials = match (value("AccountKey"), value("SharedAccessSignature")) {
        (Some(_), Some(_)) => {
            return Err(ConnectionStringError::Conflict("AccountKey", "SharedAccessSignature"));
        }
        (Some(text), None) => Credentials::Key(key(text)?),
        (None, Some(signature)) => Credentials::sas(signature)
            .map_err(|why| ConnectionStringError::Value { name: "SharedAccessSignature", why })?,
        (None, None) => return Err(ConnectionStringError::Missing("AccountKey or SharedAccessSignature")),
    };
    let mut name = value("AccountName").unwrap_or_default().to_owned();
    if name.is_empty() && matches!(credentials, Credentials::Key(_)) {
        return Err(ConnectionStringError::Missing("AccountName"));
    }
    let protocol = value("DefaultEndpointsProtocol").unwrap_or(DEFAULT_PROTOCOL).to_ascii_lowercase();
    if protocol != "http" && protocol != "https" {
        let why = "it must be http or https".to_owned();
        return Err(ConnectionStringError::Value { name: "DefaultEndpointsProtocol", why });
    }
    let suffix = value("EndpointSuffix").unwrap_or(DEFAULT_SUFFIX);
    let parse = |key: &'static str, url: &str| {
        parse_endpoint(url).map_err(|why| ConnectionStringError::Value { name: key, why })
    };
    let mut endpoints = BTreeMap::new();
    for (service, key, secondary_key) in [
        (Service::Blob, "BlobEndpoint", "BlobSecondaryEndpoint"),
        (Service::Queue, "QueueEndpoint", "QueueSecondaryEndpoint"),
        (Service::Table, "TableEndpoint", "TableSecondaryEndpoint"),
    ] {
        let given = value(secondary_key).map(|url| parse(secondary_key, url)).transpose()?;
        let (primary, derived) = match value(key) {
            Some(url) => {
                let primary = parse(key, url)?;
                let derived = primary.secondary(&name);
                (primary, derived)
            }
            None if given.is_some() => return Err(ConnectionStringError::Missing(key)),
            None if name.is_empty() => continue,
            None => {
                let label = service.label();
                let primary = parse("EndpointSuffix", &format!("{protocol}://{name}.{label}.{suffix}"))?;
                let derived = primary.secondary(&name);
                (primary, derived)
            }
        };
        endpoints.insert(service, (primary, given.or(derived)));
    }
    if endpoints.is_empty() {
        return Err(ConnectionStringError::Missing("AccountName, nor an endpoint"));
    }
    if name.is_empty() {
        name = endpoints.values().find_map(|(primary, _)| primary.account()).unwrap_or_default();
    }
    Ok(AccountAddress { name, credentials, endpoints })
}

#[cfg(test)]
mod tests;
