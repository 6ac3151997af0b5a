//! Credentials as a request presents them: the `Authorization` header decides if there is one, else a
//! signature among the query parameters. What is malformed in them is refused here.

use super::sas::SasToken;
use super::shared_key::SharedKeyScheme;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use hyper::header::{AUTHORIZATION, HeaderMap};
use memchr::memchr;

/// What a request identifies itself with.
pub(crate) enum Credentials<'a> {
    /// An account key's signature.
    SharedKey {
        /// Which of the two forms.
        scheme: SharedKeyScheme,
        /// The account that signed.
        account: &'a str,
        /// Base64.
        signature: &'a str,
    },
    /// A shared access signature.
    Sas(SasToken<'a>),
    /// A bearer token.
    Bearer(&'a str),
}

/// Finds a request's credentials.
pub(crate) fn credentials<'a>(
    headers: &'a HeaderMap,
    query: &'a QueryParameters<'a>,
) -> Result<Credentials<'a>, ApiError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return match SasToken::find(query) {
            Some(_) if query.count("sig") > 1 => Err(ApiError::with_detail(
                ErrorCode::AuthenticationFailed,
                "The query has more than one signature.",
            )),
            Some(token) => Ok(Credentials::Sas(token)),
            None => Err(ErrorCode::NoAuthenticationInformation.into()),
        };
    };
    let malformed = || ApiError::new(ErrorCode::InvalidAuthenticationInfo);
    let text = header.to_str().map_err(|_| malformed())?;
    let text = text.trim_ascii();
    let (scheme, rest) = text.split_at(memchr(b' ', text.as_bytes()).ok_or_else(malformed)?);
    let rest = rest.trim_ascii();
    let scheme = match scheme {
        _ if scheme.eq_ignore_ascii_case("SharedKey") => SharedKeyScheme::Full,
        _ if scheme.eq_ignore_ascii_case("SharedKeyLite") => SharedKeyScheme::Lite,
        _ if scheme.eq_ignore_ascii_case("Bearer") => {
            return Ok(Credentials::Bearer(rest));
        }
        _ => return Err(malformed()),
    };
    let (account, signature) = rest.split_once(':').ok_or_else(malformed)?;
    if account.is_empty() || signature.is_empty() {
        return Err(malformed());
    }
    Ok(Credentials::SharedKey { scheme, account, signature })
}
