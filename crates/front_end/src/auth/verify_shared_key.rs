//! Verifies an account key's signature, and the request's date.
//!
//! What always holds: signatures are compared in constant time; an error shows the server's string-to-sign
//! but never a key.

use super::shared_key::{
    HeaderOrder, SharedKeyScheme, SignedRequest, SignedService, string_to_sign, table_date,
    write_string_to_sign,
};
use super::signature::ClaimedSignature;
use crate::accounts::Account;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use base::Ticks;
use hyper::header::HeaderMap;
use std::cell::Cell;
use std::time::Duration;

/// How far a request's date may be from the server's clock, either way.
pub const DATE_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// What an account key's signature must sign.
pub(crate) struct SharedKeyRequest<'a> {
    /// Whose rules of signing apply.
    pub(crate) service: SignedService,
    /// Where the request points to.
    pub(crate) address: &'a Address<'a>,
    /// The verb as sent.
    pub(crate) method: &'a str,
    /// The decoded parameters.
    pub(crate) query: &'a QueryParameters<'a>,
    /// All headers.
    pub(crate) headers: &'a HeaderMap,
}

/// Verifies an account key's signature, and the request's date.
pub(crate) fn verify_shared_key(
    account: &Account,
    request: &SharedKeyRequest<'_>,
    scheme: SharedKeyScheme,
    claimed_account: &str,
    claimed: &str,
    now: Ticks,
) -> Result<(), ApiError> {
    if claimed_account != account.name() {
        return Err(ApiError::with_detail(
            ErrorCode::AuthenticationFailed,
            "The account in the Authorization header is not the addressed account.",
        ));
    }
    check_date(request.headers, now)?;
    // One client signs parameters without `=` in a way of its own.
    let swapped = request.query.with_bare_as_values();
    let signed = |path, query| SignedRequest {
        service: request.service,
        method: request.method,
        account: account.name(),
        path,
        query,
        headers: request.headers,
    };
    if let Some(claimed) = ClaimedSignature::parse(claimed.as_bytes()) {
        for query in [Some(request.query), swapped.as_ref()].into_iter().flatten() {
            for path in request.address.signed_paths() {
                let signed = signed(path, query);
                for order in orders(request.service) {
                    for key in account.keys() {
                        if key.verifies(&claimed, |sink| write_string_to_sign(&signed, scheme, *order, sink))
                        {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
    let path = request.address.signed_paths().next();
    let text = path.map(|path| string_to_sign(&signed(path, request.query), scheme)).unwrap_or_default();
    Err(ApiError::with_detail(
        ErrorCode::AuthenticationFailed,
        format!(
            "The MAC signature found in the HTTP request '{claimed}' is not the same as any computed signature. Server used following string to sign: '{text}'."
        ),
    ))
}

/// How clients may have sorted the headers they signed. The Table service signs none.
fn orders(service: SignedService) -> &'static [HeaderOrder] {
    match service {
        SignedService::Table => &[HeaderOrder::Collation],
        SignedService::BlobOrQueue => &[HeaderOrder::Collation, HeaderOrder::Ordinal],
    }
}

/// Bytes of the date that clients send, `Sun, 22 Nov 2026 21:44:11 GMT`.
const DATE_SIZE_BYTES: usize = 29;

thread_local! {
    /// The date that was read last: requests of the same second have the same.
    static LAST_DATE: Cell<Option<([u8; DATE_SIZE_BYTES], Ticks)>> = const { Cell::new(None) };
}

/// An RFC 1123 date.
fn parse_date(text: &[u8]) -> Option<Ticks> {
    let bytes = <[u8; DATE_SIZE_BYTES]>::try_from(text).ok();
    if let Some((last, at)) = LAST_DATE.get()
        && bytes == Some(last)
    {
        return Some(at);
    }
    let at = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    let at = Ticks::from_unix(at.duration_since(std::time::UNIX_EPOCH).ok()?);
    LAST_DATE.set(bytes.map(|bytes| (bytes, at)));
    Some(at)
}

fn check_date(headers: &HeaderMap, now: Ticks) -> Result<(), ApiError> {
    let failed = |detail: String| Err(ApiError::with_detail(ErrorCode::AuthenticationFailed, detail));
    let text = table_date(headers);
    // The same of one that is missing (recorded).
    let Some(sent) = parse_date(text) else {
        return failed("The Date header in the request is incorrect.".to_owned());
    };
    if sent.plus(DATE_SKEW_MAX) < now {
        return failed(format!("Request date header too old: '{}'", String::from_utf8_lossy(text)));
    }
    if now.plus(DATE_SKEW_MAX) < sent {
        return failed(format!(
            "Request date header too far ahead: '{}', server time '{}'.",
            String::from_utf8_lossy(text),
            service::date_time_text(now)
        ));
    }
    Ok(())
}
