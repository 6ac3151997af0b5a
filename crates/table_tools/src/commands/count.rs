//! `larimar table count`: how many entities there are. A service that counts is asked for that; of others,
//! pages of keys are read and dropped.

use super::{KEYS, Selection, query};
use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use crate::lines::row::Row;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;

/// Counts the selected entities.
pub fn count<'a, 'e: 'a>(
    selection: &'a Selection,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<u64, ToolError>> {
    Box::pin(async move {
        let mut rows = 0;
        match count_at_service(selection, environment, &mut rows).await {
            Ok(true) => return Ok(rows),
            Ok(false) => {}
            Err(error) => return Err(keeping(error, rows)),
        }
        let sinks: Vec<Nothing> = (0..selection.connections).map(|_| Nothing).collect();
        let scanned = selection.scan("counting", &KEYS, sinks, environment).await;
        scanned.map(|(_, rows)| rows).map_err(|(error, rows)| keeping(error, rows))
    })
}

fn keeping(error: ToolError, rows: u64) -> ToolError {
    match rows {
        0 => error,
        _ => error.keeping(format!("{rows} entities were counted until then")),
    }
}

/// Has the service count, page by page; false: it does not. Pages are of hundreds of thousands of rows, one
/// at a time: of several the server would only be as much slower with each.
async fn count_at_service(
    selection: &Selection,
    environment: &mut ToolEnvironment<'_>,
    rows: &mut u64,
) -> Result<bool, ToolError> {
    let table = selection.place.client(&environment.surroundings, 1);
    let mut query = query(selection.range().filter_and(selection.filter.as_deref()));
    let clock = environment.surroundings.clock.clone();
    let mut rate = Rate::new(clock.monotonic(), 0);
    loop {
        let Some(page) = table.counted_by_service(&query).await? else {
            return match query.from {
                None => Ok(false),
                // What it has counted is no count of a scan from the start.
                Some(_) => Err(ToolError::refused("the service has stopped counting; try again")),
            };
        };
        *rows += page.entities;
        if page.continuation.is_none() {
            return Ok(true);
        }
        query.from = page.continuation;
        if environment.stop.is_set() {
            return Err(ToolError::Stopped);
        }
        let rate = rate.look(clock.monotonic(), *rows);
        (environment.watcher)(&Progress { verb: "counting", done: *rows, rate, rest: Rest::Ranges(1) });
    }
}

/// The ledger counts.
struct Nothing;

impl Sink for Nothing {
    fn take<'a>(
        &'a mut self,
        _: &'a Place<'a>,
        _: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
