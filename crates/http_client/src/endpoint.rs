//! Where a service is: scheme, host, port, and the path before all others.

use hyper::Uri;

/// A server: what a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Whether it is reached over TLS.
    pub is_tls: bool,
    /// Its name or address, without brackets.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

/// An origin and the path below which the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The server.
    pub origin: Origin,
    /// Host and port as they were given: the `Host` header.
    pub authority: String,
    /// Empty, or with a slash before it and none behind it.
    pub path: String,
}

impl Endpoint {
    /// From a URL `http://HOST[:PORT][/PATH]`, or of `https`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("it is no URL: {error}"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err("its scheme is neither http nor https".to_owned()),
            None => return Err("it has no scheme: write http://… or https://…".to_owned()),
        };
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it has a user name; credentials are given apart from it".to_owned());
        }
        if uri.query().is_some() {
            return Err("it has a query".to_owned());
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
    pub fn url(&self) -> String {
        let scheme = if self.origin.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}
