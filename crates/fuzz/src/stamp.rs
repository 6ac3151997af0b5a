//! A stamp in memory with a fixture: one table with a few entities of all types, a policy, and default
//! settings.
//!
//! [`Stamp::send`] checks every response against the rules that hold for all requests. The stored state is
//! read as text ([`Stamp::stored`]); a refused request must leave it as it was, and [`Stamp::restore`]
//! restores the fixture after a request that changed it. The wall clock stands still, so that dates in seeds
//! stay valid.

use base::memory_disk::MemoryDisk;
use base::{BoxFuture, Clock, Environment, Ticks};
use blob::BlobService;
use bytes::Bytes;
use front_end::accounts::DEVELOPMENT_ACCOUNT_NAME;
use front_end::auth::shared_key::{SharedKeyScheme, SignedRequest, SignedService, string_to_sign};
use front_end::auth::signature::{SignSink, SigningKey};
use front_end::{
    Accounts, ConnectionInfo, FrontEnd, FrontEndSettings, QueryParameters, Services, SignedPath,
};
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};
use partition::Partitions;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use queue::QueueService;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use stream::{StreamSettings, Streams};
use table::TableService;

/// The development account's path.
pub(crate) const ROOT: &str = "/devstoreaccount1";
/// The fixture's table.
pub(crate) const TABLE: &str = "Fuzz";
/// The time of every request.
const NOW: &str = "2026-11-21T09:00:00Z";
/// A policy that grants reads until long after [`NOW`].
const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Expiry>2030-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
/// A stamp is replaced after so many changes, because tombstones keep their memory.
const CHANGES_MAX: u64 = 50_000;

const ENTITIES: &[&str] = &[
    r#"{"PartitionKey":"","RowKey":"","Text":""}"#,
    r#"{"PartitionKey":"p","RowKey":"a","Text":"it's","Int":5,"Flag":true}"#,
    r#"{"PartitionKey":"p","RowKey":"b","Int":-1,"Long@odata.type":"Edm.Int64","Long":"1099511627776"}"#,
    r#"{"PartitionKey":"p","RowKey":"é","Double":1.5,"Flag":false,"Int@odata.type":"Edm.Int64","Int":"5"}"#,
    r#"{"PartitionKey":"pp","RowKey":"a","Double@odata.type":"Edm.Double","Double":"NaN","Text":"pp"}"#,
    r#"{"PartitionKey":"q","RowKey":"😀","Guid@odata.type":"Edm.Guid","Guid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#,
    r#"{"PartitionKey":"q","RowKey":"～","Date@odata.type":"Edm.DateTime","Date":"2020-01-02T03:04:05Z","Text":"q"}"#,
    r#"{"PartitionKey":"q","RowKey":"zz","Binary@odata.type":"Edm.Binary","Binary":"Af8=","Int":0}"#,
];

/// A response with its whole body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn is_refusal(&self) -> bool {
        self.status >= 400
    }

    fn code(&self) -> &str {
        self.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok()).unwrap_or_default()
    }
}

/// A clock whose readings stand still; sleeps are real.
struct StandingClock {
    real: base::system::SystemClock,
    now: Ticks,
}

impl Clock for StandingClock {
    fn now(&self) -> Ticks {
        self.now
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(sleep_for)
    }
}

/// A front end over layers in memory that hold the fixture.
pub(crate) struct Stamp {
    runtime: tokio::runtime::Runtime,
    layers: Layers,
    /// The stored state when only the fixture is stored.
    fixture: StoredState,
    changes: u64,
}

struct Layers {
    front_end: FrontEnd,
    partitions: Arc<Partitions>,
    streams: Arc<Streams>,
    now: Ticks,
    key: SigningKey,
}

/// Everything a client can read, as text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredState {
    tables: String,
    entities: String,
    policies: String,
    properties: String,
}

impl Stamp {
    pub(crate) fn open() -> Stamp {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let layers = runtime.block_on(Layers::open());
        let nothing = String::new;
        let fixture = StoredState {
            tables: nothing(),
            entities: nothing(),
            policies: nothing(),
            properties: nothing(),
        };
        let mut stamp = Stamp { runtime, layers, fixture, changes: 0 };
        stamp.write_fixture();
        stamp
    }

