//! A table over one connection of the caller's own, for load generators: requests are put together in
//! buffers that are used again, and of an answer no more is read than the operation's outcome needs.
//!
//! It sends what [`TableClient`] sends, and fails and retries as that does. What always holds: an operation
//! whose first attempt succeeds allocates nothing once the buffers have grown, but for queries and groups;
//! neither key nor signature is printed. Absent: TLS, proxies and the secondary, for which there is
//! [`TableClient`].

use super::entity::TextEntity;
use super::group::{
    NAME as SUBMIT, put_group_end, put_group_start, put_part_end, put_part_start, read_etags,
};
use super::json::{count_entities, has_row_key, put_text_entity};
use super::query::{Continuation, NAME as QUERY, Query, continuation_of, page_operation, unless_repeated};
use super::table_client::{GET, INSERT, INSERT_OR_REPLACE, JSON, TableClient, put_entity_path};
use crate::GROUP_OPERATIONS_MAX;
use crate::account::credentials::Credentials;
use crate::account::endpoint::{AccountEndpoint, Service};
use crate::client::{Client, TABLE_VERSION};
use crate::course::{Course, Effect, FailedAttempt};
use crate::error::Error;
use crate::wire::address_text::{encode, encode_query};
use crate::wire::header_text::text;
use crate::wire::keep_alive::{Exchanged, KEPT_SIZE_BYTES_MAX, KeepAlive};
use crate::wire::shared_key::{SIGNATURE_LEN, UnsignedTable};
use base::guid::guid_letters;
use hyper::header::HeaderValue;
use hyper::{Method, Uri};
use std::io::Write;
use std::sync::Arc;

/// Bytes of a date such as `Sat, 21 Nov 2026 09:00:00 GMT`.
const DATE_LEN: usize = 29;

/// A table over one connection, with one request under way at a time.
pub struct TableConnection {
    pub(super) client: Arc<Client>,
    pub(super) connection: KeepAlive,
    /// `/TABLE`, encoded.
    pub(super) table_path: String,
    /// Where the service is: what is before all paths, as it is sent and as it is signed.
    base: String,
    signed_base: String,
    pub(super) url: String,
    /// Headers of all requests.
    fixed: Vec<u8>,
    date: Date,
    pub(super) request: Request,
    /// The whole request of an attempt.
    bytes: Vec<u8>,
    group: Group,
}

/// What a request says, the same in all its attempts.
#[derive(Default)]
pub(super) struct Request {
    /// Below the account, encoded.
    pub(super) path: Vec<u8>,
    /// Without a signature.
    pub(super) query: String,
    /// Headers of what is wanted beyond the protocol, if anything.
    extensions: Vec<(&'static str, String)>,
    content_type: String,
    /// None if it is empty.
    pub(super) if_match: String,
    pub(super) body: Vec<u8>,
    id: String,
}

/// An entity group that is being put together.
#[derive(Default)]
struct Group {
    id: String,
    count: usize,
    entity: Vec<u8>,
}

/// The date as text, which is the same for a second.
struct Date {
    unix_s: u64,
    text: [u8; DATE_LEN],
}

/// An operation: what all requests of it have.
pub(super) struct Call {
    name: &'static str,
    method: &'static str,
    effect: Effect,
    headers: &'static str,
}

pub(super) const fn call(name: &'static str, method: &'static str, headers: &'static str) -> Call {
    let is_read = method.len() == 3 && method.as_bytes()[0] == b'G';
    Call { name, method, effect: if is_read { Effect::None } else { Effect::Repeatable }, headers }
}

/// Those of `table_operation`.
pub(super) const SPOKEN: &str = "accept: application/json;odata=minimalmetadata\r\ndataserviceversion: 3.0;\r\n\
                      maxdataserviceversion: 3.0;NetFx\r\n";
const SPOKEN_WITHOUT_ANSWER: &str = "accept: application/json;odata=minimalmetadata\r\n\
                      dataserviceversion: 3.0;\r\nmaxdataserviceversion: 3.0;NetFx\r\n\
                      prefer: return-no-content\r\n";
const SPOKEN_IN_GROUPS: &str =
    "accept: application/json;odata=minimalmetadata\r\ndataserviceversion: 3.0;\r\n";

const GET_CALL: Call = call(GET, "GET", SPOKEN);
pub(super) const INSERT_CALL: Call = call(INSERT, "POST", SPOKEN_WITHOUT_ANSWER);
pub(super) const INSERT_OR_REPLACE_CALL: Call = call(INSERT_OR_REPLACE, "PUT", SPOKEN);
const SUBMIT_CALL: Call = call(SUBMIT, "POST", SPOKEN_IN_GROUPS);
const QUERY_CALL: Call = call(QUERY, "GET", SPOKEN);

/// A page of a query whose entities were counted and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedPage {
    /// Its entities.
    pub count: usize,
    /// Where the next page begins; none at the end.
    pub continuation: Option<Continuation>,
}

