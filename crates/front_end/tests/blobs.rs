//! Blobs over HTTP, without sockets: what an official client can't be made to do, such as stopping in the
//! middle of a body.
#![allow(clippy::disallowed_methods)] // Tests wait and start tasks as clients do.

mod stamp;

use bytes::Bytes;
use front_end::ConnectionInfo;
use front_end::auth::shared_key::SignedService;
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::HeaderMap;
use hyper::http::response::Parts;
use hyper::{Request, StatusCode};
use stamp::{ROOT, Stamp};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A request whose body ends, or after `sent` never goes on.
async fn put(
    stamp: &Stamp,
    path: &str,
    headers: &[(&str, &str)],
    sent: Vec<u8>,
    size: usize,
) -> (StatusCode, String) {
    let target = format!("{ROOT}{path}");
    let length = size.to_string();
    let mut all = vec![("x-ms-version", "2026-10-06"), ("content-length", length.as_str())];
    all.extend_from_slice(headers);
    let mut request = Request::builder().method("PUT").uri(&target);
    for (name, value) in &stamp.headers_signed_for(SignedService::BlobOrQueue, "PUT", &target, &all) {
        request = request.header(name, value);
    }
    let stalls = sent.len() < size;
    let portion = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(sent)))]);
    let rest = if stalls { stream::pending().left_stream() } else { stream::empty().right_stream() };
    let request = request.body(StreamBody::new(portion.chain(rest))).expect("a request");
    let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
    let (parts, body) = stamp.front_end.handle_blob(connection, request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (parts.status, String::from_utf8_lossy(&body).into_owned())
}

/// Clients that stopped in the middle of their uploads held all the memory for bytes on their way to the
/// disk, for as long as they were silent: a piece that was sent went no further while the next bytes were
/// waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_stall_hold_up_nobody() {
    let stamp = Arc::new(Stamp::open().await);
    let made = put(&stamp, "/box?restype=container", &[], Vec::new(), 0).await;
    assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
    let kind = [("x-ms-blob-type", "BlockBlob")];
    for number in 0..20 {
        let stamp = stamp.clone();
        tokio::spawn(async move {
            let path = format!("/box/stalled{number}");
            put(&stamp, &path, &kind, vec![1; 4 * MIB + 1], 8 * MIB).await
        });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let whole = put(&stamp, "/box/whole", &kind, vec![2; 9 * MIB], 9 * MIB);
    let (status, body) =
        tokio::time::timeout(Duration::from_secs(20), whole).await.expect("it is not held up");
    assert_eq!(status, StatusCode::CREATED, "{body}");
}

/// What a GET answers that shows nothing but a signature.
async fn get_with(stamp: &Stamp, path: &str, parameters: &str) -> (StatusCode, HeaderMap) {
    ask_without_key(stamp, ("GET", &format!("{path}?{parameters}")), &[]).await
}

/// What is answered to a request that shows no more than its path says.
async fn ask_without_key(
    stamp: &Stamp,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap) {
    let mut request =
        Request::builder().method(method).uri(format!("{ROOT}{path}")).header("host", "127.0.0.1:10000");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(http_body_util::Empty::<Bytes>::new()).expect("a request");
    let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
    let (parts, _) = stamp.front_end.handle_blob(connection, request).await.into_parts();
    (parts.status, parts.headers)
}

/// Old versions don't sign what kind of resource a signature is for: one for the blob `box/dir` was good for
/// all blobs below the directory `dir`, once its bearer had changed the kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_for_a_blob_is_not_one_for_a_directory() {
    let stamp = Stamp::open().await;
    let kind = [("x-ms-blob-type", "BlockBlob")];
    for (path, headers) in [("/box?restype=container", &[][..]), ("/box/dir", &kind), ("/box/dir/a", &kind)] {
        assert_eq!(put(&stamp, path, headers, Vec::new(), 0).await.0, StatusCode::CREATED, "{path}");
    }
    // With the fields that the version signs: from 2018-11-09 on also the kind, and the snapshot, which is
    // none.
    let sign = |version: &str, kind: &str, name: &str, snapshot: &str| {
        let kind = if version < "2018-11-09" { String::new() } else { format!("\n{kind}\n{snapshot}") };
        let resource = format!("/blob/devstoreaccount1/{name}");
        let text = format!("r\n\n2027-01-01\n{resource}\n\n\n\n{version}{kind}\n\n\n\n\n");
        format!("sv={version}&sp=r&se=2027-01-01&sig={}", stamp.sas_signature(&text))
    };
    let (granted, refused) = (StatusCode::OK, StatusCode::FORBIDDEN);
    let table = [
        ("2017-07-29", "b", "box/dir", "/box/dir", "sr=b", granted),
        ("2017-07-29", "b", "box/dir", "/box/dir/a", "sr=d&sdd=1", refused),
        ("2017-07-29", "b", "box/dir", "/box/dir/a", "sr=b&sr=d&sdd=1", refused),
        ("2017-07-29", "b", "box/dir", "/box/dir", "sr=b&sr=b", refused),
        ("2017-07-29", "b", "box/dir", "/box/dir", "sr=bs", refused),
        ("2017-07-29", "b", "box/dir", "/box/dir", "sr=bv", refused),
        ("2017-07-29", "b", "box/dir", "/box/dir", "sr=x", refused),
        ("2017-07-29", "c", "box", "/box/dir/a", "sr=c", granted),
        ("2018-11-09", "bv", "box/dir", "/box/dir", "sr=bv&versionid=x", refused),
        ("2019-12-12", "d", "box/dir", "/box/dir/a", "sr=d&sdd=1", refused),
        ("2020-02-10", "d", "box/dir", "/box/dir/a", "sr=d&sdd=1", granted),
        ("2020-02-10", "d", "box/dir", "/box/dir", "sr=d&sdd=1", granted),
        ("2020-02-10", "d", "box/dir", "/box/dir", "sr=d&sdd=2", refused),
        ("2020-02-10", "d", "box/dir", "/box/dir/a", "sr=d&sdd=1&sdd=2", refused),
        ("2020-02-10", "d", "box/", "/box/dir/a", "sr=d", refused),
        ("2020-02-10", "d", "box/dir", "/box/dir/a", "sr=b", refused),
        ("2020-02-10", "b", "box/dir", "/box/dir", "sr=b", granted),
    ];
    for (version, kind, name, path, kind_sent, expected) in table {
        let parameters = format!("{}&{kind_sent}", sign(version, kind, name, ""));
        let (found, _) = get_with(&stamp, path, &parameters).await;
        assert_eq!(found, expected, "{version} {kind} for {name} on {path} with {kind_sent}");
    }
    // A version that is not there, for whose signature it is looked for all the same.
    let at = "2026-01-01T00:00:00.0000000Z";
    for (version, expected) in [("2017-07-29", refused), ("2018-11-09", StatusCode::NOT_FOUND)] {
        let parameters = format!("{}&sr=bv&versionid={at}", sign(version, "bv", "box/dir", at));
        assert_eq!(get_with(&stamp, "/box/dir", &parameters).await.0, expected, "{version}");
    }
}

