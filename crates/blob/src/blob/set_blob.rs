//! Changes to what a blob says of itself: properties, metadata, tags, tier, sequence number, lease.

use crate::blob::put_blob::{Written, set_tier};
use crate::condition::Conditions;
use crate::error::BlobError;
use crate::lease::{LeaseAction, LeaseOutcome};
use crate::limits::{PAGE_BLOB_SIZE_BYTES_MAX, PAGE_SIZE_BYTES};
use crate::name::Pairs;
use crate::page::put_pages::truncate_pages;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::encode_snapshot;
use crate::rows::record::{BlobRecord, BlobType, ContentProperties};
use crate::rows::revision::Revision;
use crate::versions::renew_version;
use base::Ticks;

/// What happens to a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum SequenceAction {
    Max(u64),
    Update(u64),
    Increment,
}

/// Replaces the content properties, changes the size or the sequence number of a page blob.
pub(crate) struct SetProperties {
    /// `None`: they stay.
    pub(crate) properties: Option<ContentProperties>,
    pub(crate) size: Option<u64>,
    pub(crate) sequence: Option<SequenceAction>,
    pub(crate) conditions: Conditions,
}

/// A blob that may be changed by somebody who meets these conditions.
fn writable<'a>(
    rows: &'a mut BlobRows,
    conditions: &Conditions,
    now: Ticks,
) -> Result<&'a mut BlobRecord, Stop> {
    let present = rows.live()?.present();
    conditions.check_write(Some(present))?;
    rows.head.lease = rows.head.lease.check_write(conditions.lease(), now)?;
    Ok(rows.live_mut()?)
}

impl BlobChange for SetProperties {
    /// With the sequence number of a page blob.
    type Reply = (Written, Option<u64>);

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop> {
        let record = writable(rows, &self.conditions, now)?;
        record.check_online(false)?;
        let is_page = record.blob_type == BlobType::Page;
        if !is_page && (self.size.is_some() || self.sequence.is_some()) {
            return Err(BlobError::InvalidBlobType.into());
        }
        if let Some(properties) = &self.properties {
            record.properties = properties.clone();
        }
        let number = &mut record.by_type.sequence_number;
        match self.sequence {
            None => {}
            Some(SequenceAction::Max(other)) => *number = (*number).max(other),
            Some(SequenceAction::Update(other)) => *number = other,
            Some(SequenceAction::Increment) => {
                let next = number.checked_add(1).filter(|next| *next <= i64::MAX as u64);
                *number = next.ok_or(BlobError::SequenceNumberIncrementTooLarge)?;
            }
        }
        record.touch(now);
        record.copy = None;
        let sequence_number = is_page.then_some(record.by_type.sequence_number);
        if let Some(size) = self.size {
            if !size.is_multiple_of(PAGE_SIZE_BYTES) || size > PAGE_BLOB_SIZE_BYTES_MAX {
                return Err(BlobError::InvalidPageRange.into());
            }
            let is_smaller = size < record.size;
            record.size = size;
            if is_smaller {
                truncate_pages(rows, size)?;
            }
        }
        Ok((Written::of(rows.live()?), sequence_number))
    }
}

/// Replaces the metadata.
pub(crate) struct SetMetadata {
    pub(crate) metadata: Pairs,
    pub(crate) conditions: Conditions,
    /// What is replaced stays as a version.
    pub(crate) versioned: bool,
}

impl BlobChange for SetMetadata {
    type Reply = Written;

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Written, Stop> {
        let record = writable(rows, &self.conditions, now)?;
        self.conditions.encryption.check_write(&record.encryption)?;
        record.check_online(false)?;
        if self.versioned {
            renew_version(rows, now)?;
        }
        let record = rows.live_mut()?;
        record.metadata = self.metadata.clone();
        record.touch(now);
        Ok(Written::of(record))
    }
}

