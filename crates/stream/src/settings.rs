//! Sizes and bounds of the stream layer.

/// What a server keeps back for a full disk: enough for the checkpoints of deletions and for small merges (64 MiB), and for
/// what is journaled and not yet in its extent (48 MiB, see `extent_node/drain.rs`).
pub const RESERVE_SIZE_BYTES: u64 = 112 << 20;

/// Bytes of a journal segment of a stamp in memory, which has to hold three of them and whose extents cost nothing to write.
pub const IN_MEMORY_SEGMENT_SIZE_BYTES: u64 = 32 << 20;

/// Settings of the stream layer of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// An extent that has reached this many bytes takes no more appends.
    pub extent_size_bytes_max: u64,
    /// Bytes of each of the three journal segments. Twice this is the most that waits, journaled, for its extent; three
    /// quarters are what usually does while writes come, and what is deleted by then is never written to its extent.
    pub journal_segment_size_bytes: u64,
    /// Appends of up to this many bytes go through the journal; larger ones straight to their extent.
    pub journaled_append_size_bytes_max: u64,
    /// The stream manager's log grows by this many zeroed bytes at a time.
    pub manager_log_growth_bytes: u64,
    /// Sealed extents are read again and again in the background, this many bytes a second; 0: never.
    pub scrub_bytes_per_second: u64,
    /// Bytes that are kept back for a full disk; 0: none. See `space.rs`.
    pub reserve_size_bytes: u64,
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
        }
    }
}

impl StreamSettings {
    /// Small sizes, so that tests roll over extents and segments often.
    pub fn tiny() -> Self {
        StreamSettings {
            extent_size_bytes_max: 16 << 10,
            journal_segment_size_bytes: 64 << 10,
            journaled_append_size_bytes_max: 8 << 10,
            manager_log_growth_bytes: 32 << 10,
            scrub_bytes_per_second: 0,
            reserve_size_bytes: 0,
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
