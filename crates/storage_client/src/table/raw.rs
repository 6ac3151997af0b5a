//! Pages and changes whose entities are JSON that the caller reads and has: for programs that move whole
//! tables, and need no value of an entity in memory for that.
//!
//! What always holds: they are the same requests, with the same retries, as those with [`super::entity`];
//! of an entity's JSON nothing is looked at.

use super::group::{
    NAME as SUBMIT, put, put_group_end, put_group_start, put_part_end, put_part_start, read_etags,
};
use super::query::{Continuation, Query, continuation_of, page_operation, unless_repeated};
use super::table_client::{
    INSERT, INSERT_OR_REPLACE, JSON, MINIMAL_METADATA, TableClient, put_entity_path, table_operation,
};
use super::table_connection::{Call, INSERT_CALL, INSERT_OR_REPLACE_CALL, SPOKEN, TableConnection, call};
use crate::GROUP_OPERATIONS_MAX;
use crate::account::endpoint::Service;
use crate::client::Operation;
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use bytes::Bytes;
use hyper::Method;

const INSERT_OR_MERGE: &str = "insert or merge entity";
const DELETE: &str = "delete entity";
const INSERT_OR_MERGE_CALL: Call = call(INSERT_OR_MERGE, "PATCH", SPOKEN);
const DELETE_CALL: Call = call(
    DELETE,
    "DELETE",
    "accept: application/json;odata=minimalmetadata\r\ndataserviceversion: 3.0;\r\n\
     maxdataserviceversion: 3.0;NetFx\r\ncontent-length: 0\r\n",
);

/// What becomes of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It must not be there.
    Insert,
    /// It is inserted, or replaces the one that is there.
    InsertOrReplace,
    /// It is inserted, or merged into the one that is there.
    InsertOrMerge,
    /// It is deleted, in the version of [`RawChange::etag`]; it must be there.
    Delete,
}

/// A change of one entity.
#[derive(Clone, Copy, Debug)]
pub struct RawChange<'a> {
    /// Of which kind.
    pub kind: ChangeKind,
    /// The first part of its key.
    pub partition_key: &'a str,
    /// The second part of its key.
    pub row_key: &'a str,
    /// The entity with its keys, in JSON with minimal metadata; empty for a deletion.
    pub entity: &'a [u8],
    /// The version that is deleted; empty: any. Others have none.
    pub etag: &'a str,
}

/// Any version of an entity.
const ANY: &str = "*";

impl RawChange<'_> {
    /// What a deletion is sent with.
    fn if_match(&self) -> &str {
        if self.etag.is_empty() { ANY } else { self.etag }
    }

    fn method(&self) -> Method {
        match self.kind {
            ChangeKind::Insert => Method::POST,
            ChangeKind::InsertOrReplace => Method::PUT,
            ChangeKind::InsertOrMerge => Method::PATCH,
            ChangeKind::Delete => Method::DELETE,
        }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            ChangeKind::Insert => INSERT,
            ChangeKind::InsertOrReplace => INSERT_OR_REPLACE,
            ChangeKind::InsertOrMerge => INSERT_OR_MERGE,
            ChangeKind::Delete => DELETE,
        }
    }

    /// Where it goes: an insertion to the table, others to the entity.
    fn put_path(&self, out: &mut Vec<u8>, table_path: &str) {
        match self.kind {
            ChangeKind::Insert => out.extend_from_slice(table_path.as_bytes()),
            _ => put_entity_path(out, table_path, self.partition_key, self.row_key),
        }
    }

    fn put_part(&self, out: &mut Vec<u8>, id: &str, index: usize, url: &str, table_path: &str) {
        let mut path = Vec::new();
        self.put_path(&mut path, table_path);
        // It is encoded, so it is text.
        let path = std::str::from_utf8(&path).unwrap_or_default();
        put_part_start(out, id, index, &self.method(), format_args!("{url}{path}"));
        let is_deletion = self.kind == ChangeKind::Delete;
        if is_deletion {
            put(out, format_args!("If-Match: {}\r\n", self.if_match()));
        }
        put_part_end(out, &self.method(), (!is_deletion).then_some(self.entity));
    }
}

