//! Which proxy a request goes through, as the environment says: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`,
//! `NO_PROXY`, in capitals or not.
//!
//! What always holds: the variables are read once, when the settings are made; a password is not printed.

use crate::endpoint::{Endpoint, Origin};
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use std::fmt;
use std::sync::Arc;

/// Proxies of a client.
#[derive(Clone)]
pub struct Proxies {
    matcher: Arc<Matcher>,
}

/// The proxy of a request.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Where it is.
    pub origin: Origin,
    /// Its `Proxy-Authorization`, if it needs one.
    pub authorization: Option<HeaderValue>,
}

impl Proxies {
    /// As the environment's variables say now.
    pub fn from_environment() -> Self {
        Proxies { matcher: Arc::new(Matcher::from_env()) }
    }

    /// No proxy, whatever the environment says.
    pub fn none() -> Self {
        Proxies::new("", "", "")
    }

    /// Proxies for `http` and `https` addresses, and the hosts that are reached without one, as
    /// `NO_PROXY` lists them; empty is none.
    pub fn new(http: &str, https: &str, no_proxy: &str) -> Self {
        Proxies { matcher: Arc::new(Matcher::builder().http(http).https(https).no(no_proxy).build()) }
    }

    /// The proxy for that endpoint; an error says why it can't be used.
    pub fn of(&self, endpoint: &Endpoint) -> Result<Option<Proxy>, String> {
        let uri: Uri = match endpoint.url().parse() {
            Ok(uri) => uri,
            Err(_) => return Ok(None),
        };
        let Some(intercept) = self.matcher.intercept(&uri) else { return Ok(None) };
        let address = intercept.uri();
        let is_tls = match address.scheme_str() {
            Some("https") => true,
            None | Some("http") => false,
            Some(other) => {
                return Err(format!("proxies of scheme '{other}' are not supported; use http or https"));
            }
        };
        let Some(host) = address.host().filter(|host| !host.is_empty()) else {
            return Err("the proxy's address names no host".to_owned());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = address.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Some(Proxy {
            origin: Origin { is_tls, host, port },
            authorization: intercept.basic_auth().cloned(),
        }))
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxies(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_host() {
        let proxies =
            Proxies::new("http://plain:3128", "http://u:p@secure", "skipped.test,10.0.0.0/8,127.0.0.1");
        let of = |url: &str| {
            let endpoint = Endpoint::parse(url).expect("a URL");
            let proxy = proxies.of(&endpoint).expect("a proxy or none")?;
            Some((proxy.origin.host, proxy.origin.port, proxy.authorization.is_some()))
        };
        assert_eq!(of("http://a.test"), Some(("plain".to_owned(), 3128, false)));
        assert_eq!(of("https://a.test"), Some(("secure".to_owned(), 80, true)));
        for skipped in [
            "https://skipped.test",
            "https://b.skipped.test:1/x",
            "http://10.1.2.3",
            "http://127.0.0.1:10000/a",
        ] {
            assert_eq!(of(skipped), None, "{skipped}");
        }
        assert!(
            Proxies::none()
                .of(&Endpoint::parse("http://a.test").expect("a URL"))
                .is_ok_and(|none| none.is_none())
        );
        let socks = Proxies::new("socks5://a:1", "", "");
        assert!(socks.of(&Endpoint::parse("http://a.test").expect("a URL")).is_err());
    }
}
