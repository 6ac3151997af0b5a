//! Whether a compaction is done in parts, and how large these are: a pure choice over its size.
//!
//! A compaction that writes all of its output before anything of its input goes takes as much space again as
//! it has input. In parts, each part's input goes before the next part is written, so that a compaction takes
//! a part and an extent of each input more, whatever its size. What always holds: a part is worth the change
//! of the metadata and the looks into the indexes that it takes, and there are few.

/// A compaction of fewer parts of the least size is done at once: it takes little space.
const PART_COUNT_MIN: u64 = 4;
/// The most parts of one compaction.
const PART_COUNT_MAX: u64 = 16;

/// Bytes of the output of each part, if a compaction of so many bytes is done in parts of at least
/// `part_size_bytes_min`.
pub(crate) fn choose_part(compacted_bytes: u64, part_size_bytes_min: u64) -> Option<u64> {
    let is_large = compacted_bytes >= part_size_bytes_min.saturating_mul(PART_COUNT_MIN);
    is_large.then(|| compacted_bytes.div_ceil(PART_COUNT_MAX).max(part_size_bytes_min))
}

/// The most extents that the output of one compaction is spread over, roughly.
const EXTENT_COUNT_MAX: u64 = 64;
/// An extent of it is no smaller than this share of the least part.
const EXTENT_OF_PART_DIVISOR: u64 = 2;

/// Bytes after which the output of a compaction of so many bytes begins another extent. An extent goes as a
/// whole: were it as large as the checkpoint, the next compaction of that would have to be at its end before
/// any of it goes.
pub(crate) fn choose_extent_size(compacted_bytes: u64, part_size_bytes_min: u64) -> u64 {
    (compacted_bytes / EXTENT_COUNT_MAX).max(part_size_bytes_min / EXTENT_OF_PART_DIVISOR)
}

/// Bytes that a compaction in parts takes beside what is stored: a part, and of each input the extent that it
/// is in. `largest_extents`: the largest one of each input.
pub(crate) fn peak_bytes(part_size_bytes: u64, largest_extents: impl Iterator<Item = u64>) -> u64 {
    largest_extents.fold(part_size_bytes, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_compactions_are_done_in_few_parts() {
        for (compacted_mib, expected_mib) in
            [(0, None), (255, None), (256, Some(64)), (1024, Some(64)), (2048, Some(128)), (4096, Some(256))]
        {
            let part = choose_part(compacted_mib << 20, 64 << 20);
            assert_eq!(part, expected_mib.map(|mib: u64| mib << 20), "{compacted_mib}");
            assert!(part.is_none_or(|part| (compacted_mib << 20).div_ceil(part) <= PART_COUNT_MAX));
        }
    }

    /// Whatever the sizes: with the extents that compactions make, one of ten like inputs takes a quarter of
    /// them beside at most, once it is as large as ten such extents of each.
    #[test]
    fn extents_are_small_beside_their_checkpoint() {
        for (compacted_mib, expected_mib) in [(1, 32), (256, 32), (2048, 32), (4096, 64), (65536, 1024)] {
            assert_eq!(
                choose_extent_size(compacted_mib << 20, 64 << 20),
                expected_mib << 20,
                "{compacted_mib}"
            );
        }
        for input_mib in [320u64, 1024, 10_000, 1_000_000] {
            let inputs = [input_mib << 20; 10];
            let compacted = inputs.iter().sum();
            let part = choose_part(compacted, 64 << 20).unwrap();
            let extents = inputs.iter().map(|input| choose_extent_size(*input, 64 << 20));
            assert!(peak_bytes(part, extents) <= compacted / 4, "{input_mib}");
        }
    }
}
