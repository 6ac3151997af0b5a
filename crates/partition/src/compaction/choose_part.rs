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
}
