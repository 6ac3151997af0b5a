//! How far a check of integrity is, as values for those who wait for it.

/// How far a check is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// The table or the rule.
    pub at: String,
    /// Rows that were read of all.
    pub rows: u64,
}

/// Takes values of progress. It must not block.
pub type CheckSink = dyn Fn(CheckProgress) + Send + Sync;