impl TableClient {
    /// The same table over a connection of its own, which counts among [`crate::Settings::connections_max`];
    /// none if the endpoint is encrypted or behind a proxy, if reads go to the secondary, too, or if a
    /// setting can't be a header.
    pub fn connection(&self) -> Option<TableConnection> {
        let client = &self.client;
        let (pool, secondary) = client.pools.get(&Service::Table)?;
        let is_plain = !pool.endpoint.origin.is_tls && matches!(pool.plain_proxy(), Ok(None));
        if !is_plain || (client.settings.reads_secondary && secondary.is_some()) {
            return None;
        }
        let (host, user_agent) = (pool.host.as_ref()?, client.user_agent.as_ref()?);
        let (base, account) = (pool.endpoint.path.clone(), &client.account);
        let target = match &client.credentials {
            Credentials::Key(_) => HeaderValue::from_str(account).ok().map(|_| base.clone())?,
            Credentials::Sas(parameters) => format!("{base}/?{parameters}"),
            Credentials::Anonymous => base.clone(),
        };
        Uri::try_from(format!("/{target}")).ok()?;
        let mut fixed = Vec::new();
        for (name, value) in [("host", host.as_bytes()), ("user-agent", user_agent.as_bytes())] {
            [name.as_bytes(), b": ", value, b"\r\n"].iter().for_each(|part| fixed.extend_from_slice(part));
        }
        fixed.extend_from_slice(b"x-ms-version: ");
        fixed.extend_from_slice(TABLE_VERSION.as_bytes());
        fixed.extend_from_slice(b"\r\n");
        Some(TableConnection {
            client: client.clone(),
            connection: KeepAlive::new(pool.clone()),
            table_path: format!("/{}", encode(&self.name)),
            signed_base: pool.endpoint.signed_path(account).to_owned(),
            url: pool.endpoint.url(),
            base,
            fixed,
            date: Date { unix_s: u64::MAX, text: [0; DATE_LEN] },
            request: Request::default(),
            bytes: Vec::new(),
            group: Group::default(),
        })
    }
}

impl TableConnection {
    /// Reads an entity; whether it has the row key that was asked for. Of its other properties no more is
    /// looked at than is needed to see that.
    pub async fn get(&mut self, partition_key: &str, row_key: &str) -> Result<bool, Error> {
        self.begin("");
        put_entity_path(&mut self.request.path, &self.table_path, partition_key, row_key);
        self.send(&GET_CALL).await?;
        has_row_key(self.connection.body(), row_key).map_err(|why| Error::unreadable(GET, why))
    }

    /// Inserts an entity that must not be there; see [`Error::may_be_done`].
    pub async fn insert(&mut self, entity: &TextEntity<'_>) -> Result<(), Error> {
        self.begin(JSON);
        self.request.path.extend_from_slice(self.table_path.as_bytes());
        put_text_entity(&mut self.request.body, entity);
        self.send(&INSERT_CALL).await.map(drop)
    }

