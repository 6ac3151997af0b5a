//! Objects of deleted containers go in the background: the partition layer learns which ids lead nowhere any
//! more.
//!
//! A container is deleted by one operation and retired by another, so a process that ends in between, or a
//! client that goes away, with whom its request ends, leaves objects that nobody reaches. They are found at
//! the next start, and every few hours, by asking which containers have rows and which ones have names. What
//! always holds: a container is retired only if its rows were seen before the names were read, and no name
//! has its id. A container's own row is older than its objects and ids never come back, so such a container
//! is dead for good. Any number of them may be lost: they are looked at in batches.

use crate::container::containers_range;
use crate::passed_over::PassedOver;
use base::Clock;
use base::codec::DecodeError;
use partition::{ObjectTable, PartitionError, Partitions, RowRef, Scan, ScanEnd, Visit};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often containers are looked for that were deleted, but not retired.
pub const RETIRE_LOST_EVERY: Duration = Duration::from_secs(6 * 3600);

/// After a search that failed, the next one comes so long after it, and twice as long after each further one.
const RETRY_LOST_AFTER: Duration = Duration::from_secs(60);
/// Containers with rows of which it is found out together whether they have names: their account's names are
/// read once for all of them.
const BATCH_COUNT_MAX: usize = 65_536;

/// Reads the id out of a container's row.
pub type ReadContainerId = fn(&[u8]) -> Result<u64, DecodeError>;

/// Where a service's containers and their objects lie.
#[derive(Clone, Copy)]
pub struct ContainerKind {
    /// Partition name of the containers' rows, such as [`crate::SERVICE_TABLE`].
    pub service: &'static str,
    /// Where their objects are.
    pub objects: ObjectTable,
    /// Reads a container's id.
    pub read_id: ReadContainerId,
}

impl ContainerKind {
    /// Tells the partition layer that the objects of a container may go, after [`crate::DeleteContainer`] has
    /// returned `row`. A failure is only logged: the next search makes up for it.
    pub async fn retire(&self, partitions: &Partitions, account: &str, row: &[u8]) {
        match (self.read_id)(row) {
            Ok(id) => self.retire_id(partitions, account, id).await,
            Err(error) => log_failure(account, &damaged(error)),
        }
    }

    /// The same for a service whose own operation has deleted the container with this id.
    pub async fn retire_id(&self, partitions: &Partitions, account: &str, id: u64) {
        if let Err(error) = partitions.retire_container(self.objects, account, id).await {
            log_failure(account, &error);
        }
    }

    /// Retires every container that has objects and no name. Returns how many. Where names or objects don't
    /// read, others are looked for all the same: a container is left alone if its names don't read.
    pub async fn retire_lost(&self, partitions: &Partitions) -> Result<u64, PartitionError> {
        self.retire_lost_in_batches(partitions, BATCH_COUNT_MAX).await
    }

    async fn retire_lost_in_batches(
        &self,
        partitions: &Partitions,
        count_max: usize,
    ) -> Result<u64, PartitionError> {
        let mut retired = 0;
        let mut passed_over = PassedOver::default();
        let mut batch = Batch::default();
        let mut after: Option<(String, u64)> = None;
        loop {
            let place = after.as_ref().map(|(account, id)| (account.as_str(), *id));
            let next = match partitions.next_container(self.objects, place).await {
                Err(error @ PartitionError::Storage(_)) => {
                    passed_over.note(&error);
                    None
                }
                next => next?,
            };
            if next.as_ref().is_none_or(|(account, _)| !batch.has_room_for(account, count_max)) {
                let full = std::mem::take(&mut batch);
                retired += self.retire_nameless(partitions, full, &mut passed_over).await?;
            }
            let Some((account, id)) = next else {
                passed_over.log("deleted containers");
                return Ok(retired);
            };
            batch.account.clone_from(&account);
            batch.ids.insert(id);
            after = Some((account, id));
        }
    }

    /// Retires those that have no names. All of them had rows before the names are read.
    async fn retire_nameless(
        &self,
        partitions: &Partitions,
        batch: Batch,
        passed_over: &mut PassedOver,
    ) -> Result<u64, PartitionError> {
        let Batch { account, ids } = batch;
        if ids.is_empty() {
            return Ok(0);
        }
        let nameless = match self.nameless(partitions, &account, ids).await {
            Err(error @ PartitionError::Storage(_)) => {
                passed_over.note(&error);
                return Ok(0);
            }
            nameless => nameless?,
        };
        for id in &nameless {
            partitions.retire_container(self.objects, &account, *id).await?;
        }
        Ok(nameless.len() as u64)
    }

