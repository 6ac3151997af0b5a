//! Sizes and bounds of the stream layer, and how they follow from the size of the disk.
//!
//! An extent's space is reclaimed only as a whole: what is alive in it is copied first. So extents are small
//! against the disk, and a full disk has a reserve in which the largest such step fits.
//! [`StreamSettings::for_disk`] keeps the two together.

/// Bytes of a journal segment of a stamp in memory, which has to hold three of them and whose extents cost
/// nothing to write.
pub const IN_MEMORY_SEGMENT_SIZE_BYTES: u64 = 32 << 20;

/// A disk has space for so many extents at least, as long as they have their least size.
const EXTENTS_OF_DISK_MIN: u64 = 64;
/// And for so many at most, until they have their largest: each keeps a file open, and is in the journal's
/// table.
const EXTENTS_OF_DISK_MAX: u64 = 8192;
const EXTENT_SIZE_BYTES_MIN: u64 = 4 << 20;
/// Where a disk has space for enough of this size they are no larger, so that the reserve is small.
const EXTENT_SIZE_BYTES_USUAL: u64 = 32 << 20;
const EXTENT_SIZE_BYTES_MAX: u64 = 256 << 20;

/// The journal's three segments take this part of the disk each.
const SEGMENTS_OF_DISK: u64 = 64;
/// And no larger part of the memory budget.
const SEGMENTS_OF_MEMORY: u64 = 8;
const SEGMENT_SIZE_BYTES_MIN: u64 = 4 << 20;
const SEGMENT_SIZE_BYTES_MAX: u64 = 64 << 20;

/// The stream manager's log grows by this part of the disk, and starts again after thirty-two times that or 8
/// MiB.
const LOG_GROWTHS_OF_DISK: u64 = 4096;
const LOG_GROWTH_SIZE_BYTES_MIN: u64 = 64 << 10;
const LOG_GROWTH_SIZE_BYTES_MAX: u64 = 1 << 20;

/// What a flush of a memory table may take of the reserve, as a part of the disk.
const FLUSHES_OF_DISK: u64 = 128;
const FLUSH_SIZE_BYTES_MIN: u64 = 2 << 20;
const FLUSH_SIZE_BYTES_MAX: u64 = 32 << 20;

/// What is kept of the reserve for the next start when it is given up: it writes what is journaled and not in
/// its extent, which on a full disk is a group of the journal at most (4 MiB) and what the drain waits for (1
/// MiB). A start that does not have it any more keeps those bytes pending, so that it serves all the same.
pub(crate) const START_RESERVE_SIZE_BYTES: u64 = 8 << 20;

/// By so much an extent of blob data may be larger than extents are: the piece that fills it goes into it as
/// a whole.
const OVERFULL_SIZE_BYTES: u64 = 4 << 20;

/// Settings of the stream layer of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// An extent that has reached this many bytes takes no more appends.
    pub extent_size_bytes_max: u64,
    /// Bytes of each of the three journal segments; a folder keeps the size that its files have, but no more
    /// waits for its extent than with segments of this size. Twice this is the most that waits, journaled,
    /// for its extent; three quarters are what usually does while writes come, and what is deleted by then is
    /// never written to its extent.
    pub journal_segment_size_bytes: u64,
    /// Appends of up to this many bytes go through the journal; larger ones straight to their extent.
    pub journaled_append_size_bytes_max: u64,
    /// The stream manager's log grows by this many zeroed bytes at a time.
    pub manager_log_growth_bytes: u64,
    /// Sealed extents are read again and again in the background, this many bytes a second; 0: never.
    pub scrub_bytes_per_second: u64,
    /// Bytes that are kept back for a full disk; 0: none. See `space.rs`.
    pub reserve_size_bytes: u64,
    /// Of these, so many for a flush of a memory table.
    pub flush_size_bytes_max: u64,
}

