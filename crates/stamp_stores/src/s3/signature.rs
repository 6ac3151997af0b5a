//! AWS signature version 4, in headers.
//!
//! ```text
//! canonical request   METHOD \n path \n query \n header:value\n… \n names of headers \n hash of the body
//! string to sign      AWS4-HMAC-SHA256 \n instant \n scope \n hex SHA-256 of the canonical request
//! scope               YYYYMMDD/region/s3/aws4_request
//! key                 HMAC of date, region, "s3", "aws4_request", each keyed by the one before; the first
//!                     by "AWS4" and the secret
//! ```
//!
//! What always holds: the same request at the same instant has the same signature; no key is in an output but
//! its id.

use base::Ticks;
use base::date_time::date_time_text;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// What stays as it is in paths and queries.
const TEXT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const SEGMENTS: &AsciiSet = &TEXT.remove(b'/');
/// The hash of a body that the signature does not cover.
pub(crate) const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// A request as its signature sees it.
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    /// Encoded.
    pub(crate) path: &'a str,
    /// Encoded and in order.
    pub(crate) query: &'a str,
    /// Names in small letters, in order.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) payload_hash: &'a str,
}

/// Who signs, when and for where.
pub(crate) struct Signer<'a> {
    pub(crate) key_id: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) region: &'a str,
    /// As [`amz_date`] has it.
    pub(crate) date: &'a str,
}

/// `YYYYMMDDTHHMMSSZ`.
pub(crate) fn amz_date(at: Ticks) -> String {
    let text = date_time_text(at);
    let digits = text.get(..19).unwrap_or(&text).chars().filter(|letter| !matches!(letter, '-' | ':'));
    digits.chain(['Z']).collect()
}

/// The name of an object in a path.
pub(crate) fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, SEGMENTS).to_string()
}

/// Parameters, sorted: `a=1&b=`.
pub(crate) fn encode_query(parameters: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, TEXT);
    let mut pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.sort();
    pairs.join("&")
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash_text(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The value of the header `Authorization`.
pub(crate) fn authorization(request: &Unsigned<'_>, signer: &Signer<'_>) -> String {
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, request.query);
    for (name, value) in request.headers {
        // A `String` takes everything.
        let _ = writeln!(canonical, "{name}:{}", value.trim());
    }
    let _ = write!(canonical, "\n{names}\n{}", request.payload_hash);
    let day = signer.date.get(..8).unwrap_or(signer.date);
    let scope = format!("{day}/{}/s3/aws4_request", signer.region);
    let to_sign = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", signer.date, hash_text(canonical.as_bytes()));
    let first = format!("AWS4{}", signer.secret);
    let parts = [day, signer.region, "s3", "aws4_request", &to_sign];
    let signature = parts.iter().fold(first.into_bytes(), |key, part| keyed_hash(&key, part.as_bytes()));
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
        signer.key_id,
        hex(&signature)
    )
}

fn keyed_hash(key: &[u8], text: &[u8]) -> Vec<u8> {
    // A key of any length is fine for HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::date_time::parse_date_time;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
    const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

    fn signature(request: &Unsigned<'_>) -> String {
        let signer = Signer {
            key_id: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
            date: DATE.1,
        };
        let text = authorization(request, &signer);
        assert!(text.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders="
        ));
        text.rsplit_once("Signature=").map(|(_, signature)| signature.to_owned()).unwrap_or_default()
    }

    /// The examples of "Signature Calculations for the Authorization Header: Transferring Payload in a Single
    /// Chunk" in the reference of Amazon S3.
    #[test]
    fn the_published_examples() {
        let hash = ("x-amz-content-sha256", EMPTY);
        let get = Unsigned {
            method: "GET",
            path: "/test.txt",
            query: "",
            headers: &[HOST, ("range", "bytes=0-9"), hash, DATE],
            payload_hash: EMPTY,
        };
        assert_eq!(signature(&get), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        let body_hash = hash_text(b"Welcome to Amazon S3.");
        let path = encode_path("/test$file.text");
        let put = Unsigned {
            method: "PUT",
            path: &path,
            query: "",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                HOST,
                ("x-amz-content-sha256", &body_hash),
                DATE,
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            payload_hash: &body_hash,
        };
        assert_eq!(signature(&put), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
        let of_bucket = |query: &str| {
            signature(&Unsigned {
                method: "GET",
                path: "/",
                query,
                headers: &[HOST, hash, DATE],
                payload_hash: EMPTY,
            })
        };
        assert_eq!(
            of_bucket(&encode_query(&[("lifecycle", "")])),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            of_bucket(&encode_query(&[("prefix", "J"), ("max-keys", "2")])),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn instants_and_texts() {
        let at = parse_date_time("2013-05-24T01:02:03.4560000Z").expect("an instant");
        assert_eq!(amz_date(at), "20130524T010203Z");
        assert_eq!(encode_path("/a b/ü+~"), "/a%20b/%C3%BC%2B~");
        assert_eq!(
            encode_query(&[("start-after", "a/b"), ("list-type", "2")]),
            "list-type=2&start-after=a%2Fb"
        );
    }
}
