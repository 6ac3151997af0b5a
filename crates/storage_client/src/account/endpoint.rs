//! Where a service of an account is: scheme, host, port, and the path before all others.
//!
//! ```text
//! https://ACCOUNT.table.core.windows.net          host style: no path
//! http://127.0.0.1:10002/ACCOUNT                  path style: the account is the path
//! ```

use http_client::Endpoint;
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

/// From a URL; an error says what is wrong with it.
pub(crate) fn parse_endpoint(url: &str) -> Result<Endpoint, String> {
    let endpoint = Endpoint::parse(url);
    endpoint.map_err(|why| match why.contains("query") {
        true => format!("{why}; give a signature as SharedAccessSignature"),
        false => why,
    })
}

/// What an endpoint says of an account.
pub(crate) trait AccountEndpoint: Sized {
    /// The account in it, of either style.
    fn account(&self) -> Option<String>;

    /// The path that signatures cover: a secondary in the path is signed as its primary is.
    fn signed_path(&self, account: &str) -> &str;

    /// Where the account's secondary is by the service's rule, if the account's name is where the rule has
    /// it.
    fn secondary(&self, account: &str) -> Option<Self>;
}

impl AccountEndpoint for Endpoint {
    fn account(&self) -> Option<String> {
        let account = if is_path_style(self) {
            self.path.trim_start_matches('/').split('/').next()
        } else {
            self.origin.host.split('.').next()
        };
        account.filter(|account| !account.is_empty()).map(str::to_owned)
    }

    fn signed_path(&self, account: &str) -> &str {
        let primary = self.path.strip_suffix(SECONDARY);
        let is_account = |path: &&str| path.rsplit('/').next() == Some(account);
        primary.filter(is_account).unwrap_or(&self.path)
    }

    fn secondary(&self, account: &str) -> Option<Endpoint> {
        let account = if account.is_empty() { self.account()? } else { account.to_owned() };
        let mut secondary = self.clone();
        if is_path_style(self) {
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

fn is_path_style(endpoint: &Endpoint) -> bool {
    !endpoint.path.is_empty() || endpoint.origin.host.parse::<IpAddr>().is_ok()
}
