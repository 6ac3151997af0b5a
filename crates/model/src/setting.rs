//! What a search explores: how many of which events there are, and which rules are followed.
//!
//! What always holds: without a fault every rule of the contract is followed; a fault breaks one rule, and
//! switches off the others that would cover it.

use std::fmt;

/// What happens a bounded number of times in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub(crate) enum Event {
    /// A client's write.
    Write,
    /// An answer that does not come, to a part, a seal or a transaction; what was sent may still arrive.
    Unknown,
    /// A definite failure of a part.
    Failure,
    /// An owner loses patience with a part.
    GiveUp,
    /// The deadline of a process passes: it was paused, cut off or killed.
    LeaseEnd,
    /// The metadata store ends the lease of a process that lives.
    KeyEnd,
    /// An owner closes its tail to go on in a new extent.
    Roll,
    /// An owner names the next extent while the one before it takes appends.
    EarlyName,
    /// An owner drops its oldest extent behind a checkpoint.
    Trim,
    /// An owner releases its range on purpose.
    Release,
    /// A seal of a take that was given up arrives at a tail.
    StraySeal,
    /// A tail's next name is stuck: the owner closes it in the document alone.
    CloseAlone,
    /// A sweep begins.
    Sweep,
    /// A complete backup is made.
    Backup,
    /// A range is split.
    Split,
    /// The metadata store is lost.
    Loss,
}

/// Kinds of events.
pub(crate) const EVENT_COUNT: usize = 16;

/// All kinds of events, with the word of each in reports.
const EVENTS: [(Event, &str); EVENT_COUNT] = [
    (Event::Write, "writes"),
    (Event::Unknown, "unknown outcomes"),
    (Event::Failure, "failures"),
    (Event::GiveUp, "parts given up"),
    (Event::LeaseEnd, "lease ends"),
    (Event::KeyEnd, "live leases ended"),
    (Event::Roll, "rolls"),
    (Event::EarlyName, "early names"),
    (Event::Trim, "trims"),
    (Event::Release, "releases"),
    (Event::StraySeal, "stray seals"),
    (Event::CloseAlone, "tails closed alone"),
    (Event::Sweep, "sweeps"),
    (Event::Backup, "backups"),
    (Event::Split, "splits"),
    (Event::Loss, "losses of the metadata store"),
];

/// How often each event may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds([u8; EVENT_COUNT]);

impl Bounds {
    /// These events so often, all others never.
    pub(crate) fn of(events: &[(Event, u8)]) -> Self {
        let mut bounds = Bounds::default();
        for (event, count) in events {
            bounds.0[*event as usize] = *count;
        }
        bounds
    }

    /// How often `event` may still happen.
    pub(crate) fn left(&self, event: Event) -> u8 {
        self.0[event as usize]
    }

