//! A JSON Web Token, taken apart but not judged.
//!
//! ```text
//! BASE64URL(header) . BASE64URL(claims) . BASE64URL(signature)
//! header {"alg":"RS256","kid":"…"}    claims {"iss":"…","aud":"…","nbf":1,"exp":2,"iat":1}
//! ```
//!
//! What always holds: any text is a token or is refused, and the work is bounded by [`TOKEN_SIZE_BYTES_MAX`].

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Bytes of a token at most.
const TOKEN_SIZE_BYTES_MAX: usize = 16 * 1024;

/// The text is no token; says what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedToken(pub &'static str);

/// A token's parts.
#[derive(Clone, Debug)]
pub struct JsonWebToken<'a> {
    header: Map<String, Value>,
    claims: Map<String, Value>,
    signed_text: &'a str,
    signature: Vec<u8>,
}

impl<'a> JsonWebToken<'a> {
    /// Takes a token apart.
    pub fn parse(text: &'a str) -> Result<Self, MalformedToken> {
        if text.len() > TOKEN_SIZE_BYTES_MAX {
            return Err(MalformedToken("The token is too long."));
        }
        let three = MalformedToken("A token has three parts with points between them.");
        let (signed_text, signature) = text.rsplit_once('.').ok_or(three)?;
        let (header, claims) = signed_text.split_once('.').ok_or(three)?;
        if claims.contains('.') {
            return Err(three);
        }
        let decode = |part: &str| {
            let not_base64 = MalformedToken("A part of the token is not Base64 of the URL kind.");
            URL_SAFE_NO_PAD.decode(part).map_err(|_| not_base64)
        };
        let object = |part: &str| {
            let not_object = MalformedToken("The token's header and claims must be JSON objects.");
            serde_json::from_slice::<Map<String, Value>>(&decode(part)?).map_err(|_| not_object)
        };
        Ok(JsonWebToken {
            header: object(header)?,
            claims: object(claims)?,
            signed_text,
            signature: decode(signature)?,
        })
    }

    /// How it says it is signed.
    pub fn algorithm(&self) -> Option<&str> {
        self.header.get("alg")?.as_str()
    }

    /// Which of the issuer's keys it says it is signed with.
    pub fn key_id(&self) -> Option<&str> {
        self.header.get("kid")?.as_str()
    }

    /// What the signature signs.
    pub fn signed_text(&self) -> &'a str {
        self.signed_text
    }

    /// The signature.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// A claim that is text.
    pub fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }

    /// A claim that is an instant: seconds since 1970, perhaps with a fraction.
    pub fn seconds(&self, claim: &str) -> Option<f64> {
        self.claims.get(claim)?.as_f64()
    }

    /// Whom the token is for: one text, or a list of them.
    pub fn audiences(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self.claims.get("aud") {
            Some(Value::String(one)) => (Some(one.as_str()), &[][..]),
            Some(Value::Array(many)) => (None, many.as_slice()),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(many.iter().filter_map(Value::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    #[test]
    fn parts_are_found() {
        let header = encode(r#"{"alg":"RS256","kid":"k1"}"#);
        let claims = encode(r#"{"iss":"i","aud":["a","b",5],"exp":1.5}"#);
        let text = format!("{header}.{claims}.{}", encode("sig"));
        let token = JsonWebToken::parse(&text).expect("a token");
        assert_eq!((token.algorithm(), token.key_id()), (Some("RS256"), Some("k1")));
        assert_eq!((token.text("iss"), token.seconds("exp")), (Some("i"), Some(1.5)));
        assert_eq!((token.text("exp"), token.seconds("iss"), token.text("x")), (None, None, None));
        assert_eq!(token.audiences().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((token.signed_text(), token.signature()), (&*format!("{header}.{claims}"), &b"sig"[..]));
    }

    #[test]
    fn what_is_no_token() {
        let object = encode("{}");
        for text in [
            String::new(),
            "a".into(),
            "..".into(),
            format!("{object}.{object}"),
            format!("{object}.{object}.{object}.{object}"),
            format!("{object}.{}.", encode("[]")),
            format!("{object}.{}.", encode("{\"a\":")),
            format!("{object}=.{object}."),
            format!("{object}.{object}.?"),
            format!("{object}.{object}.{}", "A".repeat(TOKEN_SIZE_BYTES_MAX)),
            format!("{object}.{}.", encode(&"[".repeat(10_000))),
        ] {
            assert!(JsonWebToken::parse(&text).is_err(), "{text}");
        }
        assert!(JsonWebToken::parse(&format!("{object}.{object}.")).is_ok(), "an empty signature is one");
    }

    proptest! {
        #[test]
        fn any_text_is_a_token_or_refused(text in any::<String>(), claims in any::<String>()) {
            let _ = JsonWebToken::parse(&text);
            let _ = JsonWebToken::parse(&format!("{}.{}.", encode("{}"), encode(&claims)));
        }
    }
}
