//! What is done with the rows of a scan: counted, deleted, copied, compared, described, sampled; and what a
//! query costs.

pub(crate) mod copy;
pub(crate) mod count;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod sample;
pub(crate) mod schema;

use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::place::TablePlace;
use crate::scan::ledger::Ledger;
use crate::scan::range::KeyRange;
use crate::scan::run::{NoKeeper, run};
use crate::scan::worker::{Book, Scan, ScanRequest, Sink};
use std::sync::Arc;
use storage_client::Query;

/// Which entities of a table a command is about.
pub struct Selection {
    /// The table.
    pub place: TablePlace,
    /// Which entities; all without it.
    pub filter: Option<String>,
    /// Of one partition.
    pub partition: Option<String>,
    /// Workers, each with a connection.
    pub connections: usize,
}

impl Selection {
    fn range(&self) -> KeyRange {
        self.partition.as_ref().map_or_else(KeyRange::all, KeyRange::partition)
    }

    /// Scans what is selected, with a sink for each worker and nothing kept for a later run; the sinks, and
    /// how many rows there were.
    async fn scan<S: Sink>(
        &self,
        verb: &'static str,
        selected: &[&str],
        sinks: Vec<S>,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<(Vec<S>, u64), (ToolError, u64)> {
        let early = |error| (error, 0);
        self.place.checked(self.filter.as_deref(), 1, environment).await.map_err(early)?;
        let select = selected.iter().map(|name| (*name).to_owned()).collect();
        let (url, filter) = (self.place.url(), self.filter.clone());
        let request = ScanRequest { url, filter, select, snapshot: None, is_parallel: true };
        let book = Book { ledger: Ledger::new(self.range()), output: None };
        let clock = environment.surroundings.clock.clone();
        let scan = Arc::new(Scan::new(book, request, clock, environment.stop.clone()));
        let table = self.place.client(&environment.surroundings, self.connections);
        let sinks = run(verb, &scan, &table, sinks, environment, &mut NoKeeper).await;
        let rows = scan.book.lock().await.ledger.rows;
        sinks.map(|sinks| (sinks, rows)).map_err(|error| (error, rows))
    }
}

/// What a query for keys selects.
const KEYS: [&str; 2] = ["PartitionKey", "RowKey"];

/// A query with a filter.
fn query(filter: Option<String>) -> Query {
    Query { filter, ..Query::all() }
}