/// Asks as the account does, with a whole body: status, the error's code and headers.
async fn ask(
    stamp: &Stamp,
    operation: (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, HeaderMap) {
    let (parts, _) = answer_to(stamp, operation, headers, body).await;
    let code = parts.headers.get("x-ms-error-code").map(|code| code.to_str().expect("text").to_owned());
    (parts.status.as_u16(), code.unwrap_or_default(), parts.headers)
}

/// The same: the answer's head and body.
async fn answer_to(
    stamp: &Stamp,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> (Parts, String) {
    let target = format!("{ROOT}{path}");
    let length = body.len().to_string();
    let mut all = vec![("x-ms-version", "2026-10-06"), ("content-length", length.as_str())];
    all.extend_from_slice(headers);
    let mut request = Request::builder().method(method).uri(&target);
    for (name, value) in &stamp.headers_signed_for(SignedService::BlobOrQueue, method, &target, &all) {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request");
    let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
    let (parts, body) = stamp.front_end.handle_blob(connection, request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (parts, String::from_utf8_lossy(&body).into_owned())
}

/// Makes a container and blobs without bytes.
async fn make(stamp: &Stamp, container: &str, blobs: &[&str]) {
    let path = format!("/{container}?restype=container");
    assert_eq!(ask(stamp, ("PUT", &path), &[], "").await.0, 201, "{path}");
    for blob in blobs {
        let path = format!("/{container}/{blob}");
        let made = ask(stamp, ("PUT", &path), &[("x-ms-blob-type", "BlockBlob")], "").await;
        assert_eq!((made.0, made.1.as_str()), (201, ""), "{path}");
    }
}

/// `DELETE /box/`, which is what deletes a blob if its name happens to be empty, deleted the container.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_request_that_says_so_is_about_a_container() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    make(&stamp, "$root", &["b"]).await;
    let lease = ("x-ms-lease-action", "acquire");
    let (uri, parameter) = ("InvalidUri", "InvalidQueryParameterValue");
    for (method, path, code) in [
        ("DELETE", "/box/", uri),
        ("DELETE", "/$root", uri),
        ("DELETE", "/$root/", uri),
        ("DELETE", "/box/?restype=", uri),
        ("DELETE", "/box/?restype=service", parameter),
        ("DELETE", "/box?restype=blob", parameter),
        ("PUT", "/other/", uri),
        ("GET", "/box/", uri),
        ("HEAD", "/box/", uri),
        ("GET", "/box/?comp=list", parameter),
        ("GET", "/$root?comp=list", parameter),
        ("GET", "/box/?comp=acl", parameter),
        ("PUT", "/box/?comp=acl", parameter),
        ("PUT", "/box/?comp=metadata", parameter),
        ("PUT", "/box/?comp=lease", parameter),
        ("POST", "/box/?comp=batch", parameter),
    ] {
        let (status, found, _) = ask(&stamp, (method, path), &[lease], "").await;
        assert_eq!((status, found.as_str()), (400, code), "{method} {path}");
    }
    for (method, path, expected) in [
        ("GET", "/box/a", 200),
        ("GET", "/b", 200),
        ("GET", "/$root/b", 200),
        ("GET", "/box/?restype=container", 200),
        ("HEAD", "/$root?restype=container", 200),
        ("GET", "/box?restype=container&comp=list", 200),
        ("GET", "/?comp=list", 200),
        ("GET", "/box?restype=account&comp=properties", 200),
        ("DELETE", "/box/?restype=container", 202),
        ("GET", "/box/a", 404),
    ] {
        let (status, code, _) = ask(&stamp, (method, path), &[], "").await;
        assert_eq!(status, expected, "{method} {path}: {code}");
    }
}

/// A client with a signature for the account, which signs none of these headers, could set them in the
/// answers to a blob's readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_signed_headers_replace_those_of_the_blob() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    let of_blob = "application/octet-stream";
    let for_account = "devstoreaccount1\nr\nb\no\n\n2027-01-01\n\n\n2018-11-09\n";
    let old = "r\n\n2027-01-01\n/devstoreaccount1/box/a\n\n2012-02-12";
    let new = "r\n\n2027-01-01\n/blob/devstoreaccount1/box/a\n\n\n\n2018-11-09\nb\n\n\n\n\n\ntext/html";
    for (signed, version, parameters, expected) in [
        (for_account, "2018-11-09", "ss=b&srt=o", of_blob),
        (old, "2012-02-12", "sr=b", of_blob),
        (new, "2018-11-09", "sr=b", "text/html"),
    ] {
        let signature = stamp.sas_signature(signed);
        let parameters =
            format!("{parameters}&sv={version}&sp=r&se=2027-01-01&rsct=text/html&sig={signature}");
        let (status, headers) = get_with(&stamp, "/box/a", &parameters).await;
        assert_eq!(status, StatusCode::OK, "{parameters}");
        assert_eq!(headers["content-type"], expected, "{parameters}");
    }
    // An account's key signs no more than the request.
    let own = ask(&stamp, ("GET", "/box/a?sig=x&rsct=text/html"), &[], "").await;
    assert!(own.0 != 200 || own.2["content-type"] == of_blob);
}

/// A block blob could be put into a tier of page blobs, and an append blob into any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_is_written_into_tiers_of_its_type_only() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["block"]).await;
    let (size, source) = (("x-ms-blob-content-length", "512"), "http://127.0.0.1:10002/devstoreaccount1/box");
    for (kind, path) in [("PageBlob", "/box/page"), ("AppendBlob", "/box/append")] {
        let made = ask(&stamp, ("PUT", path), &[("x-ms-blob-type", kind), size], "").await;
        assert_eq!((made.0, made.1.as_str()), (201, ""), "{path}");
    }
    let from = |name: &str| ("x-ms-copy-source", format!("{source}/{name}"));
    let kind = |kind: &str| ("x-ms-blob-type", kind.to_owned());
    for (what, (header, value), tier, done) in [
        ("", kind("BlockBlob"), "Cool", true),
        ("", kind("BlockBlob"), "P10", false),
        ("", kind("PageBlob"), "P10", true),
        ("", kind("PageBlob"), "Cool", false),
        ("", kind("AppendBlob"), "Cool", false),
        ("", kind("AppendBlob"), "P10", false),
        ("?comp=blocklist", ("x-ms-meta-a", "1".to_owned()), "Cool", true),
        ("?comp=blocklist", ("x-ms-meta-a", "1".to_owned()), "P10", false),
        ("", from("block"), "Cool", true),
        ("", from("block"), "P10", false),
        ("", from("page"), "P10", true),
        ("", from("page"), "Cool", false),
        ("", from("append"), "Cool", false),
    ] {
        let path = format!("/box/{}{what}", if done { "yes" } else { "no" });
        let body = if what.is_empty() { "" } else { "<BlockList/>" };
        if done {
            // Its place may be taken by a blob of another type.
            ask(&stamp, ("DELETE", "/box/yes"), &[], "").await;
        }
        let mut headers = vec![(header, value.as_str()), ("x-ms-access-tier", tier)];
        headers.extend((value == "PageBlob").then_some(size));
        let (status, code, _) = ask(&stamp, ("PUT", &path), &headers, body).await;
        // As recorded, a copy says that the header is wrong.
        let refused = match header {
            "x-ms-copy-source" => (400, "InvalidHeaderValue"),
            _ => (400, "AccessTierNotSupportedForBlobType"),
        };
        match done {
            true => assert!(matches!(status, 201 | 202), "{value} {tier}: {status} {code}"),
            false => assert_eq!((status, code.as_str()), refused, "{value} {tier}"),
        }
        assert_eq!(ask(&stamp, ("HEAD", "/box/no"), &[], "").await.0, 404, "{value} {tier}");
    }
}

/// A sequence number that no client's signed number can hold was stored, and could never be incremented.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequence_numbers_have_63_bits() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    let update = [("x-ms-sequence-number-action", "update")];
    let max = [("x-ms-sequence-number-action", "max")];
    let (last, first_beyond) = ("9223372036854775807", "9223372036854775808");
    for (path, others, number, expected) in [
        ("/box/a", &page[..], first_beyond, (400, "InvalidHeaderValue")),
        ("/box/a", &page[..], "-1", (400, "InvalidHeaderValue")),
        ("/box/a", &page[..], last, (201, "")),
        ("/box/a?comp=properties", &update[..], first_beyond, (400, "InvalidHeaderValue")),
        ("/box/a?comp=properties", &max[..], first_beyond, (400, "InvalidHeaderValue")),
        ("/box/a?comp=properties", &update[..], last, (200, "")),
    ] {
        let headers = [others, &[("x-ms-blob-sequence-number", number)]].concat();
        let (status, code, _) = ask(&stamp, ("PUT", path), &headers, "").await;
        assert_eq!((status, code.as_str()), expected, "{path} {number}");
    }
}

