//! Entity groups: up to 100 changes of one partition, all or none.

use super::entity::{Entity, IfMatch};
use super::group_answer::{GroupAnswer, read_group_answer};
use super::json::write_entity;
use super::table_client::{JSON, MINIMAL_METADATA, TableClient, entity_path};
use crate::account::endpoint::Service;
use crate::client::Operation;
use crate::error::{Error, ErrorKind, Failure};
use crate::service_error::ServiceError;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use http_client::Endpoint;
use hyper::{Method, StatusCode};
use std::fmt;
use std::io::Write;

pub(super) const NAME: &str = "submit entity group";

/// Operations of a group, at most.
pub const GROUP_OPERATIONS_MAX: usize = 100;

/// One change of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOperation {
    /// The entity must not be there.
    Insert(Entity),
    /// Replaces all its properties.
    Replace(Entity, IfMatch),
    /// Sets the given properties.
    Merge(Entity, IfMatch),
    /// Inserts it, or replaces the one that is there.
    InsertOrReplace(Entity),
    /// Inserts it, or merges it into the one that is there.
    InsertOrMerge(Entity),
    /// Deletes it.
    Delete {
        /// The first part of its key.
        partition_key: String,
        /// The second part of its key.
        row_key: String,
        /// Which version.
        if_match: IfMatch,
    },
}

impl TableClient {
    /// Does all operations or none, in their order; the new ETag of each, none for deletions. An error has
    /// the index of the operation that failed.
    pub async fn submit(&self, operations: &[GroupOperation]) -> Result<Vec<Option<String>>, Error> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        if operations.len() > GROUP_OPERATIONS_MAX {
            let count = operations.len();
            let why = format!("a group has {GROUP_OPERATIONS_MAX} operations at most, and this one {count}");
            return Err(Error::invalid(NAME, why));
        }
        let Some(endpoint) = self.client.endpoint(Service::Table) else {
            return Err(Error::invalid(NAME, "the account has no table endpoint"));
        };
        let id = self.client.new_id();
        let body = write_group(endpoint, &self.name, operations, &id)?;
        let operation = Operation::new(NAME, Service::Table, Method::POST, "/$batch".to_owned())
            .header("content-type", &format!("multipart/mixed; boundary=batch_{id}"))?
            .fixed("accept", MINIMAL_METADATA)
            .fixed("dataserviceversion", "3.0;")
            .body(body);
        let answer = self.client.send(&operation).await?;
        let (count, content_type) = (operations.len(), answer.header("content-type"));
        read_etags(count, content_type, &answer.body).map_err(|unread| {
            let request_id = text(&answer.headers, "x-ms-request-id");
            unread.error(request_id, answer.attempts, answer.may_be_done)
        })
    }
}

/// Why there are no ETags of a group.
pub(super) enum NoEtags {
    Unreadable(String),
    Failed { status: StatusCode, error: ServiceError, index: usize },
}

impl NoEtags {
    pub(super) fn error(self, request_id: &str, attempts: u32, may_be_done: bool) -> Error {
        match self {
            NoEtags::Unreadable(why) => Error::unreadable(NAME, why),
            NoEtags::Failed { status, error, index } => Error::new(Failure {
                status: Some(status),
                code: error.code,
                message: error.message,
                request_id: request_id.to_owned(),
                batch_index: Some(index),
                attempts,
                may_be_done,
                ..Failure::of(ErrorKind::Service, NAME)
            }),
        }
    }
}

/// The ETags in the answer to a group of so many operations.
pub(super) fn read_etags(
    count: usize,
    content_type: &str,
    body: &[u8],
) -> Result<Vec<Option<String>>, NoEtags> {
    match read_group_answer(content_type, body).map_err(NoEtags::Unreadable)? {
        GroupAnswer::Done(etags) if etags.len() == count => Ok(etags),
        GroupAnswer::Done(etags) => {
            Err(NoEtags::Unreadable(format!("{} parts answer {count} operations", etags.len())))
        }
        GroupAnswer::Failed { status, error, index } => Err(NoEtags::Failed { status, error, index }),
    }
}