fn check(changes: &[RawChange<'_>]) -> Result<(), Error> {
    let is_control = |byte: u8| byte < b' ' || byte == 0x7f;
    if changes.iter().any(|change| change.etag.bytes().any(is_control)) {
        return Err(Error::invalid(SUBMIT, "an ETag can't be a header's value"));
    }
    let count = changes.len();
    if count > GROUP_OPERATIONS_MAX {
        let why = format!("a group has {GROUP_OPERATIONS_MAX} operations at most, and this one {count}");
        return Err(Error::invalid(SUBMIT, why));
    }
    Ok(())
}

impl TableClient {
    /// One page of a query: its JSON, and where the next page begins, which is none at the end. A page that
    /// continues where it began is an error.
    pub async fn raw_page(&self, query: &Query) -> Result<(Bytes, Option<Continuation>), Error> {
        let operation = page_operation(&format!("/{}", encode(&self.name)), query);
        let answer = self.client.send(&operation).await?;
        let continuation = continuation_of(&answer.headers);
        unless_repeated(query, &continuation)?;
        Ok((answer.body, continuation))
    }

    /// Does one change.
    pub async fn change(&self, change: &RawChange<'_>) -> Result<(), Error> {
        let mut path = Vec::new();
        change.put_path(&mut path, &format!("/{}", encode(&self.name)));
        let path = String::from_utf8(path).unwrap_or_default();
        let mut operation = table_operation(change.name(), change.method(), path);
        operation = match change.kind {
            ChangeKind::Delete => operation.header("if-match", change.if_match())?,
            ChangeKind::Insert => operation.fixed("content-type", JSON).fixed("prefer", "return-no-content"),
            _ => operation.fixed("content-type", JSON),
        };
        self.client.send(&operation.body(change.entity.to_vec())).await.map(drop)
    }

    /// Does all changes, which are of one partition, or none. An error has the index of the one that failed.
    pub async fn submit_changes(&self, changes: &[RawChange<'_>]) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        check(changes)?;
        let Some(endpoint) = self.client.endpoint(Service::Table) else {
            return Err(Error::invalid(SUBMIT, "the account has no table endpoint"));
        };
        let (id, url, table_path) =
            (self.client.new_id(), endpoint.url(), format!("/{}", encode(&self.name)));
        let mut body = Vec::new();
        put_group_start(&mut body, &id);
        for (index, change) in changes.iter().enumerate() {
            change.put_part(&mut body, &id, index, &url, &table_path);
        }
        put_group_end(&mut body, &id);
        let operation = Operation::new(SUBMIT, Service::Table, Method::POST, "/$batch".to_owned())
            .header("content-type", &format!("multipart/mixed; boundary=batch_{id}"))?
            .fixed("accept", MINIMAL_METADATA)
            .fixed("dataserviceversion", "3.0;")
            .body(body);
        let answer = self.client.send(&operation).await?;
        let etags = read_etags(changes.len(), answer.header("content-type"), &answer.body);
        etags.map(drop).map_err(|none| {
            let request_id = text(&answer.headers, "x-ms-request-id");
            none.error(request_id, answer.attempts, answer.may_be_done)
        })
    }
}

impl TableConnection {
    /// One page of a query: its JSON replaces what is in `body`; where the next page begins, which is none at
    /// the end. A page that continues where it began is an error.
    pub async fn raw_page(
        &mut self,
        query: &Query,
        body: &mut Vec<u8>,
    ) -> Result<Option<Continuation>, Error> {
        self.request_page(query).await?;
        let continuation = continuation_of(&self.connection.headers());
        unless_repeated(query, &continuation)?;
        body.clear();
        body.extend_from_slice(self.connection.body());
        Ok(continuation)
    }

    /// Does one change.
    pub async fn change(&mut self, change: &RawChange<'_>) -> Result<(), Error> {
        let call = match change.kind {
            ChangeKind::Insert => &INSERT_CALL,
            ChangeKind::InsertOrReplace => &INSERT_OR_REPLACE_CALL,
            ChangeKind::InsertOrMerge => &INSERT_OR_MERGE_CALL,
            ChangeKind::Delete => &DELETE_CALL,
        };
        check(std::slice::from_ref(change))?;
        let is_deletion = change.kind == ChangeKind::Delete;
        self.begin(if is_deletion { "" } else { JSON });
        if is_deletion {
            self.request.if_match.push_str(change.if_match());
        }
        change.put_path(&mut self.request.path, &self.table_path);
        self.request.body.extend_from_slice(change.entity);
        self.send(call).await.map(drop)
    }

    /// Does all changes, which are of one partition, or none. An error has the index of the one that failed.
    pub async fn submit_changes(&mut self, changes: &[RawChange<'_>]) -> Result<(), Error> {
        check(changes)?;
        self.begin_group();
        let (url, table_path) = (self.url.clone(), self.table_path.clone());
        for change in changes {
            self.add_part(|out, id, index| change.put_part(out, id, index, &url, &table_path));
        }
        self.submit().await
    }
}
