//! The facade of the Blob service: each method checks its arguments and runs one operation, scan or transfer.
//!
//! Here are the fields, the settings, the way to a blob and reads. Containers are in
//! `container/containers.rs`, writes in `blob/write_blob.rs` and `copy_blob.rs`, the way from a change to an
//! operation in `run_change.rs`.

use crate::blob::read_blob::{BlobReader, FoundRecord, find_head, open_reader};
use crate::condition::Conditions;
use crate::container::container_row::{ContainerRow, PublicAccess};
use crate::content::upload::UploadCount;
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::limits::BLOB_NAME_CHARS_MAX;
use crate::listing::{ListPage, ListQuery, list_blobs};
use crate::name::{LOGS_CONTAINER, Pairs, check_blob, check_container};
use crate::rows::blob_address::BlobAddress;
use crate::rows::head_row::HEAD;
use crate::rows::revision::Revision;
use crate::settings::{BlobSettings, BlobSettingsUpdate, SetSettings, blob_settings_key};
use base::{Clock, Ticks};
use partition::{ObjectTable, Partitions, Row};
use service::container::{container_key, settings_key};
use service::properties::RETENTION_DAYS_MAX;
use service::{RowMemo, SERVICE_BLOB, ServiceProperties, ServicePropertiesUpdate};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The facade of the Blob service. Account names are trusted; everything else is checked here.
pub struct BlobService {
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) uploads: UploadCount,
    versioned: VersionedAccounts,
    known: RowMemo<Arc<ContainerRow>>,
    /// For how many days an account keeps what is deleted.
    retention: RowMemo<Option<u32>>,
}

/// Accounts that keep versions of their blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionedAccounts(pub BTreeSet<String>);

/// A blob in a container that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAt {
    pub(crate) address: BlobAddress,
    /// The container.
    pub container: String,
    /// What the container says of new blobs.
    pub encryption: ContainerEncryption,
}

/// For logs: its account, container and name.
impl std::fmt::Display for BlobAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BlobAddress { account, name, .. } = &self.address;
        write!(f, "{account}/{}/{}", self.container, name.escape_debug())
    }
}

impl BlobAt {
    /// The blob's name.
    pub fn name(&self) -> &str {
        &self.address.name
    }
}

impl BlobService {
    /// Over these partitions; the clock says when leases run out and when deletions are final.
    pub fn new(partitions: Arc<Partitions>, clock: Arc<dyn Clock>, versioned: VersionedAccounts) -> Self {
        BlobService {
            uploads: UploadCount::new(partitions.memory_budget_size_bytes()),
            partitions,
            clock,
            versioned,
            known: RowMemo::default(),
            retention: RowMemo::default(),
        }
    }

    /// Whether what is replaced stays as a version.
    pub(crate) fn is_versioned(&self, at: &BlobAt) -> bool {
        self.versioned.0.contains(&*at.address.account)
    }

    /// The wall clock's time.
    pub fn now(&self) -> Ticks {
        self.clock.now()
    }

    /// The time by which a container's lease is decided: that of the range that has its row.
    pub fn container_now(&self, account: &str, name: &str) -> Result<Ticks, BlobError> {
        Ok(self.partitions.now(ObjectTable::Container, &container_key(account, SERVICE_BLOB, name))?)
    }

    /// A container.
    pub async fn container(&self, account: &str, name: &str) -> Result<Arc<ContainerRow>, BlobError> {
        let key = || {
            check_container(name)?;
            Ok(container_key(account, SERVICE_BLOB, name))
        };
        let read = |row: Option<&Row>| {
            let row = row.ok_or(BlobError::ContainerNotFound)?;
            Ok(Arc::new(ContainerRow::decode(&row.value)?))
        };
        self.known.find(&self.partitions, (account, name), key, read).await
    }

    /// A blob in a container, whether or not it is there.
    pub fn blob(&self, account: &str, container: &ContainerRow, name: &str) -> Result<BlobAt, BlobError> {
        check_blob(name)?;
        let address = BlobAddress { account: account.into(), container_id: container.id, name: name.into() };
        Ok(BlobAt { address, container: container.name.clone(), encryption: container.encryption.clone() })
    }

    /// A blob that is stored under just this name, whatever it is: earlier versions took names that are not
    /// taken any more. `None`: there is none.
    pub async fn stored_blob(
        &self,
        account: &str,
        container: &ContainerRow,
        name: &str,
    ) -> Result<Option<BlobAt>, BlobError> {
        if name.chars().take(BLOB_NAME_CHARS_MAX + 1).count() > BLOB_NAME_CHARS_MAX {
            return Ok(None);
        }
        let address = BlobAddress { account: account.into(), container_id: container.id, name: name.into() };
        let head = self.partitions.get_head(ObjectTable::Blob, &address.key(HEAD)).await?;
        let (container, encryption) = (container.name.clone(), container.encryption.clone());
        Ok(head.map(|_| BlobAt { address, container, encryption }))
    }

    /// Bytes that have to become free before writes are taken again; 0: they are.
    pub fn missing_space_bytes(&self) -> u64 {
        self.partitions.missing_space_bytes()
    }