/// A deletion that was to be permanent deleted softly, or a blob that was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permanent_deletion_is_refused_and_deletes_nothing() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    for (kind, expected) in [
        ("permanent", (501, "NotImplemented")),
        ("Permanent", (501, "NotImplemented")),
        ("other", (400, "InvalidQueryParameterValue")),
    ] {
        let path = format!("/box/a?deletetype={kind}");
        let (status, code, _) = ask(&stamp, ("DELETE", &path), &[], "").await;
        assert_eq!((status, code.as_str()), expected, "{kind}");
        assert_eq!(ask(&stamp, ("HEAD", "/box/a"), &[], "").await.0, 200, "{kind}");
    }
    assert_eq!(ask(&stamp, ("DELETE", "/box/a?deletetype="), &[], "").await.0, 202);
}

/// Their own headers had operations that are not served refused as if a header were the trouble.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_are_not_served_say_so_whatever_their_headers() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    let hold = [("x-ms-legal-hold", "true")];
    let until = [
        ("x-ms-immutability-policy-until-date", "Sat, 21 Nov 2037 09:00:00 GMT"),
        ("x-ms-immutability-policy-mode", "Unlocked"),
    ];
    for (method, path, headers, expected) in [
        ("PUT", "/box/a?comp=legalhold", &hold[..], (501, "NotImplemented")),
        ("PUT", "/box/a?comp=immutabilityPolicies", &until[..], (501, "NotImplemented")),
        ("DELETE", "/box/a?comp=immutabilityPolicies", &[][..], (501, "NotImplemented")),
        (
            "PUT",
            "/box/a?comp=legalhold&snapshot=2026-11-25T10:09:41.1733947Z",
            &hold[..],
            (501, "NotImplemented"),
        ),
        (
            "DELETE",
            "/box/a?comp=immutabilityPolicies&versionid=2026-11-25T10:09:41.1733947Z",
            &[][..],
            (501, "NotImplemented"),
        ),
        ("PUT", "/box/a?comp=metadata", &hold[..], (400, "UnsupportedHeader")),
        ("PUT", "/box/a?comp=metadata", &until[..], (400, "UnsupportedHeader")),
    ] {
        let (status, code, _) = ask(&stamp, (method, path), headers, "").await;
        assert_eq!((status, code.as_str()), expected, "{method} {path}");
    }
}

/// Listeners for blobs have writes logged and then read the logs, for ever: their container was missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logging_makes_the_container_for_logs() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let logs = ("GET", "/$logs?restype=container&comp=list&prefix=blob%2F2026%2F");
    for (writes, expected) in [("false", 404), ("true", 200), ("true", 200), ("false", 200)] {
        let document = format!(
            "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read>\
             <Write>{writes}</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
             </StorageServiceProperties>"
        );
        let set = ask(&stamp, ("PUT", "/?restype=service&comp=properties"), &[], &document).await;
        assert_eq!((set.0, set.1.as_str()), (202, ""), "{writes}");
        assert_eq!(ask(&stamp, logs, &[], "").await.0, expected, "{writes}");
    }
    let lists = [
        ("/?comp=list", &["box"][..]),
        ("/?comp=list&maxresults=1", &["box"]),
        ("/?comp=list&prefix=$", &[]),
        ("/?comp=list&include=metadata,system", &["$logs", "box"]),
    ];
    for (path, expected) in lists {
        let (_, body) = answer_to(&stamp, ("GET", path), &[], "").await;
        let names: Vec<&str> =
            body.split("<Name>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(names, expected, "{path}: {body}");
        assert!(body.contains("<NextMarker/>") || body.contains("<NextMarker />"), "{path}: {body}");
    }
}

/// A copy of `path`, by the code and by what the source answered: status and code.
async fn copied(
    stamp: &Stamp,
    (target, kind): (&str, &[(&str, &str)]),
    path: &str,
    conditions: &[(&str, &str)],
) -> (u16, String, String) {
    let source = format!("http://127.0.0.1:10002{ROOT}{path}");
    let headers = [kind, &[("x-ms-copy-source", source.as_str())], conditions].concat();
    let (status, code, headers) = ask(stamp, ("PUT", target), &headers, "").await;
    let text = |name| headers.get(name).map_or("", |value| value.to_str().expect("text")).to_owned();
    let (of_source, why) = (text("x-ms-copy-source-status-code"), text("x-ms-copy-source-error-code"));
    (status, code, format!("{of_source} {why}").trim().to_owned())
}

