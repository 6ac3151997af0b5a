//! Blobs whose names no new blob gets: earlier versions took control characters, and dots at the end of a
//! segment.
//!
//! They stay listed, readable and deletable under their exact names; the offline check of a folder names
//! them, so that their owner can copy them to other names. What always holds: one walk over the names,
//! however many rows each has.

use crate::container::container_row::ContainerRow;
use crate::error::BlobError;
use crate::name::is_former_blob_name;
use base::BoxFuture;
use partition::key::parse_row_key;
use partition::{KeyRange, ObjectTable, PartitionError, Partitions, RowRef, Scan, Visit};
use service::SERVICE_BLOB;
use service::container::is_container;
use std::collections::BTreeMap;

/// A blob that has such a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerName {
    /// Its account.
    pub account: String,
    /// Its container.
    pub container: String,
    /// Its name, exactly.
    pub name: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormerNames {
    /// The first of them, in the order of accounts, containers by age, and names.
    pub first: Vec<FormerName>,
    /// How many there are.
    pub count: u64,
}

/// Looks for them in all containers of all accounts; tells the first `listed_max`.
pub fn find_former_names<'a>(
    partitions: &'a Partitions,
    listed_max: usize,
) -> BoxFuture<'a, Result<FormerNames, BlobError>> {
    Box::pin(async move {
        let containers = FindContainers::default();
        let (containers, _) = partitions.scan(ObjectTable::Container, KeyRange::all(), containers).await?;
        if let Some(error) = containers.error {
            return Err(error);
        }
        let containers = containers.names;
        let walk =
            FindNames { containers, listed_max, found: FormerNames::default(), has_unreadable_key: false };
        let (walk, _) = partitions.scan(ObjectTable::Blob, KeyRange::all(), walk).await?;
        match walk.has_unreadable_key {
            true => Err(unreadable_key()),
            false => Ok(walk.found),
        }
    })
}

fn unreadable_key() -> BlobError {
    PartitionError::Operation("a row's key can't be read").into()
}

/// Names of blob containers that are there, by account and id.
#[derive(Default)]
struct FindContainers {
    names: BTreeMap<(String, u64), String>,
    error: Option<BlobError>,
}

impl Scan for FindContainers {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        let Some(parts) = parse_row_key(row.key) else {
            self.error = Some(unreadable_key());
            return Visit::StopBefore;
        };
        if is_container(&parts) && parts.partition_name == SERVICE_BLOB {
            match ContainerRow::decode(row.value) {
                Ok(container) => {
                    self.names.insert((parts.account, container.id), container.name);
                }
                Err(error) => {
                    self.error = Some(error.into());
                    return Visit::StopBefore;
                }
            }
        }
        Visit::Continue
    }
}

struct FindNames {
    containers: BTreeMap<(String, u64), String>,
    listed_max: usize,
    found: FormerNames,
    has_unreadable_key: bool,
}

impl Scan for FindNames {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        let Some(parts) = parse_row_key(row.key) else {
            self.has_unreadable_key = true;
            return Visit::StopBefore;
        };
        let of_name = KeyRange::partition(&parts.account, parts.container_id, &parts.partition_name);
        let next = of_name.end.unwrap_or_default();
        // Of a container that was deleted rows may be left, which nobody sees.
        let container = self.containers.get(&(parts.account.clone(), parts.container_id));
        if let Some(container) = container.filter(|_| is_former_blob_name(&parts.partition_name)) {
            self.found.count += 1;
            if self.found.first.len() < self.listed_max {
                let (account, name) = (parts.account, parts.partition_name);
                self.found.first.push(FormerName { account, container: container.clone(), name });
            }
        }
        Visit::SkipTo(next)
    }

    fn needs_overflow(&self) -> bool {
        false
    }
}