/// Replaces the tags.
pub(crate) struct SetTags {
    pub(crate) tags: Pairs,
    pub(crate) revision: Revision,
    pub(crate) conditions: Conditions,
}

impl BlobChange for SetTags {
    type Reply = ();

    fn more_rows(&self) -> Vec<String> {
        self.revision.row().into_iter().collect()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        if let Some(row) = self.revision.resolve(&rows.head).row() {
            let mut record = rows.former(&row)?;
            self.conditions.check_write(Some(record.present()))?;
            record.tags = self.tags.clone();
            rows.put(row, encode_snapshot(&record)?);
            return Ok(());
        }
        let record = writable(rows, &self.conditions, now)?;
        record.tags = self.tags.clone();
        Ok(())
    }
}

/// Sets the access tier.
pub(crate) struct SetTier {
    pub(crate) tier: String,
    pub(crate) rehydrate_priority: Option<String>,
    pub(crate) revision: Revision,
    pub(crate) conditions: Conditions,
}

/// Tiers of block blobs.
pub const BLOCK_TIERS: [&str; 5] = ["Hot", "Cool", "Cold", "Archive", "Smart"];

/// Tiers of page blobs of premium accounts.
pub const PAGE_TIERS: [&str; 11] =
    ["P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80"];

impl BlobChange for SetTier {
    /// Whether it takes effect later.
    type Reply = bool;

    fn more_rows(&self) -> Vec<String> {
        self.revision.row().into_iter().collect()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<bool, Stop> {
        if let Some(row) = self.revision.resolve(&rows.head).row() {
            let mut record = rows.former(&row)?;
            self.conditions.check_write(Some(record.present()))?;
            let later = change_tier(&mut record, self, now)?;
            rows.put(row, encode_snapshot(&record)?);
            return Ok(later);
        }
        let present = rows.live()?.present();
        self.conditions.check_write(Some(present))?;
        rows.head.lease.check_read(self.conditions.lease(), now)?;
        Ok(change_tier(rows.live_mut()?, self, now)?)
    }
}

/// Refuses a tier that blobs of this type are never in: of the tiers of append blobs none is known.
pub fn check_tier(blob_type: BlobType, tier: Option<&str>) -> Result<(), BlobError> {
    let Some(tier) = tier else { return Ok(()) };
    let (of_block, of_page) = (BLOCK_TIERS.contains(&tier), PAGE_TIERS.contains(&tier));
    match blob_type {
        BlobType::Block if of_block => Ok(()),
        BlobType::Page if of_page => Ok(()),
        BlobType::Block | BlobType::Page if !of_block && !of_page => Err(BlobError::InvalidBlobTier),
        _ => Err(BlobError::AccessTierNotSupportedForBlobType),
    }
}

fn change_tier(record: &mut BlobRecord, set: &SetTier, now: Ticks) -> Result<bool, BlobError> {
    check_tier(record.blob_type, Some(&set.tier))?;
    let pending = format!("rehydrate-pending-to-{}", set.tier.to_lowercase());
    let priority = set.rehydrate_priority.as_deref().unwrap_or(STANDARD_PRIORITY);
    match &record.tier.archive_status {
        None if record.is_archived() && set.tier != "Archive" => {}
        None => {
            set_tier(record, Some(&set.tier), now);
            return Ok(false);
        }
        // Where it goes stays as it is; only that it goes there faster may be asked for.
        Some(status) => {
            let is_faster =
                priority == HIGH_PRIORITY && record.tier.rehydrate_priority.as_deref() != Some(HIGH_PRIORITY);
            if *status != pending || !is_faster {
                return Err(BlobError::BlobBeingRehydrated);
            }
        }
    }
    record.tier.archive_status = Some(pending);
    record.tier.rehydrate_priority = Some(priority.to_owned());
    Ok(true)
}

/// How fast a blob is rehydrated unless a request says otherwise.
pub const STANDARD_PRIORITY: &str = "Standard";

/// How fast it can be.
pub const HIGH_PRIORITY: &str = "High";

/// Does something with the lease.
pub(crate) struct LeaseBlob {
    pub(crate) action: LeaseAction,
    pub(crate) conditions: Conditions,
}

impl BlobChange for LeaseBlob {
    /// With the blob as it is, if there is more of it than staged blocks.
    type Reply = (LeaseOutcome, Option<Written>);

