//! Bearer tokens: the judge of a token, and the rules that hold for every judge.
//!
//! A [`BearerAuthority`] judges tokens. The only one so far is [`UnverifiedTokens`], for development: it
//! checks all but the signature. One that verifies signatures with an OpenID Connect provider's keys takes
//! its place by implementing the same trait over the same [`JsonWebToken`].
//!
//! What always holds: without an authority every token is refused; a token is refused on a connection that is
//! not encrypted, before it is looked at; tokens never get into logs or error details.

mod authority;
mod development;
mod token;

pub use authority::{BearerAuthority, BearerError, BearerRequest, Principal};
pub use development::UnverifiedTokens;
pub use token::{JsonWebToken, MalformedToken};

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;

/// The first protocol version with bearer tokens.
const OLDEST_VERSION: &[u8] = b"2017-11-09";

/// From this version on a token that is not good is answered like one that is missing, by a challenge
/// (recorded answers). Text that is no token is a malformed header in every version.
const CHALLENGES_SINCE: &[u8] = b"2019-12-12";

/// `WWW-Authenticate` for requests without credentials: where clients that parse it get a token.
pub(crate) const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
     resource_id=https://storage.azure.com";

/// Who bears `token`. `version` is the request's `x-ms-version`.
pub(crate) fn verify_bearer(
    authority: Option<&dyn BearerAuthority>,
    token: &str,
    encrypted: bool,
    version: Option<&[u8]>,
    request: &BearerRequest<'_>,
) -> Result<Principal, ApiError> {
    let refused = |detail: &str| ApiError::with_detail(ErrorCode::AuthenticationFailed, detail);
    if !encrypted {
        return Err(refused("Authentication scheme Bearer is not allowed with HTTP."));
    }
    let Some(authority) = authority else {
        return Err(refused("Authentication scheme Bearer is not supported."));
    };
    let version = version.unwrap_or_default();
    if version < OLDEST_VERSION {
        return Err(refused("Authentication scheme Bearer is not supported in this version."));
    }
    match authority.check(token, request) {
        Ok(principal) => Ok(principal),
        Err(BearerError::Malformed(detail)) => {
            Err(ApiError::with_detail(ErrorCode::InvalidAuthenticationInfo, detail))
        }
        Err(BearerError::Refused(detail)) if version < CHALLENGES_SINCE => Err(refused(detail)),
        Err(BearerError::Refused(detail)) => Err(ApiError::with_detail(ErrorCode::InvalidToken, detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;

    #[derive(Debug)]
    struct Always(Result<(), BearerError>);

    impl BearerAuthority for Always {
        fn check(&self, _: &str, _: &BearerRequest<'_>) -> Result<Principal, BearerError> {
            self.0.map(|()| Principal::default())
        }
    }

    #[test]
    fn an_authority_judges_last() {
        let request = BearerRequest { account: "a", service: "table", now: Ticks(0) };
        let verify = |authority: Option<&dyn BearerAuthority>, encrypted, version| {
            verify_bearer(authority, "t", encrypted, version, &request).map_err(|error| error.code)
        };
        let good = Always(Ok(()));
        let version = Some(&b"2019-02-02"[..]);
        let failed = Err(ErrorCode::AuthenticationFailed);
        assert_eq!(verify(Some(&good), true, version), Ok(Principal::default()));
        assert_eq!(verify(Some(&good), false, version), failed);
        assert_eq!(verify(Some(&good), true, None), failed);
        assert_eq!(verify(Some(&good), true, Some(b"2017-07-29")), failed);
        assert_eq!(verify(None, true, version), failed);
        let refuses = Always(Err(BearerError::Refused("no")));
        assert_eq!(verify(Some(&refuses), true, version), failed);
        let malformed = Always(Err(BearerError::Malformed("no")));
        let no_token = Err(ErrorCode::InvalidAuthenticationInfo);
        assert_eq!(verify(Some(&malformed), true, version), no_token);
        for (judge, error) in [(&refuses, Err(ErrorCode::InvalidToken)), (&malformed, no_token)] {
            assert_eq!(verify(Some(judge), true, Some(b"2019-12-12")), error);
            assert_eq!(verify(Some(judge), false, Some(b"2019-12-12")), failed);
        }
    }
}
