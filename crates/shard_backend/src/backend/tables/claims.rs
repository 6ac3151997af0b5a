//! Claims of mappings, each an entity in the table of the shard's copy.
//!
//! ```text
//! PartitionKey   claims
//! RowKey         the map's name, a space, and the mapping's id; if that is too long, its hash
//! Epoch          the highest claim, Edm.Int64
//! Active         whether its move is under way, Edm.Boolean; else it was released
//! ```
//!
//! What always holds: a stored claim never falls, and one that was released is not active again, because it
//! is replaced by its ETag only.

use crate::backend::claim::{Claimed, StoredClaim, release};
use crate::backend::error::BackendError;
use crate::backend::tables::entity::KEY_CHARS_MAX;
use sha2::{Digest, Sha256};
use shard_map::{Epoch, MappingId, Name};
use shard_store::StoreError;
use storage_client::{Entity, Error, IfMatch, TableClient, Value};

const PARTITION: &str = "claims";
const EPOCH: &str = "Epoch";
const ACTIVE: &str = "Active";
/// Claims of one mapping that are under way at once end after so many attempts: each is another one's
/// success.
const ATTEMPTS_MAX: u32 = 20;

/// The claims of a shard.
pub(super) struct Claims {
    table: TableClient,
    place: String,
}

/// A claim as it was read.
struct Stored {
    claim: StoredClaim,
    etag: String,
}

impl Claims {
    /// In the table of the shard's copy, which is made if it is missing.
    pub(super) fn new(table: TableClient, place: &str) -> Self {
        Claims { table, place: place.to_owned() }
    }

    /// The stored claim.
    pub(super) async fn read(
        &self,
        map: &Name,
        mapping: &MappingId,
    ) -> Result<Option<StoredClaim>, StoreError> {
        Ok(self.stored(&row_key(map, mapping)).await?.map(|stored| stored.claim))
    }

    /// Stores a claim, unless a higher one is there, or it was released.
    pub(super) async fn claim(
        &self,
        map: &Name,
        mapping: &MappingId,
        given: Epoch,
    ) -> Result<(), BackendError> {
        let claimed = Claimed { place: &self.place, map, mapping };
        self.change(&row_key(map, mapping), |there| claimed.claim(there, given)).await
    }

    /// Ends a claim, if it is the one that is stored.
    pub(super) async fn release(
        &self,
        map: &Name,
        mapping: &MappingId,
        given: Epoch,
    ) -> Result<(), BackendError> {
        self.change(&row_key(map, mapping), |there| Ok(release(there, given))).await
    }

    /// Stores what `change` makes of the stored claim, if anything.
    async fn change(
        &self,
        row_key: &str,
        change: impl Fn(Option<StoredClaim>) -> Result<Option<StoredClaim>, BackendError>,
    ) -> Result<(), BackendError> {
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.stored(row_key).await?;
            let Some(claim) = change(stored.as_ref().map(|stored| stored.claim))? else { return Ok(()) };
            if self.put(row_key, stored, claim).await? {
                return Ok(());
            }
        }
        Err(StoreError::refused(&self.place, "others claim the mapping at the same time, again and again")
            .into())
    }

    /// Whether it was put: else another claim came before it.
    async fn put(
        &self,
        row_key: &str,
        stored: Option<Stored>,
        claim: StoredClaim,
    ) -> Result<bool, StoreError> {
        // Epochs are far below the largest number.
        let epoch = i64::try_from(claim.epoch.0).unwrap_or(i64::MAX);
        let entity = Entity::new(PARTITION, row_key).with(EPOCH, epoch).with(ACTIVE, claim.is_active);
        let put = match stored {
            Some(stored) => self.table.replace(&entity, &IfMatch::ETag(stored.etag)).await,
            None => match self.table.insert(&entity).await {
                Err(error) if error.code() == "TableNotFound" => {
                    self.table.create_if_absent().await.map_err(|error| failed(&self.place, &error))?;
                    self.table.insert(&entity).await
                }
                put => put,
            },
        };
        match put {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() || matches!(error.status(), Some(409 | 412)) => Ok(false),
            Err(error) => Err(failed(&self.place, &error)),
        }
    }

    async fn stored(&self, row_key: &str) -> Result<Option<Stored>, StoreError> {
        let entity = match self.table.get_if_present(PARTITION, row_key).await {
            Ok(Some(entity)) => entity,
            Ok(None) => return Ok(None),
            Err(error) if error.code() == "TableNotFound" => return Ok(None),
            Err(error) => return Err(failed(&self.place, &error)),
        };
        let epoch = match entity.value(EPOCH) {
            Some(Value::Int64(epoch)) => u64::try_from(*epoch).ok().map(Epoch),
            _ => None,
        };
        let is_active = entity.value(ACTIVE) == Some(&Value::Boolean(true));
        match (epoch, entity.etag) {
            (Some(epoch), Some(etag)) => Ok(Some(Stored { claim: StoredClaim { epoch, is_active }, etag })),
            _ => {
                let what = format!("the claim {row_key} in table {} is damaged", self.table.name());
                Err(StoreError::refused(&self.place, what))
            }
        }
    }
}

/// What a service's error says of an operation.
pub(super) fn failed(place: &str, error: &Error) -> StoreError {
    let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    let what = format!("{error}{remedy}");
    match error.may_be_done() {
        true => StoreError::uncertain(place, what),
        false => StoreError::refused(place, what),
    }
}

fn row_key(map: &Name, mapping: &MappingId) -> String {
    let text = format!("{map} {mapping}");
    if text.len() <= KEY_CHARS_MAX {
        return text;
    }
    let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{map} {hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::{KeyKind, KeyType};

    #[test]
    fn a_claim_has_a_key_of_its_own_however_long_the_mapping_s_is() {
        let map = Name::parse("m").expect("a name");
        assert_eq!(row_key(&map, &MappingId::Virtual(3)), format!("m {}", MappingId::Virtual(3)));
        let texts = KeyType::new([KeyKind::Text]).expect("a type");
        let pin = |last: &str| {
            let text = format!("{}{last}", "x".repeat(900));
            MappingId::Pin(texts.encode(&[text.as_str().into()]).expect("a key"))
        };
        let (one, other) = (row_key(&map, &pin("1")), row_key(&map, &pin("2")));
        assert!(one != other && one.len() <= KEY_CHARS_MAX && one.starts_with("m "), "{one} {other}");
    }
}
