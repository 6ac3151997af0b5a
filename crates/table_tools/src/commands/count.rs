//! `larimar table count`: how many entities there are. Pages of keys are read and dropped.

use super::{KEYS, Selection};
use crate::environment::ToolEnvironment;
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
        let sinks: Vec<Nothing> = (0..selection.connections).map(|_| Nothing).collect();
        let (_, rows) =
            selection.scan("counting", &KEYS, sinks, environment).await.map_err(|(error, rows)| {
                if rows == 0 {
                    error
                } else {
                    error.keeping(format!("{rows} entities were counted until then"))
                }
            })?;
        Ok(rows)
    })
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
