//! Keys for user delegation: whoever bears a token gets one to sign with.

use super::BlobRequest;
use crate::auth::bearer::JsonWebToken;
use crate::auth::delegation::{DELEGATION_KEY_FOR_MAX, DelegationKey};
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody, ServiceApi};
use crate::reply::Reply;
use crate::xml::{XML_DECLARATION, parse_xml, put_xml_element, put_xml_tag};
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::AUTHORIZATION;
use service::{date_time_text, parse_date_time};

/// Bytes of the document that asks for a key, at most.
const KEY_INFO_SIZE_BYTES_MAX: usize = 16 << 10;
/// What stands for a claim that a token lacks.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn whole_seconds(at: Ticks) -> Ticks {
    Ticks(at.0 - at.0 % base::clock::TICKS_PER_SECOND)
}

pub(crate) async fn issue<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let request = context.request;
    let refused = || {
        let why = "Only authentication scheme Bearer is supported.";
        ApiError::with_detail(ErrorCode::AuthenticationFailed, why)
    };
    // The token was verified with the request; here its claims are read.
    let header = context.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = header.and_then(|text| text.trim().split_once(' ')).ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Err(refused());
    }
    let token = JsonWebToken::parse(token.trim()).map_err(|_| refused())?;
    let document = body.read_up_to(KEY_INFO_SIZE_BYTES_MAX).await?;
    let malformed = || ApiError::new(ErrorCode::InvalidXmlDocument);
    let root = parse_xml(&document.bytes).map_err(|_| malformed())?;
    if root.name != "KeyInfo" {
        return Err(malformed());
    }
    let invalid = || ApiError::new(ErrorCode::InvalidXmlNodeValue);
    let time = |text: &str| parse_date_time(text).map(whole_seconds).map_err(|_| invalid());
    let text = |name: &str| root.child_text(name).filter(|text| !text.is_empty());
    let start = text("Start").map(time).transpose()?.unwrap_or(whole_seconds(request.now));
    let expiry = time(text("Expiry").ok_or_else(malformed)?)?;
    if expiry <= start || expiry <= request.now || start.plus(DELEGATION_KEY_FOR_MAX) < expiry {
        return Err(invalid());
    }
    let version = context.headers().get("x-ms-version").and_then(|value| value.to_str().ok());
    let key = DelegationKey {
        oid: token.text("oid").unwrap_or(NOBODY),
        tid: token.text("tid").unwrap_or(NOBODY),
        start,
        expiry,
        services: "b",
        version: version.unwrap_or(super::BlobApi::DEFAULT_VERSION),
        delegated_tid: text("DelegatedUserTid").unwrap_or_default(),
    };
    let signing = request.keys.keys().first().ok_or_else(refused)?;
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