    fn gives_back(&self) -> bool {
        self.action.is_end()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop> {
        let live = rows.head.live();
        // One that only waits for its first commit can be leased as well, so that nobody else stages or
        // commits.
        if live.is_none() && rows.head.staged == 0 {
            return Err(BlobError::BlobNotFound.into());
        }
        self.conditions.check_write(live.map(BlobRecord::present))?;
        let written = live.map(Written::of);
        let outcome = rows.head.lease.act(&self.action, now)?;
        rows.head.lease = outcome.lease.clone();
        Ok((outcome, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::delete_blob::TakeSnapshot;
    use crate::blob::put_blob::{NewContent, PutBlob};
    use crate::lease::Lease;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use bytes::Bytes;

    fn put() -> PutBlob {
        let content = NewContent::Inline(Bytes::from_static(b"x"));
        let (new, replacement) = Default::default();
        PutBlob { blob_type: BlobType::Block, size: 1, content, new, replacement }
    }

    fn metadata(conditions: Conditions) -> SetMetadata {
        SetMetadata { metadata: vec![("a".into(), "1".into())], conditions, versioned: false }
    }

    #[test]
    fn a_lease_guards_writes_and_changes_no_etag() {
        let mut blob = MemoryBlob::default();
        let id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let acquire = || LeaseBlob {
            action: LeaseAction::Acquire { seconds: None, id: id.clone() },
            conditions: Conditions::default(),
        };
        assert_eq!(blob.run(acquire(), 1), Err(BlobError::BlobNotFound));
        blob.run(put(), 2).unwrap();
        let (_, written) = blob.run(acquire(), 3).unwrap();
        assert_eq!(written.unwrap().etag, 2);
        let missing = blob.run(metadata(Conditions::default()), 4);
        assert_eq!(missing, Err(BlobError::Lease(crate::error::LeaseError::IdMissing)));
        let mine = Conditions { lease_id: Some(id.clone()), ..Conditions::default() };
        assert_eq!(blob.run(metadata(mine), 5).unwrap().etag, 5);
        assert!(matches!(blob.head().lease, Lease::Leased { .. }));
        let tags =
            SetTags { tags: Vec::new(), revision: Revision::Current, conditions: Conditions::default() };
        assert!(blob.run(tags, 6).is_err());
    }

    /// On a full disk a lease could not be ended, so what it guards could not be deleted.
    #[test]
    fn a_full_disk_takes_what_ends_a_lease() {
        let id = || "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        for (action, expected) in [
            (LeaseAction::Acquire { seconds: None, id: id() }, false),
            (LeaseAction::Renew { id: id() }, false),
            (LeaseAction::Change { id: id(), proposed: id() }, false),
            (LeaseAction::Release { id: id() }, true),
            (LeaseAction::Break { seconds: None }, true),
            (LeaseAction::Break { seconds: Some(60) }, true),
        ] {
            let change = LeaseBlob { action, conditions: Conditions::default() };
            assert_eq!(change.gives_back(), expected, "{:?}", change.action);
        }
    }

    #[test]
    fn each_type_of_blob_has_its_tiers() {
        let (ok, other) = (Ok(()), Err(BlobError::AccessTierNotSupportedForBlobType));
        let unknown = Err(BlobError::InvalidBlobTier);
        for (tier, block, page, append) in [
            (None, &ok, &ok, &ok),
            (Some("Hot"), &ok, &other, &other),
            (Some("Archive"), &ok, &other, &other),
            (Some("P10"), &other, &ok, &other),
            (Some("Lukewarm"), &unknown, &unknown, &other),
            (Some("hot"), &unknown, &unknown, &other),
        ] {
            for (kind, expected) in
                [(BlobType::Block, block), (BlobType::Page, page), (BlobType::Append, append)]
            {
                assert_eq!(check_tier(kind, tier), *expected, "{kind:?} {tier:?}");
            }
        }
    }

    /// Metadata and properties of an archived blob could be changed, and snapshots be taken of it. Its tags
    /// may change.
    #[test]
    fn what_is_archived_stays_as_it_is() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        let conditions = Conditions::default;
        let tier = |tier: &str| SetTier {
            tier: tier.into(),
            rehydrate_priority: None,
            revision: Revision::Current,
            conditions: conditions(),
        };
        for (now, name, error) in
            [(2, "Archive", BlobError::BlobArchived), (3, "Hot", BlobError::BlobBeingRehydrated)]
        {
            blob.run(tier(name), now).unwrap();
            let refused = Err(error);
            assert_eq!(blob.run(metadata(conditions()), 4).map(drop), refused, "{name}");
            let properties =
                SetProperties { properties: None, size: None, sequence: None, conditions: conditions() };
            assert_eq!(blob.run(properties, 5).map(drop), refused, "{name}");
            let snapshot = TakeSnapshot { metadata: None, conditions: conditions(), versioned: false };
            assert_eq!(blob.run(snapshot, 6).map(drop), refused, "{name}");
            let tags = SetTags { tags: Vec::new(), revision: Revision::Current, conditions: conditions() };
            assert_eq!(blob.run(tags, 7), Ok(()), "{name}");
        }
    }

    #[test]
    fn tiers() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        let set = |tier: &str| SetTier {
            tier: tier.into(),
            rehydrate_priority: None,
            revision: Revision::Current,
            conditions: Conditions::default(),
        };
        assert_eq!(blob.run(set("Cool"), 2), Ok(false));
        assert_eq!(blob.run(set("P10"), 3), Err(BlobError::AccessTierNotSupportedForBlobType));
        assert_eq!(blob.run(set("Lukewarm"), 3), Err(BlobError::InvalidBlobTier));
        assert_eq!(blob.run(set("Archive"), 4), Ok(false));
        assert_eq!(blob.run(put(), 5), Err(BlobError::BlobArchived));
        assert_eq!(blob.run(set("Hot"), 6), Ok(true));
        assert_eq!(blob.run(set("Hot"), 7), Err(BlobError::BlobBeingRehydrated));
        assert_eq!(blob.head().current.unwrap().version.etag, 1, "a tier changes no ETag");
    }

    /// Whoever waited for a blob from the archive could not have it sooner, and a tier for what was on its
    /// way was taken.
    #[test]
    fn what_is_rehydrated_can_only_be_hurried() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        let refused = Err(BlobError::BlobBeingRehydrated);
        let table = [
            ("Archive", None, Ok(false)),
            ("Hot", None, Ok(true)),
            ("Hot", Some("Standard"), refused.clone()),
            ("Cool", Some("High"), refused.clone()),
            ("Archive", Some("High"), refused.clone()),
            ("Hot", Some("High"), Ok(true)),
            ("Hot", Some("High"), refused.clone()),
            ("Hot", Some("Standard"), refused.clone()),
            ("Hot", None, refused),
        ];
        for (number, (tier, priority, expected)) in table.into_iter().enumerate() {
            let set = SetTier {
                tier: tier.into(),
                rehydrate_priority: priority.map(str::to_owned),
                revision: Revision::Current,
                conditions: Conditions::default(),
            };
            assert_eq!(blob.run(set, 2 + number as u64), expected, "{number}. {tier} {priority:?}");
        }
        let record = blob.head().current.unwrap();
        assert_eq!(record.tier.archive_status.as_deref(), Some("rehydrate-pending-to-hot"));
        assert_eq!(record.tier.rehydrate_priority.as_deref(), Some("High"));
    }
}
