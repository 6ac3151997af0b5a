//! The list of an account's tables, and how one page of it is read.

use crate::error::TableError;
use crate::filter::Filter;
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::{RowReading, RowSource, walk};
use crate::queries::table_scan::TableNameScan;
use base::Clock;
use base::codec::DecodeError;
use partition::key::parse_row_key;
use partition::{KeyRange, ObjectTable, Span};
use service::SERVICE_TABLE;
use service::container::{container_key, containers_range};
use std::sync::Arc;

/// A listing of an account's tables.
#[derive(Clone, Debug)]
pub struct TableListQuery {
    /// Which tables, by the property `TableName` (compared in lower case); `None`: all.
    pub filter: Option<Filter>,
    /// Tables in a page at most: 1 to [`crate::limits::PAGE_ROWS_MAX`]; other values are clamped to these.
    pub top: usize,
    /// The name at which the page starts, in any case.
    pub start: Option<String>,
}

/// A page of table names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListPage {
    /// Names as created, in order of their lower-case forms.
    pub names: Vec<String>,
    /// Lower-case name at which the next page starts, if more may match.
    pub next: Option<String>,
}

/// Reads a page of table names.
pub(crate) async fn read_table_page<R: RowSource>(
    rows: &R,
    clock: &Arc<dyn Clock>,
    account: &str,
    query: &TableListQuery,
) -> Result<TableListPage, TableError> {
    let mut range = containers_range(account, SERVICE_TABLE);
    if let Some(start) = &query.start {
        let start = container_key(account, SERVICE_TABLE, start);
        range.start = range.start.max(start.as_bytes().clone());
    }
    let scan = TableNameScan::new(query.filter.clone(), PageBudget::new(clock.clone(), query.top));
    let spans = spans(account, query.filter.as_ref(), range);
    let (scan, stopped_at) = walk(rows, ObjectTable::Container, spans, RowReading::default(), scan).await?;
    let next = match stopped_at {
        Some(key) => {
            let parts = parse_row_key(&key).ok_or(DecodeError("table key"))?;
            Some(parts.object_name)
        }
        None => None,
    };
    Ok(TableListPage { names: scan.names, next })
}

/// The rows of `range` to be read, in key order: those of the tables that the filter names, or all.
fn spans(account: &str, filter: Option<&Filter>, range: KeyRange) -> Vec<Span> {
    let Some(names) = filter.and_then(Filter::table_names) else { return vec![Span::Range(range)] };
    let keys = names.iter().map(|name| container_key(account, SERVICE_TABLE, name));
    let mut keys: Vec<_> = keys.filter(|key| range.contains(key.as_bytes())).collect();
    // A filter may name texts that are no table names, and not all texts sort as their keys do.
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(Span::Point).collect()
}

#[cfg(test)]
mod tests;
