//! A whole stamp in memory, without sockets: requests are signed as clients sign them.
#![allow(dead_code)] // Each test file uses its part.

pub(crate) mod answers;
pub(crate) mod listening;

use base::memory_disk::MemoryDisk;
use base::{BoxFuture, Clock, Environment, Ticks};
use bytes::Bytes;
use front_end::accounts::DEVELOPMENT_ACCOUNT_NAME;
use front_end::auth::shared_key::{
    HeaderOrder, SharedKeyScheme, SignedRequest, SignedService, write_string_to_sign,
};
use front_end::auth::signature::{SignSink, SigningKey};
use front_end::{
    Accounts, ConnectionInfo, FrontEnd, FrontEndSettings, Limits, QueryParameters, Services, SignedPath,
};
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use partition::Partitions;
use queue::QueueService;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use stream::{StreamSettings, Streams};
use table::TableService;

/// The development account's path.
pub(crate) const ROOT: &str = "/devstoreaccount1";

/// Stands for the real monotonic clock.
const REAL: u64 = u64::MAX;

/// The real monotonic clock with a wall clock that is set by hand. The monotonic clock can be set by hand,
/// too; then sleeps still take real time.
pub(crate) struct SetClock {
    real: base::system::SystemClock,
    wall: AtomicU64,
    monotonic_nanos: AtomicU64,
}

impl SetClock {
    pub(crate) fn set(&self, wall: Ticks) {
        self.wall.store(wall.0, Ordering::Relaxed);
    }

    pub(crate) fn set_monotonic(&self, monotonic: Duration) {
        self.monotonic_nanos.store(monotonic.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Ticks {
        Ticks(self.wall.load(Ordering::Relaxed))
    }
    fn monotonic(&self) -> Duration {
        match self.monotonic_nanos.load(Ordering::Relaxed) {
            REAL => self.real.monotonic(),
            nanos => Duration::from_nanos(nanos),
        }
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(sleep_for)
    }
}

/// The same wall clock for the layers below, whose time would go on from their newest version.
struct WallOnly(Arc<SetClock>);

impl Clock for WallOnly {
    fn now(&self) -> Ticks {
        self.0.now()
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(sleep_for)
    }
}

/// An answer, read whole.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The code of an error in JSON.
    pub(crate) fn code(&self) -> String {
        self.json()["odata.error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Panics unless the answer is this.
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{:?} {}", self.headers, self.body);
        self
    }

    /// Panics unless the answer is this error.
    pub(crate) fn expect_error(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status.as_u16(), self.header("x-ms-error-code")), (status, code), "{}", self.body);
        self
    }
}

/// A stamp and its front end.
pub(crate) struct Stamp {
    pub(crate) front_end: Arc<FrontEnd>,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) key: SigningKey,
}

impl Stamp {
    pub(crate) async fn open() -> Self {
        Self::with_limits(Limits::default()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        Self::with_settings(|settings| settings.limits = limits).await
    }

    pub(crate) async fn with_settings(change: impl FnOnce(&mut FrontEndSettings)) -> Self {
        Self::over(Arc::new(MemoryDisk::new()), change).await
    }

    /// Over a data folder.
    pub(crate) async fn over(disk: Arc<MemoryDisk>, change: impl FnOnce(&mut FrontEndSettings)) -> Self {
        let mut env: Environment = base::system::environment_on(disk);
        let clock = Arc::new(SetClock {
            real: base::system::SystemClock::new(),
            wall: AtomicU64::new(service::parse_date_time("2026-11-21T09:00:00Z").expect("date").0),
            monotonic_nanos: AtomicU64::new(REAL),
        });
        env.clock = Arc::new(WallOnly(clock.clone()));
        let settings = StreamSettings {
            extent_size_bytes_max: 16 << 20,
            journal_segment_size_bytes: 1 << 20,
            journaled_append_size_bytes_max: 64 << 10,
            ..StreamSettings::default()
        };
        let streams = Streams::open(&env, settings).await.expect("streams");
        let partitions = Arc::new(
            Partitions::open(&env, streams, partition::PartitionSettings::default())
                .await
                .expect("partitions"),
        );
        let versioned = blob::VersionedAccounts::default();
        let blob = Arc::new(blob::BlobService::new(partitions.clone(), clock.clone(), versioned));
        let table = Arc::new(TableService::new(partitions.clone(), clock.clone()));
        let queue = Arc::new(QueueService::new(partitions, clock.clone(), env.random.clone()));
        let mut settings = FrontEndSettings::new(Accounts::development());
        change(&mut settings);
        let front_end =
            FrontEnd::new(settings, Services { blob, table, queue }, clock.clone(), env.random, env.spawner);
        let account = front_end::Account::development();
        Stamp { front_end: Arc::new(front_end), clock, key: account.keys()[0].clone() }
    }

    pub(crate) fn date(&self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + self.clock.now().since_unix())
    }

