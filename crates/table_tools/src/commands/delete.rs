//! `larimar table delete`: entities by filter, of one partition, or all, in groups of a partition.
//!
//! What always holds: an entity that is gone meanwhile is no error, so that a run that was stopped is simply
//! repeated; what is chosen by a filter is deleted in the version that matched it; with a dry run nothing is
//! sent but queries.

use super::{KEYS, Selection};
use crate::access::TableAccess;
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::lines::json::text_of;
use crate::lines::row::Row;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;
use std::borrow::Cow;
use storage_client::{ChangeKind, Error, GROUP_OPERATIONS_MAX, RawChange};

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Entities that are gone; with a dry run those that would be.
    pub deleted: u64,
    /// Entities that were changed after they had matched the filter, and are left.
    pub changed: u64,
}

/// Deletes the selected entities.
pub fn delete<'a, 'e: 'a>(
    selection: &'a Selection,
    is_dry: bool,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Deleted, ToolError>> {
    Box::pin(async move {
        let table = selection.place.client(&environment.surroundings, selection.connections);
        let access = || (!is_dry).then(|| TableAccess::of(&table));
        let is_filtered = selection.filter.is_some();
        let sink = |_| Deleter { table: access(), is_filtered, changed: 0 };
        let sinks: Vec<Deleter> = (0..selection.connections).map(sink).collect();
        let verb = if is_dry { "counting" } else { "deleting" };
        let (sinks, rows) =
            selection.scan(verb, &KEYS, sinks, environment).await.map_err(|(error, rows)| {
                if is_dry {
                    return error;
                }
                error.keeping(format!(
                    "about {rows} entities are deleted; the same command goes on with the others"
                ))
            })?;
        let changed = sinks.iter().map(|sink| sink.changed).sum();
        Ok(Deleted { deleted: rows.saturating_sub(changed), changed })
    })
}

struct Deleter {
    /// None changes nothing.
    table: Option<TableAccess>,
    /// An entity that has changed may not match any more.
    is_filtered: bool,
    /// Entities that have changed and are left.
    changed: u64,
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
                    self.changed += delete_group(table, group, self.is_filtered).await?;
                }
            }
            Ok(Vec::new())
        })
    }
}

/// Deletes rows of one partition; how many of them have changed and are left.
async fn delete_group(
    table: &mut TableAccess,
    rows: &[Row<'_>],
    is_filtered: bool,
) -> Result<u64, ToolError> {
    let etags = rows.iter().map(|row| text_of(row.etag).filter(|_| is_filtered).unwrap_or_default());
    let etags: Vec<Cow<'_, str>> = etags.collect();
    let deletions = rows.iter().zip(&etags).map(|(row, etag)| deletion(row, etag));
    let changes: Vec<RawChange<'_>> = deletions.collect();
    let Err(error) = table.submit(&changes).await else { return Ok(0) };
    if !is_gone(&error) && !has_changed(&error) {
        return Err(error.into());
    }
    // The group was not done, because of one of them.
    let mut changed = 0;
    for change in &changes {
        match table.submit(std::slice::from_ref(change)).await {
            Err(error) if has_changed(&error) => changed += 1,
            Err(error) if !is_gone(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(changed)
}

fn deletion<'a>(row: &'a Row<'_>, etag: &'a str) -> RawChange<'a> {
    let (partition_key, row_key) = (&*row.partition_key, &*row.row_key);
    RawChange { kind: ChangeKind::Delete, partition_key, row_key, entity: &[], etag }
}

/// Whether it is the entity that is not there, not the table.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() && error.code() != "TableNotFound"
}

/// Whether the entity is there in another version.
fn has_changed(error: &Error) -> bool {
    error.status() == Some(412)
}