/// The operations that take a source: with what the path and the headers say so.
const COPY_BLOB: (&str, &[(&str, &str)]) = ("/box/copy", &[]);
const COPY_FROM_URL: (&str, &[(&str, &str)]) = ("/box/copy", &[("x-ms-requires-sync", "true")]);
const PUT_FROM_URL: (&str, &[(&str, &str)]) = ("/box/copy", &[("x-ms-blob-type", "BlockBlob")]);
const BLOCK_FROM_URL: (&str, &[(&str, &str)]) = ("/box/copy?comp=block&blockid=MDAw", &[]);

/// The error of a readable but missing source lacked what its own answer would have been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_source_has_the_error_of_its_own_read() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let signed = |container: &str| {
        let resource = format!("/blob/devstoreaccount1/{container}");
        let text = format!("r\n\n2027-01-01\n{resource}\n\n\n\n2020-02-10\nc\n\n\n\n\n\n");
        format!("sv=2020-02-10&sr=c&sp=r&se=2027-01-01&sig={}", stamp.sas_signature(&text))
    };
    for (container, code) in [("box", "BlobNotFound"), ("none", "ContainerNotFound")] {
        let path = format!("/{container}/missing");
        assert_eq!(ask(&stamp, ("GET", &path), &[], "").await.1, code);
        let told = (404, "CannotVerifyCopySource".to_owned(), format!("404 {code}"));
        assert_eq!(copied(&stamp, COPY_BLOB, &path, &[]).await, told);
        let signed = format!("{path}?{}", signed(container));
        for operation in [COPY_BLOB, COPY_FROM_URL, PUT_FROM_URL, BLOCK_FROM_URL] {
            assert_eq!(copied(&stamp, operation, &signed, &[]).await, told, "{operation:?}");
        }
        // Who may not read it does not learn that it is missing.
        for operation in [COPY_FROM_URL, PUT_FROM_URL, BLOCK_FROM_URL] {
            let (status, code, why) = copied(&stamp, operation, &path, &[]).await;
            let told = (status, code.as_str(), why.as_str());
            assert_eq!(told, (401, "CannotVerifyCopySource", "401 NoAuthenticationInformation"));
        }
    }
}

/// As recorded, each operation has its way to tell whose condition it was: a copy that is waited for, and one
/// into a part of a blob, tell the source's as a source that can't be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_copy_conditions_name_source_or_target() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["source", "copy"]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let (target, source) = (&[("if-match", "\"0x1\"")], &[("x-ms-source-if-match", "\"0x1\"")]);
    let (tags, of_tags) = (&[("x-ms-if-tags", "\"a\"='b'")], &[("x-ms-source-if-tags", "\"a\"='b'")]);
    let has_it = &[("x-ms-source-if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")];
    let not_met = |code: &str| (412, code.to_owned(), String::new());
    let unread =
        |status: u16| (status, "CannotVerifyCopySource".to_owned(), format!("{status} ConditionNotMet"));
    let of_source = not_met("SourceConditionNotMet");
    let foreign = &[("if-match", "\"a\"")];
    for (operation, of_foreign, of_source, known) in [
        (COPY_BLOB, "ConditionNotMet", of_source.clone(), of_source.clone()),
        (COPY_FROM_URL, "ConditionNotMet", unread(412), unread(304)),
        (PUT_FROM_URL, "TargetConditionNotMet", of_source, unread(304)),
    ] {
        let copy = |conditions: &'static [(&'static str, &'static str)]| {
            copied(&stamp, operation, "/box/source", conditions)
        };
        assert_eq!(copy(target).await, not_met("ConditionNotMet"), "{operation:?}");
        assert_eq!(copy(foreign).await, not_met(of_foreign), "{operation:?}");
        assert_eq!(copy(source).await, of_source, "{operation:?}");
        assert_eq!(copy(has_it).await, known, "{operation:?}");
        assert_eq!(copy(of_tags).await, not_met("ConditionNotMet"), "{operation:?}");
        assert_eq!(copy(tags).await, not_met("ConditionNotMet"), "{operation:?}");
        let (status, code, _) = copy(&[("if-none-match", "*")]).await;
        assert_eq!((status, code.as_str()), (409, "BlobAlreadyExists"), "{operation:?}");
    }
    // Only for an ETag that no blob can have the error names the destination.
    let changed = &[("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")];
    assert_eq!(copied(&stamp, PUT_FROM_URL, "/box/source", changed).await, not_met("ConditionNotMet"));
    assert_eq!(copied(&stamp, COPY_BLOB, "/box/source", changed).await, not_met("ConditionNotMet"));
    assert_eq!(copied(&stamp, BLOCK_FROM_URL, "/box/source", source).await, unread(412));
    assert_eq!(copied(&stamp, BLOCK_FROM_URL, "/box/source", has_it).await, unread(304));
}

/// What answers tell besides what was done, as recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_tell_what_was_encrypted_and_hashed() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["source"]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let source = format!("http://127.0.0.1:10002{ROOT}/box/source");
    let source = ("x-ms-copy-source", source.as_str());
    let (sync, append) = (("x-ms-requires-sync", "true"), ("x-ms-blob-type", "AppendBlob"));
    assert_eq!(ask(&stamp, ("PUT", "/box/log"), &[append], "").await.0, 201);
    let crc64 = ("x-ms-source-content-crc64", "77yk3BNHEQY=");
    let md5 = ("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    for (path, headers, expected) in [
        ("/box/source?comp=snapshot", &[][..], (201, "false", false, false)),
        ("/box/copy", &[source], (202, "", false, false)),
        ("/box/copy", &[source, sync], (202, "true", false, true)),
        ("/box/copy", &[source, sync, md5], (202, "true", true, false)),
        ("/box/copy?comp=block&blockid=MDAw", &[source], (201, "true", false, true)),
        ("/box/log?comp=appendblock", &[source], (201, "true", true, false)),
        ("/box/log?comp=appendblock", &[source, crc64], (400, "", false, false)),
    ] {
        let (status, _, told) = ask(&stamp, ("PUT", path), headers, "").await;
        let encrypted = told.get("x-ms-request-server-encrypted").map_or("", |value| value.to_str().unwrap());
        let hashes = (told.contains_key("content-md5"), told.contains_key("x-ms-content-crc64"));
        assert_eq!((status, encrypted, hashes.0, hashes.1), expected, "{path} {headers:?}");
    }
    let tier = ("x-ms-access-tier", "P20");
    for headers in [&[source, tier][..], &[source, sync, tier]] {
        let (status, code, _) = ask(&stamp, ("PUT", "/box/copy"), headers, "").await;
        assert_eq!((status, code.as_str()), (400, "InvalidHeaderValue"), "{headers:?}");
    }
}

