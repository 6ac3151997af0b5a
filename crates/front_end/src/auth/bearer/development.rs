//! Bearer tokens in development: issuer, audience, times and algorithm are checked, the signature is **not**.
//!
//! Any client that can reach the server can write such a token, so this is for tests of applications that
//! sign in with a token, never for data of value. The rules are those that emulators of the protocol use.

use super::authority::{BearerAuthority, BearerError, BearerRequest, Principal};
use super::token::{JsonWebToken, MalformedToken};

/// What the issuer must start with: the identity service's addresses, by cloud.
const ISSUERS: [&str; 4] = [
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.windows-ppe.net",
];

/// Audiences that stand for all accounts and services, without a slash at the end.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];

/// Clouds, in the host names of an account's services.
const CLOUDS: [&str; 4] = ["windows.net", "chinacloudapi.cn", "usgovcloudapi.net", "cloudapi.de"];

/// Algorithms with a public key. The others share a secret with the issuer, or sign nothing at all.
const ALGORITHMS: [&str; 10] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

/// Takes tokens without verifying their signatures.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnverifiedTokens;

impl BearerAuthority for UnverifiedTokens {
    fn check(&self, token: &str, request: &BearerRequest<'_>) -> Result<Principal, BearerError> {
        let token = JsonWebToken::parse(token).map_err(|MalformedToken(why)| BearerError::Malformed(why))?;
        if !token.algorithm().is_some_and(|algorithm| ALGORITHMS.contains(&algorithm)) {
            return Err(BearerError::Refused("The token's algorithm is not one with a public key."));
        }
        check_times(&token, request)?;
        if !token.text("iss").is_some_and(|issuer| ISSUERS.iter().any(|known| issuer.starts_with(known))) {
            return Err(BearerError::Refused("Issuer validation failed. The token's issuer is not known."));
        }
        if !token.audiences().any(|audience| is_for(audience, request)) {
            return Err(BearerError::Refused(
                "Audience validation failed. The token is for another audience.",
            ));
        }
        Ok(principal(&token))
    }
}

/// The bearer that the token names. An application's token may name it as subject only, and the directory in
/// its issuer only.
fn principal(token: &JsonWebToken<'_>) -> Principal {
    let issuer = token.text("iss").unwrap_or_default();
    let directory = issuer.strip_prefix("https://").and_then(|rest| rest.split('/').nth(1));
    Principal {
        object_id: token.text("oid").or_else(|| token.text("sub")).unwrap_or_default().to_owned(),
        tenant_id: token.text("tid").or(directory).unwrap_or_default().to_owned(),
    }
}

fn check_times(token: &JsonWebToken<'_>, request: &BearerRequest<'_>) -> Result<(), BearerError> {
    let (Some(not_before), Some(expires), Some(_issued)) =
        (token.seconds("nbf"), token.seconds("exp"), token.seconds("iat"))
    else {
        return Err(BearerError::Refused("The token's times nbf, exp and iat must be numbers."));
    };
    let now = request.now.since_unix().as_secs_f64();
    if now < not_before {
        return Err(BearerError::Refused("Lifetime validation failed. The token is not valid yet."));
    }
    if now > expires {
        return Err(BearerError::Refused("Lifetime validation failed. The token is expired."));
    }
    Ok(())
}