impl Default for StreamSettings {
    fn default() -> Self {
        StreamSettings {
            extent_size_bytes_max: 256 << 20,
            journal_segment_size_bytes: 64 << 20,
            journaled_append_size_bytes_max: 1 << 20,
            manager_log_growth_bytes: 1 << 20,
            scrub_bytes_per_second: 4 << 20,
            reserve_size_bytes: 0,
            flush_size_bytes_max: FLUSH_SIZE_BYTES_MAX,
        }
    }
}

/// How large extents are on a disk of so many bytes.
fn extent_size_bytes(disk_bytes: u64) -> u64 {
    let usual = (disk_bytes / EXTENTS_OF_DISK_MIN).clamp(EXTENT_SIZE_BYTES_MIN, EXTENT_SIZE_BYTES_USUAL);
    usual.max((disk_bytes / EXTENTS_OF_DISK_MAX).min(EXTENT_SIZE_BYTES_MAX))
}

/// How large the journal's segments are.
fn segment_size_bytes(disk_bytes: u64) -> u64 {
    // Whole pages, as the journal is written in.
    (disk_bytes / SEGMENTS_OF_DISK).clamp(SEGMENT_SIZE_BYTES_MIN, SEGMENT_SIZE_BYTES_MAX) & !0xfff
}

/// What a memory table may take when it is flushed.
fn flush_size_bytes(disk_bytes: u64) -> u64 {
    (disk_bytes / FLUSHES_OF_DISK).clamp(FLUSH_SIZE_BYTES_MIN, FLUSH_SIZE_BYTES_MAX)
}

/// What is kept back. When a write finds no space, all of this may have to be written before any space is
/// reclaimed:
///
/// - what is journaled and not in its extent: three quarters of a segment, see `extent_node/drain.rs`;
/// - a memory table's checkpoint; the table's log goes after that;
/// - what is alive in one extent, as it is copied out of it: less than an extent and a piece;
/// - a part of a compaction, which frees its first extent once an extent's worth is written: an extent;
/// - what stays for the next start: it is not given up before.
///
/// Deletions stop and wait when less than a flush and an extent are free, so that their log and their
/// tombstones take none of these.
fn reserve_size_bytes(extent_size_bytes: u64, segment_size_bytes: u64, flush_size_bytes: u64) -> u64 {
    2 * extent_size_bytes
        + OVERFULL_SIZE_BYTES
        + segment_size_bytes / 4 * 3
        + flush_size_bytes
        + START_RESERVE_SIZE_BYTES
}

impl StreamSettings {
    /// These settings with a journal that takes little of a memory budget: bytes wait in memory for their
    /// extents, and a start reads all of it. To be called before [`Self::for_disk`].
    pub fn for_memory(self, budget_bytes: u64) -> Self {
        let size_bytes =
            (budget_bytes / SEGMENTS_OF_MEMORY).clamp(SEGMENT_SIZE_BYTES_MIN, SEGMENT_SIZE_BYTES_MAX);
        let journal_segment_size_bytes = self.journal_segment_size_bytes.min(size_bytes & !0xfff);
        StreamSettings { journal_segment_size_bytes, ..self }
    }

    /// These settings with the sizes that suit a disk of so many bytes, and a reserve.
    pub fn for_disk(self, disk_bytes: u64) -> Self {
        let extent_size_bytes_max = extent_size_bytes(disk_bytes);
        let journal_segment_size_bytes = segment_size_bytes(disk_bytes).min(self.journal_segment_size_bytes);
        let flush_size_bytes_max = flush_size_bytes(disk_bytes);
        StreamSettings {
            extent_size_bytes_max,
            journal_segment_size_bytes,
            flush_size_bytes_max,
            manager_log_growth_bytes: (disk_bytes / LOG_GROWTHS_OF_DISK)
                .clamp(LOG_GROWTH_SIZE_BYTES_MIN, LOG_GROWTH_SIZE_BYTES_MAX),
            reserve_size_bytes: reserve_size_bytes(
                extent_size_bytes_max,
                journal_segment_size_bytes,
                flush_size_bytes_max,
            ),
            ..self
        }
    }

