//! Where a service of an account is: scheme, host, port, and the path before all others.
//!
//! ```text
//! https://ACCOUNT.table.core.windows.net          host style: no path
//! http://127.0.0.1:10002/ACCOUNT                  path style: the account is the path
//! ```

use hyper::Uri;
use std::net::IpAddr;

/// Behind the account's name in the secondary's address.
const SECONDARY: &str = "-secondary";

/// One of the three services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Blobs and their containers.
    Blob,
    /// Queues of messages.
    Queue,
    /// Tables of entities.
    Table,
}

impl Service {
    /// Its label in host names: `blob`, `queue` or `table`.
    pub fn label(self) -> &'static str {
        match self {
            Service::Blob => "blob",
            Service::Queue => "queue",
            Service::Table => "table",
        }
    }
}

/// A server: what a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// An origin and the path below which the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// Host and port as they were given: the `Host` header.
    pub(crate) authority: String,
    /// Empty, or with a slash before it and none behind it.
    pub(crate) path: String,
}

impl Endpoint {
    /// From a URL; an error says what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("it is no URL: {error}"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err("its scheme is neither http nor https".to_owned()),
            None => return Err("it has no scheme: write http://… or https://…".to_owned()),
        };
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it has a user name, which the protocol does not know".to_owned());
        }
        if uri.query().is_some() {
            return Err("it has a query; give a signature as SharedAccessSignature".to_owned());
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.port().is_some() || authority.as_str().ends_with(':') => {
                return Err("its port is no number up to 65535".to_owned());
            }
            None if is_tls => 443,
            None => 80,
        };
        Ok(Endpoint {
            origin: Origin { is_tls, host: host.to_owned(), port },
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// As it is written.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.origin.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The account in it, of either style.
    pub(crate) fn account(&self) -> Option<String> {
        let account = if self.is_path_style() {
            self.path.trim_start_matches('/').split('/').next()
        } else {
            self.origin.host.split('.').next()
        };
        account.filter(|account| !account.is_empty()).map(str::to_owned)
    }

    /// The path that signatures cover: a secondary in the path is signed as its primary is.
    pub(crate) fn signed_path(&self, account: &str) -> &str {
        let primary = self.path.strip_suffix(SECONDARY);
        let is_account = |path: &&str| path.rsplit('/').next() == Some(account);
        primary.filter(is_account).unwrap_or(&self.path)
    }

    fn is_path_style(&self) -> bool {
        !self.path.is_empty() || self.origin.host.parse::<IpAddr>().is_ok()
    }

    /// Where the account's secondary is by the service's rule, if the account's name is where the rule has
    /// it.
    pub(crate) fn secondary(&self, account: &str) -> Option<Endpoint> {
        let account = if account.is_empty() { self.account()? } else { account.to_owned() };
        let mut secondary = self.clone();
        if self.is_path_style() {
            let rest = self.path.strip_prefix('/')?.strip_prefix(&account)?;
            if !rest.is_empty() {
                return None;
            }
            secondary.path.push_str(SECONDARY);
        } else {
            let renamed = |text: &str| {
                let rest = text.strip_prefix(&account)?;
                rest.starts_with('.').then(|| format!("{account}{SECONDARY}{rest}"))
            };
            secondary.origin.host = renamed(&self.origin.host)?;
            secondary.authority = renamed(&self.authority)?;
        }
        Some(secondary)
    }
}
