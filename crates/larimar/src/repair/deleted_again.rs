//! Containers that are there again because the damaged part had their deletion.
//!
//! That a container was deleted is also marked where its objects are, after the deletion was durable, and its
//! objects go by that mark in the background. A container that stays in spite of it would lose whatever is
//! written into it. What always holds: only containers whose own id is marked go; ids never come back.

use crate::places::container_id_of;
use partition::{ObjectTable, PartitionError, Partitions, Row, RowKey, RowRef, Scan, Visit};
use service::DeleteContainer;

/// Deletes the rows of containers that are marked as deleted, and returns them as they were.
pub(super) async fn delete_again(partitions: &Partitions) -> Result<Vec<Row>, PartitionError> {
    let mut found = FindContainers::default();
    for range in partitions.ranges(ObjectTable::Container) {
        found = partitions.scan(ObjectTable::Container, range, found).await?.0;
    }
    let mut dead = Vec::new();
    for one in found.0 {
        if partitions.is_retired(one.objects, &one.account, one.id).await? {
            dead.push(one.row);
        }
    }
    for row in &dead {
        partitions.execute(DeleteContainer { key: row.key.clone() }).await?;
    }
    Ok(dead)
}

/// A container: its row, the table of its objects, its account and its id.
struct Found {
    row: Row,
    objects: ObjectTable,
    account: String,
    id: u64,
}

/// All containers that read.
#[derive(Default)]
struct FindContainers(Vec<Found>);

impl Scan for FindContainers {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if let Some((objects, account, id)) = container_id_of(row.key, row.value) {
            let key = RowKey::from_bytes(row.key.to_vec().into());
            let row = Row { key, version: row.version, value: row.value.to_vec().into() };
            self.0.push(Found { row, objects, account, id });
        }
        Visit::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::system::SystemDisk;
    use blob::BlobService;
    use partition::{
        Decision, Operation, PartitionSettings, Partitions, Read, RowChange, RowStart, RowVersion, Rows,
    };
    use std::sync::Arc;
    use stream::{StreamSettings, Streams};

    /// Puts a row of a blob: a container without rows gets no mark.
    struct PutRow(RowKey);

    impl Operation for PutRow {
        type Reply = ();

        fn object_table(&self) -> ObjectTable {
            ObjectTable::Blob
        }

        fn reads(&self) -> Vec<Read> {
            vec![Read::Point(self.0.clone())]
        }

        fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
            let mut value = Vec::new();
            RowStart { pieces: Vec::new(), overflow_size_bytes: 0 }.put(&mut value);
            let changes = vec![RowChange::Put { key: self.0.clone(), value: value.into() }];
            Decision { changes, reply: () }
        }
    }

    /// A container whose deletion was lost came back, and took blobs that went by the mark on the one before.
    #[tokio::test]
    async fn a_container_that_is_marked_as_deleted_goes_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let env = base::system::environment_on(Arc::new(SystemDisk::new(folder.path())));
        let settings = StreamSettings { reserve_size_bytes: 0, ..StreamSettings::default() };
        let streams = Streams::open(&env, settings).await.unwrap();
        let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
        let partitions = Arc::new(partitions);
        let service = BlobService::new(partitions.clone(), env.clock.clone(), Default::default());
        for name in ["gone", "kept"] {
            let (access, encryption) = (blob::PublicAccess::None, Default::default());
            service.create_container("acct", name, Vec::new(), access, encryption).await.unwrap();
        }
        assert_eq!(delete_again(&partitions).await.unwrap(), [], "nothing is marked");
        let mut found = FindContainers::default();
        for range in partitions.ranges(ObjectTable::Container) {
            found = partitions.scan(ObjectTable::Container, range, found).await.unwrap().0;
        }
        let is_gone = |key: &RowKey| key.as_bytes().windows(4).any(|part| part == b"gone");
        let gone = found.0.into_iter().find(|one| is_gone(&one.row.key)).unwrap();
        partitions.execute(PutRow(RowKey::new(&gone.account, gone.id, "blob", "row"))).await.unwrap();
        partitions.retire_container(gone.objects, &gone.account, gone.id).await.unwrap();
        let deleted = delete_again(&partitions).await.unwrap();
        assert!(matches!(&deleted[..], [row] if is_gone(&row.key)), "{deleted:?}");
        assert!(
            service.container("acct", "gone").await.is_err()
                && service.container("acct", "kept").await.is_ok()
        );
        assert_eq!(delete_again(&partitions).await.unwrap(), []);
        partitions.close().await;
        streams.close().await;
    }
}
