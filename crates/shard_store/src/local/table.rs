//! A copy in a table of the shard, which is a storage account.
//!
//! The copy's text is in parts, under an id of its own; one entity, the head, names the parts, and is
//! replaced by its ETag. So a copy that was half written is not seen. Parts of a former copy are removed
//! behind it; what stays because that failed is removed with a later one.
//!
//! Nothing here holds until a commit: the account has no transaction over partitions. What fences writers
//! there is the end of their signatures (`shard_backend`).

use super::copy::LocalCopy;
use super::local_store::{LocalStore, Replaced, Revision, StoredCopy};
use crate::error::StoreError;
use crate::home::keys::{self, PartsId};
use crate::home::parts::{put_parts, read_parts, remove_parts};
use crate::records::records::Records;
use crate::records::table::TableRecords;
use base::{BoxFuture, Clock, Random};
use std::collections::BTreeSet;
use std::sync::Arc;
use storage_client::{Entity, Error, IfMatch, TableClient, Value};

/// The partition of all entities of a copy.
const PARTITION: &str = "shard";
/// The row key of the head, before those of the parts.
const HEAD: &str = "head";
const PARTS: &str = "Parts";
const PART_COUNT: &str = "PartCount";
/// Reads begin again if a writer replaced the copy meanwhile.
const READS_MAX: u32 = 5;
/// Parts of former copies that are looked at.
const LEFTOVERS_MAX: usize = 1000;

/// A copy in a table.
pub struct TableLocal {
    table: TableClient,
    parts: TableRecords,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// What the head says.
struct Head {
    etag: String,
    id: PartsId,
    part_count: usize,
}

impl TableLocal {
    /// The copy in a table, which is made with the first copy; `account` is for messages.
    pub fn new(account: &str, table: TableClient, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        let parts = TableRecords::new(account, table.clone(), PARTITION);
        TableLocal { table, parts, clock, random }
    }

    async fn head(&self) -> Result<Option<Head>, StoreError> {
        let entity = match self.table.get_if_present(PARTITION, HEAD).await {
            Ok(Some(entity)) => entity,
            Ok(None) => return Ok(None),
            Err(error) if error.code() == "TableNotFound" => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        let id = match entity.value(PARTS) {
            Some(Value::String(id)) => PartsId::parse(id),
            _ => None,
        };
        let count = match entity.value(PART_COUNT) {
            Some(Value::Int32(count)) => usize::try_from(*count).ok(),
            _ => None,
        };
        match (entity.etag, id, count) {
            (Some(etag), Some(id), Some(part_count)) => Ok(Some(Head { etag, id, part_count })),
            _ => Err(StoreError::refused(self.place(), "its head is damaged; write the copy anew")),
        }
    }

    fn failed(&self, error: &Error) -> StoreError {
        match error.may_be_done() {
            true => StoreError::uncertain(self.place(), error),
            false => StoreError::refused(self.place(), error),
        }
    }

    async fn read_copy(&self) -> Result<Option<StoredCopy>, StoreError> {
        let mut seen = None;
        for _ in 0..READS_MAX {
            let Some(head) = self.head().await? else { return Ok(None) };
            if let Some(text) = read_parts(&self.parts, &head.id, head.part_count).await? {
                let copy =
                    LocalCopy::from_json(&text).map_err(|error| StoreError::refused(self.place(), error))?;
                return Ok(Some(StoredCopy { copy, revision: Revision(head.etag) }));
            }
            // Another copy has taken its place, or the parts are lost.
            if seen.replace(head.etag.clone()) == Some(head.etag) {
                break;
            }
        }
        Err(StoreError::refused(self.place(), "parts of the copy are missing; write it anew from the map"))
    }

    async fn replace_copy(
        &self,
        expected: Option<&Revision>,
        copy: Option<&LocalCopy>,
    ) -> Result<Replaced, StoreError> {
        let Some(copy) = copy else { return self.remove_copy(expected).await };
        let id = PartsId::new(self.clock.now().0, self.random.next_u64());
        let part_count = put_parts(&self.parts, &id, &copy.to_json()).await?;
        let part_count = i32::try_from(part_count).unwrap_or(i32::MAX);
        let head = Entity::new(PARTITION, HEAD).with(PARTS, id.to_string()).with(PART_COUNT, part_count);
        let written = match expected {
            Some(Revision(etag)) => self.table.replace(&head, &IfMatch::ETag(etag.clone())).await,
            None => self.table.insert(&head).await,
        };
        let etag = match written {
            Ok(etag) => Some(etag),
            // A repeated attempt meets what an earlier one wrote.
            Err(error) if is_conflict(&error) => {
                self.head().await?.filter(|there| there.id == id).map(|there| there.etag)
            }
            Err(error) => return Err(self.failed(&error)),
        };
        let Some(etag) = etag else {
            drop(remove_parts(&self.parts, &id).await);
            return Ok(Replaced::Conflict);
        };
        drop(self.remove_others(&id).await);
        Ok(Replaced::Done(Some(Revision(etag))))
    }

    async fn remove_copy(&self, expected: Option<&Revision>) -> Result<Replaced, StoreError> {
        let Some(Revision(etag)) = expected else {
            return Ok(if self.head().await?.is_none() { Replaced::Done(None) } else { Replaced::Conflict });
        };
        let former = self.head().await?.map(|head| head.id);
        match self.table.delete_entity(PARTITION, HEAD, &IfMatch::ETag(etag.clone())).await {
            Ok(()) => {}
            Err(error) if is_conflict(&error) => return Ok(Replaced::Conflict),
            Err(error) => return Err(self.failed(&error)),
        }
        if let Some(former) = former {
            drop(remove_parts(&self.parts, &former).await);
        }
        Ok(Replaced::Done(None))
    }

    /// Removes the parts of former copies; not those of a writer that is under way beside this one.
    async fn remove_others(&self, newest: &PartsId) -> Result<(), StoreError> {
        let parts = self.parts.list(keys::PART, &keys::behind(keys::PART), LEFTOVERS_MAX).await?;
        let ids: BTreeSet<PartsId> = parts.iter().filter_map(|part| PartsId::of_key(&part.key)).collect();
        for id in ids.into_iter().filter(|id| id.ticks() < newest.ticks()) {
            remove_parts(&self.parts, &id).await?;
        }
        Ok(())
    }
}

/// Whether the head is not the one that was read.
fn is_conflict(error: &Error) -> bool {
    error.is_not_found() || matches!(error.status(), Some(409 | 412))
}

impl LocalStore for TableLocal {
    fn place(&self) -> &str {
        self.parts.place()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        Box::pin(self.read_copy())
    }

    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(self.replace_copy(expected, copy))
    }
}
