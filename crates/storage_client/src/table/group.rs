//! Entity groups: up to 100 changes of one partition, all or none.

use super::entity::{Entity, IfMatch};
use super::group_answer::{GroupAnswer, read_group_answer};
use super::json::write_entity;
use super::table_client::{JSON, MINIMAL_METADATA, TableClient, entity_path};
use crate::account::endpoint::{Endpoint, Service};
use crate::client::Operation;
use crate::error::{Error, ErrorKind, Failure};
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use hyper::Method;

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
        const NAME: &str = "submit entity group";
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
        let read = read_group_answer(answer.header("content-type"), &answer.body)
            .map_err(|why| Error::unreadable(NAME, why))?;
        match read {
            GroupAnswer::Done(etags) if etags.len() == operations.len() => Ok(etags),
            GroupAnswer::Done(etags) => {
                let why = format!("{} parts answer {} operations", etags.len(), operations.len());
                Err(Error::unreadable(NAME, why))
            }
            GroupAnswer::Failed { status, error, index } => Err(Error::new(Failure {
                status: Some(status),
                code: error.code,
                message: error.message,
                request_id: text(&answer.headers, "x-ms-request-id").to_owned(),
                batch_index: Some(index),
                attempts: answer.attempts,
                may_be_done: answer.may_be_done,
                ..Failure::of(ErrorKind::Service, NAME)
            })),
        }
    }
}

fn write_group(
    endpoint: &Endpoint,
    table: &str,
    operations: &[GroupOperation],
    id: &str,
) -> Result<Vec<u8>, Error> {
    let mut out = format!("--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n")
        .into_bytes();
    for (index, operation) in operations.iter().enumerate() {
        let part = Part::of(operation);
        let path = match &part.method {
            &Method::POST => format!("/{}", encode(table)),
            _ => entity_path(table, part.partition_key, part.row_key),
        };
        let head = format!(
            "--changeset_{id}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
             Content-ID: {index}\r\n\r\n{} {}{path} HTTP/1.1\r\nAccept: {MINIMAL_METADATA}\r\nDataServiceVersion: 3.0;\r\n",
            part.method,
            endpoint.url()
        );
        out.extend_from_slice(head.as_bytes());
        if let Some(if_match) = part.if_match {
            let if_match = if_match.header();
            if if_match.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
                return Err(Error::invalid("submit entity group", "an ETag can't be a header's value"));
            }
            out.extend_from_slice(format!("If-Match: {if_match}\r\n").as_bytes());
        }
        let body = part.entity.map(write_entity).unwrap_or_default();
        if part.entity.is_some() {
            let more = if part.method == Method::POST { "Prefer: return-no-content\r\n" } else { "" };
            let head = format!("{more}Content-Type: {JSON}\r\nContent-Length: {}\r\n", body.len());
            out.extend_from_slice(head.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--changeset_{id}--\r\n--batch_{id}--\r\n").as_bytes());
    Ok(out)
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
