//! An account: the way to its tables, queues and containers.

use crate::account::connection_string::{AccountAddress, ConnectionStringError};
use crate::account::credentials::Credentials;
use crate::blob::container_client::ContainerClient;
use crate::blob::list::{ContainerPage, container_page};
use crate::client::Client;
use crate::error::Error;
use crate::queue::list::{QueuePage, queue_page};
use crate::queue::queue_client::QueueClient;
use crate::settings::Settings;
use crate::table::list::{TablePage, table_page};
use crate::table::table_client::TableClient;
use http_client::Surroundings;
use std::sync::Arc;

/// A storage account. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct StorageAccount {
    client: Arc<Client>,
}

impl StorageAccount {
    /// With the default settings, on the tokio runtime that is current at the call.
    pub fn from_connection_string(text: &str) -> Result<Self, ConnectionStringError> {
        Ok(Self::new(AccountAddress::parse(text)?, Settings::default(), Surroundings::system()))
    }

    /// With everything handed in.
    pub fn new(address: AccountAddress, settings: Settings, surroundings: Surroundings) -> Self {
        StorageAccount { client: Arc::new(Client::new(address, settings, surroundings)) }
    }

    /// The same account over the same connections, opened by other credentials.
    pub fn with_credentials(&self, credentials: Credentials) -> Self {
        StorageAccount { client: Arc::new(self.client.with_credentials(credentials)) }
    }

    /// A table, which may not be there yet.
    pub fn table(&self, name: impl Into<String>) -> TableClient {
        TableClient { client: self.client.clone(), name: name.into() }
    }

    /// A queue, which may not be there yet.
    pub fn queue(&self, name: impl Into<String>) -> QueueClient {
        QueueClient { client: self.client.clone(), name: name.into() }
    }

    /// A container of blobs, which may not be there yet.
    pub fn container(&self, name: impl Into<String>) -> ContainerClient {
        ContainerClient { client: self.client.clone(), name: name.into() }
    }

    /// One page of the tables whose names match the `$filter`, from a former page's continuation on.
    pub async fn table_page(&self, filter: Option<&str>, from: Option<&str>) -> Result<TablePage, Error> {
        table_page(&self.client, filter, from).await
    }

    /// One page of the queues whose names begin with `prefix`, from a former page's marker on.
    pub async fn queue_page(&self, prefix: &str, marker: Option<&str>) -> Result<QueuePage, Error> {
        queue_page(&self.client, prefix, marker).await
    }

    /// One page of the containers whose names begin with `prefix`, from a former page's marker on.
    pub async fn container_page(&self, prefix: &str, marker: Option<&str>) -> Result<ContainerPage, Error> {
        container_page(&self.client, prefix, marker).await
    }
}
