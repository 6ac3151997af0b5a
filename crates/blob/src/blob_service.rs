//! The facade of the Blob service: each method checks what it is given and runs one operation, scan or
//! transfer.
//!
//! Here are the containers, the settings and the way to a blob; what is done to blobs is in `write_blob` and
//! `copy_blob`.

use crate::blob::read_blob::{BlobReader, FoundRecord, find_head, open_reader};
use crate::condition::Conditions;
use crate::container::container_ops::{ContainerAction, ContainerOperation};
use crate::container::container_row::{ContainerRow, PublicAccess};
use crate::content::upload::UploadCount;
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::lease::{LeaseAction, LeaseOutcome};
use crate::limits::BLOB_NAME_CHARS_MAX;
use crate::listing::{ListPage, ListQuery, list_blobs};
use crate::name::{LOGS_CONTAINER, Pairs, check_blob, check_container, check_metadata, is_system_container};
use crate::rows::blob_rows::{
    Asked, BlobAddress, BlobChange, BlobOperation, Done, HEAD, ROUND_COUNT_MAX, RemovePages, Revision, Stop,
};
use crate::rows::record::BlobRecord;
use crate::settings::{BlobSettings, BlobSettingsUpdate, SetSettings, blob_settings_key};
use crate::upkeep::sweep;
use base::codec::DecodeError;
use base::{Clock, Spawner, Ticks};
use partition::{ObjectTable, PartitionError, Partitions, Row, RowRef, Scan, ScanEnd, Span, Visit};
use service::container::{container_key, settings_key};
use service::policy::check_policies;
use service::properties::RETENTION_DAYS_MAX;
use service::{
    ContainerKind, ContainerListQuery, PASSED_OVER_ROWS_MAX, RowMemo, SERVICE_BLOB, ServiceProperties,
    ServicePropertiesUpdate, StoredPolicy, read_container_page,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Operations that remove pages of a deleted blob before its deletion is answered.
const REMOVALS_AT_ONCE_MAX: usize = 128;

const CONTAINERS: ContainerKind = ContainerKind {
    service: SERVICE_BLOB,
    objects: ObjectTable::Blob,
    read_id: |row| ContainerRow::decode(row).map(|row| row.id),
};

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

/// Whether a blob's bytes can be read, and what it says of itself be changed. Nothing is archived anywhere,
/// but in Azure they could not.
pub(crate) fn check_online(record: &BlobRecord, may_be_archived: bool) -> Result<(), BlobError> {
    match () {
        () if record.archive_status.is_some() => Err(BlobError::BlobBeingRehydrated),
        () if record.is_archived() && !may_be_archived => Err(BlobError::BlobArchived),
        () => Ok(()),
    }
}

impl BlobService {
    /// Over these partitions; the clock says when leases run out and when deletions are final.
    pub fn new(partitions: Arc<Partitions>, clock: Arc<dyn Clock>, versioned: VersionedAccounts) -> Self {
        BlobService {
            partitions,
            clock,
            uploads: UploadCount::default(),
            versioned,
            known: RowMemo::default(),
            retention: RowMemo::default(),
        }
    }

    /// Whether what is replaced stays as a version.
    pub(crate) fn is_versioned(&self, at: &BlobAt) -> bool {
        self.versioned.0.contains(&*at.address.account)
    }

    /// Has deleted blobs whose time is over removed every now and then, for as long as the service is there.
    pub fn start_sweeping(self: &Arc<Self>, spawner: &dyn Spawner) {
        spawner.spawn("blob sweep", Box::pin(sweep::run(Arc::downgrade(self), self.clock.clone())));
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

    /// Bytes that have to become free before writes are taken again; 0: they are.
    pub fn missing_space_bytes(&self) -> u64 {
        self.partitions.missing_space_bytes()
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
            check_online(&found.record, may_be_archived)?;
            let size = found.record.size;
            match range {
                None => Ok((0, size)),
                Some((start, _)) if start >= size => Err(BlobError::InvalidRange { size }),
                Some((start, end)) => Ok((start, end.unwrap_or(size).min(size))),
            }
        })
        .await
    }

    /// Runs a change at a blob.
    pub(crate) async fn run<C: BlobChange>(&self, at: &BlobAt, change: C) -> Result<C::Reply, BlobError> {
        let change = Arc::new(change);
        let mut asked = Asked::by(&*change);
        let mut too_large = None;
        for _ in 0..ROUND_COUNT_MAX {
            let (address, change) = (at.address.clone(), change.clone());
            let operation = BlobOperation { address, change, asked: asked.clone() };
            let outcome = match self.partitions.execute(operation).await {
                // What can be done a bit at a time is; of what can't, the change says that there is too much.
                Err(PartitionError::TooMuchToRead { .. }) if asked.ask_for_fewer() => continue,
                Err(error @ PartitionError::TooLarge { .. }) if asked.ask_for_fewer() => {
                    too_large = Some(error);
                    continue;
                }
                outcome => outcome?,
            };
            match outcome {
                Ok(Done { reply, garbage }) => {
                    for owner in garbage {
                        // The change is durable: what goes wrong from here on is not its caller's.
                        if let Err(error) = self.remove_pages(&at.address, owner, REMOVALS_AT_ONCE_MAX).await
                        {
                            tracing::debug!("pages of a deleted blob are left to the sweep: {error}");
                        }
                    }
                    return Ok(reply);
                }
                Err(Stop::Refused(BlobError::TooManyRows)) => {
                    return Err(too_large.map_or(BlobError::TooManyRows, BlobError::from));
                }
                Err(Stop::Refused(error)) => return Err(error),
                Err(Stop::Need(prefix)) => asked.add(prefix),
                Err(Stop::NeedContent) => asked.content = true,
            }
        }
        Err(PartitionError::Operation("it needs more and more rows").into())
    }

    /// Removes pages of a deleted blob. What is left after so many operations is the sweep's.
    pub(crate) async fn remove_pages(
        &self,
        address: &BlobAddress,
        owner: u64,
        operation_count_max: usize,
    ) -> Result<(), BlobError> {
        for _ in 0..operation_count_max {
            if self.partitions.execute(RemovePages { address: address.clone(), owner }).await? {
                return Ok(());
            }
        }
        Ok(())
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

fn decode_any(value: &[u8]) -> Result<Option<ContainerRow>, DecodeError> {
    ContainerRow::decode(value).map(Some)
}

/// Not the system's own ones.
fn decode_shown(value: &[u8]) -> Result<Option<ContainerRow>, DecodeError> {
    Ok(Some(ContainerRow::decode(value)?).filter(|row| !is_system_container(&row.name)))
}

/// Collects the values of all rows of a range that the service knows to be small.
#[derive(Default)]
pub(crate) struct CollectRows {
    pub(crate) rows: Vec<(String, Vec<u8>)>,
    damaged: bool,
}

impl Scan for CollectRows {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match partition::key::parse_row_key(row.key) {
            Some(parts) => {
                self.rows.push((parts.object_name, row.value.to_vec()));
                Visit::Continue
            }
            None => {
                self.damaged = true;
                Visit::StopBefore
            }
        }
    }
}

impl BlobService {
    /// Rows of one blob whose names start so, in order.
    pub(crate) async fn rows_of(
        &self,
        at: &BlobAt,
        prefix: &str,
    ) -> Result<Vec<(String, Vec<u8>)>, BlobError> {
        self.rows_in(vec![Span::Range(at.address.rows_with_prefix(prefix))]).await
    }

    /// Rows of one blob that lie in these spans, which are in order: all of one snapshot.
    pub(crate) async fn rows_in(&self, spans: Vec<Span>) -> Result<Vec<(String, Vec<u8>)>, BlobError> {
        let scan = CollectRows::default();
        let (scan, end) = self.partitions.scan_spans(ObjectTable::Blob, spans, scan).await?;
        if scan.damaged || end != ScanEnd::Complete {
            return Err(DecodeError("blob key").into());
        }
        Ok(scan.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::NewBlob;
    use crate::rows::blob_rows::{HEAD, region_row};
    use crate::rows::record::BlobType;
    use base::Environment;
    use partition::{Decision, Operation, PartitionSettings, Read, RowChange, RowVersion, Rows, put_pieces};
    use sim::World;
    use std::ops::Range;
    use stream::{StreamSettings, Streams};

    const ACCOUNT: &str = "acct";
    const REGIONS: u64 = 5000;
    const REGION_ROW_SIZE_BYTES: usize = 1000;
    /// Less than all of the regions, more than those that are removed together.
    const READ_SIZE_BYTES_MAX: u64 = 4700 << 10;

    async fn open(env: &Environment, settings: PartitionSettings) -> (Arc<Partitions>, BlobService) {
        let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
        let partitions = Arc::new(Partitions::open(env, streams, settings).await.unwrap());
        let service = BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
        let (level, encryption) = (PublicAccess::None, ContainerEncryption::default());
        service.create_container(ACCOUNT, "box", Pairs::new(), level, encryption).await.unwrap();
        (partitions, service)
    }

    /// Puts regions, each with a row of so many bytes.
    struct PutRegions {
        address: BlobAddress,
        regions: Range<u64>,
        size_bytes: usize,
    }

    impl Operation for PutRegions {
        type Reply = ();

        fn object_table(&self) -> ObjectTable {
            ObjectTable::Blob
        }

        fn reads(&self) -> Vec<Read> {
            vec![Read::Point(self.address.key(HEAD))]
        }

        fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
            let mut value = Vec::new();
            put_pieces(&mut value, &[]);
            value.resize(self.size_bytes, 0xff);
            let put = |region| RowChange::Put {
                key: self.address.key(&region_row(0, region)),
                value: value.clone().into(),
            };
            Decision { changes: self.regions.clone().map(put).collect(), reply: () }
        }
    }

    /// What one operation read was bounded in rows, but not in bytes. What can be done a bit at a time is
    /// done so.
    #[test]
    fn of_rows_that_are_too_many_bytes_fewer_are_looked_at() {
        let finished = World::new(1).run(|env, _| async move {
            let settings = PartitionSettings {
                operation_read_size_bytes_max: READ_SIZE_BYTES_MAX,
                ..PartitionSettings::tiny()
            };
            let (partitions, service) = open(&env, settings).await;
            let container = service.container(ACCOUNT, "box").await.unwrap();
            let at = service.blob(ACCOUNT, &container, "pages").unwrap();
            let create =
                async || service.create_empty(&at, BlobType::Page, 1 << 40, 0, NewBlob::default()).await;
            create().await.unwrap();
            for region in (0..REGIONS).step_by(10) {
                let (address, regions) = (at.address.clone(), region..region + 10);
                let put = PutRegions { address, regions, size_bytes: REGION_ROW_SIZE_BYTES };
                partitions.execute(put).await.unwrap();
            }
            let snapshot = service.snapshot(&at, None, Conditions::default()).await;
            assert_eq!(snapshot.unwrap_err(), BlobError::TooManyRows);
            let (snapshots, conditions) = Default::default();
            service.delete(&at, Revision::Current, snapshots, Default::default(), conditions).await.unwrap();
            create().await.unwrap();
            assert_eq!(service.rows_of(&at, "4p").await.unwrap().len(), 0, "nothing is left");
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }

    /// A page blob of 6 GiB with a long name could not be deleted: the keys of its regions are more than one
    /// operation changes.
    #[test]
    fn a_page_blob_whose_keys_are_too_many_bytes_is_deleted_bit_by_bit() {
        let finished = World::new(1).run(|env, _| async move {
            let (partitions, service) = open(&env, PartitionSettings::default()).await;
            let container = service.container(ACCOUNT, "box").await.unwrap();
            let at = service.blob(ACCOUNT, &container, &"€".repeat(1000)).unwrap();
            let create =
                async || service.create_empty(&at, BlobType::Page, 1 << 40, 0, NewBlob::default()).await;
            create().await.unwrap();
            for region in (0..23_000).step_by(1000) {
                let (address, regions) = (at.address.clone(), region..region + 1000);
                partitions.execute(PutRegions { address, regions, size_bytes: 1 }).await.unwrap();
            }
            let over = create().await.unwrap_err();
            assert!(matches!(over.below(), Some(PartitionError::TooLarge { .. })), "{over}");
            let (snapshots, conditions) = Default::default();
            service.delete(&at, Revision::Current, snapshots, Default::default(), conditions).await.unwrap();
            create().await.unwrap();
            assert_eq!(service.rows_of(&at, "4p").await.unwrap().len(), 0, "nothing is left");
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
