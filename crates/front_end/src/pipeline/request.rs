//! What of a request is looked at before its operation is known: host, time limit, body.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use base::Clock;
use bytes::Bytes;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderName, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Version};
use std::borrow::Cow;
use std::future::poll_fn;
use std::num::IntErrorKind;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Bytes of a refused body that are read and thrown away at most.
pub(super) const DISCARDED_SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client that sends nothing of a refused body for so long is not waited for.
const DISCARD_PAUSE_MAX: Duration = Duration::from_millis(200);

/// How long a client is waited for that goes on sending a refused body.
const DISCARD_FOR_MAX: Duration = Duration::from_secs(30);

/// The requested host, in small letters as hosts have no case: of the address if it is absolute, else of the
/// `Host` header. Answers repeat it and accounts are chosen by it, so there must be one, and nothing but a
/// host in it (source: RFC 9112 §3.2).
pub(crate) fn host(parts: &Parts) -> Option<Cow<'_, str>> {
    let of_address = parts.uri.authority().map(|authority| authority.as_str());
    let mut hosts = parts.headers.get_all(HOST).iter();
    let of_header = hosts.next();
    if hosts.next().is_some() {
        return None;
    }
    let host = of_address.or_else(|| of_header?.to_str().ok())?.trim_ascii();
    if host.is_empty() || !host.bytes().all(may_be_in_host) {
        return None;
    }
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Some(host.to_ascii_lowercase().into()),
        false => Some(host.into()),
    }
}

/// Letters of names and addresses with their ports (source: RFC 3986 §3.2.2 and §3.2.3).
fn may_be_in_host(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'%' | b':' | b'[' | b']')
        || matches!(byte, b'!' | b'$' | b'&'..=b',' | b';' | b'=')
}

/// A longer `timeout` is cut to this: sums with it stay in range.
const TIMEOUT_FOR_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long the request may take: the requested `timeout`, but no longer than the server allows.
pub(crate) fn time_limit(parts: &Parts, longest: Duration) -> Duration {
    requested_timeout(parts).map_or(longest, |requested| requested.min(longest))
}

/// The requested `timeout`.
pub(crate) fn requested_timeout(parts: &Parts) -> Option<Duration> {
    let query = parts.uri.query().filter(|query| query.contains("timeout"))?;
    // A query that can't be read is refused later.
    timeout_of(&QueryParameters::parse(Some(query)).ok()?)
}

/// The same in a query that is read.
pub(crate) fn timeout_of(query: &QueryParameters<'_>) -> Option<Duration> {
    match query.find("timeout")?.parse() {
        Ok(seconds @ 1..) => Some(Duration::from_secs(seconds).min(TIMEOUT_FOR_MAX)),
        _ => None,
    }
}

/// Does the work unless that takes longer than until `deadline`, a monotonic time.
pub(crate) async fn within<T>(
    clock: &dyn Clock,
    deadline: Duration,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let mut work = pin!(work);
    // Most of it never waits, and needs no timer.
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return done;
    }
    let left = deadline.saturating_sub(clock.monotonic());
    match select(work, clock.sleep(left)).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(ErrorCode::OperationTimedOut.into()),
    }
}

/// Refuses a `timeout` that is no number of seconds, and one in which nothing can be done. An empty one is
/// none, and any that is too long is cut.
pub(crate) fn check_timeout(query: &QueryParameters<'_>) -> Result<(), ApiError> {
    const NAME: &str = "timeout";
    let text = query.find(NAME).unwrap_or_default();
    match text.parse::<i64>().map_err(|error| *error.kind()) {
        Ok(1..) | Err(IntErrorKind::Empty | IntErrorKind::PosOverflow) => Ok(()),
        Ok(0) => Err(ErrorCode::OperationTimedOut.into()),
        Ok(_) | Err(IntErrorKind::NegOverflow) => {
            Err(ApiError::out_of_range_parameter(NAME, text, &(0..=i64::from(i32::MAX))))
        }
        Err(_) => Err(ApiError::invalid_parameter(NAME, text, "Failed to parse the value as an integer.")),
    }
}

/// Refuses a request that must say how long its body is and does not. HTTP/1.1 takes such a body for empty,
/// which would make an empty blob of an upload whose length was lost (source: RFC 9110 §15.5.12; Azure's HTTP
/// server does so, too).
pub(crate) fn check_length(parts: &Parts, body: &impl Body) -> Result<(), ApiError> {
    let has_body = matches!(parts.method, Method::PUT | Method::POST) && parts.version < Version::HTTP_2;
    let says = |name: HeaderName| parts.headers.contains_key(name);
    if has_body && body.is_end_stream() && !says(CONTENT_LENGTH) && !says(TRANSFER_ENCODING) {
        return Err(ApiError::missing_length());
    }
    Ok(())
}

/// Bytes of the body, if they are announced.
pub(crate) fn announced_body_size(parts: &Parts, body: &impl Body) -> Option<u64> {
    body.size_hint().exact().or_else(|| {
        let length = parts.headers.get(CONTENT_LENGTH)?;
        length.to_str().ok()?.parse().ok()
    })
}

/// Reads a body of at most `size_max` bytes.
pub(crate) async fn collect_body<B>(body: B, size_max: usize) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, size_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::body_too_large(size_max as u64)),
        Err(error) => {
            tracing::debug!("a request's body broke off: {error}");
            Err(ErrorCode::InvalidInput.into())
        }
    }
}

/// Takes in what a client goes on sending of a body that is refused, until it pauses, has sent
/// [`DISCARDED_SIZE_BYTES_MAX`] or has taken [`DISCARD_FOR_MAX`]: most clients look for the answer only when
/// they have sent all, and lose it if the connection is closed on them.
pub(crate) async fn discard_body<B>(body: B, clock: &dyn Clock)
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(Limited::new(body, DISCARDED_SIZE_BYTES_MAX));
    let taken_in = pin!(async {
        let pause = || clock.sleep(DISCARD_PAUSE_MAX);
        // The end, the bound and a client that is gone are all the same here.
        while let Either::Left((Some(Ok(_)), _)) = select(body.frame(), pause()).await {}
    });
    select(taken_in, clock.sleep(DISCARD_FOR_MAX)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use hyper::header::HeaderValue;

    fn parts(uri: &str, host: Option<&str>) -> Parts {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn hosts() {
        let host = |address: &str, header| host(&parts(address, header)).map(Cow::into_owned);
        assert_eq!(host("/a", Some("h:1")).as_deref(), Some("h:1"));
        assert_eq!(host("http://abs/a", Some("h:1")).as_deref(), Some("abs"));
        assert_eq!(host("/a", Some("Acct.Blob.LOCALHOST:1")).as_deref(), Some("acct.blob.localhost:1"));
        assert_eq!(host("/a", Some("[::1]:1")).as_deref(), Some("[::1]:1"));
        for none in [None, Some(""), Some("a\"><b"), Some("a b"), Some("a/b")] {
            assert_eq!(host("/a", none), None, "{none:?}");
        }
        let mut twice = parts("/a", Some("one"));
        twice.headers.append(HOST, HeaderValue::from_static("two"));
        assert_eq!(super::host(&twice), None);
    }

    #[test]
    fn time_limits() {
        let longest = Duration::from_secs(30);
        let limit = |uri: &str| time_limit(&parts(uri, None), longest).as_secs();
        assert_eq!(limit("/a"), 30);
        assert_eq!(limit("/a?timeout=5"), 5);
        assert_eq!(limit("/a?timeout=500"), 30);
        assert_eq!(limit("/a?timeout=0"), 30);
        assert_eq!(limit("/a?timeout=x"), 30);
    }
}