    /// Sends a signed request below the development account; the response must keep the rules of all
    /// requests.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                hyper::header::HeaderName::from_bytes(name.as_bytes()).expect("a name"),
                HeaderValue::from_str(value).expect("a value"),
            );
        }
        let target = format!("{ROOT}{path}");
        let uri: Uri = target.parse().unwrap_or_else(|error| panic!("{error}: {target}"));
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let headers = self.signed(&method, &uri, map);
        self.send(method, uri, headers, body)
    }

    /// Adds host, version, date and signature, where they are missing.
    pub(crate) fn signed(&self, method: &Method, uri: &Uri, mut headers: HeaderMap) -> HeaderMap {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + self.layers.now.since_unix());
        for (name, value) in
            [("host", "127.0.0.1:10002"), ("x-ms-version", "2019-02-02"), ("x-ms-date", &date)]
        {
            if !headers.contains_key(name) {
                headers.insert(name, HeaderValue::from_str(value).expect("a value"));
            }
        }
        if headers.contains_key(AUTHORIZATION) {
            return headers;
        }
        let query = QueryParameters::parse(uri.query()).unwrap_or_default();
        let text = string_to_sign(
            &SignedRequest {
                service: SignedService::Table,
                method: method.as_str(),
                account: DEVELOPMENT_ACCOUNT_NAME,
                path: SignedPath { account: None, rest: uri.path() },
                query: &query,
                headers: &headers,
            },
            SharedKeyScheme::Full,
        );
        let value = format!("SharedKey {DEVELOPMENT_ACCOUNT_NAME}:{}", self.sign(&text));
        // A string-to-sign holds header values, so only the signature of it goes into a header.
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&value).expect("a value"));
        headers
    }

    /// The account key's signature of `text`.
    pub(crate) fn sign(&self, text: &str) -> String {
        self.layers.key.sign(|sink| sink.put(text.as_bytes()))
    }

    /// Sends a request as it is; the response must keep the rules of all requests.
    pub(crate) fn send(&self, method: Method, uri: Uri, headers: HeaderMap, body: &[u8]) -> Answer {
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(body)));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method.clone(), uri, headers);
        let answer = self.runtime.block_on(self.layers.send(request));
        let text = || answer.text();
        assert!(answer.headers.contains_key("x-ms-request-id"), "no request id: {}", text());
        if answer.status >= 500 {
            let known = [(500, "OperationTimedOut"), (501, "NotImplemented")];
            assert!(known.contains(&(answer.status, answer.code())), "{}: {}", answer.status, text());
        }
        if answer.is_refusal() {
            assert!(!answer.code().is_empty(), "{} without code: {}", answer.status, text());
            let compressed = answer.headers.contains_key("content-encoding");
            if !compressed && method != Method::HEAD {
                assert!(text().contains(answer.code()), "{} is not in {}", answer.code(), text());
            }
        }
        answer
    }

    /// Checks that a request has changed nothing.
    pub(crate) fn check_unchanged(&self, why: &str) {
        let stored = self.stored();
        assert_eq!(stored, self.fixture, "{why}");
    }

    /// Everything that a client can read.
    pub(crate) fn stored(&self) -> StoredState {
        let read = |path: &str| {
            let accept = [("accept", "application/json;odata=fullmetadata")];
            let answer = self.request("GET", path, &accept, b"");
            assert!(answer.status == 200 || answer.status == 404, "{path}: {}", answer.text());
            if answer.status == 200 { answer.text() } else { String::new() }
        };
        StoredState {
            tables: read("/Tables"),
            entities: read(&format!("/{TABLE}()")),
            policies: read(&format!("/{TABLE}?comp=acl")),
            properties: read("/?restype=service&comp=properties"),
        }
    }

    /// Restores the fixture, if something else is stored.
    pub(crate) fn restore(&mut self) {
        let stored = self.stored();
        if stored == self.fixture {
            return;
        }
        self.changes += 1;
        if self.changes > CHANGES_MAX {
            self.runtime.block_on(self.layers.close());
            self.layers = self.runtime.block_on(Layers::open());
            self.changes = 0;
        } else {
            self.remove_all_but_the_fixture(&stored);
        }
        self.write_fixture();
    }

    fn remove_all_but_the_fixture(&self, stored: &StoredState) {
        for table in rows(&stored.tables) {
            let name = table["TableName"].as_str().expect("a name").to_owned();
            if name != TABLE {
                let removed = self.request("DELETE", &format!("/Tables('{name}')"), &[], b"");
                assert_eq!(removed.status, 204, "{}", removed.text());
            }
        }
        let kept = keyed(&self.fixture.entities);
        for (key, entity) in keyed(&stored.entities) {
            if kept.get(&key) != Some(&entity) {
                let removed = self.request("DELETE", &entity_path(&key.0, &key.1), &[("if-match", "*")], b"");
                assert_eq!(removed.status, 204, "{}", removed.text());
            }
        }
    }

    fn write_fixture(&mut self) {
        let expect = |answer: Answer, statuses: &[u16]| {
            assert!(statuses.contains(&answer.status), "{}: {}", answer.status, answer.text());
        };
        let table = format!("{{\"TableName\":\"{TABLE}\"}}");
        expect(self.request("POST", "/Tables", &[], table.as_bytes()), &[201, 409]);
        for entity in ENTITIES {
            expect(self.request("POST", &format!("/{TABLE}"), &[], entity.as_bytes()), &[201, 409]);
        }
        expect(self.request("PUT", &format!("/{TABLE}?comp=acl"), &[], POLICIES.as_bytes()), &[204]);
        let properties = &self.fixture.properties;
        if !properties.is_empty() {
            let path = "/?restype=service&comp=properties";
            expect(self.request("PUT", path, &[], properties.as_bytes()), &[202]);
        }
        let stored = self.stored();
        // Settings must be returned as they were sent.
        assert!(properties.is_empty() || *properties == stored.properties, "{}", stored.properties);
        self.fixture = stored;
    }
}

