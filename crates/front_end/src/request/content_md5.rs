//! `Content-MD5`: 16 bytes in Base64 by which a client says what its body is.
//!
//! What always holds: a body that is not the one that was meant is refused before anything is done with it.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use md5::{Digest, Md5};

/// The header's name.
pub(crate) const CONTENT_MD5: &str = "content-md5";

/// What the header says; `None`: it is not there or is empty.
pub(crate) fn announced_md5(header: Option<&HeaderValue>) -> Result<Option<[u8; 16]>, ApiError> {
    let value = header.filter(|value| !value.is_empty());
    let parse = |value: &HeaderValue| {
        let md5 = value.to_str().ok().and_then(decode_md5);
        md5.ok_or_else(|| ApiError::of_header(ErrorCode::InvalidMd5, "Content-MD5", value.as_bytes()))
    };
    value.map(parse).transpose()
}

/// An MD5 in Base64, which the header `name` says.
pub(crate) fn parse_md5(name: &str, text: &str) -> Result<[u8; 16], ApiError> {
    decode_md5(text).ok_or_else(|| ApiError::of_header(ErrorCode::InvalidMd5, name, text.as_bytes()))
}

fn decode_md5(text: &str) -> Option<[u8; 16]> {
    STANDARD.decode(text.trim()).ok()?.try_into().ok()
}

/// Refuses a body that is not the announced one.
pub(crate) fn check_md5(announced: Option<[u8; 16]>, body: &[u8]) -> Result<(), ApiError> {
    match announced {
        Some(md5) => compare_md5(md5, Some(Md5::digest(body).into())),
        None => Ok(()),
    }
}

/// Refuses bytes whose hash is not the announced one, and names both. A hash that was not made is none that
/// was announced.
pub(crate) fn compare_md5(announced: [u8; 16], found: Option<[u8; 16]>) -> Result<(), ApiError> {
    let Some(found) = found else { return Err(ErrorCode::Md5Mismatch.into()) };
    if announced == found {
        return Ok(());
    }
    let facts = [("UserSpecifiedMd5", announced), ("ServerCalculatedMd5", found)];
    Err(ApiError::with_facts(ErrorCode::Md5Mismatch, facts.map(|(name, md5)| (name, STANDARD.encode(md5)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(value: &[u8]) -> Result<Option<[u8; 16]>, ErrorCode> {
        let value = HeaderValue::from_bytes(value).expect("a header");
        announced_md5(Some(&value)).map_err(|error| error.code)
    }

    #[test]
    fn a_header_is_a_hash_or_refused() {
        assert_eq!(announced_md5(None), Ok(None));
        assert_eq!(announced(b""), Ok(None), "as some clients sign it");
        // The hash of nothing, from RFC 1321.
        let md5 = announced(b"1B2M2Y8AsgTpgAmY7PhCfg==").expect("a hash");
        assert_eq!(md5.map(u128::from_be_bytes), Some(0xd41d8cd98f00b204e9800998ecf8427e));
        assert_eq!(check_md5(md5, b""), Ok(()));
        let error = check_md5(md5, b"a").expect_err("another body");
        assert_eq!(error.code, ErrorCode::Md5Mismatch);
        let text = String::from_utf8(error.xml_body("", base::Ticks(0))).expect("text");
        let end = "<UserSpecifiedMd5>1B2M2Y8AsgTpgAmY7PhCfg==</UserSpecifiedMd5>\
                   <ServerCalculatedMd5>DMF1ucDxtqgxw5niaXcmYQ==</ServerCalculatedMd5></Error>";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(check_md5(None, b"a"), Ok(()));
        for wrong in [&b"x"[..], b"1B2M2Y8AsgTpgAmY7PhCfg", b"AAAA", b"\xff"] {
            assert_eq!(announced(wrong), Err(ErrorCode::InvalidMd5), "{wrong:?}");
        }
    }
}
