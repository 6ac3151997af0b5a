//! Compressed answers (`Content-Encoding: gzip`) for clients that ask.
//!
//! What always holds: an answer is compressed only if the client takes gzip, the body is large enough to gain
//! from it and the result is smaller; a part of a batch never is, only the batch's answer as a whole.

use crate::reply::Reply;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};
use std::io::Write;

/// Smaller bodies fit a few packets, and compressing them only delays them.
const BODY_SIZE_BYTES_MIN: usize = 4096;

/// The answer as it goes to a client that sent `request` headers.
pub(crate) fn compress(mut reply: Reply, request: &HeaderMap) -> Reply {
    if reply.body.len() < BODY_SIZE_BYTES_MIN || !takes_gzip(request) {
        return reply;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(reply.body.len() / 4), Compression::fast());
    match encoder.write_all(&reply.body).and_then(|()| encoder.finish()) {
        Ok(compressed) if compressed.len() < reply.body.len() => {
            reply.body = compressed;
            reply.header(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            reply.header(VARY, HeaderValue::from_static("Accept-Encoding"));
            reply
        }
        // Writing to memory does not fail; if it ever did, the body is still there.
        _ => reply,
    }
}

/// Whether one of the encodings is gzip, or any, and is not excluded by a quality of 0.
fn takes_gzip(request: &HeaderMap) -> bool {
    let lists = request.get_all(ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let named = ["gzip", "x-gzip", "*"].iter().any(|known| name.eq_ignore_ascii_case(known));
        named && !parts.any(is_quality_zero)
    })
}

fn is_quality_zero(parameter: &str) -> bool {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    value.and_then(|value| value.trim().parse::<f32>().ok()).is_some_and(|quality| quality <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;
    use std::io::Read;

    fn accepting(list: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(list))])
    }

    #[test]
    fn which_clients_accept_gzip() {
        for list in ["gzip", "gzip, deflate", "br, GZIP;q=0.5", "*", "deflate,*;q=0.1", "gzip; q=1"] {
            assert!(takes_gzip(&accepting(list)), "{list}");
        }
        for list in ["", "identity", "deflate, br", "gzip;q=0", "gzip; q=0.0", "*;q=0", "gzipped"] {
            assert!(!takes_gzip(&accepting(list)), "{list}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    fn reply(body: Vec<u8>) -> Reply {
        let mut reply = Reply::new(StatusCode::OK);
        reply.body = body;
        reply
    }

    #[test]
    fn large_bodies_come_back_and_others_stay() {
        let body: Vec<u8> = (0..5000u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let compressed = compress(reply(body.clone()), &accepting("gzip"));
        assert!(compressed.body.len() < body.len());
        assert_eq!(compressed.headers.len(), 2);
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&compressed.body[..]).read_to_end(&mut read).expect("gzip");
        assert_eq!(read, body);

        assert_eq!(compress(reply(body.clone()), &accepting("br")).body, body);
        let small = vec![b'a'; BODY_SIZE_BYTES_MIN - 1];
        assert_eq!(compress(reply(small.clone()), &accepting("gzip")).body, small);
        let mut state = 7;
        let noise: Vec<u8> = (0..10_000).map(|_| base::random::splitmix64(&mut state) as u8).collect();
        let kept = compress(reply(noise.clone()), &accepting("gzip"));
        assert!(kept.body == noise && kept.headers.is_empty());
    }
}
