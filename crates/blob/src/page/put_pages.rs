//! Writing and clearing pages, and changing the size of a page blob.

use crate::condition::Conditions;
use crate::content::Content;
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::limits::{PAGE_REGION_SIZE_BYTES, PAGE_SIZE_BYTES};
use crate::page::pages::{PageRange, Region, encode_region, region_bounds, region_of, replaced};
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::BlobType;
use crate::rows::region_row::{region_row, regions_prefix};
use base::Ticks;
use base::codec::DecodeError;
use partition::Piece;
use std::collections::BTreeMap;

/// Regions that a write looks at one by one; a clear of more looks at those that are there.
const REGIONS_BY_NAME_MAX: u64 = 64;

/// Writes or clears pages.
pub(crate) struct PutPages {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// What is written, as one run of pieces; empty: a clear.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) conditions: Conditions,
    pub(crate) sequence: SequenceConditions,
}

/// Conditions on the sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConditions {
    /// Less than or equal.
    pub le: Option<u64>,
    /// Less than.
    pub lt: Option<u64>,
    /// Equal.
    pub eq: Option<u64>,
}

impl SequenceConditions {
    fn check(&self, number: u64) -> Result<(), BlobError> {
        let holds = self.le.is_none_or(|le| number <= le)
            && self.lt.is_none_or(|lt| number < lt)
            && self.eq.is_none_or(|eq| number == eq);
        if holds { Ok(()) } else { Err(BlobError::SequenceNumberConditionNotMet) }
    }
}

/// What a write of pages tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesWritten {
    /// The new ETag.
    pub etag: u64,
    /// When.
    pub modified_at: Ticks,
    /// The sequence number.
    pub sequence_number: u64,
    /// What the blob is encrypted with.
    pub encryption: Encryption,
}

impl PutPages {
    fn regions(&self) -> std::ops::RangeInclusive<u64> {
        region_of(self.start)..=region_of(self.start + self.len.max(1) - 1)
    }

    fn is_wide(&self) -> bool {
        let regions = self.regions();
        // Only what is cleared may leave alone the regions that have no row.
        self.pieces.is_empty() && regions.end() - regions.start() >= REGIONS_BY_NAME_MAX
    }
}

impl BlobChange for PutPages {
    type Reply = PagesWritten;

