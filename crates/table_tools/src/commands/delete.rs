//! `larimar table delete`: entities by filter, of one partition, or all, in groups of a partition.
//!
//! What always holds: an entity that is gone meanwhile is no error, so that a run that was stopped is simply
//! repeated; with a dry run nothing is sent but queries.

use super::{KEYS, Selection};
use crate::access::TableAccess;
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::lines::row::Row;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;
use storage_client::{ChangeKind, Error, GROUP_OPERATIONS_MAX, RawChange};

/// Deletes the selected entities; how many. With a dry run, how many it would delete.
pub fn delete<'a, 'e: 'a>(
    selection: &'a Selection,
    is_dry: bool,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<u64, ToolError>> {
    Box::pin(async move {
        let table = selection.place.client(&environment.surroundings, selection.connections);
        let access = || (!is_dry).then(|| TableAccess::of(&table));
        let sinks: Vec<Deleter> = (0..selection.connections).map(|_| Deleter { table: access() }).collect();
        let verb = if is_dry { "counting" } else { "deleting" };
        let (_, rows) = selection.scan(verb, &KEYS, sinks, environment).await.map_err(|(error, rows)| {
            if is_dry {
                return error;
            }
            error.keeping(format!(
                "about {rows} entities are deleted; the same command goes on with the others"
            ))
        })?;
        Ok(rows)
    })
}

struct Deleter {
    /// None changes nothing.
    table: Option<TableAccess>,
}

impl Sink for Deleter {
    fn take<'a>(
        &'a mut self,
        _: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            let Some(table) = &mut self.table else { return Ok(Vec::new()) };
            for partition in rows.chunk_by(|one, other| one.partition_key == other.partition_key) {
                for group in partition.chunks(GROUP_OPERATIONS_MAX) {
                    delete_group(table, group).await?;
                }
            }
            Ok(Vec::new())
        })
    }
}

async fn delete_group(table: &mut TableAccess, rows: &[Row<'_>]) -> Result<(), ToolError> {
    let changes: Vec<RawChange<'_>> = rows.iter().map(deletion).collect();
    let Err(error) = table.submit(&changes).await else { return Ok(()) };
    if !is_gone(&error) {
        return Err(error.into());
    }
    // The group was not done, because of one of them.
    for change in &changes {
        match table.submit(std::slice::from_ref(change)).await {
            Err(error) if !is_gone(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn deletion<'a>(row: &'a Row<'_>) -> RawChange<'a> {
    let (partition_key, row_key) = (&*row.partition_key, &*row.row_key);
    RawChange { kind: ChangeKind::Delete, partition_key, row_key, entity: &[] }
}

/// Whether it is the entity that is not there, not the table.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() && error.code() != "TableNotFound"
}
