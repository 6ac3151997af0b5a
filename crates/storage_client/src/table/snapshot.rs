//! Pinned snapshots of a table, which queries read page by page: an extension of Larimar.
//!
//! ```text
//! x-larimar-extensions: snapshot           request that pins; answers have its token
//! x-larimar-snapshot: 0123…                answer, and requests that read it
//! x-larimar-extensions: snapshot-end       with the last of these
//! ```
//!
//! What always holds: a query that names a snapshot reads it or fails, with the code `SnapshotExpired` if it
//! is gone.

use super::query::{Query, QueryExtensions, page_operation};
use super::snapshot_token::{SNAPSHOT, SnapshotToken};
use super::table_client::TableClient;
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;

impl TableClient {
    /// Pins a snapshot of the table's entities, to be read by [`QueryExtensions::snapshot`]; `None`: this
    /// service has no snapshots. The service bounds how many there are and for how long: 503 `ServerBusy`
    /// says that there are too many.
    pub async fn pin_snapshot(&self) -> Result<Option<SnapshotToken>, Error> {
        let operation = self.smallest_page(QueryExtensions::default(), &["snapshot"]);
        match self.client.send(&operation).await {
            // An earlier version, which knows of other extensions.
            Err(error) if error.code() == "InvalidHeaderValue" => Ok(None),
            answer => Ok(SnapshotToken::parse(text(&answer?.headers, SNAPSHOT))),
        }
    }

    /// Ends a pinned snapshot, which else the service does some time after its last use. One that is gone is
    /// no error.
    pub async fn end_snapshot(&self, snapshot: &SnapshotToken) -> Result<(), Error> {
        let extensions = QueryExtensions { snapshot: Some(snapshot.clone()), ..QueryExtensions::default() };
        match self.client.send(&self.smallest_page(extensions, &["snapshot-end"])).await {
            Err(error) if error.code() == "SnapshotExpired" => Ok(()),
            answer => answer.map(drop),
        }
    }

    fn smallest_page(
        &self,
        extensions: QueryExtensions,
        others: &[&'static str],
    ) -> crate::client::Operation {
        let select = vec!["PartitionKey".to_owned()];
        let query = Query { select, page_size_max: Some(1), ..Query::all() };
        page_operation(&format!("/{}", encode(&self.name)), &query).extensions(extensions.headers(others))
    }
}