    /// With less than this free, on a full disk, work that takes space before it reclaims some waits for such
    /// work under way.
    pub(crate) fn floor_size_bytes(&self) -> u64 {
        let of_layout = self.extent_size_bytes_max + self.flush_size_bytes_max;
        // Of a reserve whose size was set, as tests do, a part.
        of_layout.min(self.reserve_size_bytes / 3)
    }

    /// Small sizes, so that tests roll over extents and segments often.
    pub fn tiny() -> Self {
        StreamSettings {
            extent_size_bytes_max: 16 << 10,
            journal_segment_size_bytes: 64 << 10,
            journaled_append_size_bytes_max: 8 << 10,
            manager_log_growth_bytes: 32 << 10,
            scrub_bytes_per_second: 0,
            reserve_size_bytes: 0,
            flush_size_bytes_max: 16 << 10,
        }
    }

    /// What is wrong with the settings, if anything.
    pub fn check(&self) -> Result<(), String> {
        let smallest_segment = 4 * self.journaled_append_size_bytes_max.max(8 << 10);
        if self.journal_segment_size_bytes < smallest_segment {
            return Err(format!(
                "journal segments of {} bytes are too small for journaled appends of {}: at least {smallest_segment}",
                self.journal_segment_size_bytes, self.journaled_append_size_bytes_max
            ));
        }
        if self.extent_size_bytes_max < 4096 {
            return Err(format!(
                "extents of {} bytes are too small: at least 4096",
                self.extent_size_bytes_max
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn the_journal_takes_little_of_a_small_memory() {
        for (budget, disk, segment) in [
            (64 * MIB, u64::MAX, 8 * MIB),
            (256 * MIB, u64::MAX, 32 * MIB),
            (256 * MIB, 512 * MIB, 8 * MIB),
            (300_000_001, u64::MAX, 37_498_880),
            (GIB, u64::MAX, 64 * MIB),
            (u64::MAX, u64::MAX, 64 * MIB),
        ] {
            let settings = StreamSettings::default().for_memory(budget).for_disk(disk);
            assert_eq!(settings.journal_segment_size_bytes, segment, "{} MiB", budget / MIB);
            assert_eq!(settings.check(), Ok(()));
        }
    }

    #[test]
    fn sizes_follow_from_the_disk() {
        for (disk, extent, segment, flush, reserve) in [
            (0, 4 * MIB, 4 * MIB, 2 * MIB, 25 * MIB),
            (200 * MIB, 4 * MIB, 4 * MIB, 2 * MIB, 25 * MIB),
            (512 * MIB, 8 * MIB, 8 * MIB, 4 * MIB, 38 * MIB),
            (GIB, 16 * MIB, 16 * MIB, 8 * MIB, 64 * MIB),
            (4 * GIB, 32 * MIB, 64 * MIB, 32 * MIB, 156 * MIB),
            (256 * GIB, 32 * MIB, 64 * MIB, 32 * MIB, 156 * MIB),
            (1024 * GIB, 128 * MIB, 64 * MIB, 32 * MIB, 348 * MIB),
            (u64::MAX, 256 * MIB, 64 * MIB, 32 * MIB, 604 * MIB),
        ] {
            let settings = StreamSettings::default().for_disk(disk);
            let sizes = (
                settings.extent_size_bytes_max,
                settings.journal_segment_size_bytes,
                settings.flush_size_bytes_max,
                settings.reserve_size_bytes,
            );
            assert_eq!(sizes, (extent, segment, flush, reserve), "{} MiB", disk / MIB);
            assert_eq!(settings.check(), Ok(()));
            assert!(disk < 200 * MIB || reserve + 3 * segment < disk / 5, "{} MiB", disk / MIB);
        }
    }
}
