//! Authentication: from a request's credentials to what they allow.

use super::{Pipeline, ServiceApi};
use crate::access::{Phase, RequestNotes};
use crate::accounts::Account;
use crate::auth::bearer::{BearerRequest, Principal, verify_bearer};
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::sas::SasToken;
use crate::auth::{Credentials, SasRequest, SharedKeyRequest, credentials, verify_sas_of, verify_shared_key};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::connection_info::ConnectionInfo;
use base::Ticks;

impl<S: ServiceApi> Pipeline<S> {
    /// The request's credentials; `None` if it has none and may be anonymous.
    fn credentials_of<'a>(signed: &SharedKeyRequest<'a>) -> Result<Option<Credentials<'a>>, ApiError> {
        match credentials(signed.headers, signed.query) {
            Err(error) if S::TAKES_ANONYMOUS && error.code == ErrorCode::NoAuthenticationInformation => {
                Ok(None)
            }
            Err(error) if error.code == ErrorCode::NoAuthenticationInformation => {
                let version = signed.headers.get("x-ms-version").map(|version| version.as_bytes());
                let is_bad_token = S::ANONYMOUS_AS_BAD_TOKEN_SINCE
                    .is_some_and(|since| version.is_some_and(|version| version >= since.as_bytes()));
                Err(if is_bad_token { ErrorCode::InvalidToken.into() } else { error })
            }
            other => other.map(Some),
        }
    }

    /// What a request may do, and the bearer of a token; how long that takes is noted.
    pub(super) async fn grant_of(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        now: Ticks,
        notes: &RequestNotes,
    ) -> Result<(Grant, Option<Principal>), ApiError> {
        let clock = &*self.shared.clock;
        let began_at = notes.begin(clock);
        let granted = match Self::credentials_of(signed)? {
            None => (Grant::Anonymous, None),
            Some(credentials) => self.authenticate(connection, signed, account, credentials, now).await?,
        };
        notes.end(Phase::Authentication, began_at, clock);
        Ok(granted)
    }

    /// What the credentials allow, and the bearer of a token.
    async fn authenticate(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        credentials: Credentials<'_>,
        now: Ticks,
    ) -> Result<(Grant, Option<Principal>), ApiError> {
        match credentials {
            Credentials::SharedKey { scheme, account: claimed_account, signature } => {
                verify_shared_key(account, signed, scheme, claimed_account, signature, now)?;
                Ok((Grant::Everything, None))
            }
            Credentials::Bearer(token) => {
                let request = BearerRequest { account: account.name(), service: S::LABEL, now };
                let version = signed.headers.get("x-ms-version").map(|version| version.as_bytes());
                let authority = self.shared.bearer.as_deref();
                let principal = verify_bearer(authority, token, connection.encrypted, version, &request)?;
                // A signature for one user comes with that user's token and limits what it allows.
                let grant = match SasToken::find(signed.query).filter(|token| token.field("sduoid").is_some())
                {
                    // There are no roles yet: a valid token for the account allows everything.
                    None => Grant::Everything,
                    Some(token) => {
                        self.verify_sas(connection, signed, account, token, Some(&principal), now).await?
                    }
                };
                Ok((grant, Some(principal)))
            }
            Credentials::Sas(token) => {
                Ok((self.verify_sas(connection, signed, account, token, None, now).await?, None))
            }
        }
    }

    async fn verify_sas(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        token: SasToken<'_>,
        principal: Option<&Principal>,
        now: Ticks,
    ) -> Result<Grant, ApiError> {
        let request = SasRequest {
            token,
            resource: S::signed_resource(signed.address, signed.query),
            bound: BoundRequest { headers: signed.headers, query: signed.query },
            peer: connection.peer,
            encrypted: connection.encrypted,
            now,
        };
        let policies = match request.policy_id() {
            None => Vec::new(),
            // Boxed: the future of every request would be larger by this one.
            Some(_) => {
                match Box::pin(self.service.policies(account.name(), &request.resource.container)).await {
                    Ok(policies) => policies,
                    Err(error) if error.code.status().is_server_error() => return Err(error),
                    // Without container no policy: the verification refuses it after it has checked the
                    // signature.
                    Err(_) => Vec::new(),
                }
            }
        };
        verify_sas_of(account, &request, &policies, principal)
    }
}
