//! Objects of deleted containers go in the background: the partition layer learns which ids lead nowhere any
//! more.
//!
//! A container is deleted by one operation and retired by another, so a process that ends in between, or a
//! client that goes away, with whom its request ends, leaves objects that nobody reaches. They are found at
//! the next start, and every few hours, by asking which containers have rows and which ones have names. What
//! always holds: a container is retired only if its rows were seen before the names were read, and no name
//! has its id. A container's own row is older than its objects and ids never come back, so such a container
//! is dead for good.

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
        let mut retired = 0;
        let mut passed_over = PassedOver::default();
        let mut after: Option<(String, u64)> = None;
        let mut named =
            NamedIds { account: String::new(), ids: BTreeSet::new(), read_id: self.read_id, damage: None };
        loop {
            let place = after.as_ref().map(|(account, id)| (account.as_str(), *id));
            let next = match partitions.next_container(self.objects, place).await {
                Err(error @ PartitionError::Storage(_)) => {
                    passed_over.note(&error);
                    None
                }
                next => next?,
            };
            let Some((account, id)) = next else {
                passed_over.log("deleted containers");
                return Ok(retired);
            };
            if !named.has(&account, id) {
                // It may be younger than what is known: only names that are read now tell.
                match self.read_named(partitions, &account).await {
                    Ok(read) => {
                        named = read;
                        if !named.has(&account, id) {
                            partitions.retire_container(self.objects, &account, id).await?;
                            retired += 1;
                        }
                    }
                    Err(error @ PartitionError::Storage(_)) => passed_over.note(&error),
                    Err(error) => return Err(error),
                }
            }
            after = Some((account, id));
        }
    }

    /// Retires what is lost at once and every [`RETIRE_LOST_EVERY`], for as long as the partitions are there.
    pub async fn keep_retiring_lost(self, partitions: Weak<Partitions>, clock: Arc<dyn Clock>) {
        while let Some(partitions) = partitions.upgrade() {
            let service = self.service;
            match self.retire_lost(&partitions).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(
                        service,
                        count,
                        "what was deleted still had rows: they go in the background"
                    )
                }
                Err(error) => {
                    tracing::warn!(service, %error, "rows of what was deleted could not be looked for")
                }
            }
            drop(partitions);
            clock.sleep(RETIRE_LOST_EVERY).await;
        }
    }

    async fn read_named(&self, partitions: &Partitions, account: &str) -> Result<NamedIds, PartitionError> {
        let (account, read_id) = (account.to_owned(), self.read_id);
        let range = containers_range(&account, self.service);
        let named = NamedIds { account, ids: BTreeSet::new(), read_id, damage: None };
        let (named, end) = partitions.scan(ObjectTable::Container, range, named).await?;
        match (&named.damage, end) {
            (Some(damage), _) => Err(damaged(damage.clone())),
            (None, ScanEnd::Complete) => Ok(named),
            (None, ScanEnd::More(_)) => {
                Err(PartitionError::Storage("a scan of all containers ended early".to_owned()))
            }
        }
    }
}

fn log_failure(account: &str, error: &PartitionError) {
    tracing::warn!(%error, account, "objects of a deleted container stay until they are looked for");
}

fn damaged(error: DecodeError) -> PartitionError {
    PartitionError::Storage(format!("stored row: {error}"))
}

/// Ids of an account's containers that have names.
struct NamedIds {
    account: String,
    ids: BTreeSet<u64>,
    read_id: ReadContainerId,
    damage: Option<DecodeError>,
}

impl NamedIds {
    fn has(&self, account: &str, id: u64) -> bool {
        self.account == account && self.ids.contains(&id)
    }
}

impl Scan for NamedIds {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match (self.read_id)(row.value) {
            Ok(id) => {
                self.ids.insert(id);
                Visit::Continue
            }
            Err(damage) => {
                self.damage = Some(damage);
                Visit::StopBefore
            }
        }
    }
}
