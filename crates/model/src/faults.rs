//! Planted faults: each breaks one rule of the contract, with the defences that cover it switched off, and
//! must be found.
//!
//! What always holds: the same setting without the breach of the rule itself has no violation, unless the
//! rule is the last defence.

use crate::setting::{Bounds, Breach, Breaches, Event, Grain, Setting};
use Event::{
    Backup, CloseAlone, EarlyName, GiveUp, KeyEnd, LeaseEnd, Loss, Release, Roll, Split, StraySeal, Sweep,
    Trim, Unknown, Write,
};

/// A fault and the setting in which it is looked for.
pub(crate) struct Fault {
    /// For `--config` and reports.
    pub(crate) name: &'static str,
    /// Which rule is broken.
    pub(crate) what: &'static str,
    /// Which other rules are switched off, and why.
    pub(crate) without: &'static str,
    breaches: &'static [Breach],
    processes: usize,
    window: usize,
    events: &'static [(Event, u8)],
}

impl Fault {
    /// The setting to search.
    pub(crate) fn setting(&self) -> Setting {
        Setting {
            name: self.name,
            processes: self.processes,
            window: self.window,
            grain: Grain::Fine,
            bounds: Bounds::of(self.events),
            breaches: Breaches::of(self.breaches),
        }
    }
}

/// Leases that end early, writes only.
const EARLY: &str = "leases end early, writes only";
/// Nothing.
const NOTHING: &str = "";

