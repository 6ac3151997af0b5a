//! `timeout`: how long a client wants a request to take. It bounds uploads that stall, the sending of a blob,
//! and the parts of a batch.
#![allow(clippy::disallowed_methods)] // Tests wait as clients do.

mod stamp;

use bytes::Bytes;
use front_end::ConnectionInfo;
use front_end::auth::shared_key::SignedService;
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Request;
use hyper::body::{Body, Frame};
use hyper::http::request::Builder;
use stamp::answers::{Row, Service, account_sas, check};
use stamp::{ROOT, Stamp};
use std::convert::Infallible;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// Bytes of a blob that is too large to be ready at once.
const BLOB_SIZE_BYTES: usize = 32 * MIB;

fn signed(stamp: &Stamp, method: &str, path: &str, headers: &[(&str, &str)]) -> Builder {
    let target = format!("{ROOT}{path}");
    let mut all = vec![("x-ms-version", "2026-10-06")];
    all.extend_from_slice(headers);
    let mut request = Request::builder().method(method).uri(&target);
    for (name, value) in &stamp.headers_signed_for(SignedService::BlobOrQueue, method, &target, &all) {
        request = request.header(name, value);
    }
    request
}

async fn send<B>(stamp: &Stamp, request: Request<B>) -> hyper::Response<front_end::ResponseBody>
where
    B: Body<Data = Bytes, Error = Infallible> + Send,
{
    let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
    stamp.front_end.handle_blob(connection, request).await
}

async fn with_blob() -> Stamp {
    let stamp = Stamp::open().await;
    check(&stamp, Service::Blob, [Row::of("PUT", "/box?restype=container").gives(201)]).await;
    let length = BLOB_SIZE_BYTES.to_string();
    let headers = [("x-ms-blob-type", "BlockBlob"), ("content-length", length.as_str())];
    let request = signed(&stamp, "PUT", "/box/large", &headers);
    let made = send(&stamp, request.body(Full::new(Bytes::from(vec![7; BLOB_SIZE_BYTES]))).unwrap()).await;
    assert_eq!(made.status().as_u16(), 201);
    stamp
}

/// A blob went on being sent for as long as its client took it, whatever `timeout` it had sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_is_sent_within_the_requested_timeout() {
    let stamp = with_blob().await;
    for (path, is_whole) in
        [("/box/large", true), ("/box/large?timeout=60", true), ("/box/large?timeout=1", false)]
    {
        let request = signed(&stamp, "GET", path, &[]).body(Full::new(Bytes::new())).unwrap();
        let answer = send(&stamp, request).await;
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        let mut body = answer.into_body();
        let first = body.frame().await.expect("more").expect("bytes");
        let mut taken = first.into_data().expect("bytes").len();
        tokio::time::sleep(Duration::from_millis(1300)).await;
        let failed = loop {
            match body.frame().await {
                None => break false,
                Some(Err(_)) => break true,
                Some(Ok(frame)) => taken += frame.into_data().expect("bytes").len(),
            }
        };
        assert_eq!((!failed, taken == BLOB_SIZE_BYTES), (is_whole, is_whole), "{path}: {taken}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_stalls_ends_when_its_time_is_over() {
    let stamp = with_blob().await;
    let headers = [("x-ms-blob-type", "BlockBlob"), ("content-length", "9000000")];
    let began = Instant::now();
    let portion = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(vec![1; MIB])))]);
    let body = StreamBody::new(portion.chain(stream::pending()));
    let request = signed(&stamp, "PUT", "/box/stalled?timeout=1", &headers).body(body).unwrap();
    let answer = send(&stamp, request).await;
    assert_eq!(answer.headers()["x-ms-error-code"], "OperationTimedOut");
    let took = began.elapsed();
    assert!((1..10).contains(&took.as_secs()), "{took:?}");
    check(&stamp, Service::Blob, [Row::of("GET", "/box/stalled").fails(404, "BlobNotFound")]).await;
}

/// Each part has a time of its own; the others are done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_batch_of_blobs_have_times() {
    let stamp = with_blob().await;
    let blob =
        |name: &str| Row::of("PUT", format!("/box/{name}")).header("x-ms-blob-type", "BlockBlob").gives(201);
    check(&stamp, Service::Blob, ["a", "b", "c", "d", "e"].map(blob)).await;
    let sas = account_sas(&stamp, "b", "o", "d");
    let part = |name: &str, timeout: &str| {
        format!(
            "--x\r\nContent-Type: application/http\r\n\r\nDELETE {ROOT}/box/{name}?{timeout}{sas} HTTP/1.1\r\n\r\n"
        )
    };
    let parts = [
        part("a", "timeout=0&"),
        part("b", "timeout=x&"),
        part("c", "timeout=-1&"),
        part("d", "timeout=30&"),
        part("e", "timeout=18446744073709551615&"),
    ];
    let batch = Row::of("POST", "/?comp=batch")
        .header("content-type", "multipart/mixed; boundary=x")
        .body(format!("{}--x--", parts.concat()));
    let answer = batch.send(&stamp, Service::Blob).await.expect(202);
    let statuses: Vec<&str> = answer.body.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["500", "400", "400", "202", "202"], "{}", answer.body);
    for code in ["OperationTimedOut", "InvalidQueryParameterValue", "OutOfRangeQueryParameterValue"] {
        assert!(answer.body.contains(code), "{code}: {}", answer.body);
    }
    let there = ["a", "b", "c"].map(|name| Row::of("GET", format!("/box/{name}")));
    check(&stamp, Service::Blob, there).await;
    check(&stamp, Service::Blob, [Row::of("GET", "/box/d").fails(404, "BlobNotFound")]).await;
}
