//! A query over the entities of a table, and how one page of it is read: the filter gives spans of rows, a
//! scan over these spans gives the page and its token.

use crate::error::TableError;
use crate::filter::{Filter, KeyRanges};
use crate::queries::entity_page::{EntityPage, EntityToken};
use crate::queries::entity_scan::EntityScan;
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::{PageScan, RowSource, walk};
use crate::queries::projection::Projection;
use base::Clock;
use base::codec::DecodeError;
use partition::key::{parse_row_key, put_text};
use partition::{KeyRange, ObjectTable};
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
    let all = KeyRanges::all();
    let ranges = query.filter.as_ref().map_or(&all, Filter::ranges);
    let start = query.start.as_ref().map(|token| start_key(&container, token));
    let spans = ranges.spans(&container, start.as_deref());
    let scan = EntityScan::new(
        query.filter.clone(),
        Projection::new(query.select.as_deref()),
        container.start.len(),
        PageBudget::new(clock.clone(), query.top).examining(query.examined_rows_max),
    );
    let (mut scan, stopped_at) = walk(rows, ObjectTable::Entity, spans, scan).await?;
    let next = match stopped_at {
        Some(key) => {
            let parts = parse_row_key(&key).ok_or(DecodeError("entity key"))?;
            Some(EntityToken { partition_key: parts.partition_name, row_key: Some(parts.object_name) })
        }
        None => None,
    };
    Ok(EntityPage {
        rows_read: scan.budget().rows_read(),
        entities: scan.entities,
        next,
        class: ranges.class(),
    })
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

#[cfg(test)]
mod tests;
