//! Reads both sides and compares them.
//!
//! What always holds: both are read to their ends from the databases, not from what was copied; counts are
//! asked for apart from the rows that were read.

use super::report::TableReport;
use super::side::Side;
use crate::error::MoveError;
use crate::log::position::key_texts;
use crate::rows::delete::key_of;
use crate::settings::{Planted, PlantedFault};
use futures_util::future::{join, try_join};
use shard_backend::{DigestKey, RowHasher, RowKey, TableDigest, TableSchema};

/// A table that is equal on both sides, or what differs.
pub(crate) enum Compared {
    Equal(TableReport),
    Differs(String),
}

/// Compares a table. `shown` is called with the rows of each batch of the source.
pub(crate) async fn compare(
    table: &TableSchema,
    source: &Side,
    target: &Side,
    key: &DigestKey,
    planted: Planted,
    shown: impl FnMut(u64),
) -> Result<Compared, MoveError> {
    let (here, there) = join(read(table, source, key, shown), read(table, target, key, |_| {})).await;
    let (here, mut there) = (here?, there?);
    let count = |side: &Side| {
        let Side { backend, shardlet, .. } = side.clone();
        async move { backend.count(table, &shardlet).await }
    };
    let (count_here, mut count_there) = try_join(count(source), count(target)).await?;
    if planted.is(PlantedFault::DigestIgnoresDeletes) && there.digest.rows > here.digest.rows {
        (there, count_there) = (here.clone(), count_here);
    }
    let report = |read: Read| TableReport::new(table.name(), read.digest, read.last.as_ref().map(key_texts));
    let is_equal = here == there && count_here == count_there && count_here == here.digest.rows;
    if is_equal {
        return Ok(Compared::Equal(report(here)));
    }
    let shown = |side: &Side, read: &Read, count: u64| {
        let last =
            read.last.as_ref().map_or_else(|| "no key".to_owned(), |key| format!("greatest key {key}"));
        format!("`{}` has {count} rows (read: {}, {last})", side.shard, read.digest)
    };
    Ok(Compared::Differs(format!(
        "table `{}` differs: {}, and {}",
        table.name(),
        shown(source, &here, count_here),
        shown(target, &there, count_there)
    )))
}

#[derive(Clone, PartialEq, Eq)]
struct Read {
    digest: TableDigest,
    last: Option<RowKey>,
}

async fn read(
    table: &TableSchema,
    side: &Side,
    key: &DigestKey,
    mut shown: impl FnMut(u64),
) -> Result<Read, MoveError> {
    let mut hasher = RowHasher::new(key, table);
    let mut read = Read { digest: TableDigest::default(), last: None };
    let mut after = None;
    loop {
        let batch = side.backend.scan(table, &side.shardlet, after.as_ref(), side.bounds).await?;
        for row in &batch.rows {
            read.digest.add(hasher.hash(row));
        }
        read.last = batch.rows.last().map(|row| key_of(table, row)).or(read.last);
        shown(batch.rows.len() as u64);
        match batch.next {
            Some(next) => after = Some(next),
            None => return Ok(read),
        }
    }
}