/// Lists and conditions showed tags to any client that could list or read: by halves, a condition tells a
/// tag's value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_need_permission_to_read_tags() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let tagged = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "secret=value")];
    assert_eq!(ask(&stamp, ("PUT", "/box/a"), &tagged, "").await.0, 201);
    let public = [("x-ms-blob-public-access", "container")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let signed = |permissions: &str| {
        let text = format!(
            "{permissions}\n\n2027-01-01\n/blob/devstoreaccount1/box\n\n\n\n2020-02-10\nc\n\n\n\n\n\n"
        );
        format!("&sv=2020-02-10&sr=c&sp={permissions}&se=2027-01-01&sig={}", stamp.sas_signature(&text))
    };
    let list = "/box?restype=container&comp=list";
    let list_tags = "/box?restype=container&comp=list&include=metadata,Tags";
    type Headers = &'static [(&'static str, &'static str)];
    let condition: Headers = &[("x-ms-if-tags", "\"secret\" > 'a'")];
    let table: [(&str, &str, Headers, &str, u16); 12] = [
        ("GET", list, &[], "rl", 200),
        ("GET", list_tags, &[], "rl", 403),
        ("GET", list_tags, &[], "rlt", 200),
        ("HEAD", "/box/a?", &[], "r", 200),
        ("HEAD", "/box/a?", condition, "r", 403),
        ("HEAD", "/box/a?", condition, "rt", 200),
        ("PUT", "/box/a?comp=metadata", condition, "w", 403),
        ("PUT", "/box/a?comp=metadata", condition, "wt", 200),
        ("GET", list, &[], "", 200),
        ("GET", list_tags, &[], "", 401),
        ("HEAD", "/box/a?", &[("x-ms-if-tags", "")], "r", 200),
        ("HEAD", "/box/a?", condition, "", 401),
    ];
    for (method, path, headers, permissions, expected) in table {
        let signature = if permissions.is_empty() { String::new() } else { signed(permissions) };
        let mut headers = headers.to_vec();
        headers.push(("content-length", "0"));
        let found = ask_without_key(&stamp, (method, &format!("{path}{signature}")), &headers).await.0;
        assert_eq!(found.as_u16(), expected, "{method} {path} with {permissions:?}");
    }
    // The owner may request anything.
    assert_eq!(ask(&stamp, ("GET", list_tags), &[], "").await.0, 200);
    // A source that is read by a signature.
    let source = [("x-ms-source-if-tags", "\"secret\" > 'a'")];
    for (permissions, expected) in [("r", 403), ("rt", 202)] {
        let from = format!("/box/a?{}", signed(permissions));
        let (status, _, _) = copied(&stamp, COPY_BLOB, &from, &source).await;
        assert_eq!(status, expected, "a source with {permissions}");
    }
}

/// Anybody could see which blocks wait in a public container, which blobs are only about to be, and which
/// were deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_that_wait_are_not_public() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["whole"]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    for blob in ["whole", "draft"] {
        let path = format!("/box/{blob}?comp=block&blockid=MDAw");
        assert_eq!(ask(&stamp, ("PUT", &path), &[], "text").await.0, 201);
    }
    for (blob, kind, to_owner, to_anybody) in [
        ("whole", "committed", 200, 200),
        ("whole", "all", 200, 401),
        ("whole", "uncommitted", 200, 401),
        ("draft", "all", 200, 401),
        ("draft", "committed", 200, 404),
        ("none", "committed", 404, 404),
    ] {
        let path = format!("/box/{blob}?comp=blocklist&blocklisttype={kind}");
        assert_eq!(ask(&stamp, ("GET", &path), &[], "").await.0, to_owner, "{path}");
        assert_eq!(ask_without_key(&stamp, ("GET", &path), &[]).await.0.as_u16(), to_anybody, "{path}");
    }
    let lease = [("x-ms-lease-id", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")];
    for blob in ["draft", "none"] {
        let path = format!("/box/{blob}?comp=blocklist");
        assert_eq!(ask_without_key(&stamp, ("GET", &path), &lease).await.0, 404, "{blob}, with a lease's id");
    }
    let public = [("x-ms-blob-public-access", "container")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    for (include, to_anybody) in [
        ("metadata,snapshots,versions", 200),
        ("uncommittedblobs", 401),
        ("metadata,Deleted", 401),
        ("deletedwithversions", 401),
    ] {
        let path = format!("/box?restype=container&comp=list&include={include}");
        assert_eq!(ask(&stamp, ("GET", &path), &[], "").await.0, 200, "{include}");
        assert_eq!(ask_without_key(&stamp, ("GET", &path), &[]).await.0, to_anybody, "{include}");
    }
}

/// An account in a host's name was looked for in the letters it was written in, which hosts have in any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_have_no_case_and_are_one() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    for (hosts, expected) in [
        (&["devstoreaccount1.blob.localhost"][..], 200),
        (&["DevStoreAccount1.Blob.LocalHost:10000"], 200),
        (&["other.blob.localhost"], 404),
        (&["devstoreaccount1.blob.localhost", "devstoreaccount1.blob.localhost"], 400),
        (&["devstoreaccount1.blob.localhost/x"], 400),
    ] {
        let mut request = Request::builder().uri("/box/a");
        for host in hosts {
            request = request.header("host", *host);
        }
        let request = request.body(http_body_util::Empty::<Bytes>::new()).expect("a request");
        let answer = stamp.front_end.handle_blob(ConnectionInfo::default(), request).await;
        assert_eq!(answer.status().as_u16(), expected, "{hosts:?}");
    }
}

/// One client reads what follows the last boundary as one more part, and fails on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_blobs_ends_with_its_boundary() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    let part = |blob: &str| {
        let path = format!("{ROOT}/box/{blob}");
        let headers = stamp.headers_signed_for(SignedService::BlobOrQueue, "DELETE", &path, &[]);
        let lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().expect("text")))
            .collect();
        format!(
            "--b\r\nContent-Type: application/http\r\n\r\nDELETE {path} HTTP/1.1\r\n{}\r\n",
            lines.concat()
        )
    };
    let body = format!("{}{}--b--", part("a"), part("none"));
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    let (parts, body) = answer_to(&stamp, ("POST", "/?comp=batch"), &multipart, &body).await;
    assert_eq!(parts.status.as_u16(), 202, "{body}");
    let boundary =
        parts.headers["content-type"].to_str().expect("text").split_once("boundary=").expect("one").1;
    assert!(body.ends_with(&format!("\r\n--{boundary}--")), "{body}");
    let answers: Vec<&str> = body.split("HTTP/1.1 ").skip(1).collect();
    assert!(answers[0].starts_with("202 ") && !answers[0].contains("Content-Length"), "{body}");
    // No more than one empty line before a boundary, and a body with its mark.
    assert!(!body.contains("\r\n\r\n\r\n") && body.contains("\r\n\r\n\u{feff}<?xml "), "{body}");
    assert!(answers[1].starts_with("404 ") && answers[1].contains("Content-Length: "), "{body}");
    assert_eq!(body.matches("x-ms-version: 2026-10-06\r\n").count(), 2, "{body}");
}

