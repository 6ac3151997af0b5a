//! What checkpoints hold, as their roots say: what the choices of compactions go by.

/// What a checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) size_bytes: u64,
    /// Rows, tombstones included.
    pub(crate) row_count: u64,
    pub(crate) deleted_count: u64,
}

impl Counts {
    /// Rows that are no tombstones.
    pub(crate) fn put_count(&self) -> u64 {
        self.row_count.saturating_sub(self.deleted_count)
    }
}

/// Bytes of a row in these checkpoints, roughly: tombstones take little of them.
pub(crate) fn mean_row_bytes(checkpoints: &[Counts]) -> u64 {
    let put_count: u64 = checkpoints.iter().map(Counts::put_count).sum();
    let size_bytes: u64 = checkpoints.iter().map(|counts| counts.size_bytes).sum();
    size_bytes.checked_div(put_count).unwrap_or(0)
}
