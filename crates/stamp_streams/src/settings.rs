//! What the processes of a stamp are set to, and faults on purpose.

use stamp::{BundleBounds, LEASE_MARGIN, LEASE_TTL, StampId, WindowBounds};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long one try of a request to a store may take, unless it is set otherwise.
pub const TRY_FOR: Duration = Duration::from_secs(5);
/// The shortest wait before the same is sent again.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// Bytes of an extent of a log after which the next one is begun.
pub const EXTENT_SIZE_BYTES: u64 = 256 << 20;
/// How long a part is tried before its writer gives up on it.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Which logs have their small parts copied into bundles, for whoever takes the range.
#[derive(Clone, Copy, Debug)]
pub struct Bundles {
    /// How much goes into one.
    pub bounds: BundleBounds,
    /// Whether the parts of a stream of this purpose are: of those that a load reads whole.
    pub of: fn(&str) -> bool,
}

impl Default for Bundles {
    fn default() -> Self {
        Bundles { bounds: BundleBounds::default(), of: |_| false }
    }
}

/// What the processes of a stamp are set to: the same in all of them.
#[derive(Clone, Debug)]
pub struct StampSettings {
    /// The installation.
    pub stamp: StampId,
    /// How long a process is taken to live after its last beat.
    pub ttl: Duration,
    /// How much earlier it stops by itself.
    pub margin: Duration,
    /// How long one try of a request to the object store may take, with what is sent. A process that can't
    /// reach that store gives up after it: not longer than `ttl`.
    pub object_try_for: Duration,
    /// How long one try of a request to the metadata store may take. Beats have a sixth of `ttl`,
    /// if that is less.
    pub key_try_for: Duration,
    /// How much of one extent may be under way.
    pub window: WindowBounds,
    /// Which small parts are copied, many into one object.
    pub bundles: Bundles,
    /// Bytes of an extent of a log after which the next one is begun.
    pub extent_size_bytes: u64,
    /// How long a part is tried before its writer gives up on it, seals and reads its log again.
    pub give_up_after: Duration,
    /// Whether the next extent of a log is named in the document while the one before takes appends.
    pub names_early: bool,
    /// How much faster dropped extents grow old than clocks say: 1, but in tests.
    pub age_factor: u32,
    /// Faults on purpose: none, but in tests.
    pub planted: Planted,
}

impl StampSettings {
    /// Of this stamp, all else as usual.
    pub fn new(stamp: StampId) -> Self {
        StampSettings {
            stamp,
            ttl: LEASE_TTL,
            margin: LEASE_MARGIN,
            object_try_for: TRY_FOR,
            key_try_for: TRY_FOR,
            window: WindowBounds::default(),
            bundles: Bundles::default(),
            extent_size_bytes: EXTENT_SIZE_BYTES,
            give_up_after: GIVE_UP_AFTER,
            names_early: false,
            age_factor: 1,
            planted: Planted::default(),
        }
    }
}

/// A rule that is broken on purpose, or a defence that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breach {
    /// A taker records lengths without sealing.
    SkipSeal,
    /// A taker records an empty extent without sealing it.
    SkipEmptySeal,
    /// The seal does not compete with the next part for its name.
    SealElsewhere,
    /// A take does not raise the epoch.
    EqualEpochs,
    /// Reads are answered after the deadline.
    ReadWithoutLease,
    /// Parts are acknowledged after the deadline.
    AcknowledgeWithoutLease,
    /// A range is taken when the owner's key is gone, whatever its beats.
    TrustKeyAlone,
    /// A taker counts every part that it lists.
    CountBehindHole,
    /// A sweep deletes the seal with the parts.
    DeleteTombstones,
    /// The next extent takes parts while parts of the one before it are under way.
    RollBeforeSeal,
    /// A log is read again without sealing its tail.
    ReloadWithoutSeal,
    /// Reads go on until the release is answered.
    ReadUntilReleased,
    /// After an unknown outcome of a release the own entry is read, and believed.
    BelieveReadAfterRelease,
    /// A sweep reads the documents before it lists.
    DocumentsFirst,
    /// A sweep deletes what no document names at once, without a key and a backup.
    DeleteAtOnce,
    /// A sweep deletes what the newest backup names.
    DeleteWithoutBackup,
    /// A part is acknowledged before those in front of it.
    AcknowledgeOutOfOrder,
    /// A part of unknown outcome is reported as failed.
    UnknownIsFailure,
    /// Revisions of documents are not compared.
    NoRevisionCompare,
    /// An owner whose tail another sealed does not take the range again.
    NoTakeAgain,
    /// Parts do not wait for the backup that they rely on.
    PartsBeforeBackup,
    /// The owner of a split takes an heir before it knows the outcome.
    TakeHeirsEarly,
    /// Beats go on while a loop of a range hangs.
    BeatWithoutLoops,
    /// A bundle has parts that are not acknowledged.
    BundleUnacknowledged,
    /// A restore does not look for newer extents.
    NoRollForward,
    /// A restore keeps the generation.
    RestoreSameGeneration,
    /// A restore does not wait for the leases: an operator says that all is stopped, and it is not.
    RestoreWhileLive,
}

/// Which breaches are planted. Without the feature `planted` there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    breaches: BTreeSet<Breach>,
}

impl Planted {
    /// These breaches.
    #[cfg(feature = "planted")]
    pub fn of(breaches: &[Breach]) -> Self {
        Planted { breaches: breaches.iter().copied().collect() }
    }

    /// Whether the breach is planted.
    pub fn has(&self, breach: Breach) -> bool {
        cfg!(feature = "planted") && self.breaches.contains(&breach)
    }
}
