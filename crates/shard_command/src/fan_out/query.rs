//! The question of one shard, over the backend of its rows.
//!
//! What always holds: rows that the map has on another shard are left out; at most one batch of a shard is in
//! memory, and the rows that are kept to be sorted; both have bounds for all shards together (`held.rs`).

use super::accumulate::Accumulated;
use super::held::{Held, Memory, SORTED_BYTES_MAX};
use super::request::Question;
use super::sorted::SortedRow;
use base::BoxFuture;
use shard_backend::{Backend, BackendError, Row, RowKey, Shardlet};
use shard_router::{AggregateError, PagedQuery, ShardPart, ShardQuery};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a shard has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    #[error(
        "the rows of all shards that are kept to be sorted have more than {SORTED_BYTES_MAX} bytes; ask for fewer"
    )]
    Bytes,
}

/// A batch's rows that are asked for, and where the scan goes on.
async fn batch(
    question: &Question,
    backend: &Arc<dyn Backend>,
    part: &ShardPart,
    after: Option<&RowKey>,
) -> Result<(Vec<(RowKey, Row)>, Option<RowKey>), BackendError> {
    let table = &question.table;
    let found = backend.scan(table, &Shardlet::all(), after, question.batch).await?;
    let mut rows = Vec::new();
    for row in found.rows {
        let checked = table.check_row(&row);
        let (key, _) =
            checked.map_err(|error| BackendError::Row { place: backend.place().to_owned(), error })?;
        let shard_key = key.values.get(..table.shard_key().len()).unwrap_or_default();
        if part.holds(shard_key) && question.wants(&row) {
            rows.push((key, row));
        }
    }
    Ok((rows, found.next))
}

/// Rows in the order of their keys, page by page.
pub(super) struct KeyOrder(pub(super) Arc<Question>);

impl PagedQuery<Arc<dyn Backend>> for KeyOrder {
    type Row = SortedRow;
    type Error = QueryError;

    fn page<'a>(
        &'a self,
        backend: &'a mut Arc<dyn Backend>,
        part: &'a ShardPart,
        after: Option<&'a SortedRow>,
    ) -> BoxFuture<'a, Result<Vec<SortedRow>, QueryError>> {
        Box::pin(async move {
            let mut after = after.map(|row| row.key.clone());
            loop {
                let (rows, next) = batch(&self.0, backend, part, after.as_ref()).await?;
                if !rows.is_empty() || next.is_none() {
                    let sorted = |(key, row)| SortedRow { by: None, is_descending: false, key, row };
                    return Ok(rows.into_iter().map(sorted).collect());
                }
                after = next;
            }
        })
    }
}

/// The first rows in the order of a column.
pub(super) struct ColumnOrder {
    pub(super) question: Arc<Question>,
    pub(super) column: usize,
    pub(super) memory: Memory,
}

/// The first rows of a shard, and what they take.
pub(super) struct SortedRows {
    pub(super) rows: Vec<SortedRow>,
    pub(super) held: Held,
}

impl ShardQuery<Arc<dyn Backend>> for ColumnOrder {
    type Output = SortedRows;
    type Error = QueryError;

    fn query<'a>(
        &'a self,
        backend: &'a mut Arc<dyn Backend>,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<SortedRows, QueryError>> {
        Box::pin(async move {
            let ColumnOrder { question, column, memory } = self;
            let (mut kept, mut held) = (BTreeMap::<_, SortedRow>::new(), memory.hold());
            let mut after = None;
            loop {
                let (rows, next) = batch(question, backend, part, after.as_ref()).await?;
                for (key, row) in rows {
                    let by = row.values.get(*column).cloned();
                    let row = SortedRow { by, is_descending: question.is_descending, key, row };
                    if !held.add(row.row.size_bytes()) {
                        return Err(QueryError::Bytes);
                    }
                    kept.insert(row.sort_key(), row);
                    if kept.len() > question.rows_max as usize
                        && let Some((_, last)) = kept.pop_last()
                    {
                        held.remove(last.row.size_bytes());
                    }
                }
                match next {
                    Some(next) => after = Some(next),
                    None => return Ok(SortedRows { rows: kept.into_values().collect(), held }),
                }
            }
        })
    }
}

/// Aggregates of all rows.
pub(super) struct Aggregates(pub(super) Arc<Question>);

impl ShardQuery<Arc<dyn Backend>> for Aggregates {
    type Output = Accumulated;
    type Error = QueryError;

    fn query<'a>(
        &'a self,
        backend: &'a mut Arc<dyn Backend>,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<Accumulated, QueryError>> {
        Box::pin(async move {
            let (mut accumulated, mut after) = (Accumulated::new(&self.0), None);
            loop {
                let (rows, next) = batch(&self.0, backend, part, after.as_ref()).await?;
                for (_, row) in &rows {
                    accumulated.add(&self.0, row)?;
                }
                match next {
                    Some(next) => after = Some(next),
                    None => return Ok(accumulated),
                }
            }
        })
    }
}
