//! What an answer of etcd with an error says.
//!
//! ```text
//! {"error":"…","code":5,"message":"…"}                      3.4
//! {"code":5,"message":"…","details":[]}                     newer
//! {"error":{"grpc_code":5,"http_code":404,"message":"…"}}   of a stream
//! ```
//!
//! What always holds: only an answer that says for certain that nothing was done counts as a refusal; all
//! others leave it open.

use serde::Deserialize;

/// Letters of a message that are shown, at most.
const MESSAGE_LEN_MAX: usize = 200;

/// Codes of gRPC.
const INVALID_ARGUMENT: u32 = 3;
const NOT_FOUND: u32 = 5;
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const FAILED_PRECONDITION: u32 = 9;
const OUT_OF_RANGE: u32 = 11;
const UNAUTHENTICATED: u32 = 16;

/// What an error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EtcdError {
    /// The lease is not there; nothing was done.
    NoLease,
    /// The token is missing or has ended; nothing was done.
    LogIn(String),
    /// Refused; nothing was done.
    Refused(String),
    /// Too busy, or full; nothing was done, and a later try may be.
    Busy(String),
    /// What was asked for at its revision is compacted away: the next read is of another one.
    Compacted(String),
    /// No leader, a time-out, anything else: it may have been done.
    Open(String),
}

impl EtcdError {
    pub(crate) fn shown(&self) -> String {
        match self {
            EtcdError::NoLease => "the lease is not there".to_owned(),
            EtcdError::LogIn(what)
            | EtcdError::Refused(what)
            | EtcdError::Busy(what)
            | EtcdError::Compacted(what)
            | EtcdError::Open(what) => what.clone(),
        }
    }
}

/// A request without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskError {
    /// Nothing was sent.
    Unsent(String),
    /// It may have been done.
    MayBeDone(String),
    /// An answer that says that nothing was done.
    Nothing(EtcdError),
}

impl AskError {
    pub(crate) fn shown(&self) -> String {
        match self {
            AskError::Unsent(what) | AskError::MayBeDone(what) => what.clone(),
            AskError::Nothing(error) => error.shown(),
        }
    }
}

#[derive(Default, Deserialize)]
struct Body {
    code: Option<u32>,
    message: Option<String>,
    error: Option<Inner>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Inner {
    Text(String),
    OfStream { grpc_code: Option<u32>, message: Option<String> },
}

fn read(body: &[u8]) -> (Option<u32>, String) {
    let body: Body = serde_json::from_slice(body).unwrap_or_default();
    let (inner_code, inner_message) = match body.error {
        Some(Inner::Text(text)) => (None, Some(text)),
        Some(Inner::OfStream { grpc_code, message }) => (grpc_code, message),
        None => (None, None),
    };
    let message = body.message.or(inner_message).unwrap_or_default();
    let message = message.chars().filter(|letter| !letter.is_control()).take(MESSAGE_LEN_MAX).collect();
    (body.code.or(inner_code), message)
}

/// The message of an error, in short.
pub(crate) fn message(body: &[u8]) -> String {
    read(body).1
}

/// What an answer of this status with this body says.
pub(crate) fn error_of(status: u16, body: &[u8]) -> EtcdError {
    let (code, message) = read(body);
    let shown = match (status, message.as_str()) {
        (404, "") => "it answers 404: is its JSON gateway on (--enable-grpc-gateway)?".to_owned(),
        (status, "") => format!("it answers {status}"),
        (status, message) => format!("it answers {status}: {message}"),
    };
    let has = |part: &str| message.contains(part);
    match code {
        Some(NOT_FOUND) if has("lease not found") => EtcdError::NoLease,
        Some(UNAUTHENTICATED) => EtcdError::LogIn(shown),
        Some(INVALID_ARGUMENT | PERMISSION_DENIED)
            if has("user name is empty")
                || has("revision of auth store is old")
                || has("invalid auth token") =>
        {
            EtcdError::LogIn(shown)
        }
        Some(INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | FAILED_PRECONDITION) => {
            EtcdError::Refused(shown)
        }
        Some(OUT_OF_RANGE) if has("has been compacted") => EtcdError::Compacted(shown),
        Some(RESOURCE_EXHAUSTED | OUT_OF_RANGE) => EtcdError::Busy(shown),
        _ => EtcdError::Open(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_what_they_say() {
        let is = |status: u16, body: &str| match error_of(status, body.as_bytes()) {
            EtcdError::NoLease => "no lease",
            EtcdError::Compacted(_) => "compacted",
            EtcdError::LogIn(_) => "log in",
            EtcdError::Refused(_) => "refused",
            EtcdError::Busy(_) => "busy",
            EtcdError::Open(_) => "open",
        };
        for (status, body, expected) in [
            (
                404,
                r#"{"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5}"#,
                "no lease",
            ),
            (404, r#"{"code":5,"message":"etcdserver: requested lease not found","details":[]}"#, "no lease"),
            (401, r#"{"error":"etcdserver: invalid auth token","code":16}"#, "log in"),
            (400, r#"{"error":"etcdserver: user name is empty","code":3}"#, "log in"),
            (400, r#"{"code":3,"message":"etcdserver: revision of auth store is old"}"#, "log in"),
            (400, r#"{"code":3,"message":"etcdserver: request is too large"}"#, "refused"),
            (
                400,
                r#"{"code":3,"message":"etcdserver: authentication failed, invalid user ID or password"}"#,
                "refused",
            ),
            (403, r#"{"code":7,"message":"etcdserver: permission denied"}"#, "refused"),
            (429, r#"{"code":8,"message":"etcdserver: mvcc: database space exceeded"}"#, "busy"),
            (
                400,
                r#"{"code":11,"message":"etcdserver: mvcc: required revision has been compacted"}"#,
                "compacted",
            ),
            (
                400,
                r#"{"code":11,"message":"etcdserver: mvcc: required revision is a future revision"}"#,
                "busy",
            ),
            (503, r#"{"code":14,"message":"etcdserver: leader changed"}"#, "open"),
            (504, r#"{"code":4,"message":"context deadline exceeded"}"#, "open"),
            (500, r#"{"code":2,"message":"etcdserver: server stopped"}"#, "open"),
            (404, "404 page not found", "open"),
            (400, "", "open"),
            (200, "{}", "open"),
        ] {
            assert_eq!(is(status, body), expected, "{status} {body}");
        }
        assert_eq!(message(br#"{"error":{"grpc_code":14,"message":"gone\n"}}"#), "gone");
    }
}