    /// The bounds after `event`; none if it may not happen any more.
    pub(crate) fn spend(&self, event: Event) -> Option<Self> {
        let mut bounds = *self;
        let left = bounds.0.get_mut(event as usize)?;
        *left = left.checked_sub(1)?;
        Some(bounds)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (event, word) in EVENTS {
            if self.left(event) > 0 {
                write!(f, "{separator}{} {word}", self.left(event))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// A rule of the contract that a planted fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Breach {
    /// A created part is acknowledged although the lease has ended.
    AcknowledgeWithoutLease,
    /// Reads are answered although the lease has ended.
    ReadWithoutLease,
    /// A part is acknowledged before those in front of it.
    AcknowledgeOutOfOrder,
    /// A part whose outcome is unknown is reported as failed for certain.
    UnknownIsFailure,
    /// A log is read again without sealing its tail.
    ReloadWithoutSeal,
    /// The first part of an extent is sent before the one in front of it is sealed.
    RollBeforeSeal,
    /// A taker records lengths without sealing.
    SkipSeal,
    /// A taker records an empty tail without sealing it.
    SkipEmptySeal,
    /// A taker's seal has another name than the part that would come next.
    SealElsewhere,
    /// A taker counts every part that it lists, also behind a hole.
    CountBehindHole,
    /// A take does not raise the epoch, and transactions compare the epoch alone.
    EqualEpochs,
    /// A trim is written over whatever document there is.
    NoRevisionCompare,
    /// A range is taken when the owner's key is gone, without waiting for its beats.
    TrustKeyAlone,
    /// A range whose tail another sealed is left alone by its owner.
    NoTakeAgain,
    /// Reads go on until the release is answered.
    ReadUntilReleased,
    /// After an unknown outcome of a release the own entry is read, and believed.
    BelieveReadAfterRelease,
    /// A process that starts deletes what it does not own.
    DeleteAtStart,
    /// A sweep deletes the tombstones with the parts.
    DeleteTombstones,
    /// A sweep reads the documents before it lists.
    DocumentsFirst,
    /// A sweep deletes at once what no document names.
    DeleteAtOnce,
    /// A sweep does not wait for a backup.
    DeleteWithoutBackup,
    /// A restore keeps generation, revisions, owners and epochs.
    RestoreSameGeneration,
    /// A restore does not look for newer extents.
    NoRollForward,
    /// A restore does not wait for the leases.
    RestoreWhileLive,
    /// Parts rely on documents that no backup has.
    PartsBeforeBackup,
    /// The owner of a split takes an heir before it knows the outcome.
    TakeHeirsEarly,
    /// Backups have no count of restores: the highest revision of any life is the newest.
    BackupsWithoutCount,
    /// A restore calls an ordinal without an object damage, whatever is behind it.
    GapIsDamage,
    /// Only writes are checked, not reads.
    WritesOnly,
}

/// The rules that are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaches(u32);

impl Breaches {
    /// None but these.
    pub(crate) fn of(breaches: &[Breach]) -> Self {
        Breaches(breaches.iter().fold(0, |bits, breach| bits | 1 << *breach as u32))
    }

    /// Whether a rule is broken.
    pub(crate) fn has(self, breach: Breach) -> bool {
        self.0 & (1 << breach as u32) != 0
    }
}

/// How finely transactions are cut into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// A transaction is sent, arrives, and is answered: three steps, and anything may happen in between.
    Fine,
    /// A take, or a change of a range's streams, is sent, arrives and is answered with nothing in between but
    /// that the sender's deadline passes before it arrives; then it may arrive at any later time. Releases
    /// and splits are as in `Fine`. For large bounds.
    Coarse,
}

/// What a search explores.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Its name, for `--config`.
    pub(crate) name: &'static str,
    /// Processes; each may have several incarnations.
    pub(crate) processes: usize,
    /// Parts of one extent that may be under way at a time.
    pub(crate) window: usize,
    /// How finely transactions are cut into steps.
    pub(crate) grain: Grain,
    /// How often each event may happen.
    pub(crate) bounds: Bounds,
    /// Which rules are broken.
    pub(crate) breaches: Breaches,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_down() {
        let bounds = Bounds::of(&[(Event::Write, 1), (Event::Loss, 2)]);
        assert_eq!(bounds.to_string(), "1 writes, 2 losses of the metadata store");
        let spent = bounds.spend(Event::Write).unwrap();
        assert_eq!(spent.spend(Event::Write), None);
        assert_eq!((spent.left(Event::Write), spent.left(Event::Loss)), (0, 2));
        assert!(EVENTS.iter().enumerate().all(|(index, (event, _))| *event as usize == index));
    }

    #[test]
    fn breaches_are_told_apart() {
        let breaches = Breaches::of(&[Breach::SkipSeal, Breach::WritesOnly]);
        assert!(breaches.has(Breach::SkipSeal) && breaches.has(Breach::WritesOnly));
        assert!(!breaches.has(Breach::SealElsewhere) && !Breaches::default().has(Breach::SkipSeal));
    }
}
