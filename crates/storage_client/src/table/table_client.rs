//! A table: made, deleted, and operations on single entities.

use super::entity::{Entity, IfMatch};
use super::json::{read_entity, write_entity};
use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::wire::address_text::{encode, encode_key, put_encoded_key};
use hyper::Method;
use serde_json::json;
use std::sync::Arc;

pub(super) const GET: &str = "get entity";
pub(super) const INSERT: &str = "insert entity";
pub(super) const INSERT_OR_REPLACE: &str = "insert or replace entity";

pub(crate) const JSON: &str = "application/json";
pub(crate) const MINIMAL_METADATA: &str = "application/json;odata=minimalmetadata";

/// A table of an account. Cheap to clone.
#[derive(Clone)]
pub struct TableClient {
    pub(crate) client: Arc<Client>,
    pub(crate) name: String,
}

/// An operation on tables in JSON.
pub(crate) fn table_operation(name: &'static str, method: Method, path: String) -> Operation {
    Operation::new(name, Service::Table, method, path)
        .fixed("accept", MINIMAL_METADATA)
        .fixed("dataserviceversion", "3.0;")
        .fixed("maxdataserviceversion", "3.0;NetFx")
}

/// The address of an entity below the account.
pub(crate) fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut path = Vec::new();
    put_entity_path(&mut path, &format!("/{}", encode(table)), partition_key, row_key);
    // It is encoded, so it is text.
    String::from_utf8(path).unwrap_or_default()
}

/// Appends the same; the table's path is encoded.
pub(super) fn put_entity_path(out: &mut Vec<u8>, table_path: &str, partition_key: &str, row_key: &str) {
    out.extend_from_slice(table_path.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    put_encoded_key(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    put_encoded_key(out, row_key);
    out.extend_from_slice(b"')");
}

impl TableClient {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the table.
    pub async fn create(&self) -> Result<(), Error> {
        let operation = table_operation("create table", Method::POST, "/Tables".to_owned())
            .fixed("content-type", JSON)
            .fixed("prefer", "return-no-content")
            .body(json!({ "TableName": self.name }).to_string());
        self.client.send(&operation).await.map(drop)
    }

    /// Makes the table unless it is there; whether it was made.
    pub async fn create_if_absent(&self) -> Result<bool, Error> {
        match self.create().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == "TableAlreadyExists" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the table with all its entities.
    pub async fn delete(&self) -> Result<(), Error> {
        let path = format!("/Tables('{}')", encode_key(&self.name));
        self.client.send(&table_operation("delete table", Method::DELETE, path)).await.map(drop)
    }

    /// Inserts an entity that must not be there; its ETag. See [`Error::may_be_done`] for
    /// `EntityAlreadyExists` of a later attempt.
    pub async fn insert(&self, entity: &Entity) -> Result<String, Error> {
        let path = format!("/{}", encode(&self.name));
        let operation = table_operation(INSERT, Method::POST, path)
            .fixed("content-type", JSON)
            .fixed("prefer", "return-no-content")
            .body(write_entity(entity));
        self.send_for_etag(&operation).await
    }

    /// Reads an entity.
    pub async fn get(&self, partition_key: &str, row_key: &str) -> Result<Entity, Error> {
        let path = entity_path(&self.name, partition_key, row_key);
        let operation = table_operation(GET, Method::GET, path);
        let answer = self.client.send(&operation).await?;
        read_entity(&answer.body).map_err(|why| Error::unreadable(operation.name, why))
    }

    /// Reads an entity that may not be there. That the table is not there is an error.
    pub async fn get_if_present(&self, partition_key: &str, row_key: &str) -> Result<Option<Entity>, Error> {
        match self.get(partition_key, row_key).await {
            Ok(entity) => Ok(Some(entity)),
            Err(error) if error.is_not_found() && error.code() != "TableNotFound" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces all properties of an entity; its new ETag.
    pub async fn replace(&self, entity: &Entity, if_match: &IfMatch) -> Result<String, Error> {
        self.put(entity, "replace entity", Method::PUT, Some(if_match)).await
    }

    /// Sets the given properties of an entity and keeps the others; its new ETag.
    pub async fn merge(&self, entity: &Entity, if_match: &IfMatch) -> Result<String, Error> {
        self.put(entity, "merge entity", Method::PATCH, Some(if_match)).await
    }

    /// Inserts the entity, or replaces the one that is there; its new ETag.
    pub async fn insert_or_replace(&self, entity: &Entity) -> Result<String, Error> {
        self.put(entity, INSERT_OR_REPLACE, Method::PUT, None).await
    }

    /// Inserts the entity, or merges it into the one that is there; its new ETag.
    pub async fn insert_or_merge(&self, entity: &Entity) -> Result<String, Error> {
        self.put(entity, "insert or merge entity", Method::PATCH, None).await
    }

    /// Deletes an entity.
    pub async fn delete_entity(
        &self,
        partition_key: &str,
        row_key: &str,
        if_match: &IfMatch,
    ) -> Result<(), Error> {
        let path = entity_path(&self.name, partition_key, row_key);
        let operation = table_operation("delete entity", Method::DELETE, path);
        let operation = operation.header("if-match", if_match.header())?;
        self.client.send(&operation).await.map(drop)
    }

    async fn put(
        &self,
        entity: &Entity,
        name: &'static str,
        method: Method,
        if_match: Option<&IfMatch>,
    ) -> Result<String, Error> {
        let path = entity_path(&self.name, &entity.partition_key, &entity.row_key);
        let mut operation =
            table_operation(name, method, path).fixed("content-type", JSON).body(write_entity(entity));
        if let Some(if_match) = if_match {
            operation = operation.header("if-match", if_match.header())?;
        }
        self.send_for_etag(&operation).await
    }

    async fn send_for_etag(&self, operation: &Operation) -> Result<String, Error> {
        let answer = self.client.send(operation).await?;
        Ok(answer.header("etag").to_owned())
    }
}