    /// Inserts the entity, or replaces the one that is there.
    pub async fn insert_or_replace(&mut self, entity: &TextEntity<'_>) -> Result<(), Error> {
        self.begin(JSON);
        put_entity_path(&mut self.request.path, &self.table_path, entity.partition_key, entity.row_key);
        put_text_entity(&mut self.request.body, entity);
        self.send(&INSERT_OR_REPLACE_CALL).await.map(drop)
    }

    /// Begins an entity group of insertions; what was added to another one is forgotten, as it is by any
    /// other operation.
    pub fn begin_group(&mut self) {
        self.group.id = self.client.new_id();
        self.begin("multipart/mixed; boundary=batch_");
        self.request.content_type.push_str(&self.group.id);
        self.request.path.extend_from_slice(b"/$batch");
        put_group_start(&mut self.request.body, &self.group.id);
    }

    /// Adds the insertion of an entity to the group.
    pub fn add_insert(&mut self, entity: &TextEntity<'_>) {
        let (body, Group { id, count, entity: bytes }) = (&mut self.request.body, &mut self.group);
        bytes.clear();
        put_text_entity(bytes, entity);
        let (url, path) = (&self.url, &self.table_path);
        put_part_start(body, id, *count, &Method::POST, format_args!("{url}{path}"));
        put_part_end(body, &Method::POST, Some(bytes));
        *count += 1;
    }

    /// Does all operations of the group or none, and ends it. An error has the index of the one that failed.
    pub async fn submit(&mut self) -> Result<(), Error> {
        let count = std::mem::take(&mut self.group.count);
        if count == 0 {
            return Ok(());
        }
        if count > GROUP_OPERATIONS_MAX {
            let why = format!("a group has {GROUP_OPERATIONS_MAX} operations at most, and this one {count}");
            return Err(Error::invalid(SUBMIT, why));
        }
        put_group_end(&mut self.request.body, &self.group.id);
        let (attempts, may_be_done) = self.send(&SUBMIT_CALL).await?;
        let headers = self.connection.headers();
        let etags = read_etags(count, text(&headers, "content-type"), self.connection.body());
        etags.map(drop).map_err(|none| none.error(text(&headers, "x-ms-request-id"), attempts, may_be_done))
    }

    /// One page of a query, whose entities are counted. A page that continues where it began is an error.
    pub async fn count_page(&mut self, query: &Query) -> Result<CountedPage, Error> {
        self.request_page(query).await?;
        let count = count_entities(self.connection.body()).map_err(|why| Error::unreadable(QUERY, why))?;
        let continuation = continuation_of(&self.connection.headers());
        unless_repeated(query, &continuation)?;
        Ok(CountedPage { count, continuation })
    }

    /// Has the answer to a query at hand.
    pub(super) async fn request_page(&mut self, query: &Query) -> Result<(), Error> {
        self.begin("");
        let operation = page_operation(self.table_path.as_str(), query);
        self.request.path.extend_from_slice(operation.path.as_bytes());
        self.request.query = encode_query(&operation.query);
        self.request.extensions = query.extensions.headers(&[]);
        self.send(&QUERY_CALL).await.map(drop)
    }

    /// Adds a part to the group.
    pub(super) fn add_part(&mut self, put: impl FnOnce(&mut Vec<u8>, &str, usize)) {
        put(&mut self.request.body, &self.group.id, self.group.count);
        self.group.count += 1;
    }

    pub(super) fn begin(&mut self, content_type: &str) {
        // Its body is written over.
        self.group.count = 0;
        let Request { path, query, extensions, content_type: own, if_match, body, .. } = &mut self.request;
        extensions.clear();
        path.clear();
        if_match.clear();
        query.clear();
        body.clear();
        body.shrink_to(KEPT_SIZE_BYTES_MAX);
        own.clear();
        own.push_str(content_type);
    }

