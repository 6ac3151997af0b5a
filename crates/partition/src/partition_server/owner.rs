//! Who answers for a key range: a range partition that serves it, or the knowledge that its streams are
//! damaged.
//!
//! What always holds: nothing is read from or written to a damaged range until it is repaired and the process
//! starts again. Every request for one of its keys gets the same error, because whatever does not read may
//! have changed any of them; neither an older value nor "no rows" is ever an answer. Background work does not
//! see it.

use crate::background::retries::RangeName;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::key::describe::describe_range;
use crate::range_partition::RangePartition;
use std::sync::Arc;

/// The owner of a key range.
#[derive(Clone)]
pub(crate) enum Owner {
    /// It is served.
    Serving(Arc<RangePartition>),
    /// It can't be loaded.
    Damaged(Arc<DamagedRange>),
}

/// A range that could not be loaded.
pub(crate) struct DamagedRange {
    id: u64,
    range: KeyRange,
    error: PartitionError,
}

impl DamagedRange {
    /// The range `name` does not load, because of `error`. Logs it once, with what to do.
    pub(crate) fn found((table, id): RangeName, range: KeyRange, error: &PartitionError) -> Self {
        let (table, keys) = (table.name(), describe_range(&range));
        tracing::error!(
            table,
            id,
            keys,
            %error,
            "a range is damaged: requests for its keys fail, all others are served; stop the server and run `larimar check \
             DIR`, then `larimar repair DIR` (see docs/damage.md)"
        );
        // A request names the range, too: its line in the log is the only one that is left after some days.
        let error = PartitionError::Storage(format!("range {id} of table {table} is damaged: {error}"));
        DamagedRange { id, range, error }
    }

    /// Its id.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// What requests for its keys get.
    pub(super) fn error(&self) -> &PartitionError {
        &self.error
    }
}

impl Owner {
    /// The keys it answers for.
    pub(crate) fn range(&self) -> &KeyRange {
        match self {
            Owner::Serving(range) => range.range(),
            Owner::Damaged(damaged) => &damaged.range,
        }
    }

    /// The range, unless it is damaged.
    pub(crate) fn serving(&self) -> Option<&Arc<RangePartition>> {
        match self {
            Owner::Serving(range) => Some(range),
            Owner::Damaged(_) => None,
        }
    }

    /// The range; an error if it is damaged.
    pub(crate) fn served(&self) -> Result<&Arc<RangePartition>, PartitionError> {
        match self {
            Owner::Serving(range) => Ok(range),
            Owner::Damaged(damaged) => Err(damaged.error.clone()),
        }
    }
}