    fn more_rows(&self) -> Vec<String> {
        if self.is_wide() {
            return Vec::new();
        }
        self.regions().map(|region| region_row(0, region)).collect()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<PagesWritten, Stop> {
        let live = rows.live()?;
        self.conditions.check_write(Some(live.present()))?;
        if live.blob_type != BlobType::Page {
            return Err(BlobError::InvalidBlobType.into());
        }
        // Before the range is looked at, as in the service (tests of its .NET client).
        let lease = rows.head.lease.check_write(self.conditions.lease(), now)?;
        let end = self.start.checked_add(self.len).ok_or(BlobError::InvalidPageRange)?;
        let is_aligned =
            self.start.is_multiple_of(PAGE_SIZE_BYTES) && self.len.is_multiple_of(PAGE_SIZE_BYTES);
        if !is_aligned || self.len == 0 || end > live.size {
            return Err(BlobError::InvalidPageRange.into());
        }
        self.conditions.encryption.check_write(&live.encryption)?;
        self.sequence.check(live.by_type.sequence_number)?;
        rows.head.lease = lease;
        if self.is_wide() {
            for name in rows.names(&regions_prefix(0))? {
                let region = region_in(&name)?;
                if self.regions().contains(&region) {
                    self.rewrite(rows, region, now)?;
                }
            }
        } else {
            for region in self.regions() {
                self.rewrite(rows, region, now)?;
            }
        }
        let live = rows.live_mut()?;
        live.touch(now);
        let (sequence_number, encryption) = (live.by_type.sequence_number, live.encryption.clone());
        Ok(PagesWritten { etag: now.0, modified_at: now, sequence_number, encryption })
    }
}

impl PutPages {
    fn rewrite(&self, rows: &mut BlobRows, number: u64, now: Ticks) -> Result<(), Stop> {
        let name = region_row(0, number);
        let mut region = region_at(rows, &name, number)?;
        let (from, to) = region_bounds(number);
        let (from, to) = (from.max(self.start), to.min(self.start + self.len));
        if self.pieces.is_empty() {
            region.clear(from, to, now);
        }
        let mut start = self.start;
        for piece in &self.pieces {
            let written = PageRange { start, len: piece.size_bytes(), piece: *piece, piece_offset: 0 };
            if let Some(written) = written.cut(from, to) {
                region.write(written);
            }
            start += piece.size_bytes();
        }
        store_region(rows, name, number, region);
        Ok(())
    }
}

/// A region as it is now.
fn region_at(rows: &BlobRows, name: &str, number: u64) -> Result<Region, Stop> {
    Ok(rows.row(name)?.map(|row| Region::decode(number, row)).transpose()?.unwrap_or_default())
}

/// Stores a region. What was cleared in it is only of interest beside a snapshot, be it one that can come
/// back.
fn store_region(rows: &mut BlobRows, name: String, number: u64, mut region: Region) {
    if rows.head.snapshots == 0 && rows.head.deleted_snapshots == 0 {
        region.cleared.clear();
    }
    match region.is_empty() {
        true => rows.delete(&name),
        false => rows.put(name, region.encode(number)),
    }
}

/// The region in a row's name.
pub(crate) fn region_in(name: &str) -> Result<u64, DecodeError> {
    let digits = name.get(name.len().saturating_sub(16)..).ok_or(DecodeError("region's name"))?;
    u64::from_str_radix(digits, 16).map_err(|_| DecodeError("region's name"))
}

/// Drops what lies beyond a new, smaller size.
pub(crate) fn truncate_pages(rows: &mut BlobRows, size: u64) -> Result<(), Stop> {
    for name in rows.names(&regions_prefix(0))? {
        let region = region_in(&name)?;
        if (region + 1) * PAGE_REGION_SIZE_BYTES <= size {
            continue;
        }
        let mut left = region_at(rows, &name, region)?;
        left.ranges = replaced(&left.ranges, size, u64::MAX, None);
        // Beyond the end there is nothing that could have changed.
        left.cleared.retain(|cleared| cleared.start < size);
        store_region(rows, name, region, left);
    }
    Ok(())
}

/// Stores the ranges of a new page blob.
pub(crate) fn store_ranges(rows: &mut BlobRows, ranges: &[PageRange]) {
    let mut regions: BTreeMap<u64, Vec<PageRange>> = BTreeMap::new();
    for range in ranges {
        for region in region_of(range.start)..=region_of(range.start + range.len - 1) {
            let (from, to) = region_bounds(region);
            regions.entry(region).or_default().extend(range.cut(from, to));
        }
    }
    for (region, ranges) in regions {
        rows.put(region_row(0, region), encode_region(region, &ranges));
    }
}

/// Copies the rows of pages from one owner to another: names of pieces, no bytes.
pub(crate) fn copy_regions(rows: &mut BlobRows, from: u64, to: u64) -> Result<Content, Stop> {
    for name in rows.names(&regions_prefix(from))? {
        let region = region_in(&name)?;
        if let Some(row) = rows.row(&name)?.cloned() {
            rows.put(region_row(to, region), row.to_vec());
        }
    }
    Ok(Content::Pages(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::{NewContent, PutBlob};
    use crate::page::pages::decode_region;
    use crate::rows::decision::memory_blob::MemoryBlob;

    const REGION: u64 = PAGE_REGION_SIZE_BYTES;

    fn create(size: u64) -> PutBlob {
        let content = NewContent::Pages { size, sequence_number: 5, ranges: Vec::new() };
        let (new, replacement) = Default::default();
        PutBlob { blob_type: BlobType::Page, size, content, new, replacement }
    }

    fn write(start: u64, len: u64, written: bool) -> PutPages {
        let pieces = if written { vec![Piece::for_tests(1, start, len as u32)] } else { Vec::new() };
        let (conditions, sequence) = Default::default();
        PutPages { start, len, pieces, conditions, sequence }
    }

    /// What was written and cleared again between two snapshots looked as if it had never been written.
    #[test]
    fn beside_a_snapshot_it_is_known_what_was_cleared() {
        let mut blob = MemoryBlob::default();
        blob.run(create(10 * REGION), 1).unwrap();
        let snapshot = || crate::blob::delete_blob::TakeSnapshot {
            metadata: None,
            conditions: Conditions::default(),
            versioned: false,
        };
        let marks = |blob: &MemoryBlob, owner: u64| {
            let prefix = regions_prefix(owner);
            let rows = blob.rows.iter().filter(|(name, _)| name.starts_with(&prefix));
            let regions = rows.map(|(name, row)| Region::decode(region_in(name).unwrap(), row).unwrap());
            let marks = regions.flat_map(|region| region.cleared);
            marks.map(|cleared| (cleared.start, cleared.end, cleared.at.0)).collect::<Vec<_>>()
        };
        blob.run(write(0, 1024, true), 2).unwrap();
        blob.run(write(0, 512, false), 3).unwrap();
        assert_eq!(marks(&blob, 0), [], "nobody can ask");
        blob.run(snapshot(), 4).unwrap();
        blob.run(write(REGION - 512, 1024, true), 5).unwrap();
        blob.run(write(0, 2 * REGION, false), 6).unwrap();
        let expected = [(512, 1024, 6), (REGION - 512, REGION, 6), (REGION, REGION + 512, 6)];
        assert_eq!(marks(&blob, 0), expected);
        blob.run(snapshot(), 7).unwrap();
        blob.run(write(512, 512, true), 8).unwrap();
        assert_eq!(marks(&blob, 0), expected[1..]);
        assert_eq!(marks(&blob, 7), expected, "a snapshot stays as it is");
        // Once there is no snapshot any more, they go with the next write.
        let (conditions, tier) = (Conditions::default(), Default::default());
        let snapshots = crate::blob::delete_blob::DeleteSnapshots::Only;
        let revision = crate::rows::revision::Revision::Current;
        let (retention_days, versioned) = (None, false);
        let delete = crate::blob::delete_blob::DeleteBlob {
            revision,
            snapshots,
            conditions,
            tier,
            retention_days,
            versioned,
        };
        blob.run(delete, 9).unwrap();
        blob.run(write(0, 10 * REGION, false), 10).unwrap();
        assert_eq!(blob.count("4p"), 0);
    }

    fn ranges(blob: &MemoryBlob) -> Vec<(u64, u64)> {
        let rows = blob.rows.iter().filter(|(name, _)| name.starts_with("4p0"));
        let ranges = rows.flat_map(|(name, row)| decode_region(region_in(name).unwrap(), row).unwrap());
        crate::page::pages::joined(ranges.map(|range| (range.start, range.start + range.len)))
    }

    #[test]
    fn pages_are_written_cleared_and_cut_off() {
        let mut blob = MemoryBlob::default();
        blob.run(create(10 * REGION), 1).unwrap();
        blob.run(write(REGION - 512, 1024, true), 2).unwrap();
        assert_eq!((ranges(&blob), blob.count("4p")), (vec![(REGION - 512, REGION + 512)], 2));
        blob.run(write(0, 3 * REGION, true), 3).unwrap();
        blob.run(write(512, 512, false), 4).unwrap();
        assert_eq!(ranges(&blob), [(0, 512), (1024, 3 * REGION)]);
        for bad in [write(1, 512, true), write(0, 511, true), write(10 * REGION, 512, true)] {
            assert_eq!(blob.run(bad, 5), Err(BlobError::InvalidPageRange));
        }
        // A lease that is not there comes first.
        let conditions = Conditions { lease_id: Some("a".to_owned()), ..Conditions::default() };
        let leased = PutPages { conditions, ..write(10 * REGION, 512, true) };
        assert!(matches!(blob.run(leased, 5), Err(BlobError::Lease(_))));
        let sequence = SequenceConditions { lt: Some(5), ..SequenceConditions::default() };
        let late = PutPages { sequence, ..write(0, 512, true) };
        assert_eq!(blob.run(late, 6), Err(BlobError::SequenceNumberConditionNotMet));
        blob.run(write(0, 10 * REGION, false), 7).unwrap();
        assert_eq!(blob.count("4p"), 0);
    }

    #[test]
    fn a_wide_clear_looks_only_at_what_is_there() {
        let mut blob = MemoryBlob::default();
        blob.run(create(1 << 43), 1).unwrap();
        blob.run(write(1 << 42, 512, true), 2).unwrap();
        blob.run(write(0, 512, true), 3).unwrap();
        blob.run(write(512, (1 << 43) - 512, false), 4).unwrap();
        assert_eq!(ranges(&blob), [(0, 512)]);
    }
}
