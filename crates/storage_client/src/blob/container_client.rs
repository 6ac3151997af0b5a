//! A container of blobs: made, deleted, and its blobs by name.

use super::blob_client::BlobClient;
use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::metadata_of;
use hyper::Method;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A container of an account. Cheap to clone.
#[derive(Clone)]
pub struct ContainerClient {
    pub(crate) client: Arc<Client>,
    pub(crate) name: String,
}

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerProperties {
    /// Its version.
    pub etag: String,
    /// Names in lower case.
    pub metadata: BTreeMap<String, String>,
}

impl ContainerClient {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A blob in it, which may not be there yet.
    pub fn blob(&self, name: impl Into<String>) -> BlobClient {
        BlobClient { client: self.client.clone(), container: self.name.clone(), name: name.into() }
    }

    pub(crate) fn operation(&self, name: &'static str, method: Method) -> Operation {
        Operation::new(name, Service::Blob, method, format!("/{}", encode(&self.name)))
            .query("restype", "container")
    }

    /// Makes the container.
    pub async fn create(&self, metadata: &BTreeMap<String, String>) -> Result<(), Error> {
        let operation = self.operation("create container", Method::PUT).metadata(metadata)?;
        self.client.send(&operation).await.map(drop)
    }

    /// Makes the container unless it is there; whether it was made.
    pub async fn create_if_absent(&self) -> Result<bool, Error> {
        match self.create(&BTreeMap::new()).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == "ContainerAlreadyExists" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the container with all its blobs.
    pub async fn delete(&self) -> Result<(), Error> {
        self.client.send(&self.operation("delete container", Method::DELETE)).await.map(drop)
    }

    /// Its properties.
    pub async fn properties(&self) -> Result<ContainerProperties, Error> {
        let answer = self.client.send(&self.operation("get container properties", Method::GET)).await?;
        Ok(ContainerProperties {
            etag: answer.header("etag").to_owned(),
            metadata: metadata_of(&answer.headers),
        })
    }
}
