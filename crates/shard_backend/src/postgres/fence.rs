//! Fence and claims in a Postgres shard: the rows that `shard_store` keeps, and one a claimed mapping.
//!
//! ```text
//! larimar_fence   map, mapping, since, state
//! larimar_claim   map, mapping, epoch, is_active
//! ```
//!
//! A client's write locks the fence's row of its mapping for share, so that a publish that changes it waits.
//! A copy's write finds no such row, or one that a publish may remove; it holds back every publish until its
//! commit, by a lock on the copy's table that other writes of copies take at the same time. Else it could
//! commit after the publish that opens the mapping, over what clients wrote since. It locks the claim's row
//! for share, so that a later claim or the release waits.
//!
//! What always holds: what was checked is true until the commit.

use crate::backend::claim::{Claimed, StoredClaim};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, stored_mapping};
use shard_map::{Epoch, MappingId, Name};
use shard_store::POSTGRES_SHARD_TABLES;
use tokio_postgres::{Error, Transaction};

/// After the tables of the copy, with whose lock sessions take turns.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS larimar_claim (
        map text COLLATE \"C\", mapping text COLLATE \"C\", epoch bigint NOT NULL, is_active boolean NOT NULL,
        PRIMARY KEY (map, mapping))";

/// The mapping that a transaction is about, for messages, too.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) place: String,
    pub(super) map: Name,
    pub(super) mapping: MappingId,
}

impl Held {
    fn claimed(&self) -> Claimed<'_> {
        Claimed { place: &self.place, map: &self.map, mapping: &self.mapping }
    }
}

async fn has_table(transaction: &Transaction<'_>, name: &str) -> Result<bool, Error> {
    let row = transaction.query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&name]).await?;
    row.try_get(0)
}

/// Whether a write passes; holds it until the commit.
pub(super) async fn check_hold(
    transaction: &Transaction<'_>,
    held: &Held,
    hold: FenceHold,
) -> Result<Result<(), BackendError>, Error> {
    let claim = match hold {
        FenceHold::Open(_) => None,
        FenceHold::Closed(_) if has_table(transaction, "larimar_claim").await? => {
            transaction.batch_execute("LOCK TABLE larimar_shard IN ROW EXCLUSIVE MODE").await?;
            claim_row(transaction, held, "SHARE").await?
        }
        FenceHold::Closed(_) => None,
    };
    let here = match fence_row(transaction, held).await? {
        Some((since, state)) => match stored_mapping(&held.place, since, &state) {
            Ok(here) => Some(here),
            Err(error) => return Ok(Err(error)),
        },
        None => None,
    };
    Ok(hold.check(&held.place, &held.map, &held.mapping, here.as_ref(), claim))
}

async fn fence_row(transaction: &Transaction<'_>, held: &Held) -> Result<Option<(i64, String)>, Error> {
    if !has_table(transaction, "larimar_fence").await? {
        return Ok(None);
    }
    let select = "SELECT since, state FROM larimar_fence WHERE map = $1 AND mapping = $2 FOR SHARE";
    let (map, mapping) = (held.map.as_str(), held.mapping.to_string());
    let row = transaction.query_opt(select, &[&map, &mapping]).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

async fn claim_row(
    transaction: &Transaction<'_>,
    held: &Held,
    strength: &str,
) -> Result<Option<StoredClaim>, Error> {
    let select =
        format!("SELECT epoch, is_active FROM larimar_claim WHERE map = $1 AND mapping = $2 FOR {strength}");
    let (map, mapping) = (held.map.as_str(), held.mapping.to_string());
    let row = transaction.query_opt(&select, &[&map, &mapping]).await?;
    let claim = |row: tokio_postgres::Row| {
        let epoch = Epoch(row.try_get::<_, i64>(0)?.cast_unsigned());
        Ok(StoredClaim { epoch, is_active: row.try_get(1)? })
    };
    row.map(claim).transpose()
}

/// Stores what `change` makes of the stored claim, if anything.
pub(super) async fn change_claim(
    transaction: &Transaction<'_>,
    held: &Held,
    change: impl FnOnce(Claimed<'_>, Option<StoredClaim>) -> Result<Option<StoredClaim>, BackendError>,
) -> Result<Result<(), BackendError>, Error> {
    if !has_table(transaction, "larimar_claim").await? {
        transaction.batch_execute(POSTGRES_SHARD_TABLES).await?;
        transaction.batch_execute(TABLE).await?;
    }
    // One change of claims at a time: a row that is not there can't be locked. Writes by claims go on.
    transaction.batch_execute("LOCK TABLE larimar_claim IN SHARE ROW EXCLUSIVE MODE").await?;
    let claim = match change(held.claimed(), claim_row(transaction, held, "UPDATE").await?) {
        Ok(Some(claim)) => claim,
        Ok(None) => return Ok(Ok(())),
        Err(error) => return Ok(Err(error)),
    };
    let put = "INSERT INTO larimar_claim (map, mapping, epoch, is_active) VALUES ($1, $2, $3, $4)
        ON CONFLICT (map, mapping) DO UPDATE SET epoch = excluded.epoch, is_active = excluded.is_active";
    let (map, mapping) = (held.map.as_str(), held.mapping.to_string());
    transaction.execute(put, &[&map, &mapping, &claim.epoch.0.cast_signed(), &claim.is_active]).await?;
    Ok(Ok(()))
}
