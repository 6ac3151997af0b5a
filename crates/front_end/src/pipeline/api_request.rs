//! A request once it is authenticated, as a service's operations see it.

use super::cors::CorsRules;
use crate::access::RequestNotes;
use crate::accounts::{Account, Accounts};
use crate::auth::bearer::{BearerAuthority, Principal};
use crate::auth::grant::Grant;
use crate::error::ApiError;
use crate::request::addressing::{Address, AddressStyle};
use crate::request::connection_info::ConnectionInfo;
use crate::request::query_string::QueryParameters;
use crate::simulate::SimulatedRequest;
use base::{Clock, Random, Ticks};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;

/// An authenticated request, all but its body.
#[derive(Clone, Copy)]
pub(crate) struct ApiRequest<'a> {
    /// What is known of its connection.
    pub(crate) connection: ConnectionInfo,
    /// Verb, address and headers as sent.
    pub(crate) parts: &'a Parts,
    /// The requested host.
    pub(crate) host: &'a str,
    /// Account and resource.
    pub(crate) address: Address<'a>,
    /// The account's name.
    pub(crate) account: &'a str,
    /// The account, for requests inside this one.
    pub(crate) keys: &'a Account,
    /// The decoded parameters.
    pub(crate) query: &'a QueryParameters<'a>,
    /// What the request may do.
    pub(crate) grant: &'a Grant,
    /// The bearer of its token, if it has one.
    pub(crate) principal: Option<&'a Principal>,
    /// The request's id.
    pub(crate) request_id: &'a str,
    /// When the request came.
    pub(crate) now: Ticks,
    /// What the operation uses of the server.
    pub(crate) environment: Environment<'a>,
}

impl ApiRequest<'_> {
    /// The headers as sent.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Scheme, host and, in path style, the account.
    pub(crate) fn base_address(&self) -> String {
        base_address(self.connection, self.host, &self.address)
    }

    /// Refuses what changes something at the read-only secondary.
    pub(crate) fn check_secondary(&self, is_read: bool) -> Result<(), ApiError> {
        if self.address.secondary && !is_read {
            return Err(ApiError::write_at_secondary());
        }
        Ok(())
    }

    /// The parts that a list has to `include`. An unknown one is refused as recorded.
    pub(crate) fn includes(&self, known: &[&str]) -> Result<Vec<&str>, ApiError> {
        const NAME: &str = "include";
        let is_known = |part: &str| known.iter().any(|known| part.eq_ignore_ascii_case(known));
        let includes: Vec<&str> = self.query.list(NAME).collect();
        match includes.iter().find(|part| !is_known(part)) {
            None => Ok(includes),
            Some(part) => Err(ApiError::invalid_parameter(NAME, part, "Invalid query parameter value.")),
        }
    }

    /// The raw path below the account. One client addresses the service at the secondary as
    /// `/ACCOUNT-secondary/ACCOUNT?restype=service`.
    pub(crate) fn resource(&self) -> &str {
        let address = &self.address;
        let is_doubled = address.secondary
            && address.resource.strip_prefix('/') == Some(address.account)
            && self.query.find("restype").is_some();
        if is_doubled { "" } else { address.resource }
    }
}

/// What operations use of the server, the same for every request but for a simulation's part.
#[derive(Clone, Copy)]
pub(crate) struct Environment<'a> {
    /// All accounts, for sources of copies.
    pub(crate) accounts: &'a Accounts,
    /// The judge of tokens, for sources of copies.
    pub(crate) bearer: Option<&'a dyn BearerAuthority>,
    /// For time limits inside an operation.
    pub(crate) clock: &'a dyn Clock,
    /// For ids in answers.
    pub(crate) random: &'a dyn Random,
    /// The cached rules, which are forgotten when they change.
    pub(crate) cors: &'a CorsRules,
    /// Where the operation is noted once it is known.
    pub(crate) operation: &'a RequestNotes,
    /// This request's part in a simulation of limits and faults, if there is one.
    pub(crate) simulated: Option<&'a SimulatedRequest<'a>>,
}

fn base_address(connection: ConnectionInfo, host: &str, address: &Address<'_>) -> String {
    let scheme = if connection.encrypted { "https://" } else { "http://" };
    let mut base = String::with_capacity(scheme.len() + host.len() + address.account.len() + 1);
    base.push_str(scheme);
    base.push_str(host);
    if address.style == AddressStyle::Path {
        base.push('/');
        base.push_str(address.account);
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_addresses_of_both_styles() {
        let base = |encrypted, host: &str, path: &str| {
            let connection = ConnectionInfo { peer: None, encrypted };
            base_address(connection, host, &Address::parse(host, path, "table"))
        };
        assert_eq!(base(false, "127.0.0.1:1", "/acct/T"), "http://127.0.0.1:1/acct");
        assert_eq!(base(true, "acct.table.example.org", "/T"), "https://acct.table.example.org");
    }
}
