//! Which account a request is for, and what is left of its path.
//!
//! ```text
//! host style   ACCOUNT[-secondary].table.example.org  /resource
//! path style   any other host, or an IP address       /ACCOUNT[-secondary]/resource
//! ```
//!
//! The path is never decoded or normalised here: it is what the client signed. One client addresses the
//! secondary of a path-style address as `/ACCOUNT-secondary/ACCOUNT/resource`; the doubled account is
//! dropped.

use memchr::memchr;

/// How the account was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressStyle {
    /// In the host name.
    Host,
    /// In the path's first segment.
    Path,
}

/// Where a request points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// The account's name as addressed, without `-secondary`. May be unknown or empty.
    pub(crate) account: &'a str,
    /// Whether the read-only secondary was addressed.
    pub(crate) secondary: bool,
    /// How the account was found.
    pub(crate) style: AddressStyle,
    /// The raw path as sent; signatures cover it.
    pub(crate) path: &'a str,
    /// The raw path below the account: empty or starting with a slash.
    pub(crate) resource: &'a str,
}

const SECONDARY: &str = "-secondary";

impl<'a> Address<'a> {
    /// Finds the account. `service` is the service's label in host names, such as `table`.
    pub(crate) fn parse(host: &'a str, path: &'a str, service: &str) -> Self {
        let style_and_name = account_of_host(host, service);
        let (style, name, mut resource) = match style_and_name {
            Some(name) => (AddressStyle::Host, name, path),
            None => {
                let rest = path.strip_prefix('/').unwrap_or(path);
                let end = memchr(b'/', rest.as_bytes()).unwrap_or(rest.len());
                (AddressStyle::Path, &rest[..end], &rest[end..])
            }
        };
        let (account, secondary) = match name.strip_suffix(SECONDARY) {
            Some(account) => (account, true),
            None => (name, false),
        };
        if secondary && style == AddressStyle::Path {
            resource = without_doubled_account(resource, account);
        }
        Address { account, secondary, style, path, resource }
    }

    /// The raw paths that a client may have signed, the usual one first.
    pub(crate) fn signed_paths(&self) -> SignedPaths<'a> {
        SignedPaths { address: *self, next: 0 }
    }
}

/// A path that a client may have signed, in two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedPath<'a> {
    /// The account with its slash, if the path starts with it in another form than sent.
    pub account: Option<&'a str>,
    /// The rest.
    pub rest: &'a str,
}

/// See [`Address::signed_paths`].
pub(crate) struct SignedPaths<'a> {
    address: Address<'a>,
    next: u8,
}

impl<'a> Iterator for SignedPaths<'a> {
    type Item = SignedPath<'a>;

    fn next(&mut self) -> Option<SignedPath<'a>> {
        let address = &self.address;
        self.next += 1;
        match self.next {
            1 => Some(SignedPath { account: None, rest: address.path }),
            // The secondary in path style: some clients sign the primary's path.
            2 if address.secondary && address.style == AddressStyle::Path => {
                Some(SignedPath { account: Some(address.account), rest: address.resource })
            }
            _ => None,
        }
    }
}

/// The first label of `ACCOUNT.SERVICE.…`; `None` for every other host.
fn account_of_host<'a>(host: &'a str, service: &str) -> Option<&'a str> {
    let until = |text: &'a str, end| memchr(end, text.as_bytes()).map(|at| (&text[..at], &text[at + 1..]));
    let name = until(host, b':').map_or(host, |(name, _)| name);
    let (first, rest) = until(name, b'.')?;
    let (second, _) = until(rest, b'.')?;
    (second.eq_ignore_ascii_case(service) && !first.is_empty()).then_some(first)
}

fn without_doubled_account<'a>(resource: &'a str, account: &str) -> &'a str {
    match resource.strip_prefix('/').and_then(|rest| rest.strip_prefix(account)) {
        Some(rest) if rest.starts_with('/') => rest,
        _ => resource,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse<'a>(host: &'a str, path: &'a str) -> (&'a str, bool, &'a str) {
        let address = Address::parse(host, path, "table");
        (address.account, address.secondary, address.resource)
    }

    #[test]
    fn both_styles() {
        assert_eq!(parse("127.0.0.1:10002", "/acct/People()"), ("acct", false, "/People()"));
        assert_eq!(parse("localhost", "/acct"), ("acct", false, ""));
        assert_eq!(parse("[::1]:10002", "/acct-secondary/T"), ("acct", true, "/T"));
        assert_eq!(parse("acct.table.core.windows.net", "/T"), ("acct", false, "/T"));
        assert_eq!(parse("acct-secondary.table.localhost:1", "/T"), ("acct", true, "/T"));
        assert_eq!(parse("storage.example.org", "/acct/T"), ("acct", false, "/T"));
        assert_eq!(parse("", ""), ("", false, ""));
    }

    #[test]
    fn the_doubled_account_of_the_secondary_is_dropped() {
        assert_eq!(parse("127.0.0.1", "/a1-secondary/a1/"), ("a1", true, "/"));
        assert_eq!(parse("127.0.0.1", "/a1-secondary/a1/T()"), ("a1", true, "/T()"));
        assert_eq!(parse("127.0.0.1", "/a1-secondary/a1"), ("a1", true, "/a1"));
        assert_eq!(parse("127.0.0.1", "/a1/a1/"), ("a1", false, "/a1/"));
    }

    proptest! {
        #[test]
        fn any_text_is_addressed(host in any::<String>(), path in any::<String>()) {
            let address = Address::parse(&host, &path, "table");
            prop_assert!(address.signed_paths().count() <= 2);
        }
    }
}
