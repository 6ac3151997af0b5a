//! Writes a batch reply.
//!
//! ```text
//! --batchresponse_G1
//! Content-Type: multipart/mixed; boundary=changesetresponse_G2
//!
//! --changesetresponse_G2
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//!
//! HTTP/1.1 204 No Content
//! Content-ID: 0
//! X-Content-Type-Options: nosniff
//! …
//!
//!
//! --changesetresponse_G2--
//! --batchresponse_G1--
//! ```
//!
//! Header names are written in the case that the service writes, because clients of old compare them so.

use crate::reply::Reply;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, LOCATION, X_CONTENT_TYPE_OPTIONS};

/// The reply to one operation.
#[derive(Debug)]
pub(crate) struct PartReply<'a> {
    /// What the request's part gave.
    pub(crate) content_id: Option<&'a str>,
    /// The reply as it would be on its own.
    pub(crate) reply: Reply,
}

/// The body of the reply to a change set: one part for each operation, or one for the failed operation.
pub(crate) fn write_change_set_reply(batch: &str, change_set: &str, parts: &[PartReply<'_>]) -> Vec<u8> {
    let bodies: usize = parts.iter().map(|part| part.reply.body.len()).sum();
    let mut out = Vec::with_capacity(bodies + 512 * parts.len() + 256);
    put_all(
        &mut out,
        &["--batchresponse_", batch, "\r\nContent-Type: multipart/mixed; boundary=changesetresponse_"],
    );
    put_all(&mut out, &[change_set, "\r\n\r\n"]);
    for part in parts {
        put_all(&mut out, &["--changesetresponse_", change_set, "\r\n"]);
        put_part(&mut out, part);
    }
    put_all(&mut out, &["--changesetresponse_", change_set, "--\r\n--batchresponse_", batch, "--\r\n"]);
    out
}

/// The body of the reply to a lone request.
pub(crate) fn write_direct_reply(batch: &str, part: &PartReply<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.reply.body.len() + 1024);
    put_all(&mut out, &["--batchresponse_", batch, "\r\n"]);
    put_part(&mut out, part);
    put_all(&mut out, &["--batchresponse_", batch, "--\r\n"]);
    out
}

fn put_all(out: &mut Vec<u8>, texts: &[&str]) {
    for text in texts {
        out.extend_from_slice(text.as_bytes());
    }
}

fn put_part(out: &mut Vec<u8>, part: &PartReply<'_>) {
    let status = part.reply.status;
    put_all(
        out,
        &[
            "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ",
            status.as_str(),
            " ",
            status.canonical_reason().unwrap_or_default(),
            "\r\n",
        ],
    );
    if let Some(id) = part.content_id {
        put_all(out, &["Content-ID: ", id, "\r\n"]);
    }
    out.extend_from_slice(b"X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n");
    for (name, value) in &part.reply.headers {
        out.extend_from_slice(written_name(name).as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&part.reply.body);
    out.extend_from_slice(b"\r\n");
}

/// The name in the service's case.
fn written_name(name: &HeaderName) -> &str {
    match name.as_str() {
        "preference-applied" => "Preference-Applied",
        "dataserviceversion" => "DataServiceVersion",
        "dataserviceid" => "DataServiceId",
        _ if *name == CONTENT_TYPE => "Content-Type",
        _ if *name == ETAG => "ETag",
        _ if *name == LOCATION => "Location",
        _ if *name == CACHE_CONTROL => "Cache-Control",
        _ if *name == X_CONTENT_TYPE_OPTIONS => "X-Content-Type-Options",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;
    use hyper::header::HeaderValue;

    #[test]
    fn framed_as_the_service_frames() {
        let mut reply = Reply::new(StatusCode::NO_CONTENT);
        reply.header(HeaderName::from_static("dataserviceversion"), HeaderValue::from_static("1.0;"));
        reply.header(ETAG, HeaderValue::from_static("W/\"x\""));
        let part = PartReply { content_id: Some("7"), reply };
        let text = String::from_utf8(write_change_set_reply("G1", "G2", &[part])).expect("text");
        let expected = "--batchresponse_G1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_G2\r\n\r\n\
            --changesetresponse_G2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
            HTTP/1.1 204 No Content\r\nContent-ID: 7\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\
            DataServiceVersion: 1.0;\r\nETag: W/\"x\"\r\n\r\n\r\n--changesetresponse_G2--\r\n--batchresponse_G1--\r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_lone_reply_has_its_body() {
        let mut reply = Reply::new(StatusCode::OK);
        reply.body = b"{}".to_vec();
        let part = PartReply { content_id: None, reply };
        let text = String::from_utf8(write_direct_reply("G1", &part)).expect("text");
        assert!(text.ends_with("\r\n\r\n{}\r\n--batchresponse_G1--\r\n"), "{text}");
    }
}