impl Drop for Stamp {
    /// The layers' threads end before the runtime that drives their timers.
    fn drop(&mut self) {
        self.runtime.block_on(self.layers.close());
    }
}

impl Layers {
    async fn open() -> Layers {
        let mut env: Environment = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let now = service::parse_date_time(NOW).expect("a date");
        let clock = Arc::new(StandingClock { real: base::system::SystemClock::new(), now });
        env.clock = clock.clone();
        let settings = StreamSettings {
            extent_size_bytes_max: 16 << 20,
            journal_segment_size_bytes: 1 << 20,
            journaled_append_size_bytes_max: 64 << 10,
            ..StreamSettings::default()
        };
        let streams = Streams::open(&env, settings).await.expect("streams");
        let partitions = Partitions::open(&env, streams.clone(), partition::PartitionSettings::default());
        let partitions = Arc::new(partitions.await.expect("partitions"));
        let table = Arc::new(TableService::new(partitions.clone(), clock.clone()));
        let blob = Arc::new(BlobService::new(partitions.clone(), clock.clone(), Default::default()));
        let queue = Arc::new(QueueService::new(partitions.clone(), clock, env.random.clone()));
        let settings = FrontEndSettings::new(Accounts::development());
        let front_end =
            FrontEnd::new(settings, Services { blob, table, queue }, env.clock, env.random, env.spawner);
        let key = front_end::Account::development().keys()[0].clone();
        Layers { front_end, partitions, streams, now, key }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
        let response = self.front_end.handle_table(connection, request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes().to_vec();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn close(&self) {
        self.partitions.close().await;
        self.streams.close().await;
    }
}

/// The rows of a list's answer; none if there is no list.
pub(crate) fn rows(list: &str) -> Vec<Value> {
    match serde_json::from_str(list) {
        Ok(Value::Object(mut list)) => match list.remove("value") {
            Some(Value::Array(rows)) => rows,
            _ => panic!("no list: {list:?}"),
        },
        _ => Vec::new(),
    }
}

fn keyed(entities: &str) -> BTreeMap<(String, String), Value> {
    let key = |entity: &Value, name: &str| entity[name].as_str().expect("a key").to_owned();
    let rows = rows(entities).into_iter();
    rows.map(|entity| ((key(&entity, "PartitionKey"), key(&entity, "RowKey")), entity)).collect()
}

/// The address of an entity below the account.
pub(crate) fn entity_path(partition_key: &str, row_key: &str) -> String {
    let (partition_key, row_key) = (escaped(partition_key), escaped(row_key));
    format!("/{TABLE}(PartitionKey='{partition_key}',RowKey='{row_key}')")
}

fn escaped(key: &str) -> String {
    utf8_percent_encode(&key.replace('\'', "''"), NON_ALPHANUMERIC).to_string()
}
