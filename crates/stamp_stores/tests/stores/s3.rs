//! A bucket behind a small server: requests as they are sent, and every kind of answer.

use crate::object_rules;
use crate::s3_server::{BUCKET, Fault, S3Server};
use crate::surroundings;
use crate::tls_files::TlsFiles;
use base::{BoxFuture, Connector, Socket};
use bytes::Bytes;
use hyper::Method;
use stamp::PutAnswer;
use stamp_stores::{ObjectStoreSettings, OpenError, OpenedObjectStore, RequestKind, open_object_store};
use stamp_streams::StoreError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];

fn settings(server: &S3Server) -> ObjectStoreSettings {
    ObjectStoreSettings {
        endpoint: Some(server.url()),
        answer_for: Duration::from_millis(500),
        ..ObjectStoreSettings::default()
    }
}

async fn open(server: &S3Server) -> OpenedObjectStore {
    let url = format!("s3://{BUCKET}/pre/fix");
    open_object_store(&url, &settings(server), &surroundings(&KEYS)).await.expect("a store")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_keeps_the_rules() {
    let server = S3Server::start().await;
    let url = format!("s3://{BUCKET}/pre/fix");
    let settings = ObjectStoreSettings { answer_for: Duration::from_secs(10), ..settings(&server) };
    let opened = open_object_store(&url, &settings, &surroundings(&KEYS)).await.expect("a store");
    object_rules::hold(opened.store.clone(), "stamp").await;
    let whole = open_object_store(&format!("s3://{BUCKET}"), &settings, &surroundings(&KEYS)).await;
    object_rules::hold(whole.expect("a store").store, "other").await;
    let creations = opened.counts.reading(RequestKind::Create);
    assert!(creations.answered > 1000 && creations.failed == 0 && creations.abandoned == 0);
    assert_eq!(creations.buckets.iter().sum::<u64>(), creations.answered);
}

#[tokio::test]
async fn a_creation_is_one_conditional_put() {
    let server = S3Server::start().await;
    let opened = open(&server).await;
    let content = Bytes::from_static(b"content");
    assert_eq!(opened.store.create("a b/c", content.clone()).await, PutAnswer::Created);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    let put = &seen[0];
    assert_eq!((&put.method, put.target.as_str()), (&Method::PUT, "/bkt/pre/fix/a%20b/c"));
    assert_eq!((put.header("if-none-match"), put.header("content-length")), ("*", "7"));
    assert_eq!((put.header("expect"), put.header("transfer-encoding")), ("", ""));
    assert_eq!(put.body, content);
    assert!(put.header("authorization").contains("/us-east-1/s3/aws4_request"));
}

/// Each answer means what `stamp::put_answer` says, and nothing is sent again.
#[tokio::test]
async fn creations_and_what_their_answers_mean() {
    let server = S3Server::start().await;
    let opened = open(&server).await;
    let mut number = 0;
    for (fault, expected) in [
        (Fault::Status(412, "PreconditionFailed"), PutAnswer::Refused),
        (Fault::Status(403, "AccessDenied"), PutAnswer::Failed { status: 403 }),
        (Fault::Status(404, "NoSuchBucket"), PutAnswer::Failed { status: 404 }),
        (Fault::Status(400, "EntityTooLarge"), PutAnswer::Failed { status: 400 }),
        (Fault::Status(507, ""), PutAnswer::Failed { status: 507 }),
        (Fault::Status(409, "ConditionalRequestConflict"), PutAnswer::Unknown),
        (Fault::Status(408, "RequestTimeout"), PutAnswer::Unknown),
        (Fault::Status(429, "TooManyRequests"), PutAnswer::Unknown),
        (Fault::Status(500, "InternalError"), PutAnswer::Unknown),
        (Fault::Status(503, "SlowDown"), PutAnswer::Unknown),
        (Fault::Status(403, "ExpiredToken"), PutAnswer::Unknown),
        (Fault::Status(403, "RequestTimeTooSkewed"), PutAnswer::Unknown),
        (Fault::DoneThenStatus(500, "InternalError"), PutAnswer::Unknown),
        (Fault::Redirect, PutAnswer::Unknown),
        (Fault::Reset, PutAnswer::Unknown),
        (Fault::DoneThenReset, PutAnswer::Unknown),
        (Fault::Silence, PutAnswer::Unknown),
    ] {
        number += 1;
        let name = format!("part{number}");
        let content = Bytes::from(name.clone());
        server.seen();
        server.fault(fault);
        assert_eq!(opened.store.create(&name, content.clone()).await, expected, "{fault:?}");
        assert_eq!(server.seen().len(), 1, "{fault:?}");
        // The same again tells what became of the first.
        let is_done = matches!(fault, Fault::DoneThenStatus(..) | Fault::DoneThenReset);
        let again = if is_done { PutAnswer::Refused } else { PutAnswer::Created };
        assert_eq!(opened.store.create(&name, content.clone()).await, again, "{fault:?}");
        assert_eq!(opened.store.read(&name, 0, 100).await, Ok(content));
    }
}

#[tokio::test]
async fn reads_and_what_their_answers_mean() {
    let server = S3Server::start().await;
    let store = open(&server).await.store;
    let content = Bytes::from_static(b"0123456789");
    assert_eq!(store.create("part", content.clone()).await, PutAnswer::Created);
    let kind = |read: Result<Bytes, StoreError>| match read {
        Ok(bytes) => format!("{bytes:?}"),
        Err(StoreError::NotThere) => "not there".to_owned(),
        Err(StoreError::Unavailable(_)) => "unavailable".to_owned(),
        Err(StoreError::Refused(_)) => "refused".to_owned(),
        Err(StoreError::UnknownOutcome(_)) => "unknown".to_owned(),
    };
    for (fault, expected) in [
        (Fault::Status(404, "NoSuchKey"), "not there"),
        (Fault::Status(404, "NoSuchBucket"), "refused"),
        (Fault::Status(404, ""), "refused"),
        (Fault::Status(403, "AccessDenied"), "refused"),
        (Fault::Status(500, "InternalError"), "unavailable"),
        (Fault::Status(503, "SlowDown"), "unavailable"),
        (Fault::Redirect, "refused"),
        (Fault::Reset, "unavailable"),
        (Fault::Silence, "unavailable"),
        (Fault::Cut, "unavailable"),
        (Fault::OtherRange, "unavailable"),
    ] {
        server.fault(fault);
        assert_eq!(kind(store.read("part", 2, 3).await), expected, "{fault:?}");
        assert_eq!(store.read("part", 2, 3).await, Ok(content.slice(2..5)), "{fault:?}");
    }
    // A server may answer with the whole object.
    server.fault(Fault::Whole);
    assert_eq!(store.read("part", 2, 100).await, Ok(content.slice(2..)));
    server.fault(Fault::Whole);
    assert_eq!(kind(store.read("part", 2, 3).await), "refused", "more than a caller has memory for");
}

#[tokio::test]
async fn deletions_and_listings_and_what_their_answers_mean() {
    let server = S3Server::start().await;
    let store = open(&server).await.store;
    for (fault, is_unknown) in [
        (Fault::Status(500, "InternalError"), true),
        (Fault::Status(503, "SlowDown"), true),
        (Fault::Status(409, ""), true),
        (Fault::DoneThenReset, true),
        (Fault::Silence, true),
        (Fault::Status(403, "AccessDenied"), false),
        (Fault::Status(404, "NoSuchBucket"), false),
        (Fault::Redirect, false),
    ] {
        server.fault(fault);
        let deleted = store.delete("part").await;
        match is_unknown {
            true => assert!(matches!(deleted, Err(StoreError::UnknownOutcome(_))), "{fault:?}: {deleted:?}"),
            false => assert!(matches!(deleted, Err(StoreError::Refused(_))), "{fault:?}: {deleted:?}"),
        }
        server.fault(fault);
        let listed = store.list("", None).await;
        let is_expected = match listed {
            Err(StoreError::Unavailable(_)) => is_unknown,
            Err(StoreError::Refused(_)) => !is_unknown,
            _ => false,
        };
        assert!(is_expected, "{fault:?}: {listed:?}");
    }
    assert!(store.list("", None).await.is_ok_and(|page| page.names.is_empty()));
}

#[tokio::test]
async fn nobody_listens() {
    let settings = ObjectStoreSettings {
        endpoint: Some("http://127.0.0.1:1".to_owned()),
        ..ObjectStoreSettings::default()
    };
    let opened = open_object_store("s3://bkt", &settings, &surroundings(&KEYS)).await.expect("a store");
    assert_eq!(opened.store.create("a", Bytes::new()).await, PutAnswer::Unknown);
    assert!(matches!(opened.store.read("a", 0, 1).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(opened.store.delete("a").await, Err(StoreError::Unavailable(_))), "nothing was sent");
    assert!(matches!(opened.check_first_start().await, Err(OpenError::Unavailable { .. })));
}

/// The caller's own time-out drops a request: it is counted, and its connection is not used again.
#[tokio::test]
async fn a_request_that_is_given_up_leaves_nothing_behind() {
    let server = S3Server::start().await;
    let opened = open(&server).await;
    server.fault(Fault::Silence);
    let creation = opened.store.create("a", Bytes::from_static(b"1"));
    assert!(tokio::time::timeout(Duration::from_millis(100), creation).await.is_err());
    assert_eq!(opened.store.create("a", Bytes::from_static(b"1")).await, PutAnswer::Created);
    let reading = opened.counts.reading(RequestKind::Create);
    assert_eq!((reading.answered, reading.failed, reading.abandoned), (1, 0, 1));
}

/// Leads every connection to the server, whatever host is named.
struct ToServer(u16);

impl Connector for ToServer {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let socket = tokio::net::TcpStream::connect(("127.0.0.1", self.0)).await?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_in_the_hosts_name() {
    let server = S3Server::start().await;
    let mut surroundings = surroundings(&KEYS);
    surroundings.http.connector = Arc::new(ToServer(server.port));
    let settings = ObjectStoreSettings {
        endpoint: Some("http://objects.test".to_owned()),
        path_style: Some(false),
        region: Some("eu-west-3".to_owned()),
        ..ObjectStoreSettings::default()
    };
    let opened = open_object_store("s3://bkt", &settings, &surroundings).await.expect("a store");
    assert_eq!(opened.store.create("a/b", Bytes::new()).await, PutAnswer::Created);
    let put = server.seen().remove(0);
    assert_eq!((put.header("host"), put.target.as_str()), ("bkt.objects.test", "/a/b"));
    assert!(put.header("authorization").contains("/eu-west-3/s3/aws4_request"));
    object_rules::hold(opened.store.clone(), "p").await;
}

/// Through a proxy that the variables name, requests have the whole address.
#[tokio::test]
async fn a_proxy_gets_whole_addresses() {
    let server = S3Server::start().await;
    let proxy = server.url();
    let variables: Vec<(&str, &str)> = KEYS.into_iter().chain([("http_proxy", proxy.as_str())]).collect();
    let settings = ObjectStoreSettings {
        endpoint: Some("http://objects.test:81".to_owned()),
        ..ObjectStoreSettings::default()
    };
    let opened = open_object_store("s3://bkt", &settings, &surroundings(&variables)).await.expect("a store");
    drop(opened.store.read("a", 0, 1).await);
    let get = server.seen().remove(0);
    assert_eq!(
        (get.target.as_str(), get.header("host")),
        ("http://objects.test:81/bkt/a", "objects.test:81")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_over_tls() {
    let Some(files) = TlsFiles::make() else { return };
    let chain = CertificateDer::pem_file_iter(files.path("server.pem")).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(files.path("server.key")).expect("a key");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate");
    let server = S3Server::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let with = async |ca_file: Option<String>, variables: &[(&str, &str)]| {
        let endpoint = Some(format!("https://127.0.0.1:{}", server.port));
        let settings = ObjectStoreSettings { endpoint, ca_file, ..ObjectStoreSettings::default() };
        open_object_store("s3://bkt", &settings, &surroundings(variables)).await.expect("a store")
    };
    let opened = with(Some(files.text("ca.pem")), &KEYS).await;
    assert_eq!(opened.store.create("a", Bytes::from_static(b"1")).await, PutAnswer::Created);
    // TLS guards the body.
    assert_eq!(server.seen().remove(0).header("x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    object_rules::hold(opened.store.clone(), "tls").await;
    let bundle = files.text("ca.pem");
    let variables: Vec<(&str, &str)> = KEYS.into_iter().chain([("AWS_CA_BUNDLE", bundle.as_str())]).collect();
    assert!(with(None, &variables).await.store.read("a", 0, 1).await.is_ok());
    let stranger = with(Some(files.text("client.pem")), &KEYS).await;
    assert!(stranger.store.read("a", 0, 1).await.is_err(), "a certificate of another root");
    let missing =
        ObjectStoreSettings { ca_file: Some(files.text("absent.pem")), ..ObjectStoreSettings::default() };
    assert!(open_object_store("s3://bkt", &missing, &surroundings(&KEYS)).await.is_err());
}

#[tokio::test]
async fn buckets_that_keep_or_remove_objects_are_refused() {
    let server = S3Server::start().await;
    let opened = open(&server).await;
    let none = "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>";
    let (versioning, lifecycle) = ("GET /bkt?versioning=", "GET /bkt?lifecycle=");
    server.fix(versioning, 200, "<VersioningConfiguration/>");
    server.fix(lifecycle, 404, none);
    assert_eq!(opened.check_first_start().await, Ok(Vec::new()));
    server.fix(
        versioning,
        200,
        "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    );
    let error = opened.check_first_start().await.expect_err("versions").to_string();
    assert!(
        error.contains("bucket bkt") && error.contains("without versions") && !error.contains('\n'),
        "{error}"
    );
    server.fix(versioning, 403, "<Error><Code>AccessDenied</Code></Error>");
    let rule = "<Rule><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>";
    server.fix(lifecycle, 200, &format!("<LifecycleConfiguration>{rule}</LifecycleConfiguration>"));
    let error = opened.check_first_start().await.expect_err("rules").to_string();
    assert!(error.contains("life-cycle") && error.contains("remove them"), "{error}");
    server.fix(lifecycle, 501, "");
    let warnings = opened.check_first_start().await.expect("warnings");
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].contains("s3:GetBucketVersioning"), "{warnings:?}");
    server.fix(versioning, 404, "<Error><Code>NoSuchBucket</Code></Error>");
    let error = opened.check_first_start().await.expect_err("no bucket").to_string();
    assert!(error.contains("make the bucket first"), "{error}");
    server.fix(versioning, 503, "");
    assert!(matches!(opened.check_first_start().await, Err(OpenError::Unavailable { .. })));
}

/// Secrets are in no error and no `Debug`, whatever a server sends back.
#[tokio::test]
async fn a_secret_is_never_shown() {
    let server = S3Server::start().await;
    let opened = open(&server).await;
    let mut shown = Vec::new();
    for fault in [Fault::Status(403, "SignatureDoesNotMatch"), Fault::Status(503, "hunter2"), Fault::Reset] {
        server.fault(fault);
        if let Err(error) = opened.store.read("a", 0, 1).await {
            shown.push(format!("{error} {error:?}"));
        }
    }
    shown.push(format!("{:?} {:?}", settings(&server), opened.check_first_start().await));
    let code_only = shown.remove(1);
    assert!(code_only.contains("hunter2"), "a code is shown: this test would notice");
    for text in shown {
        assert!(!text.contains("hunter2") && !text.contains("AKIATEST"), "{text}");
    }
}
