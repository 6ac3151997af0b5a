//! How a new blob replaces the one of its name: what the request demands of it, what the account keeps of it,
//! and the part of a decision that takes it away.
//!
//! What always holds: a refusal changes nothing; the lease and the snapshots of the name stay. The order of
//! the checks is part of the protocol: it decides which error a request with two faults gets.

use crate::condition::{Conditions, ETags};
use crate::content::Content;
use crate::error::BlobError;
use crate::page::put_pages::copy_regions;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::{VERSION_PREFIX, decode_snapshot, encode_snapshot, snapshot_row};
use crate::rows::record::{BlobRecord, BlobType, Deletion};
use crate::versions::keep_version;
use base::Ticks;

/// What a request demands of the blob that its new one replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplaceConditions {
    /// Conditions.
    pub conditions: Conditions,
    /// Refuse if it would replace a blob, because the credentials only allow to create.
    pub create_only: bool,
    /// Refuse if it would replace a blob of another type.
    pub keeps_type: bool,
}

/// The rules of a replacement: what the request demands, and what the account keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) demands: ReplaceConditions,
    /// Days that what is replaced can come back.
    pub(crate) retention_days: Option<u32>,
    /// What is replaced stays as a version.
    pub(crate) versioned: bool,
}

impl Replacement {
    /// Whether what is replaced is likely to stay in some form.
    pub(crate) fn keeps_former(&self) -> bool {
        self.versioned || self.retention_days.is_some()
    }

    /// Checks that the base blob may be replaced.
    pub(crate) fn check(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        let ReplaceConditions { conditions, create_only, .. } = &self.demands;
        let live = rows.head.live();
        let lease = if live.is_some() && rows.head.lease.state(now).is_locked() {
            // The service checks the lease first, and its holder replaces what `If-None-Match: *` would
            // spare.
            let lease = rows.head.lease.check_write(conditions.lease(), now)?;
            let mut conditions = conditions.clone();
            conditions.if_none_match = conditions.if_none_match.filter(|tags| *tags != ETags::Any);
            conditions.check_create(live.map(BlobRecord::present))?;
            lease
        } else {
            conditions.check_create(live.map(BlobRecord::present))?;
            rows.head.lease.check_write(conditions.lease(), now)?
        };
        if live.is_some() && *create_only {
            return Err(BlobError::UnauthorizedBlobOverwrite.into());
        }
        if rows.head.live().is_some_and(|live| live.is_archived()) {
            return Err(BlobError::BlobArchived.into());
        }
        rows.head.lease = lease;
        Ok(())
    }

    /// Refuses a type that is not that of the base blob, if the request demands that it stays, and one that
    /// is not that of the former versions: all versions of a blob are of one type (source: the reference's
    /// page on versioning). A client that wants another deletes them first.
    pub(crate) fn check_type(&self, rows: &BlobRows, blob_type: BlobType) -> Result<(), Stop> {
        let live = rows.head.live().map(|live| live.blob_type);
        if self.demands.keeps_type && live.is_some_and(|live| live != blob_type) {
            return Err(BlobError::InvalidBlobType.into());
        }
        let former = match live {
            // It becomes a version, or is like those that there are.
            Some(live) => (self.versioned || rows.head.versions > 0).then_some(live),
            // They are alike: the last one that is seen stands for all.
            None if rows.head.versions > 0 => match rows.first_names(VERSION_PREFIX)?.last() {
                Some(name) => rows.row(name)?.map(|row| decode_snapshot(row)).transpose()?,
                None => None,
            }
            .map(|version| version.blob_type),
            None => None,
        };
        match former {
            Some(former) if former != blob_type => Err(BlobError::InvalidBlobType.into()),
            _ => Ok(()),
        }
    }

