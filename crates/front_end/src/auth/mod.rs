//! Who sends a request, and what it may do.
//!
//! `credentials` finds what a request presents, `verify_…` says whether it is genuine. The order of checks
//! is: signature, time, source address, protocol; then, once the operation is known, service, resource type
//! and permission ([`grant::Grant::check`]). What always holds: signatures are compared in constant time, and
//! an error shows the server's string-to-sign but never a key.
//!
//! A request without credentials gets 401 `NoAuthenticationInformation`, as the newer service answers; wrong
//! credentials get 403 `AuthenticationFailed`.

pub mod bearer;
mod credentials;
pub(crate) mod delegation;
pub(crate) mod grant;
pub mod make_sas;
pub mod sas;
pub mod sas_permissions;
pub mod shared_key;
pub mod signature;
#[cfg(test)]
mod vector_tests;
mod verify_sas;
mod verify_shared_key;

use crate::accounts::{Account, Accounts};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::addressing::Address;

pub(crate) use credentials::{Credentials, credentials};
pub(crate) use verify_sas::{SasRequest, SignedResource, verify_sas, verify_sas_of};
pub use verify_shared_key::DATE_SKEW_MAX;
pub(crate) use verify_shared_key::{SharedKeyRequest, verify_shared_key};

/// The addressed account, if it is served here.
pub(crate) fn addressed_account<'a>(
    accounts: &'a Accounts,
    address: &Address<'_>,
) -> Result<&'a Account, ApiError> {
    accounts.find(address.account).ok_or_else(|| {
        ApiError::with_message(ErrorCode::ResourceNotFound, "The specified account does not exist.")
    })
}