    /// A page of a container's blobs.
    pub async fn list_blobs(
        &self,
        account: &str,
        container: &ContainerRow,
        query: ListQuery,
    ) -> Result<ListPage, BlobError> {
        list_blobs(&self.partitions, account, container.id, query).await
    }

    /// A blob or snapshot that is there and may be read under these conditions, without its bytes: where they
    /// are may be left open.
    pub async fn find(
        &self,
        at: &BlobAt,
        revision: Revision,
        conditions: &Conditions,
    ) -> Result<FoundRecord, BlobError> {
        conditions.check_readable()?;
        let found = find_head(&self.partitions, &at.address, revision).await?;
        self.check_read(&found, conditions)?;
        Ok(found)
    }

    pub(crate) fn check_read(&self, found: &FoundRecord, conditions: &Conditions) -> Result<(), BlobError> {
        conditions.check_read(found.record.present())?;
        Ok(found.lease.check_read(conditions.lease(), found.now)?)
    }

    /// Opens a blob's bytes: the part that `range` (first byte, end) cuts out, and where it begins and ends.
    pub async fn read(
        &self,
        at: &BlobAt,
        revision: Revision,
        conditions: &Conditions,
        range: Option<(u64, Option<u64>)>,
    ) -> Result<(FoundRecord, (u64, u64), BlobReader), BlobError> {
        self.open(at, revision, conditions, range, false).await
    }

    /// As [`Self::read`]; what is archived can be read if `may_be_archived`.
    pub(crate) async fn open(
        &self,
        at: &BlobAt,
        revision: Revision,
        conditions: &Conditions,
        range: Option<(u64, Option<u64>)>,
        may_be_archived: bool,
    ) -> Result<(FoundRecord, (u64, u64), BlobReader), BlobError> {
        conditions.check_readable()?;
        open_reader(&self.partitions, &at.address, revision, |found| {
            self.check_read(found, conditions)?;
            conditions.encryption.check_key(&found.record.encryption)?;
            found.record.check_online(may_be_archived)?;
            let size = found.record.size;
            match range {
                None => Ok((0, size)),
                Some((start, _)) if start >= size => Err(BlobError::InvalidRange { size }),
                Some((start, end)) => Ok((start, end.unwrap_or(size).min(size))),
            }
        })
        .await
    }

    /// The settings that all services have; defaults if they were never set.
    pub async fn service_properties(&self, account: &str) -> Result<ServiceProperties, BlobError> {
        let key = settings_key(account, SERVICE_BLOB);
        match self.partitions.get(ObjectTable::Container, &key).await? {
            Some(row) => Ok(ServiceProperties::decode(&row.value)?),
            None => Ok(ServiceProperties::default()),
        }
    }

    /// The settings that only this service has.
    pub async fn settings(&self, account: &str) -> Result<BlobSettings, BlobError> {
        let row = self.partitions.get(ObjectTable::Container, &blob_settings_key(account)).await?;
        decode_settings(row.as_ref())
    }

    /// Changes the settings that are given. If requests are to be logged, the container for logs is made, as
    /// in Azure; nothing is written to it. That it can't be made, on a full disk perhaps, is only logged: the
    /// settings are in force.
    pub async fn set_settings(
        &self,
        account: &str,
        common: ServicePropertiesUpdate,
        own: BlobSettingsUpdate,
    ) -> Result<(), BlobError> {
        common.check()?;
        if let Some((Some(days), _)) = own.retention
            && !(1..=RETENTION_DAYS_MAX).contains(&days)
        {
            return Err(BlobError::RetentionDays);
        }
        let (common_key, own_key) = (settings_key(account, SERVICE_BLOB), blob_settings_key(account));
        let logs = common.logging.as_ref().is_some_and(|kinds| kinds.delete || kinds.read || kinds.write);
        self.partitions.execute(SetSettings { common_key, own_key, common, own }).await??;
        if !logs {
            return Ok(());
        }
        let (access, encryption) = (PublicAccess::None, ContainerEncryption::default());
        match self.create_container(account, LOGS_CONTAINER, Pairs::new(), access, encryption).await {
            Ok(_) | Err(BlobError::ContainerAlreadyExists) => {}
            // The next settings make up for it.
            Err(error) => tracing::warn!(account, %error, "the container for logs could not be made"),
        }
        Ok(())
    }

    pub(crate) async fn retention_days(&self, at: &BlobAt) -> Result<Option<u32>, BlobError> {
        let account = &at.address.account;
        let key = || Ok(blob_settings_key(account));
        let read = |row: Option<&Row>| Ok(decode_settings(row)?.retention_days);
        self.retention.find(&self.partitions, (account, ""), key, read).await
    }
}

/// The settings of a row, or, if there is none, those of an account that has set none.
fn decode_settings(row: Option<&Row>) -> Result<BlobSettings, BlobError> {
    row.map_or_else(|| Ok(BlobSettings::default()), |row| Ok(BlobSettings::decode(&row.value)?))
}
