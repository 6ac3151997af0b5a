//! What a mover is set to.

use crate::limits::{ATTEMPTS_MAX, CLOCK_BOUND, EXPIRES_AFTER, PARENT_KEYS_MAX, PROGRESS_EVERY_ROWS};
use shard_backend::{BatchBounds, DigestKey};
use std::time::Duration;

/// The key of digests, and the name under which certificates know it.
#[derive(Clone, Debug)]
pub struct NamedDigestKey {
    /// The name.
    pub id: String,
    /// The key, which those who write rows do not know.
    pub key: DigestKey,
}

/// What a mover is set to.
#[derive(Clone, Debug)]
pub struct MoverSettings {
    /// The key of digests.
    pub digest_key: NamedDigestKey,
    /// How long after the map was read a client may still write to a storage account.
    pub expires_after: Duration,
    /// By how much clocks differ, at most.
    pub clock_bound: Duration,
    /// Bounds of batches.
    pub batch: BatchBounds,
    /// Rows of a copy between two records of its progress.
    pub progress_every_rows: u64,
    /// How often in a row a step is tried.
    pub attempts_max: u32,
    /// Keys of parents that a check of orphans has in memory.
    pub parent_keys_max: usize,
    /// Faults on purpose: none, but in tests.
    pub planted: Planted,
}

impl MoverSettings {
    /// With a key of digests, all else as usual.
    pub fn new(digest_key: NamedDigestKey) -> Self {
        MoverSettings {
            digest_key,
            expires_after: EXPIRES_AFTER,
            clock_bound: CLOCK_BOUND,
            batch: BatchBounds::default(),
            progress_every_rows: PROGRESS_EVERY_ROWS,
            attempts_max: ATTEMPTS_MAX,
            parent_keys_max: PARENT_KEYS_MAX,
            planted: Planted::default(),
        }
    }
}

/// A fault on purpose, which tests must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// The map is switched before the sides are compared.
    SwitchBeforeVerify,
    /// Rows that the target has beside the source's do not change its digest.
    DigestIgnoresDeletes,
    /// The copy goes from the target to the source.
    SwappedPair,
    /// The mover does not wait until signatures end.
    NoWait,
    /// All moves have one claim, which is never released.
    OneClaim,
    /// A deletion does not release its claim.
    NoRelease,
    /// A deletion thaws its mapping before it begins, and moves begin beside one whose mapping was changed.
    ThawEarly,
}

/// Which fault is planted, if any. Without the feature `planted` it is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted")]
    fault: Option<PlantedFault>,
}

impl Planted {
    /// This fault.
    #[cfg(feature = "planted")]
    pub fn fault(fault: PlantedFault) -> Self {
        Planted { fault: Some(fault) }
    }

    #[cfg(feature = "planted")]
    pub(crate) fn is(self, fault: PlantedFault) -> bool {
        self.fault == Some(fault)
    }

    #[cfg(not(feature = "planted"))]
    pub(crate) fn is(self, _: PlantedFault) -> bool {
        false
    }
}
