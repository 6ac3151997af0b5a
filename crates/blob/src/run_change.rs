//! How the service runs a change of a blob: with few rows first, then with those that the decision needs.
//!
//! What always holds: a change runs a bounded number of times; pages that are too many for one operation are
//! removed after the change is durable, and what is left of them is the sweep's.

use crate::blob_service::{BlobAt, BlobService};
use crate::error::BlobError;
use crate::rows::blob_address::BlobAddress;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_operation::{BlobOperation, ChangeOutcome};
use crate::rows::decision::row_request::{ROUND_COUNT_MAX, RowRequest};
use crate::rows::decision::stop::Stop;
use crate::rows::region_row::RemovePages;
use base::codec::DecodeError;
use partition::{ObjectTable, PartitionError, RowRef, Scan, ScanEnd, Span, Visit};
use std::sync::Arc;

/// Operations that remove pages of a deleted blob before its deletion is answered.
const REMOVALS_AT_ONCE_MAX: usize = 128;

impl BlobService {
    /// Runs a change at a blob.
    pub(crate) async fn run<C: BlobChange>(&self, at: &BlobAt, change: C) -> Result<C::Reply, BlobError> {
        let change = Arc::new(change);
        let mut request = RowRequest::by(&*change);
        let mut too_large = None;
        for _ in 0..ROUND_COUNT_MAX {
            let (address, change) = (at.address.clone(), change.clone());
            let operation = BlobOperation { address, change, request: request.clone() };
            let outcome = match self.partitions.execute(operation).await {
                // What can be done a bit at a time is; of what can't, the change says that there is too much.
                Err(PartitionError::TooMuchToRead { .. }) if request.request_fewer() => continue,
                Err(error @ PartitionError::TooLarge { .. }) if request.request_fewer() => {
                    too_large = Some(error);
                    continue;
                }
                outcome => outcome?,
            };
            match outcome {
                Ok(ChangeOutcome { reply, garbage }) => {
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
                Err(Stop::Need(prefix)) => request.add(prefix),
                Err(Stop::NeedContent) => request.content = true,
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
    use crate::blob_service::VersionedAccounts;
    use crate::condition::Conditions;
    use crate::container::container_row::PublicAccess;
    use crate::encryption::ContainerEncryption;
    use crate::name::Pairs;
    use crate::rows::head_row::HEAD;
    use crate::rows::record::BlobType;
    use crate::rows::region_row::region_row;
    use crate::rows::revision::Revision;
    use base::Environment;
    use partition::Partitions;
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
            let create = async || {
                let (new, demands) = Default::default();
                service.create_empty(&at, BlobType::Page, 1 << 40, 0, new, demands).await
            };
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
            let create = async || {
                let (new, demands) = Default::default();
                service.create_empty(&at, BlobType::Page, 1 << 40, 0, new, demands).await
            };
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
