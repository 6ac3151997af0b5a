//! A query over the entities of a table, and how one page of it is read: the filter gives spans of rows, a
//! scan over these spans gives the page and its token.

use crate::error::TableError;
use crate::filter::{Filter, KeyRanges};
use crate::queries::entity_count::{CountScan, EntityCount};
use crate::queries::entity_page::{EntityPage, EntityToken};
use crate::queries::entity_scan::EntityScan;
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::{PageScan, Reading, RowSource, walk};
use crate::queries::projection::Projection;
use crate::queries::query_class::QueryClass;
use base::Clock;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::key::{parse_row_key, put_text};
use partition::{KeyRange, ObjectTable, Span};
use std::sync::Arc;

/// A query over the entities of one table.
#[derive(Clone, Debug)]
pub struct EntityQuery {
    /// Which entities; `None`: all.
    pub filter: Option<Filter>,
    /// Which properties; `None`: all.
    pub select: Option<Vec<String>>,
    /// Entities in a page at most: 1 to [`crate::limits::PAGE_ROWS_MAX`]; other values are clamped to these.
    pub top: usize,
    /// The row at which the page starts.
    pub start: Option<EntityToken>,
    /// Rows that the page examines at most; `None`: as many as any page may.
    pub examined_rows_max: Option<u64>,
    /// Which rows, and in which order.
    pub reading: Reading,
}

/// Reads a page of the entities of one table.
pub(crate) async fn read_entity_page<R: RowSource>(
    rows: &R,
    clock: &Arc<dyn Clock>,
    account: &str,
    container_id: u64,
    query: &EntityQuery,
) -> Result<EntityPage, TableError> {
    let container = KeyRange::container(account, container_id);
    let (spans, class) = query.spans(&container);
    let scan = EntityScan::new(
        query.filter.clone(),
        Projection::new(query.select.as_deref()),
        container.start.len(),
        query.budget(clock),
    );
    let reading = query.reading.among(ObjectTable::Entity, &container);
    let (mut scan, stopped_at) = walk(rows, ObjectTable::Entity, spans, reading, scan).await?;
    Ok(EntityPage {
        rows_read: scan.budget().rows_read(),
        entities: scan.entities,
        next: next_token(stopped_at)?,
        class,
    })
}

/// Counts a page of the entities of one table: of what `query` wants, which properties and how many in a page
/// mean nothing.
pub(crate) async fn count_entity_page<R: RowSource>(
    rows: &R,
    clock: &Arc<dyn Clock>,
    account: &str,
    container_id: u64,
    query: &EntityQuery,
) -> Result<EntityCount, TableError> {
    let container = KeyRange::container(account, container_id);
    let (spans, class) = query.spans(&container);
    let scan = CountScan::new(query.filter.clone(), container.start.len(), query.budget(clock));
    let reading = query.reading.among(ObjectTable::Entity, &container);
    let (mut scan, stopped_at) = walk(rows, ObjectTable::Entity, spans, reading, scan).await?;
    Ok(EntityCount {
        entities: scan.entities,
        size_bytes: scan.size_bytes,
        next: next_token(stopped_at)?,
        class,
        rows_read: scan.budget().rows_read(),
    })
}

impl EntityQuery {
    /// The rows of the table at `container` that a page may examine, and how much of the table they are.
    fn spans(&self, container: &KeyRange) -> (Vec<Span>, QueryClass) {
        let all = KeyRanges::all();
        let ranges = self.filter.as_ref().map_or(&all, Filter::ranges);
        let spans = match &self.start {
            Some(token) if self.reading.is_reverse => {
                ranges.spans_before(container, &end_key(container, token))
            }
            start => {
                let start = start.as_ref().map(|token| start_key(container, token));
                ranges.spans(container, start.as_deref())
            }
        };
        (spans, ranges.class())
    }

    /// When a page that starts now ends.
    fn budget(&self, clock: &Arc<dyn Clock>) -> PageBudget {
        PageBudget::new(clock.clone(), self.top).examining(self.examined_rows_max)
    }
}

/// The token of the key at which a page has stopped.
fn next_token(stopped_at: Option<Bytes>) -> Result<Option<EntityToken>, DecodeError> {
    let Some(key) = stopped_at else { return Ok(None) };
    let parts = parse_row_key(&key).ok_or(DecodeError("entity key"))?;
    Ok(Some(EntityToken { partition_key: parts.partition_name, row_key: Some(parts.object_name) }))
}

/// The first key at or after a token.
fn start_key(container: &KeyRange, token: &EntityToken) -> Vec<u8> {
    let mut key = container.start.to_vec();
    put_text(&mut key, &token.partition_key);
    if let Some(row_key) = &token.row_key {
        put_text(&mut key, row_key);
    }
    key
}

/// The first key behind those that are before a token in reverse, or at it.
fn end_key(container: &KeyRange, token: &EntityToken) -> Vec<u8> {
    let mut key = start_key(container, token);
    match &token.row_key {
        // No key is between a row's and this.
        Some(_) => key.push(0),
        // The whole partition is before its end.
        None => key = KeyRange::prefix(key).end.map_or_else(Vec::new, |end| end.to_vec()),
    }
    key
}

#[cfg(test)]
mod tests;
