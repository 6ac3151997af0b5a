//! A table of an account, as a command names it.

use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use storage_client::{AccountAddress, Query, Service, Settings, StorageAccount, Surroundings, TableClient};

/// Connections beside those of the workers.
const SPARE_CONNECTIONS: usize = 4;

/// Where a table is.
#[derive(Clone)]
pub struct TablePlace {
    /// The account.
    pub address: AccountAddress,
    /// How requests are retried, and what servers are trusted by.
    pub settings: Settings,
    /// The table's name.
    pub table: String,
}

impl TablePlace {
    /// Its URL, for people and for states.
    pub(crate) fn url(&self) -> String {
        let base = self.address.endpoint_url(Service::Table).unwrap_or_default();
        format!("{}/{}", base.trim_end_matches('/'), self.table)
    }

    /// Whether it is the same table under another spelling: names of tables have no case.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.table.eq_ignore_ascii_case(&other.table)
            && self.address.has_same_endpoint(&other.address, Service::Table)
    }

    pub(crate) fn client(&self, surroundings: &Surroundings, connections: usize) -> TableClient {
        let settings = Settings { connections_max: connections + SPARE_CONNECTIONS, ..self.settings.clone() };
        StorageAccount::new(self.address.clone(), settings, surroundings.clone()).table(&self.table)
    }

    /// The client, once it is known that the table is there and the filter can be read.
    pub(crate) async fn checked(
        &self,
        filter: Option<&str>,
        connections: usize,
        environment: &ToolEnvironment<'_>,
    ) -> Result<TableClient, ToolError> {
        let table = self.client(&environment.surroundings, connections);
        let filter = filter.map(str::to_owned);
        table.raw_page(&Query { filter, page_size_max: Some(1), ..Query::all() }).await?;
        Ok(table)
    }
}