    /// Sends the request until it is done or given up: how often, and whether an attempt before the last one
    /// may have done it.
    pub(super) async fn send(&mut self, call: &Call) -> Result<(u32, bool), Error> {
        let client = self.client.clone();
        let mut course = Course::new(&client.surroundings, &client.settings, call.name, call.effect, false);
        let id = guid_letters(&client.new_guid());
        self.request.id.clear();
        self.request.id.push_str(std::str::from_utf8(&id).unwrap_or_default());
        loop {
            self.write(call);
            match self.attempt(call).await {
                Ok(()) => return Ok(course.done()),
                Err(failed) => course.wait_after(failed, &self.request.id).await?,
            }
        }
    }

    async fn attempt(&mut self, call: &Call) -> Result<(), FailedAttempt> {
        let answer_for = self.client.settings.answer_for(self.request.body.len());
        let exchanged = self.connection.exchange(&self.bytes, answer_for).await;
        let title = || format!("{} {}", call.name, String::from_utf8_lossy(&self.request.path));
        match exchanged {
            Ok(Exchanged::Whole(status)) if status.is_success() => Ok(()),
            Ok(Exchanged::Whole(status)) => {
                let connection = &self.connection;
                Err(self.client.refused(&title(), status, &connection.headers(), connection.body()))
            }
            Ok(Exchanged::TooLong(status)) => Err(FailedAttempt::too_long(status, &title())),
            Err(no_answer) => Err(FailedAttempt::without_answer(no_answer, &title())),
        }
    }

    /// The bytes of an attempt, with its date and signature.
    fn write(&mut self, call: &Call) {
        let Request { path, query, extensions, content_type, if_match, body, id } = &self.request;
        let date = self.date.at(self.client.surroundings.clock.now().since_unix().as_secs());
        let out = &mut self.bytes;
        out.clear();
        out.shrink_to(KEPT_SIZE_BYTES_MAX);
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        put(&[call.method.as_bytes(), b" ", self.base.as_bytes(), path]);
        let sas = match &self.client.credentials {
            Credentials::Sas(parameters) => parameters.as_str(),
            Credentials::Key(_) | Credentials::Anonymous => "",
        };
        match (query.as_str(), sas) {
            ("", "") => {}
            ("", only) | (only, "") => put(&[b"?", only.as_bytes()]),
            (query, sas) => put(&[b"?", query.as_bytes(), b"&", sas.as_bytes()]),
        }
        put(&[b" HTTP/1.1\r\n", &self.fixed, call.headers.as_bytes()]);
        if !if_match.is_empty() {
            put(&[b"if-match: ", if_match.as_bytes(), b"\r\n"]);
        }
        put(&[b"x-ms-client-request-id: ", id.as_bytes(), b"\r\nx-ms-date: ", date, b"\r\n"]);
        for (name, value) in extensions {
            put(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if let Credentials::Key(key) = &self.client.credentials {
            let account = self.client.account.as_bytes();
            let unsigned = UnsignedTable {
                method: call.method.as_bytes(),
                content_type: content_type.as_bytes(),
                date,
                account,
                path: [self.signed_base.as_bytes(), path],
            };
            let signature: [u8; SIGNATURE_LEN] = unsigned.sign(key);
            put(&[b"authorization: SharedKey ", account, b":", &signature, b"\r\n"]);
        }
        if !content_type.is_empty() {
            put(&[b"content-type: ", content_type.as_bytes(), b"\r\n"]);
            // Writing to memory does not fail.
            let _ = write!(out, "content-length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
}

impl Date {
    fn at(&mut self, unix_s: u64) -> &[u8] {
        if self.unix_s != unix_s {
            let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(unix_s);
            // All dates of this form have the same length.
            self.text.copy_from_slice(httpdate::fmt_http_date(at).as_bytes());
            self.unix_s = unix_s;
        }
        &self.text
    }
}