/// Clients that know no pages take every element of the list for a range.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_ranges_are_paged_for_versions_that_support_it() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let kind = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    assert_eq!(ask(&stamp, ("PUT", "/box/a"), &kind, "").await.0, 201);
    for (version, more, has_marker) in [
        ("2019-02-02", "", false),
        ("2019-02-02", "&maxresults=1", true),
        ("2020-10-02", "", true),
        ("2026-10-06", "", true),
    ] {
        let path = format!("/box/a?comp=pagelist{more}");
        let (parts, body) = answer_to(&stamp, ("GET", &path), &[("x-ms-version", version)], "").await;
        assert_eq!(
            (parts.status.as_u16(), body.contains("NextMarker")),
            (200, has_marker),
            "{version}{more}: {body}"
        );
    }
}

/// Requests of Data Lake Storage name a container in the place of a blob, and were answered as if it were
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_lake_storage_is_not_served() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["a"]).await;
    for (method, path) in [
        ("GET", "/?resource=account"),
        ("GET", "/box?resource=filesystem&recursive=true"),
        ("PUT", "/box?resource=filesystem"),
        ("DELETE", "/box?resource=filesystem"),
        ("PUT", "/box/a?resource=File"),
    ] {
        let (status, code, _) = ask(&stamp, (method, path), &[], "").await;
        assert_eq!((status, code.as_str()), (501, "NotImplemented"), "{method} {path}");
    }
}

/// Any reader of a copy got the signature that its source had been read with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_source_of_a_copy_is_returned_without_signature() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["source"]).await;
    let text = "r\n\n2027-01-01\n/blob/devstoreaccount1/box\n\n\n\n2020-02-10\nc\n\n\n\n\n\n";
    let signed =
        format!("/box/source?sv=2020-02-10&sr=c&sp=r&se=2027-01-01&sig={}", stamp.sas_signature(text));
    let shown = format!("http://127.0.0.1:10002{ROOT}/box/source?sv=2020-02-10&sr=c&sp=r&se=2027-01-01");
    for operation in [COPY_BLOB, COPY_FROM_URL, PUT_FROM_URL] {
        let (status, code, _) = copied(&stamp, operation, &signed, &[]).await;
        assert!(matches!(status, 201 | 202), "{operation:?}: {status} {code}");
        let (_, _, headers) = ask(&stamp, ("HEAD", "/box/copy"), &[], "").await;
        assert_eq!(headers["x-ms-copy-source"], shown.as_str(), "{operation:?}");
        let list = ("GET", "/box?restype=container&comp=list&include=copy");
        let (_, list) = answer_to(&stamp, list, &[], "").await;
        assert!(list.contains("<CopySource>") && !list.contains("sig="), "{operation:?}: {list}");
    }
}

/// A copy took the place of a blob of another type.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_replaces_blobs_of_its_own_type_only() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["block", "copy"]).await;
    let size = ("x-ms-blob-content-length", "512");
    for (kind, path) in [("PageBlob", "/box/page"), ("AppendBlob", "/box/append")] {
        assert_eq!(ask(&stamp, ("PUT", path), &[("x-ms-blob-type", kind), size], "").await.0, 201, "{path}");
    }
    for (source, target) in [("page", "copy"), ("append", "copy"), ("block", "page"), ("page", "append")] {
        let path = format!("/box/{target}");
        let before = ask(&stamp, ("HEAD", &path), &[], "").await.2;
        let (status, code, _) = copied(&stamp, (&path, &[]), &format!("/box/{source}"), &[]).await;
        assert_eq!((status, code.as_str()), (409, "InvalidBlobType"), "{source} over {target}");
        let after = ask(&stamp, ("HEAD", &path), &[], "").await.2;
        assert_eq!(after["etag"], before["etag"], "{source} over {target}");
    }
    for (source, target) in [("block", "copy"), ("page", "page"), ("append", "new")] {
        let path = format!("/box/{target}");
        assert_eq!(copied(&stamp, (&path, &[]), &format!("/box/{source}"), &[]).await.0, 202, "{source}");
    }
    let option = |value| ("x-ms-copy-source-tag-option", value);
    for (value, expected) in [("copy", 202), ("REPLACE", 202), ("foo", 400)] {
        assert_eq!(copied(&stamp, COPY_BLOB, "/box/block", &[option(value)]).await.0, expected, "{value}");
    }
}

/// Pages from a URL were written whatever was to be done with them, and a range that was too long was said to
/// be a body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_from_a_url_say_what_and_which() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let size = ("x-ms-blob-content-length", "1024");
    for path in ["/box/source", "/box/copy"] {
        assert_eq!(ask(&stamp, ("PUT", path), &[("x-ms-blob-type", "PageBlob"), size], "").await.0, 201);
    }
    let text = "r\n\n2027-01-01\n/blob/devstoreaccount1/box\n\n\n\n2020-02-10\nc\n\n\n\n\n\n";
    let source =
        format!("/box/source?sv=2020-02-10&sr=c&sp=r&se=2027-01-01&sig={}", stamp.sas_signature(text));
    let range = ("x-ms-range", "bytes=0-511");
    let operation = ("/box/copy?comp=page", &[range][..]);
    for (action, from, expected) in [
        (Some("update"), Some("bytes=0-511"), (201, "")),
        (Some("Update"), Some("bytes=512-1023"), (201, "")),
        (Some("update"), Some("bytes=0-1023"), (400, "InvalidHeaderValue")),
        (Some("update"), Some("bytes=0-"), (400, "InvalidHeaderValue")),
        (Some("update"), None, (400, "MissingRequiredHeader")),
        (Some("clear"), Some("bytes=0-511"), (400, "InvalidHeaderValue")),
        (None, Some("bytes=0-511"), (400, "MissingRequiredHeader")),
    ] {
        let action = action.map(|action| ("x-ms-page-write", action));
        let from = from.map(|from| ("x-ms-source-range", from));
        let headers: Vec<_> = action.into_iter().chain(from).collect();
        let (status, code, _) = copied(&stamp, operation, &source, &headers).await;
        assert_eq!((status, code.as_str()), expected, "{headers:?}");
    }
}

