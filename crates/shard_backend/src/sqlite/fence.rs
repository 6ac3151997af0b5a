//! Fence and claims in a SQLite shard: the rows that `shard_store` keeps, and one a claimed mapping.
//!
//! ```text
//! larimar_fence   map, mapping, since, state
//! larimar_claim   map, mapping, epoch, is_active
//! ```
//!
//! What always holds: a transaction that writes has the write lock from its begin, so what it read here is
//! true until its commit.

use crate::backend::claim::{Claimed, StoredClaim};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, stored_mapping};
use crate::backend::shardlet::Shardlet;
use rusqlite::{Error, OptionalExtension, Transaction, params};
use shard_map::{Epoch, MappingId, Name};
use shard_store::LocalMapping;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS larimar_claim (
        map TEXT NOT NULL, mapping TEXT NOT NULL, epoch INTEGER NOT NULL, is_active INTEGER NOT NULL,
        PRIMARY KEY (map, mapping)) WITHOUT ROWID";

/// Whether there is a table of a name.
pub(super) fn has_table(transaction: &Transaction<'_>, name: &str) -> Result<bool, Error> {
    let select = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    transaction.query_row(select, [name], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// Whether a write passes; holds it until the commit.
pub(super) fn check_hold(
    transaction: &Transaction<'_>,
    place: &str,
    shardlet: &Shardlet,
    hold: FenceHold,
) -> Result<Result<(), BackendError>, Error> {
    let Some((map, mapping)) = shardlet.mapping() else { return Ok(Ok(())) };
    let here = match fence_row(transaction, map.name(), mapping)? {
        Some((since, state)) => match stored_mapping(place, since, &state) {
            Ok(here) => Some(here),
            Err(error) => return Ok(Err(error)),
        },
        None => None::<LocalMapping>,
    };
    let claim = claim_row(transaction, map.name(), mapping)?;
    Ok(hold.check(place, map.name(), mapping, here.as_ref(), claim))
}

fn fence_row(
    transaction: &Transaction<'_>,
    map: &Name,
    mapping: &MappingId,
) -> Result<Option<(i64, String)>, Error> {
    if !has_table(transaction, "larimar_fence")? {
        return Ok(None);
    }
    let select = "SELECT since, state FROM larimar_fence WHERE map = ?1 AND mapping = ?2";
    let key = params![map.as_str(), mapping.to_string()];
    transaction.query_row(select, key, |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn claim_row(
    transaction: &Transaction<'_>,
    map: &Name,
    mapping: &MappingId,
) -> Result<Option<StoredClaim>, Error> {
    if !has_table(transaction, "larimar_claim")? {
        return Ok(None);
    }
    let select = "SELECT epoch, is_active FROM larimar_claim WHERE map = ?1 AND mapping = ?2";
    let claim = |row: &rusqlite::Row<'_>| {
        let epoch = Epoch(row.get::<_, i64>(0)?.cast_unsigned());
        Ok(StoredClaim { epoch, is_active: row.get(1)? })
    };
    transaction.query_row(select, params![map.as_str(), mapping.to_string()], claim).optional()
}

/// Stores what `change` makes of the stored claim, if anything.
pub(super) fn change_claim(
    transaction: &Transaction<'_>,
    claimed: Claimed<'_>,
    change: impl FnOnce(Claimed<'_>, Option<StoredClaim>) -> Result<Option<StoredClaim>, BackendError>,
) -> Result<Result<(), BackendError>, Error> {
    let claim = match change(claimed, claim_row(transaction, claimed.map, claimed.mapping)?) {
        Ok(Some(claim)) => claim,
        Ok(None) => return Ok(Ok(())),
        Err(error) => return Ok(Err(error)),
    };
    transaction.execute_batch(TABLE)?;
    let put = "INSERT INTO larimar_claim (map, mapping, epoch, is_active) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (map, mapping) DO UPDATE SET epoch = excluded.epoch, is_active = excluded.is_active";
    let (map, mapping) = (claimed.map.as_str(), claimed.mapping.to_string());
    transaction.execute(put, params![map, mapping, claim.epoch.0.cast_signed(), claim.is_active])?;
    Ok(Ok(()))
}
