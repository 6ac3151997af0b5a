//! Writes batches: what becomes of entities that are there already, and which errors are a line's.

use super::batch::{Batch, Item};
use crate::access::TableAccess;
use crate::error::ToolError;
use crate::files::records::row_of;
use crate::files::window::Window;
use crate::lines::row::rows_of_page;
use crate::lines::same::first_difference;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use storage_client::{ChangeKind, Error, Query, RawChange, Value};

const EXISTS: &str = "EntityAlreadyExists";

/// What becomes of an entity whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It ends the work.
    Fail,
    /// It replaces the one that is there.
    Replace,
    /// It is merged into the one that is there.
    Merge,
    /// It is left out.
    Skip,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) written: u64,
    /// Left out, because their keys were there.
    pub(crate) skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.written += other.written;
        self.skipped += other.skipped;
    }
}

/// Where entities come from, and what is known of them.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) window: &'a Window,
    pub(crate) on_conflict: OnConflict,
    /// An earlier run may have written lines up to here.
    pub(crate) doubtful_to: u64,
    /// It is a file; else a table, whose entities have keys, not lines.
    pub(crate) has_lines: bool,
}

impl Source<'_> {
    fn change<'b>(&'b self, batch: &'b Batch, item: &'b Item) -> RawChange<'b> {
        let kind = match self.on_conflict {
            OnConflict::Fail | OnConflict::Skip => ChangeKind::Insert,
            OnConflict::Replace => ChangeKind::InsertOrReplace,
            OnConflict::Merge => ChangeKind::InsertOrMerge,
        };
        let entity = &self.window.text[item.at.clone()];
        let (partition_key, row_key) = (&*batch.partition_key, &*item.row_key);
        RawChange { kind, partition_key, row_key, entity, etag: "" }
    }

    fn is_doubtful(&self, item: &Item) -> bool {
        item.file_end <= self.doubtful_to
    }

    /// An error that is about the entity of a line says which.
    fn error(&self, batch: &Batch, item: Option<&Item>, error: Error) -> ToolError {
        let is_of_line = matches!(error.status(), Some(400 | 409 | 412 | 413));
        match item.filter(|_| is_of_line) {
            Some(item) => {
                let what = match (error.code(), self.on_conflict) {
                    (EXISTS, OnConflict::Fail) => {
                        "an entity with its key is there already; --on-conflict says what then".to_owned()
                    }
                    _ => error.to_string(),
                };
                if !self.has_lines {
                    let (path, partition, row) = (self.path, &batch.partition_key, &item.row_key);
                    return ToolError::Refused(format!("{path}: {partition:?} {row:?}: {what}"));
                }
                ToolError::Line { path: self.path.to_owned(), line: item.number, what }
            }
            None => ToolError::Service(error),
        }
    }
}

/// Writes a batch.
pub(crate) async fn write(
    source: &Source<'_>,
    table: &mut TableAccess,
    batch: &Batch,
) -> Result<Counts, ToolError> {
    let changes: Vec<RawChange<'_>> = batch.items.iter().map(|item| source.change(batch, item)).collect();
    match table.submit(&changes).await {
        Ok(()) => Ok(Counts { written: changes.len() as u64, skipped: 0 }),
        Err(error) if error.code() == EXISTS => {
            let is_doubtful = error.may_be_done() || batch.items.iter().any(|item| source.is_doubtful(item));
            if source.on_conflict == OnConflict::Fail && !is_doubtful {
                let item = batch.items.get(error.batch_index().unwrap_or(0));
                return Err(source.error(batch, item, error));
            }
            one_by_one(source, table, batch, error.may_be_done()).await
        }
        Err(error) => {
            let single = (batch.items.len() == 1).then_some(0);
            let item = error.batch_index().or(single).and_then(|index| batch.items.get(index));
            Err(source.error(batch, item, error))
        }
    }
}

/// Inserts each entity alone. One that is there and equal may be this program's own, of an attempt whose
/// answer was lost, or of an earlier run.
async fn one_by_one(
    source: &Source<'_>,
    table: &mut TableAccess,
    batch: &Batch,
    may_be_done: bool,
) -> Result<Counts, ToolError> {
    let mut counts = Counts::default();
    for item in &batch.items {
        let Err(error) = table.submit(&[source.change(batch, item)]).await else {
            counts.written += 1;
            continue;
        };
        if error.code() != EXISTS {
            return Err(source.error(batch, Some(item), error));
        }
        let is_doubtful = may_be_done || error.may_be_done() || source.is_doubtful(item);
        if is_doubtful && is_there(source, table, batch, item).await? {
            counts.written += 1;
        } else if source.on_conflict == OnConflict::Skip {
            counts.skipped += 1;
        } else {
            return Err(source.error(batch, Some(item), error));
        }
    }
    Ok(counts)
}

/// Whether the table has exactly this entity.
async fn is_there(
    source: &Source<'_>,
    table: &mut TableAccess,
    batch: &Batch,
    item: &Item,
) -> Result<bool, ToolError> {
    let literal = |text: &str| Value::from(text).literal();
    let (partition, row) = (literal(&batch.partition_key), literal(&item.row_key));
    let mut query = Query::matching(format!("PartitionKey eq {partition} and RowKey eq {row}"));
    let mut body = Vec::new();
    // An empty page may have one behind it.
    loop {
        query.from = table.page(&query, &mut body).await?;
        let rows = rows_of_page(&body).map_err(ToolError::Refused)?;
        if let Some(found) = rows.first() {
            let own = row_of(&source.window.text[item.at.clone()], source.path, item.number)?;
            return Ok(first_difference(&own, found).is_none());
        }
        if query.from.is_none() {
            return Ok(false);
        }
    }
}