    /// Sends a request as it is.
    pub(crate) async fn send_raw(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request");
        self.send_request(request).await
    }

    pub(crate) async fn send_request(&self, request: Request<Full<Bytes>>) -> Answer {
        let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
        let response = self.front_end.handle_table(connection, request).await;
        let (parts, body) = response.into_parts();
        let mut body = body.collect().await.expect("a body").to_bytes().to_vec();
        if parts.headers.contains_key("content-encoding") {
            let compressed = std::mem::take(&mut body);
            flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut body).expect("gzip");
        }
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8(body).expect("text") }
    }

    /// Sends a request to the Queue service, as it is.
    pub(crate) async fn send_queue_request(&self, request: Request<Full<Bytes>>) -> Answer {
        let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
        let (parts, body) = self.front_end.handle_queue(connection, request).await.into_parts();
        let body = body.collect().await.expect("a body").to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8(body).expect("text") }
    }

    /// Sends a signed request to the Queue service; `path` is below the account.
    pub(crate) async fn send_queue(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let target = format!("{ROOT}{path}");
        let length = body.len().to_string();
        let mut all = vec![("x-ms-version", "2026-10-06"), ("content-length", length.as_str())];
        all.extend_from_slice(headers);
        let mut request = Request::builder().method(method).uri(&target);
        for (name, value) in &self.headers_signed_for(SignedService::BlobOrQueue, method, &target, &all) {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request");
        self.send_queue_request(request).await
    }

    /// The headers of a request to the development account's tables, signed.
    pub(crate) fn signed_headers(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> HeaderMap {
        self.headers_signed_for(SignedService::Table, method, target, headers)
    }

    pub(crate) fn headers_signed_for(
        &self,
        service: SignedService,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> HeaderMap {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        self.headers_signed_over(service, method, target, &headers)
    }

    /// The same with values of any bytes.
    pub(crate) fn headers_signed_over(
        &self,
        service: SignedService,
        method: &str,
        target: &str,
        headers: &[(&str, &[u8])],
    ) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert("host", HeaderValue::from_static("127.0.0.1:10002"));
        map.insert("x-ms-version", HeaderValue::from_static("2019-02-02"));
        map.insert("x-ms-date", HeaderValue::from_str(&self.date()).expect("date"));
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("name");
            map.insert(name, HeaderValue::from_bytes(value).expect("value"));
        }
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let query = QueryParameters::parse(query).unwrap_or_default();
        let signed = SignedRequest {
            service,
            method,
            account: DEVELOPMENT_ACCOUNT_NAME,
            path: SignedPath { account: None, rest: path },
            query: &query,
            headers: &map,
        };
        let signature = self.key.sign(|sink| {
            write_string_to_sign(&signed, SharedKeyScheme::Full, HeaderOrder::Collation, sink);
        });
        let value = format!("SharedKey {DEVELOPMENT_ACCOUNT_NAME}:{signature}");
        map.insert("authorization", HeaderValue::from_str(&value).expect("value"));
        map
    }

    /// Sends a signed request; `path` is below the account.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let target = format!("{ROOT}{path}");
        let mut request = Request::builder().method(method).uri(&target);
        for (name, value) in &self.signed_headers(method, &target, headers) {
            request = request.header(name, value);
        }
        request = request.header("content-length", body.len());
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request");
        self.send_request(request).await
    }

    /// Creates a table.
    pub(crate) async fn create_table(&self, name: &str) {
        let body = format!("{{\"TableName\":\"{name}\"}}");
        self.send("POST", "/Tables", &[], &body).await.expect(201);
    }

    /// Inserts an entity without content in the answer.
    pub(crate) async fn insert(&self, table: &str, body: &str) -> Answer {
        let headers = [("prefer", "return-no-content")];
        self.send("POST", &format!("/{table}"), &headers, body).await
    }

    /// A query's signature as a parameter.
    pub(crate) fn sas_signature(&self, text: &str) -> String {
        self.key.sign(|sink| sink.put(text.as_bytes())).replace('+', "%2B").replace('=', "%3D")
    }
}