/// All faults: those of the contract's table first.
pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "skip-the-seal",
        what: "a taker records lengths without sealing",
        without: EARLY,
        breaches: &[Breach::SkipSeal, Breach::TrustKeyAlone, Breach::WritesOnly],
        processes: 2,
        window: 1,
        events: &[(Write, 2), (KeyEnd, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "seal-under-another-name",
        what: "the seal does not compete with the next part for its name",
        without: EARLY,
        breaches: &[Breach::SealElsewhere, Breach::TrustKeyAlone, Breach::WritesOnly],
        processes: 2,
        window: 1,
        events: &[(Write, 2), (KeyEnd, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "equal-epochs",
        what: "a take does not raise the epoch, a former owner's change passes",
        without: "revisions of documents are not compared",
        breaches: &[Breach::EqualEpochs],
        processes: 2,
        window: 1,
        events: &[(Write, 2), (Roll, 1), (Trim, 1), (LeaseEnd, 1), (Unknown, 1)],
    },
    Fault {
        name: "ignore-the-lease",
        what: "reads are answered after the deadline",
        without: NOTHING,
        breaches: &[Breach::ReadWithoutLease],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "delete-at-start",
        what: "a process that starts deletes what it does not own",
        without: NOTHING,
        breaches: &[Breach::DeleteAtStart],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "count-parts-behind-a-hole",
        what: "a taker counts every part that it lists",
        without: NOTHING,
        breaches: &[Breach::CountBehindHole],
        processes: 2,
        window: 2,
        events: &[(Write, 2), (LeaseEnd, 1)],
    },
    Fault {
        name: "delete-the-seal",
        what: "a sweep deletes the seal with the parts",
        without: "the lease is not asked after an answer",
        breaches: &[Breach::DeleteTombstones, Breach::AcknowledgeWithoutLease],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (LeaseEnd, 1), (Trim, 1), (Backup, 1), (Sweep, 1)],
    },
    Fault {
        name: "roll-before-the-seal",
        what: "the next extent takes parts while parts of the one before it are under way",
        without: NOTHING,
        breaches: &[Breach::RollBeforeSeal],
        processes: 2,
        window: 1,
        events: &[(Write, 2), (Roll, 1), (EarlyName, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "reload-without-seal",
        what: "a log is read again without sealing its tail",
        without: NOTHING,
        breaches: &[Breach::ReloadWithoutSeal],
        processes: 2,
        window: 2,
        events: &[(Write, 3), (GiveUp, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "release-then-read",
        what: "reads go on until the release is answered",
        without: NOTHING,
        breaches: &[Breach::ReadUntilReleased],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (Release, 1)],
    },
    Fault {
        name: "documents-before-listing",
        what: "a sweep reads the documents before it lists",
        without: "what no document names is deleted at once, without a key and a backup",
        breaches: &[Breach::DocumentsFirst, Breach::DeleteAtOnce],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Roll, 1), (Sweep, 1)],
    },
    Fault {
        name: "restore-same-generation",
        what: "a restore keeps generation, revisions, owners and epochs",
        without: NOTHING,
        breaches: &[Breach::RestoreSameGeneration],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (LeaseEnd, 1), (Backup, 1), (Loss, 1)],
    },
    Fault {
        name: "acknowledge-out-of-order",
        what: "a part is acknowledged before those in front of it",
        without: NOTHING,
        breaches: &[Breach::AcknowledgeOutOfOrder, Breach::WritesOnly],
        processes: 2,
        window: 2,
        events: &[(Write, 2), (LeaseEnd, 1)],
    },
    Fault {
        name: "unknown-is-failure",
        what: "a part of unknown outcome is reported as failed",
        without: NOTHING,
        breaches: &[Breach::UnknownIsFailure],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Unknown, 1)],
    },
    Fault {
        name: "trim-by-an-old-document",
        what: "a trim is written over whatever document there is",
        without: "its revision is not compared",
        breaches: &[Breach::NoRevisionCompare],
        processes: 1,
        window: 1,
        events: &[(Write, 2), (Roll, 2), (Trim, 1), (Unknown, 1)],
    },
    Fault {
        name: "empty-tail-unsealed",
        what: "a taker records an empty tail without sealing it",
        without: "the lease is not asked after an answer",
        breaches: &[Breach::SkipEmptySeal, Breach::AcknowledgeWithoutLease],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (LeaseEnd, 1)],
    },
    Fault {
        name: "stray-seal-left-alone",
        what: "an owner whose tail another sealed does not take the range again",
        without: NOTHING,
        breaches: &[Breach::NoTakeAgain],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (StraySeal, 1)],
    },
    Fault {
        name: "release-believed-not-done",
        what: "after an unknown outcome of a release the own entry is read, and believed",
        without: NOTHING,
        breaches: &[Breach::BelieveReadAfterRelease],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (Release, 1), (Unknown, 1)],
    },
    Fault {
        name: "key-alone",
        what: "a range is taken when the owner's key is gone, whatever its beats",
        without: NOTHING,
        breaches: &[Breach::TrustKeyAlone],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (KeyEnd, 1)],
    },
    Fault {
        name: "no-roll-forward",
        what: "a restore does not look for newer extents",
        without: NOTHING,
        breaches: &[Breach::NoRollForward],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Loss, 1)],
    },
    Fault {
        name: "delete-without-backup",
        what: "a sweep deletes what the newest backup names",
        without: NOTHING,
        breaches: &[Breach::DeleteWithoutBackup],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Roll, 1), (Trim, 1), (Backup, 1), (Sweep, 1), (Loss, 1)],
    },
    Fault {
        name: "restore-while-live",
        what: "a restore does not wait for the leases",
        without: NOTHING,
        breaches: &[Breach::RestoreWhileLive],
        processes: 2,
        window: 1,
        events: &[(Write, 1), (Loss, 1)],
    },
    Fault {
        name: "split-before-backup",
        what: "heirs of a split take parts before a backup has them",
        without: NOTHING,
        breaches: &[Breach::PartsBeforeBackup],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Roll, 1), (Split, 1), (Loss, 1)],
    },
    Fault {
        name: "closed-alone-before-backup",
        what: "a tail is closed in the document alone, and parts follow before a backup has that",
        without: NOTHING,
        breaches: &[Breach::PartsBeforeBackup],
        processes: 1,
        window: 1,
        events: &[(Write, 2), (CloseAlone, 1), (Loss, 1)],
    },
    Fault {
        name: "heirs-taken-early",
        what: "the owner of a split takes an heir before it knows the outcome",
        without: NOTHING,
        breaches: &[Breach::TakeHeirsEarly],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Roll, 1), (Split, 1)],
    },
    Fault {
        name: "backups-without-count",
        what: "the backup of the highest revision is the newest, whichever restore came before it",
        without: NOTHING,
        breaches: &[Breach::BackupsWithoutCount],
        processes: 1,
        window: 1,
        events: &[(Write, 1), (Backup, 1), (Loss, 2)],
    },
    Fault {
        name: "gap-is-damage",
        what: "a restore fails where an open extent without any object is followed by a sealed empty one",
        without: NOTHING,
        breaches: &[Breach::GapIsDamage],
        processes: 2,
        window: 1,
        events: &[(EarlyName, 1), (LeaseEnd, 1), (Loss, 1)],
    },
];