/// A scope that a signature names was returned as if it had been used, where a header that names one is
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_in_signatures_are_refused_like_those_in_headers() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["blob"]).await;
    let text = "rw\n\n2027-01-01\n/blob/devstoreaccount1/box\n\n\n\n2020-12-06\nc\n\nscope\n\n\n\n\n";
    let signature = stamp.sas_signature(text);
    let path = format!("/box/blob?sv=2020-12-06&sr=c&sp=rw&se=2027-01-01&ses=scope&sig={signature}");
    let kind = [("x-ms-blob-type", "BlockBlob"), ("content-length", "0")];
    let (status, headers) = ask_without_key(&stamp, ("PUT", &path), &kind).await;
    let told = headers.get("x-ms-error-code").map(|code| code.to_str().expect("text"));
    assert_eq!((status.as_u16(), told), (400, Some("InvalidQueryParameterValue")));
    assert_eq!(
        ask_without_key(&stamp, ("GET", &path), &[]).await.0,
        StatusCode::OK,
        "reading promises nothing"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_version_is_one() {
    let stamp = Stamp::open().await;
    for (version, expected) in [("2021-12-02", 202), ("foo", 400), ("2021-12-2", 400), ("", 400)] {
        let body = format!(
            "<StorageServiceProperties><DefaultServiceVersion>{version}</DefaultServiceVersion></StorageServiceProperties>"
        );
        let set = ask(&stamp, ("PUT", "/?restype=service&comp=properties"), &[], &body).await;
        assert_eq!(set.0, expected, "{version}: {}", set.1);
    }
}

/// A body that came with an operation from a URL was dropped without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_from_a_url_take_no_body() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["source"]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let size = ("x-ms-blob-content-length", "512");
    for (path, kind) in [("/box/log", "AppendBlob"), ("/box/page", "PageBlob")] {
        assert_eq!(ask(&stamp, ("PUT", path), &[("x-ms-blob-type", kind), size], "").await.0, 201, "{path}");
    }
    let source = format!("http://127.0.0.1:10002{ROOT}/box/source");
    let source = ("x-ms-copy-source", source.as_str());
    let log = ("/box/log?comp=appendblock", &[][..]);
    let range =
        [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511"), ("x-ms-source-range", "bytes=0-511")];
    let pages = ("/box/page?comp=page", &range[..]);
    for (path, headers) in [COPY_BLOB, COPY_FROM_URL, PUT_FROM_URL, BLOCK_FROM_URL, log, pages] {
        let headers = [headers, &[source]].concat();
        let (parts, body) = answer_to(&stamp, ("PUT", path), &headers, "some bytes").await;
        assert_eq!(parts.status, StatusCode::BAD_REQUEST, "{path} {headers:?}: {body}");
        assert_eq!(parts.headers["x-ms-error-code"], "InvalidHeaderValue", "{path} {headers:?}");
        let facts = "<HeaderName>Content-Length</HeaderName><HeaderValue>10</HeaderValue>";
        assert!(body.contains(facts), "{path} {headers:?}: {body}");
    }
    // A body whose length is not announced is none if it has no bytes.
    let chunked = async |bytes: &'static [u8]| {
        let target = format!("{ROOT}/box/copy");
        let mut request = Request::builder().method("PUT").uri(&target);
        let headers = [source, ("transfer-encoding", "chunked")];
        for (name, value) in &stamp.headers_signed_for(SignedService::BlobOrQueue, "PUT", &target, &headers) {
            request = request.header(name, value);
        }
        let portion = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(bytes)))]);
        let request = request.body(StreamBody::new(portion)).expect("a request");
        let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
        stamp.front_end.handle_blob(connection, request).await.status().as_u16()
    };
    assert_eq!(chunked(b"some bytes").await, 400);
    for (path, expected) in [("/box/copy", 404), ("/box/copy?comp=blocklist&blocklisttype=all", 404)] {
        assert_eq!(ask(&stamp, ("GET", path), &[], "").await.0, expected, "{path}");
    }
    assert_eq!(ask(&stamp, ("HEAD", "/box/log"), &[], "").await.2["content-length"], "0");
    assert_eq!(chunked(b"").await, 202);
}

/// A copy that was to take the source's tags and had others as well took the source's, and no error was
/// returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_has_the_tags_of_its_source_or_its_own() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &["copy"]).await;
    let tagged = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "of=source")];
    assert_eq!(ask(&stamp, ("PUT", "/box/source"), &tagged, "").await.0, 201);
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let (copies, replaces) =
        (("x-ms-copy-source-tag-option", "COPY"), ("x-ms-copy-source-tag-option", "REPLACE"));
    let own = ("x-ms-tags", "of=copy");
    for (operation, done) in [(COPY_FROM_URL, 202), (PUT_FROM_URL, 201)] {
        let (status, code, _) = copied(&stamp, operation, "/box/source", &[copies, own]).await;
        let refused = (409, "BothUserTagsAndSourceTagsCopyPresentException");
        assert_eq!((status, code.as_str()), refused, "{operation:?}");
        assert!(!ask(&stamp, ("HEAD", "/box/copy"), &[], "").await.2.contains_key("x-ms-copy-id"));
        for (headers, tag) in
            [(&[copies][..], "<Value>source</Value>"), (&[replaces, own], "<Value>copy</Value>")]
        {
            assert_eq!(copied(&stamp, operation, "/box/source", headers).await.0, done, "{headers:?}");
            let (_, tags) = answer_to(&stamp, ("GET", "/box/copy?comp=tags"), &[], "").await;
            assert!(tags.contains(tag), "{operation:?} {headers:?}: {tags}");
        }
        let again = ask(&stamp, ("PUT", "/box/copy"), &[("x-ms-blob-type", "BlockBlob")], "").await;
        assert_eq!(again.0, 201);
    }
}

/// What a list of containers can't include was left out without a word, and that of blobs did not say what it
/// was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_include_what_they_know() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let blobs = "/box?restype=container&comp=list";
    for (path, include, is_known) in [
        ("/?comp=list", "metadata,deleted,system", true),
        ("/?comp=list", "Metadata, System", true),
        ("/?comp=list", "", true),
        ("/?comp=list", "metadata,", true),
        ("/?comp=list", "foo", false),
        ("/?comp=list", "snapshots", false),
        ("/?comp=list", "metadata,foo", false),
        (blobs, "", true),
        (blobs, "Snapshots,metadata", true),
        (blobs, "foo", false),
        (blobs, "metadata,foo", false),
        (blobs, "system", false),
    ] {
        let path = format!("{path}&include={}", include.replace(' ', "%20"));
        let (parts, body) = answer_to(&stamp, ("GET", &path), &[], "").await;
        if is_known {
            assert_eq!(parts.status, StatusCode::OK, "{path}: {body}");
            continue;
        }
        assert_eq!(parts.status, StatusCode::BAD_REQUEST, "{path}: {body}");
        assert_eq!(parts.headers["x-ms-error-code"], "InvalidQueryParameterValue", "{path}");
        let unknown = include.rsplit(',').next().expect("a part");
        let facts = format!(
            "<QueryParameterName>include</QueryParameterName><QueryParameterValue>{unknown}</QueryParameterValue>\
             <Reason>Invalid query parameter value.</Reason>"
        );
        assert!(body.contains(&facts), "{path}: {body}");
    }
    let (_, body) = answer_to(&stamp, ("GET", "/?comp=list&include=METADATA"), &[], "").await;
    assert!(body.contains("<Metadata"), "{body}");
}