    /// Retires what is lost at once and every [`RETIRE_LOST_EVERY`], for as long as the partitions are there.
    pub async fn keep_retiring_lost(self, partitions: Weak<Partitions>, clock: Arc<dyn Clock>) {
        let mut retry_after = RETRY_LOST_AFTER;
        while let Some(partitions) = partitions.upgrade() {
            let service = self.service;
            let next_after = match self.retire_lost(&partitions).await {
                Ok(count) => {
                    if count > 0 {
                        tracing::info!(
                            service,
                            count,
                            "what was deleted still had rows: they go in the background"
                        );
                    }
                    retry_after = RETRY_LOST_AFTER;
                    RETIRE_LOST_EVERY
                }
                Err(error) => {
                    tracing::warn!(service, %error, "the search for rows of what was deleted ended early; it begins again later");
                    let next_after = retry_after;
                    retry_after = RETIRE_LOST_EVERY.min(2 * retry_after);
                    next_after
                }
            };
            drop(partitions);
            clock.sleep(next_after).await;
        }
    }

    /// Those of the account's containers that no name leads to.
    async fn nameless(
        &self,
        partitions: &Partitions,
        account: &str,
        ids: BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, PartitionError> {
        let range = containers_range(account, self.service);
        let named = StrikeOutNamed { left: ids, read_id: self.read_id, damage: None };
        let (named, end) = partitions.scan(ObjectTable::Container, range, named).await?;
        match (named.damage, end) {
            (Some(damage), _) => Err(damaged(damage)),
            (None, ScanEnd::Complete) => Ok(named.left),
            (None, ScanEnd::More(_)) => {
                Err(PartitionError::Storage("a scan of all containers ended early".to_owned()))
            }
        }
    }
}

/// Containers of one account that have rows.
#[derive(Default)]
struct Batch {
    account: String,
    ids: BTreeSet<u64>,
}

impl Batch {
    fn has_room_for(&self, account: &str, count_max: usize) -> bool {
        self.ids.is_empty() || (self.account == account && self.ids.len() < count_max)
    }
}

fn log_failure(account: &str, error: &PartitionError) {
    tracing::warn!(%error, account, "objects of a deleted container stay until they are looked for");
}

fn damaged(error: DecodeError) -> PartitionError {
    PartitionError::Storage(format!("stored row: {error}"))
}

/// Strikes out ids of containers that have names.
struct StrikeOutNamed {
    left: BTreeSet<u64>,
    read_id: ReadContainerId,
    damage: Option<DecodeError>,
}

impl Scan for StrikeOutNamed {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match (self.read_id)(row.value) {
            Ok(id) => {
                self.left.remove(&id);
                Visit::Continue
            }
            Err(damage) => {
                self.damage = Some(damage);
                Visit::StopBefore
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::codec::Decoder;
    use partition::RowVersion;

    fn read_id(value: &[u8]) -> Result<u64, DecodeError> {
        Decoder::new(value).u64("id")
    }

    #[test]
    fn a_batch_takes_a_bounded_number_of_one_account() {
        let batch =
            |account: &str, count: u64| Batch { account: account.to_owned(), ids: (0..count).collect() };
        for (batch, account, has_room) in [
            (Batch::default(), "a", true),
            (batch("a", 1), "a", true),
            (batch("a", 1), "b", false),
            (batch("a", 2), "a", true),
            (batch("a", 3), "a", false),
            (batch("", 2), "", true),
            (batch("", 3), "", false),
        ] {
            assert_eq!(batch.has_room_for(account, 3), has_room, "{:?} of {}", batch.ids, batch.account);
        }
    }

    #[test]
    fn what_has_a_name_is_struck_out_and_what_does_not_read_ends_it() {
        let strike_out = |rows: &[&[u8]]| {
            let mut named = StrikeOutNamed { left: (0..5).collect(), read_id, damage: None };
            for value in rows {
                let row = RowRef { key: b"k", version: RowVersion(1), value };
                if named.visit(row) == Visit::StopBefore {
                    break;
                }
            }
            (named.left.into_iter().collect::<Vec<_>>(), named.damage.is_some())
        };
        let [one, three, nine] = [1u64, 3, 9].map(|id| {
            let mut out = Vec::new();
            base::codec::Encode::put_u64_field(&mut out, id);
            out
        });
        for (rows, left, is_damaged) in [
            (vec![], vec![0, 1, 2, 3, 4], false),
            (vec![&one[..], &nine, &three], vec![0, 2, 4], false),
            (vec![&one, &b"?"[..], &three], vec![0, 2, 3, 4], true),
        ] {
            assert_eq!(strike_out(&rows), (left, is_damaged), "{rows:?}");
        }
    }
}
