//! Asks all shards of a map, and merges what they answer.

use super::accumulate::Accumulated;
use super::held::{Held, Memory, SORTED_BYTES_MAX, batch_bounds};
use super::outcome::{Answer, FanOutOutcome};
use super::query::{Aggregates, ColumnOrder, KeyOrder, QueryError, SortedRows};
use super::request::{FanOutMistake, FanOutRequest, Question};
use super::sorted::SortedRow;
use base::{BoxFuture, Clock, Spawner};
use futures_util::future::LocalBoxFuture;
use shard_backend::{Backend, Capabilities, Schema};
use shard_map::Name;
use shard_router::{
    AggregateError, BatchSource, CachedMap, FanOutError, FanOutSettings, MapSettings, PoolSettings, Router,
    RouterParts, RowsConnector, ShardCredentials, ShardFailure, SortedMerge,
};
use shard_store::{CatalogHome, LocalStores};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of the rows of an answer, at most.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// What a question is asked over.
pub struct FanOutRun {
    /// The map's home.
    pub home: CatalogHome,
    /// The shards' copies of the map.
    pub copies: LocalStores,
    /// The shards' rows.
    pub backends: BTreeMap<Name, Arc<dyn Backend>>,
    /// Bounds of time.
    pub clock: Arc<dyn Clock>,
    /// Runs what is beside.
    pub spawner: Arc<dyn Spawner>,
    /// Bounds of the fan-out.
    pub settings: FanOutSettings,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FanOutFailure {
    /// The question makes no sense.
    #[error(transparent)]
    Mistake(#[from] FanOutMistake),
    /// The map, or a shard, failed.
    #[error("{0}")]
    Failed(String),
    /// Aggregates that can't be merged.
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    /// The rows are too long.
    #[error("the answer has more than {ANSWER_BYTES_MAX} bytes; ask for fewer rows")]
    Bytes,
}

impl From<FanOutError<QueryError>> for FanOutFailure {
    fn from(error: FanOutError<QueryError>) -> Self {
        FanOutFailure::Failed(error.to_string())
    }
}

impl FanOutRequest {
    /// Asks all shards of the schema's map.
    pub fn run<'a>(
        &'a self,
        schema: &'a Schema,
        run: FanOutRun,
    ) -> LocalBoxFuture<'a, Result<FanOutOutcome, FanOutFailure>> {
        Box::pin(async move {
            let FanOutRun { home, copies, backends, clock, spawner, settings } = run;
            let batch = batch_bounds(backends.len());
            let question = Arc::new(Question::of(self, schema)?.with_batch(batch));
            let map = CachedMap::new(home, clock.clone(), spawner.clone(), MapSettings::default());
            // Answers are checked by the shards' copies, of whatever kind a shard is.
            let connector = RowsConnector::new(Capabilities::POSTGRES, backends).with_copies(copies);
            let router = Router::new(RouterParts {
                map,
                connector: Arc::new(connector),
                credentials: Arc::new(ShardCredentials::default()),
                clock: clock.clone(),
                spawner,
                pool: PoolSettings::default(),
            });
            let asked = Asked { router, map: schema.map().as_str(), settings, clock };
            match question.aggregates.is_empty() {
                true => asked.rows(question).await,
                false => asked.aggregates(question).await,
            }
        })
    }
}

/// What is asked.
struct Asked<'a> {
    router: Router<RowsConnector>,
    map: &'a str,
    settings: FanOutSettings,
    clock: Arc<dyn Clock>,
}

impl Asked<'_> {
    async fn aggregates(self, question: Arc<Question>) -> Result<FanOutOutcome, FanOutFailure> {
        let query = Aggregates(question.clone());
        let found = self.router.fan_out(self.map, &query, &self.settings).await?;
        let of_shard = |(shard, of): &(Name, Accumulated)| (shard.clone(), of.values(&question));
        let shards = found.answers.iter().map(of_shard).collect();
        let all = found.answers.into_iter().map(|(_, accumulated)| accumulated);
        let all = Accumulated::merge(&question, all)?.values(&question);
        Ok(FanOutOutcome::new(&question, Answer::Aggregates { all, shards }, &found.failed))
    }

    async fn rows(self, question: Arc<Question>) -> Result<FanOutOutcome, FanOutFailure> {
        let rows_max = Some(u64::from(question.rows_max));
        let mut failed = BTreeMap::new();
        let mut merge = match question.order_by {
            None => {
                let query = Arc::new(KeyOrder(question.clone()));
                self.router.merge(self.map, query, SortedRow::sort_key, rows_max, self.settings).await?
            }
            Some(column) => {
                let memory = Memory::new(SORTED_BYTES_MAX);
                let query = ColumnOrder { question: question.clone(), column, memory };
                let found = self.router.fan_out(self.map, &query, &self.settings).await?;
                failed = found.failed;
                let sources =
                    found.answers.into_iter().map(|(shard, rows)| (shard, in_memory(rows))).collect();
                SortedMerge::new(sources, SortedRow::sort_key, rows_max, self.settings, self.clock)
            }
        };
        let (mut rows, mut size_bytes) = (Vec::new(), 0_usize);
        while let Some((shard, SortedRow { row, .. })) = merge.next().await? {
            size_bytes += row.size_bytes();
            if size_bytes > ANSWER_BYTES_MAX {
                return Err(FanOutFailure::Bytes);
            }
            rows.push((shard, row));
        }
        failed.extend(merge.failed().clone());
        Ok(FanOutOutcome::new(&question, Answer::Rows(rows), &failed))
    }
}

/// Rows of a shard that are here already, in their order.
struct InMemory {
    rows: Vec<SortedRow>,
    /// Until the last row is taken.
    _held: Held,
}

fn in_memory(SortedRows { rows, held }: SortedRows) -> Box<dyn BatchSource<SortedRow, QueryError>> {
    Box::new(InMemory { rows, _held: held })
}

impl BatchSource<SortedRow, QueryError> for InMemory {
    fn next_batch(&mut self) -> BoxFuture<'_, Result<Vec<SortedRow>, ShardFailure<QueryError>>> {
        let rows = std::mem::take(&mut self.rows);
        Box::pin(async move { Ok(rows) })
    }
}