/// A timeout that is none was taken for the longest, by all services.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_is_a_number_of_seconds() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let (invalid, out_of_range) = ("InvalidQueryParameterValue", "OutOfRangeQueryParameterValue");
    for (timeout, code) in [
        ("", ""),
        ("30", ""),
        ("99999999999999999999", ""),
        // The largest that 64 bits hold: a sum with it once ended the request without an answer.
        ("18446744073709551615", ""),
        ("9223372036854775807", ""),
        ("-10", out_of_range),
        ("-99999999999999999999", out_of_range),
        ("abc", invalid),
        ("1.5", invalid),
        ("-", invalid),
        ("10s", invalid),
    ] {
        let path = format!("/box?restype=container&timeout={timeout}");
        let (parts, body) = answer_to(&stamp, ("GET", &path), &[], "").await;
        let found = parts.headers.get("x-ms-error-code").map_or("", |code| code.to_str().expect("text"));
        assert_eq!((parts.status.is_success(), found), (code.is_empty(), code), "{timeout}: {body}");
        if !code.is_empty() {
            let facts = format!(
                "<QueryParameterName>timeout</QueryParameterName><QueryParameterValue>{timeout}</QueryParameterValue>"
            );
            assert!(body.contains(&facts), "{timeout}: {body}");
        }
        let status = if code.is_empty() { 200 } else { 400 };
        let queues = stamp.send_queue("GET", &format!("/?comp=list&timeout={timeout}"), &[], "").await;
        let tables = stamp.send("GET", &format!("/Tables?timeout={timeout}"), &[], "").await;
        assert_eq!(queues.expect(status).header("x-ms-error-code"), code, "{timeout}");
        assert_eq!(tables.expect(status).header("x-ms-error-code"), code, "{timeout}");
    }
    // No time at all is over at once.
    for method in ["GET", "PUT"] {
        let path = "/other?restype=container&timeout=0";
        let (parts, body) = answer_to(&stamp, (method, path), &[], "").await;
        assert_eq!(parts.headers["x-ms-error-code"], "OperationTimedOut", "{body}");
        assert_eq!(parts.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
    // Nothing is done, and an unknown client learns no more than that.
    let made = ask(&stamp, ("PUT", "/other?restype=container&timeout=abc"), &[], "").await;
    assert_eq!((made.0, made.1.as_str()), (400, invalid));
    assert_eq!(ask(&stamp, ("GET", "/other?restype=container"), &[], "").await.0, 404);
    let unknown = ask_without_key(&stamp, ("GET", "/box?comp=list&sig=x&sv=2020-02-10&timeout=abc"), &[]);
    assert_eq!(unknown.await.0, StatusCode::FORBIDDEN);
}

/// A list returned a size of its page that no page has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_returns_the_size_of_its_page() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    for path in ["/?comp=list", "/box?restype=container&comp=list"] {
        for (asked, told) in [
            ("", ""),
            ("&maxresults=2", "<MaxResults>2</MaxResults>"),
            ("&maxresults=5000", "<MaxResults>5000</MaxResults>"),
            ("&maxresults=5001", "<MaxResults>5000</MaxResults>"),
            ("&maxresults=999999", "<MaxResults>5000</MaxResults>"),
        ] {
            let (parts, body) = answer_to(&stamp, ("GET", &format!("{path}{asked}")), &[], "").await;
            assert_eq!(parts.status, StatusCode::OK, "{path}{asked}: {body}");
            let element = body.find("<MaxResults>").map_or("", |at| {
                let end = body.find("</MaxResults>").expect("an end") + "</MaxResults>".len();
                &body[at..end]
            });
            assert_eq!(element, told, "{path}{asked}: {body}");
        }
    }
}

/// A copy that is waited for returned no CRC-64 of what it had copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_copy_returns_its_crc64() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    let public = [("x-ms-blob-public-access", "blob")];
    assert_eq!(ask(&stamp, ("PUT", "/box?restype=container&comp=acl"), &public, "").await.0, 200);
    let block = "some bytes ".repeat(4 << 10);
    let whole = block.repeat(3);
    let kind = [("x-ms-blob-type", "BlockBlob")];
    for (path, bytes) in [("/box/small", &whole[..100]), ("/box/large", &whole), ("/box/empty", "")] {
        assert_eq!(ask(&stamp, ("PUT", path), &kind, bytes).await.0, 201, "{path}");
    }
    for id in ["MDAw", "MDAx"] {
        let path = format!("/box/blocks?comp=block&blockid={id}");
        assert_eq!(ask(&stamp, ("PUT", &path), &[], &block).await.0, 201, "{path}");
    }
    let list = "<BlockList><Latest>MDAw</Latest><Latest>MDAx</Latest><Latest>MDAw</Latest></BlockList>";
    assert_eq!(ask(&stamp, ("PUT", "/box/blocks?comp=blocklist"), &[], list).await.0, 201);
    for (name, bytes) in [("small", &whole[..100]), ("large", &whole), ("blocks", &whole), ("empty", "")] {
        let source = format!("http://127.0.0.1:10002{ROOT}/box/{name}");
        let headers = [("x-ms-copy-source", source.as_str()), ("x-ms-requires-sync", "true")];
        let (status, code, told) = ask(&stamp, ("PUT", "/box/copy"), &headers, "").await;
        assert_eq!((status, code.as_str()), (202, ""), "{name}");
        let crc64 = base::checksum::crc64(&[bytes.as_bytes()]).to_le_bytes();
        let crc64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, crc64);
        assert_eq!(told["x-ms-content-crc64"], crc64, "{name}");
        assert_eq!(answer_to(&stamp, ("GET", "/box/copy"), &[], "").await.1, bytes, "{name}");
        // An asynchronous one returns none.
        let (status, _, told) = ask(&stamp, ("PUT", "/box/copy"), &headers[..1], "").await;
        assert_eq!((status, told.contains_key("x-ms-content-crc64")), (202, false), "{name}");
    }
}

/// A blob that waits for its first commit was listed without a tier, and as if it were encrypted already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncommitted_blob_is_listed_in_the_tier_it_will_have() {
    let stamp = Stamp::open().await;
    make(&stamp, "box", &[]).await;
    assert_eq!(ask(&stamp, ("PUT", "/box/new?comp=block&blockid=MDAw"), &[], "bytes").await.0, 201);
    let path = "/box?restype=container&comp=list&include=uncommittedblobs";
    let (_, body) = answer_to(&stamp, ("GET", path), &[], "").await;
    let recorded = "<Name>new</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>\
                    <AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>\
                    <LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>\
                    <ServerEncrypted>false</ServerEncrypted></Properties>";
    assert!(body.contains(recorded), "{body}");
}
