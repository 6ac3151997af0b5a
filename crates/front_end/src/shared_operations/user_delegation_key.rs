//! Get User Delegation Key, for the services that have them: the bearer of a token gets a signing key.
//!
//! ```text
//! <KeyInfo>[<Start>…</Start>]<Expiry>…</Expiry>[<DelegatedUserTid>…</DelegatedUserTid>]</KeyInfo>
//! ```

use crate::auth::bearer::Principal;
use crate::auth::delegation::{DELEGATION_KEY_FOR_MAX, DelegationKey};
use crate::auth::sas::SasService;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::ApiRequest;
use crate::reply::Reply;
use crate::xml::{MALFORMED, XML_DECLARATION, parse_xml, put_xml_element, put_xml_tag};
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use service::{date_time_text, parse_date_time};

/// Bytes of the request document, at most.
pub(crate) const KEY_INFO_SIZE_BYTES_MAX: usize = 16 << 10;
/// What stands for a claim that a token lacks.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn whole_seconds(at: Ticks) -> Ticks {
    Ticks(at.0 - at.0 % base::clock::TICKS_PER_SECOND)
}

fn claim_or_nobody(claim: &str) -> &str {
    if claim.is_empty() { NOBODY } else { claim }
}

/// The bearer of the request's token; without token there is no key.
pub(crate) fn find_principal<'a>(request: &ApiRequest<'a>) -> Result<&'a Principal, ApiError> {
    let why = "Only authentication scheme Bearer is supported";
    request.principal.ok_or_else(|| ApiError::with_detail(ErrorCode::AuthenticationFailed, why))
}

/// Makes the key that `document` requests.
pub(crate) fn issue_user_delegation_key(
    request: &ApiRequest<'_>,
    service: SasService,
    document: &[u8],
) -> Result<Reply, ApiError> {
    let principal = find_principal(request)?;
    let wanted = KeyInfo::read(document, request.now)?;
    let version = request.headers().get("x-ms-version").and_then(|value| value.to_str().ok());
    let key = DelegationKey {
        oid: claim_or_nobody(&principal.object_id),
        tid: claim_or_nobody(&principal.tenant_id),
        start: wanted.start,
        expiry: wanted.expiry,
        services: service.letter(),
        // No token is taken without a version.
        version: version.unwrap_or_default(),
        delegated_tid: &wanted.delegated_tid,
    };
    let signing = request.keys.keys().first();
    let signing = signing.ok_or_else(|| ApiError::new(ErrorCode::AuthenticationFailed))?;
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "UserDelegationKey");
    put_xml_element(&mut out, "SignedOid", key.oid);
    put_xml_element(&mut out, "SignedTid", key.tid);
    put_xml_element(&mut out, "SignedStart", &date_time_text(key.start));
    put_xml_element(&mut out, "SignedExpiry", &date_time_text(key.expiry));
    put_xml_element(&mut out, "SignedService", key.services);
    put_xml_element(&mut out, "SignedVersion", key.version);
    if !key.delegated_tid.is_empty() {
        put_xml_element(&mut out, "SignedDelegatedUserTid", key.delegated_tid);
    }
    put_xml_element(&mut out, "Value", &STANDARD.encode(key.derive(request.account, signing)));
    put_xml_tag(&mut out, "</", "UserDelegationKey");
    Ok(Reply::xml(StatusCode::OK, out))
}

/// The terms of a requested key.
#[derive(Debug, PartialEq, Eq)]
struct KeyInfo {
    start: Ticks,
    expiry: Ticks,
    delegated_tid: String,
}

impl KeyInfo {
    fn read(document: &[u8], now: Ticks) -> Result<Self, ApiError> {
        let malformed = |at| ApiError::invalid_document(document, at, MALFORMED);
        let root = parse_xml(document).map_err(|error| malformed(error.at))?;
        if root.name != "KeyInfo" {
            return Err(malformed(root.at));
        }
        let invalid = |name, text, why| ApiError::invalid_node(name, text, why);
        let text = |name: &str| root.child_text(name).filter(|text| !text.is_empty());
        let time = |name, text| {
            let at = parse_date_time(text).map(whole_seconds);
            at.map_err(|_| invalid(name, text, "It is not a date."))
        };
        let start = text("Start").map(|text| time("Start", text)).transpose()?.unwrap_or(whole_seconds(now));
        let until = text("Expiry").ok_or_else(|| malformed(root.at))?;
        let expiry = time("Expiry", until)?;
        // Else a token that is good for an hour would get keys for next year.
        let is_far = now.plus(DELEGATION_KEY_FOR_MAX) < start;
        if is_far || expiry <= start || expiry <= now || start.plus(DELEGATION_KEY_FOR_MAX) < expiry {
            return Err(invalid(
                "Expiry",
                until,
                "A key is for a time that is not over, and for 7 days at most.",
            ));
        }
        Ok(KeyInfo { start, expiry, delegated_tid: text("DelegatedUserTid").unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_good_for_seven_days_at_most() {
        let at = |text| parse_date_time(text).expect("a date");
        let read = |inside: &str| {
            let body = format!("<KeyInfo>{inside}</KeyInfo>");
            KeyInfo::read(body.as_bytes(), at("2026-11-21T09:00:00Z")).map_err(|error| error.code)
        };
        let (start, expiry) =
            ("<Start>2026-11-20T09:00:00Z</Start>", "<Expiry>2026-11-27T09:00:00Z</Expiry>");
        assert_eq!(
            read(&format!("{start}{expiry}<DelegatedUserTid>t</DelegatedUserTid>")),
            Ok(KeyInfo {
                start: at("2026-11-20T09:00:00Z"),
                expiry: at("2026-11-27T09:00:00Z"),
                delegated_tid: "t".to_owned()
            })
        );
        assert_eq!(read(expiry).map(|info| info.start), Ok(at("2026-11-21T09:00:00Z")));
        assert_eq!(read(start), Err(ErrorCode::InvalidXmlDocument));
        assert_eq!(read("<Start/>"), Err(ErrorCode::InvalidXmlDocument));
        for wrong in [
            "<Expiry>2026-11-28T09:00:01Z</Expiry>",
            "<Start>2026-11-20T09:00:00Z</Start><Expiry>2026-11-27T09:00:01Z</Expiry>",
            "<Start>2026-11-20T09:00:00Z</Start><Expiry>2026-11-21T09:00:00Z</Expiry>",
            "<Start>2026-11-22T09:00:00Z</Start><Expiry>2026-11-22T09:00:00Z</Expiry>",
            "<Start>2026-11-29T09:00:00Z</Start><Expiry>2026-11-30T09:00:00Z</Expiry>",
            "<Expiry>tomorrow</Expiry>",
        ] {
            assert_eq!(read(wrong), Err(ErrorCode::InvalidXmlNodeValue), "{wrong}");
        }
    }
}