fn is_for(audience: &str, request: &BearerRequest<'_>) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    if AUDIENCES.iter().any(|known| audience.eq_ignore_ascii_case(known)) {
        return true;
    }
    let own = |cloud: &str| format!("https://{}.{}.core.{cloud}", request.account, request.service);
    CLOUDS.iter().any(|cloud| audience.eq_ignore_ascii_case(&own(cloud)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};
    use std::time::Duration;

    const NOW: u64 = 1_800_000_000;

    fn check(header: Value, claims: Value) -> Result<(), BearerError> {
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!("{}.{}.AAAA", encode(header), encode(claims));
        let now = Ticks::from_unix(Duration::from_secs(NOW));
        let request = BearerRequest { account: "contoso", service: "table", now };
        UnverifiedTokens.check(&token, &request).map(|_| ())
    }

    #[test]
    fn bearers_are_named() {
        let name = |claims: Value| {
            let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
            let token = format!("{}.{claims}.AAAA", URL_SAFE_NO_PAD.encode("{}"));
            let Principal { object_id, tenant_id } =
                principal(&JsonWebToken::parse(&token).expect("a token"));
            (object_id, tenant_id)
        };
        let of = |object: &str, tenant: &str| (object.to_owned(), tenant.to_owned());
        assert_eq!(
            name(json!({"oid": "o", "tid": "t", "sub": "s", "iss": "https://sts.windows.net/i/"})),
            of("o", "t")
        );
        assert_eq!(name(json!({"sub": "s", "iss": "https://sts.windows.net/i/"})), of("s", "i"));
        assert_eq!(name(json!({})), of("", ""));
    }

    fn claims(change: impl FnOnce(&mut Value)) -> Value {
        let mut claims = json!({
            "iss": "https://sts.windows.net/72f988bf/", "aud": "https://storage.azure.com",
            "nbf": NOW - 10, "iat": NOW - 10, "exp": NOW + 10,
        });
        change(&mut claims);
        claims
    }

    fn with(name: &str, value: Value) -> Result<(), BearerError> {
        check(json!({"alg": "RS256"}), claims(|claims| claims[name] = value))
    }

    #[test]
    fn a_good_token_is_taken_whatever_its_signature() {
        assert_eq!(with("sub", json!("somebody")), Ok(()));
    }

    #[test]
    fn audiences_are_those_of_the_account_and_service() {
        for audience in [
            "https://storage.azure.com",
            "https://storage.azure.com/",
            "e406a681-f3d4-42a8-90b6-c2b029497af1",
            "https://contoso.table.core.windows.net",
            "https://contoso.table.core.windows.net/",
            "https://contoso.table.core.usgovcloudapi.net",
        ] {
            assert_eq!(with("aud", json!(audience)), Ok(()), "{audience}");
        }
        assert_eq!(with("aud", json!(["x", "https://storage.azure.com"])), Ok(()));
        for audience in [
            json!("https://other.table.core.windows.net"),
            json!("https://contoso.blob.core.windows.net"),
            json!("https://contoso.table.core.example.org"),
            json!("https://storage.azure.com.example.org"),
            json!("https://vault.azure.net"),
            json!([]),
            json!(5),
            Value::Null,
        ] {
            assert!(matches!(with("aud", audience.clone()), Err(BearerError::Refused(_))), "{audience}");
        }
    }

    #[test]
    fn issuers_are_known_ones() {
        assert_eq!(with("iss", json!("https://sts.chinacloudapi.cn/x")), Ok(()));
        for issuer in [json!("https://sts.windows.net.example.org/"), json!("x"), json!(""), Value::Null] {
            assert!(matches!(with("iss", issuer.clone()), Err(BearerError::Refused(_))), "{issuer}");
        }
    }

    #[test]
    fn times_are_within_bounds() {
        assert_eq!(with("nbf", json!(NOW)), Ok(()));
        assert_eq!(with("exp", json!(NOW)), Ok(()));
        for (name, value) in [
            ("nbf", json!(NOW + 1)),
            ("exp", json!(NOW - 1)),
            ("exp", json!("2030-01-01")),
            ("exp", Value::Null),
            ("iat", json!("now")),
        ] {
            assert!(matches!(with(name, value.clone()), Err(BearerError::Refused(_))), "{name} {value}");
        }
    }

    #[test]
    fn algorithms_are_those_with_a_public_key() {
        for header in [json!({}), json!({"alg": "none"}), json!({"alg": "HS256"}), json!({"alg": 5})] {
            let result = check(header.clone(), claims(|_| {}));
            assert!(matches!(result, Err(BearerError::Refused(_))), "{header}");
        }
        assert!(matches!(
            UnverifiedTokens.check("x", &BearerRequest { account: "a", service: "table", now: Ticks(0) }),
            Err(BearerError::Malformed(_))
        ));
    }
}