    /// Takes the base blob away; it stays as a version where they are kept, else, while it can come back, as
    /// a deleted snapshot.
    pub(crate) fn retire_current(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        if self.versioned && rows.head.live().is_some() {
            keep_version(rows)?;
            return match rows.head.current.take() {
                Some(old) => rows.release(&old.content),
                None => Ok(()),
            };
        }
        let Some(mut old) = rows.head.current.take() else { return Ok(()) };
        let Some(deletion) = choose_deletion(old.deleted, self.retention_days, now) else {
            return rows.release(&old.content);
        };
        old.deleted = Some(deletion);
        if let Content::Pages(owner) = old.content {
            // Where they are, the pages of the next blob will be.
            old.content = copy_regions(rows, owner, now.0)?;
            rows.release(&Content::Pages(owner))?;
        }
        rows.put(snapshot_row(now.0), encode_snapshot(&old)?);
        rows.head.deleted_snapshots += 1;
        Ok(())
    }
}

/// Until when a base blob that is replaced at `now` can come back. What was deleted before keeps the time
/// that it was deleted with, whatever the setting is now; `None`: not at all.
fn choose_deletion(deleted: Option<Deletion>, retention_days: Option<u32>, now: Ticks) -> Option<Deletion> {
    match deleted {
        Some(deleted) => deleted.days_left(now).map(|_| deleted),
        None => retention_days.map(|days| Deletion { at: now, days }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::{NewBlob, NewContent, PutBlob};
    use crate::blob::set_blob::LeaseBlob;
    use crate::blob_service::{BlobService, VersionedAccounts};
    use crate::container::container_row::PublicAccess;
    use crate::content::upload::Uploaded;
    use crate::error::LeaseError;
    use crate::lease::LeaseAction;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::settings::blob_settings_key;
    use base::codec::DecodeError;
    use bytes::Bytes;
    use partition::{
        Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowKey, RowVersion,
        Rows,
    };
    use sim::World;
    use std::sync::Arc;
    use stream::{StreamSettings, Streams};

    #[test]
    fn what_was_deleted_keeps_its_time_and_what_is_replaced_gets_the_settings() {
        let day = 86_400 * base::clock::TICKS_PER_SECOND;
        let now = Ticks(10 * day);
        let deletion = |at: u64, days| Some(Deletion { at: Ticks(at), days });
        for (deleted, setting, expected) in [
            (None, None, None),
            (None, Some(7), deletion(now.0, 7)),
            (deletion(8 * day, 7), None, deletion(8 * day, 7)),
            (deletion(8 * day, 7), Some(30), deletion(8 * day, 7)),
            (deletion(8 * day, 7), Some(1), deletion(8 * day, 7)),
            (deletion(3 * day, 7), None, None),
            (deletion(3 * day, 7), Some(30), None),
        ] {
            assert_eq!(choose_deletion(deleted, setting, now), expected, "{deleted:?} {setting:?}");
        }
    }

    fn put(blob_type: BlobType, tier: &str) -> PutBlob {
        let new = NewBlob { tier: Some(tier.to_owned()), ..NewBlob::default() };
        let content = NewContent::Inline(Bytes::new());
        PutBlob { blob_type, size: 0, content, new, replacement: Replacement::default() }
    }

    /// A put with every fault at once gets the error of the first; with that one mended, of the next.
    #[test]
    fn faults_of_a_put_are_found_in_one_order() {
        let mut blob = MemoryBlob::default();
        blob.run(put(BlobType::Block, "Archive"), 1).unwrap();
        let id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let acquire = LeaseAction::Acquire { seconds: None, id: id.clone() };
        blob.run(LeaseBlob { action: acquire, conditions: Conditions::default() }, 2).unwrap();
        let mut faulty = put(BlobType::Append, "Hot");
        let other = Some(ETags::List(vec!["0x7".to_owned()]));
        let conditions = Conditions { if_match: other, ..Conditions::default() };
        faulty.replacement.demands = ReplaceConditions { conditions, create_only: true, keeps_type: true };
        type Mend = fn(&mut PutBlob, &mut MemoryBlob, &str);
        let steps: [(BlobError, Mend); 5] = [
            (BlobError::Lease(LeaseError::IdMissing), |put, _, id| {
                put.replacement.demands.conditions.lease_id = Some(id.to_owned());
            }),
            (BlobError::ConditionNotMet, |put, _, _| put.replacement.demands.conditions.if_match = None),
            (BlobError::UnauthorizedBlobOverwrite, |put, _, _| put.replacement.demands.create_only = false),
            (BlobError::BlobArchived, |_, blob, _| {
                let mut head = blob.head();
                head.current.as_mut().unwrap().tier.name = Some("Hot".to_owned());
                blob.rows.insert(crate::rows::head_row::HEAD.to_owned(), head.encode().unwrap().into());
            }),
            (BlobError::InvalidBlobType, |put, _, _| put.replacement.demands.keeps_type = false),
        ];
        for (expected, mend) in steps {
            let PutBlob { blob_type, size, content, new, replacement } = &faulty;
            let (content, new, replacement) = (content.clone(), new.clone(), replacement.clone());
            let again = PutBlob { blob_type: *blob_type, size: *size, content, new, replacement };
            assert_eq!(blob.run(again, 3).map(drop), Err(expected));
            mend(&mut faulty, &mut blob, &id);
        }
        blob.run(faulty, 3).unwrap();
    }

    /// Damages the row with the settings of an account.
    struct DamageSettings(RowKey);

    impl Operation for DamageSettings {
        type Reply = ();

        fn object_table(&self) -> ObjectTable {
            ObjectTable::Container
        }

        fn reads(&self) -> Vec<Read> {
            vec![Read::Point(self.0.clone())]
        }

        fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
            let change = RowChange::Put { key: self.0.clone(), value: Bytes::from_static(b"?") };
            Decision { changes: vec![change], reply: () }
        }
    }

    /// Metadata, tags and tier are checked in this order, and before the account's settings are read.
    #[test]
    fn a_new_blob_is_checked_before_the_settings_of_its_account_are_read() {
        let finished = World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let partitions = Partitions::open(&env, streams, PartitionSettings::tiny()).await.unwrap();
            let partitions = Arc::new(partitions);
            let service =
                BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
            let access = PublicAccess::None;
            service.create_container("acct", "box", Vec::new(), access, Default::default()).await.unwrap();
            let container = service.container("acct", "box").await.unwrap();
            let at = service.blob("acct", &container, "a").unwrap();
            partitions.execute(DamageSettings(blob_settings_key("acct"))).await.unwrap();
            let mut new = NewBlob {
                metadata: vec![("a b".to_owned(), String::new())],
                tags: vec![("?".to_owned(), String::new())],
                tier: Some("P4".to_owned()),
                ..NewBlob::default()
            };
            let damaged = BlobError::from(DecodeError("settings format"));
            type Mend = fn(&mut NewBlob);
            let steps: [(BlobError, Mend); 4] = [
                (BlobError::InvalidMetadata, |new| new.metadata.clear()),
                (BlobError::InvalidTag, |new| new.tags.clear()),
                (BlobError::AccessTierNotSupportedForBlobType, |new| new.tier = None),
                (damaged, |_| ()),
            ];
            for (expected, mend) in steps {
                let inline = Some(Bytes::new());
                let (pieces, pins, md5) = Default::default();
                let uploaded = Uploaded { inline, pieces, pins, size: 0, md5, crc64: 0 };
                let demands = ReplaceConditions::default;
                let put = service.put_blob(&at, BlobType::Block, uploaded, new.clone(), demands()).await;
                assert_eq!(put.map(drop), Err(expected.clone()));
                let list = service.put_block_list(&at, Vec::new(), new.clone(), demands()).await;
                assert_eq!(list.map(drop), Err(expected));
                mend(&mut new);
            }
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
