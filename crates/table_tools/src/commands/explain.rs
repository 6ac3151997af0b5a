//! `larimar explain`: runs a query page by page and notes what each page cost, as far as the service says it.
//!
//! What always holds: no more pages are requested than are allowed; no entity is kept; what a service does
//! not say is absent, not zero.

use super::KEYS;
use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use crate::place::TablePlace;
use futures_util::future::LocalBoxFuture;
use std::time::Duration;
use storage_client::{Continuation, MeasuredPage, Query, QueryStatistics, TableClient};

/// Pages that are described one by one, at most; the others are in the sums.
const PAGES_DESCRIBED_MAX: usize = 10;
/// Entities in a page at most, by the service's own bound.
const PAGE_ROWS_MAX: u64 = 1000;
/// Between two looks at the progress.
const EVERY: Duration = Duration::from_millis(250);

/// A query, and how much of it is run.
pub struct QueryRun {
    /// The table.
    pub place: TablePlace,
    /// The `$filter`; all entities without one.
    pub filter: Option<String>,
    /// Properties to return; all if it is empty.
    pub select: Vec<String>,
    /// Entities that are wanted; all without it.
    pub top: Option<u64>,
    /// Pages that are requested at most.
    pub pages_max: u64,
    /// Entities that are counted at most to learn the table's size; 0: it is not learnt.
    pub counted_max: u64,
}

/// What a query cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryCost {
    /// Pages that were requested.
    pub pages: u64,
    /// Pages that named a next one.
    pub tokens: u64,
    /// Pages without entities.
    pub empty_pages: u64,
    /// Entities that were returned.
    pub entities: u64,
    /// Bytes of all pages.
    pub size_bytes: u64,
    /// From the first request to the last answer.
    pub took: Duration,
    /// Whether the query was run to its end, or to as many entities as were wanted.
    pub is_complete: bool,
    /// The first pages.
    pub described: Vec<PageCost>,
    /// Rows that were examined; none if a page did not say it.
    pub rows_read: Option<u64>,
    /// How much of the table the query can touch, as the service says.
    pub class: Option<String>,
    /// The table's size, if it was to be learnt.
    pub table: Option<TableSize>,
}

/// What a page cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCost {
    /// Entities in it.
    pub entities: u64,
    /// Bytes of its body.
    pub size_bytes: u64,
    /// From the request to the whole answer, retries included.
    pub took: Duration,
    /// Rows that were examined for it, if the service says it.
    pub rows_read: Option<u64>,
    /// Where the next page begins: the service's own text.
    pub next: Option<Continuation>,
}

/// How many entities a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// So many were counted.
    pub entities: u64,
    /// There are no more.
    pub is_all: bool,
}

/// Runs a query and says what it cost.
pub fn explain<'a, 'e: 'a>(
    run: &'a QueryRun,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<QueryCost, ToolError>> {
    Box::pin(async move {
        let table = run.place.client(&environment.surroundings, 1);
        let mut cost = QueryCost { rows_read: Some(0), ..QueryCost::default() };
        let clock = environment.surroundings.clock.clone();
        let started_at = clock.monotonic();
        let mut query = Query { filter: run.filter.clone(), select: run.select.clone(), ..Query::all() };
        while cost.pages < run.pages_max && !cost.is_complete {
            if environment.stop.is_set() {
                return Err(ToolError::Stopped);
            }
            let wanted = run.top.map(|top| top.saturating_sub(cost.entities));
            query.page_size_max = wanted.map(|wanted| wanted.clamp(1, PAGE_ROWS_MAX) as u32);
            let asked_at = clock.monotonic();
            let page = table.measured_page(&query).await?;
            query.from = page.continuation.clone();
            cost.add(page, clock.monotonic().saturating_sub(asked_at));
            cost.is_complete = query.from.is_none() || run.top.is_some_and(|top| cost.entities >= top);
        }
        cost.took = clock.monotonic().saturating_sub(started_at);
        if run.counted_max > 0 {
            cost.table = Some(table_size(&table, run.counted_max, environment).await?);
        }
        Ok(cost)
    })
}

impl QueryCost {
    fn add(&mut self, page: MeasuredPage, took: Duration) {
        let MeasuredPage { count, size_bytes, continuation, statistics } = page;
        let rows_read = statistics.as_ref().map(|statistics| statistics.rows_read);
        self.pages += 1;
        self.tokens += u64::from(continuation.is_some());
        self.empty_pages += u64::from(count == 0);
        self.entities += count as u64;
        self.size_bytes += size_bytes as u64;
        self.rows_read = self.rows_read.zip(rows_read).map(|(sum, read)| sum + read);
        self.class = self.class.take().or(statistics.map(|QueryStatistics { class, .. }| class));
        if self.described.len() < PAGES_DESCRIBED_MAX {
            let (entities, size_bytes) = (count as u64, size_bytes as u64);
            self.described.push(PageCost { entities, size_bytes, took, rows_read, next: continuation });
        }
    }
}

/// Counts the table's entities up to a bound.
async fn table_size(
    table: &TableClient,
    counted_max: u64,
    environment: &mut ToolEnvironment<'_>,
) -> Result<TableSize, ToolError> {
    let clock = environment.surroundings.clock.clone();
    let select = KEYS.map(str::to_owned).to_vec();
    let mut query = Query { select, ..Query::all() };
    let (mut entities, mut shown_at) = (0, clock.monotonic());
    let mut rate = Rate::new(shown_at, 0);
    loop {
        if environment.stop.is_set() {
            return Err(ToolError::Stopped);
        }
        let page = table.measured_page(&query).await?;
        entities += page.count as u64;
        query.from = page.continuation;
        let is_all = query.from.is_none();
        if is_all || entities >= counted_max {
            return Ok(TableSize { entities, is_all });
        }
        let now = clock.monotonic();
        if now.saturating_sub(shown_at) >= EVERY {
            let (rate, rest) = (rate.look(now, entities), Rest::Ranges(1));
            (environment.watcher)(&Progress { verb: "counting", done: entities, rate, rest });
            shown_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(count: usize, rows_read: Option<u64>, has_more: bool) -> MeasuredPage {
        MeasuredPage {
            count,
            size_bytes: 100,
            continuation: has_more.then(|| Continuation { partition_key: "p".to_owned(), row_key: None }),
            statistics: rows_read.map(|rows_read| QueryStatistics {
                class: "row-range".to_owned(),
                rows_read,
                rows_returned: count as u64,
            }),
        }
    }

    #[test]
    fn costs_are_sums_and_what_is_not_said_is_absent() {
        let mut cost = QueryCost { rows_read: Some(0), ..QueryCost::default() };
        for index in 0..12 {
            cost.add(page(index, Some(1000), index < 11), Duration::from_millis(1));
        }
        assert_eq!((cost.pages, cost.tokens, cost.empty_pages), (12, 11, 1));
        assert_eq!((cost.entities, cost.size_bytes, cost.rows_read), (66, 1200, Some(12_000)));
        assert_eq!((cost.class.as_deref(), cost.described.len()), (Some("row-range"), PAGES_DESCRIBED_MAX));
        // One page of a service that does not say it, such as behind a proxy to two of them.
        cost.add(page(1, None, false), Duration::ZERO);
        cost.add(page(1, Some(5), false), Duration::ZERO);
        assert_eq!(cost.rows_read, None);
    }
}