fn write_group(
    endpoint: &Endpoint,
    table: &str,
    operations: &[GroupOperation],
    id: &str,
) -> Result<Vec<u8>, Error> {
    let (mut out, base) = (Vec::new(), endpoint.url());
    put_group_start(&mut out, id);
    for (index, operation) in operations.iter().enumerate() {
        let part = Part::of(operation);
        let path = match &part.method {
            &Method::POST => format!("/{}", encode(table)),
            _ => entity_path(table, part.partition_key, part.row_key),
        };
        put_part_start(&mut out, id, index, &part.method, format_args!("{base}{path}"));
        if let Some(if_match) = part.if_match {
            let if_match = if_match.header();
            if if_match.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
                return Err(Error::invalid(NAME, "an ETag can't be a header's value"));
            }
            put(&mut out, format_args!("If-Match: {if_match}\r\n"));
        }
        put_part_end(&mut out, &part.method, part.entity.map(write_entity).as_deref());
    }
    put_group_end(&mut out, id);
    Ok(out)
}

/// Appends to the body of a group.
pub(super) fn put(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

/// Appends what is before the first part.
pub(super) fn put_group_start(out: &mut Vec<u8>, id: &str) {
    put(out, format_args!("--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n"));
}

/// Appends the beginning of a part, up to its first own header.
pub(super) fn put_part_start(
    out: &mut Vec<u8>,
    id: &str,
    index: usize,
    method: &Method,
    url: fmt::Arguments<'_>,
) {
    put(
        out,
        format_args!(
            "--changeset_{id}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
             Content-ID: {index}\r\n\r\n{method} {url} HTTP/1.1\r\nAccept: {MINIMAL_METADATA}\r\nDataServiceVersion: 3.0;\r\n"
        ),
    );
}

/// Appends the rest of a part: the entity's headers, and the entity.
pub(super) fn put_part_end(out: &mut Vec<u8>, method: &Method, entity: Option<&[u8]>) {
    let entity = entity.inspect(|entity| {
        let more = if method == Method::POST { "Prefer: return-no-content\r\n" } else { "" };
        put(out, format_args!("{more}Content-Type: {JSON}\r\nContent-Length: {}\r\n", entity.len()));
    });
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(entity.unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Appends what is behind the last part.
pub(super) fn put_group_end(out: &mut Vec<u8>, id: &str) {
    put(out, format_args!("--changeset_{id}--\r\n--batch_{id}--\r\n"));
}

/// What an operation is on the wire.
struct Part<'a> {
    method: Method,
    partition_key: &'a str,
    row_key: &'a str,
    entity: Option<&'a Entity>,
    if_match: Option<&'a IfMatch>,
}

impl<'a> Part<'a> {
    fn of(operation: &'a GroupOperation) -> Self {
        let with = |method, entity: &'a Entity, if_match| Part {
            method,
            partition_key: &entity.partition_key,
            row_key: &entity.row_key,
            entity: Some(entity),
            if_match,
        };
        match operation {
            GroupOperation::Insert(entity) => with(Method::POST, entity, None),
            GroupOperation::Replace(entity, if_match) => with(Method::PUT, entity, Some(if_match)),
            GroupOperation::Merge(entity, if_match) => with(Method::PATCH, entity, Some(if_match)),
            GroupOperation::InsertOrReplace(entity) => with(Method::PUT, entity, None),
            GroupOperation::InsertOrMerge(entity) => with(Method::PATCH, entity, None),
            GroupOperation::Delete { partition_key, row_key, if_match } => Part {
                method: Method::DELETE,
                partition_key,
                row_key,
                entity: None,
                if_match: Some(if_match),
            },
        }
    }
}
