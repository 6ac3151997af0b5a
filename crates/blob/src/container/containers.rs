//! What the service does with containers: create, change, lease, list, delete, and retire the ids of deleted
//! ones.

use crate::blob_service::BlobService;
use crate::condition::Conditions;
use crate::container::container_ops::{ContainerAction, ContainerOperation};
use crate::container::container_row::{ContainerRow, PublicAccess};
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::lease::{LeaseAction, LeaseOutcome};
use crate::name::{Pairs, check_container, check_metadata, is_system_container};
use base::Spawner;
use base::codec::DecodeError;
use partition::{ObjectTable, PartitionError};
use service::container::container_key;
use service::policy::check_policies;
use service::{
    ContainerKind, ContainerListQuery, PASSED_OVER_ROWS_MAX, SERVICE_BLOB, StoredPolicy, read_container_page,
};
use std::sync::Arc;

const CONTAINERS: ContainerKind = ContainerKind {
    service: SERVICE_BLOB,
    objects: ObjectTable::Blob,
    read_id: |row| ContainerRow::decode(row).map(|row| row.id),
};

impl BlobService {
    async fn act(
        &self,
        account: &str,
        name: &str,
        action: ContainerAction,
        conditions: Conditions,
    ) -> Result<(ContainerRow, Option<LeaseOutcome>), BlobError> {
        check_container(name)?;
        let key = container_key(account, SERVICE_BLOB, name);
        self.partitions.execute(ContainerOperation { key, action, conditions }).await?
    }

    /// Creates a container.
    pub async fn create_container(
        &self,
        account: &str,
        name: &str,
        metadata: Pairs,
        public_access: PublicAccess,
        encryption: ContainerEncryption,
    ) -> Result<ContainerRow, BlobError> {
        check_metadata(&metadata)?;
        let action = ContainerAction::Create { name: name.to_owned(), metadata, public_access, encryption };
        Ok(self.act(account, name, action, Conditions::default()).await?.0)
    }

    /// Deletes a container: its blobs can't be reached any more, and go in the background.
    pub async fn delete_container(
        &self,
        account: &str,
        name: &str,
        conditions: Conditions,
    ) -> Result<(), BlobError> {
        let (row, _) = self.act(account, name, ContainerAction::Delete, conditions).await?;
        CONTAINERS.retire_id(&self.partitions, account, row.id).await;
        Ok(())
    }

    /// Has blobs of containers that were deleted looked for that nobody retired, now and every now and then,
    /// for as long as the partitions are there.
    pub fn start_retiring(&self, spawner: &dyn Spawner) {
        let retiring = CONTAINERS.keep_retiring_lost(Arc::downgrade(&self.partitions), self.clock.clone());
        spawner.spawn("blob retire-lost", Box::pin(retiring));
    }

    /// Looks for blobs of containers that were deleted, but not retired because the process ended or the
    /// request was dropped in between, and retires them. Returns how many containers were found.
    pub async fn retire_lost_containers(&self) -> Result<u64, BlobError> {
        Ok(CONTAINERS.retire_lost(&self.partitions).await?)
    }

    /// Replaces a container's metadata.
    pub async fn set_container_metadata(
        &self,
        account: &str,
        name: &str,
        metadata: Pairs,
        conditions: Conditions,
    ) -> Result<ContainerRow, BlobError> {
        check_metadata(&metadata)?;
        Ok(self.act(account, name, ContainerAction::SetMetadata(metadata), conditions).await?.0)
    }

    /// Replaces a container's stored access policies; without a public access its own stays.
    pub async fn set_container_policies(
        &self,
        account: &str,
        name: &str,
        policies: Vec<StoredPolicy>,
        public_access: PublicAccess,
        conditions: Conditions,
    ) -> Result<ContainerRow, BlobError> {
        check_policies(&policies)?;
        let action = ContainerAction::SetPolicies { policies, public_access };
        Ok(self.act(account, name, action, conditions).await?.0)
    }

    /// Does something with a container's lease.
    pub async fn lease_container(
        &self,
        account: &str,
        name: &str,
        action: LeaseAction,
        conditions: Conditions,
    ) -> Result<(ContainerRow, LeaseOutcome), BlobError> {
        let (row, outcome) = self.act(account, name, ContainerAction::Lease(action), conditions).await?;
        let outcome = outcome.ok_or(PartitionError::Operation("a lease without an outcome"))?;
        Ok((row, outcome))
    }

    /// A page of the account's containers whose names start with `prefix`, from `marker` (a name) on, and the
    /// next name. Where many were deleted the page may be short, or empty, and have a next one. The system's
    /// own containers are among them only `with_system`.
    pub async fn list_containers(
        &self,
        account: &str,
        prefix: &str,
        marker: Option<&str>,
        max: usize,
        with_system: bool,
    ) -> Result<(Vec<ContainerRow>, Option<String>), BlobError> {
        self.list_containers_within(account, prefix, marker, max, with_system, PASSED_OVER_ROWS_MAX).await
    }

    /// As [`Self::list_containers`], passing over about so many deleted rows.
    pub(crate) async fn list_containers_within(
        &self,
        account: &str,
        prefix: &str,
        marker: Option<&str>,
        max: usize,
        with_system: bool,
        passed_over_max: u64,
    ) -> Result<(Vec<ContainerRow>, Option<String>), BlobError> {
        let decode = if with_system { decode_any } else { decode_shown };
        let (service, start, count_max) = (SERVICE_BLOB, marker, max);
        let list = ContainerListQuery { account, service, prefix, start, count_max, passed_over_max };
        Ok(read_container_page(&self.partitions, list, decode).await?)
    }
}

fn decode_any(value: &[u8]) -> Result<Option<ContainerRow>, DecodeError> {
    ContainerRow::decode(value).map(Some)
}

/// Not the system's own ones.
fn decode_shown(value: &[u8]) -> Result<Option<ContainerRow>, DecodeError> {
    Ok(Some(ContainerRow::decode(value)?).filter(|row| !is_system_container(&row.name)))
}
