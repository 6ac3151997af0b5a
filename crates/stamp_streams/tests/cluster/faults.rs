//! Faults on purpose, which histories must find: a rule that is broken, with the defences that cover it off.

use stamp_streams::Breach;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    SkipTheSeal,
    SealUnderAnotherName,
    EqualEpochs,
    IgnoreTheLease,
    DeleteAtStart,
    CountPartsBehindAHole,
    DeleteTheSeal,
    RollBeforeTheSeal,
    ReloadWithoutSeal,
    ReleaseThenRead,
    DocumentsBeforeListing,
    RestoreSameGeneration,
    AcknowledgeOutOfOrder,
    UnknownIsFailure,
    TrimByAnOldDocument,
    BeatWithoutLoops,
    EmptyTailUnsealed,
    StraySealLeftAlone,
    ReleaseBelievedNotDone,
    KeyAlone,
    NoRollForward,
    RestoreWhileLive,
    BundleUnacknowledged,
}

impl Fault {
    /// Those of the contract's table first.
    pub(crate) const ALL: [Fault; 18] = [
        Fault::SkipTheSeal,
        Fault::SealUnderAnotherName,
        Fault::EqualEpochs,
        Fault::IgnoreTheLease,
        Fault::DeleteAtStart,
        Fault::CountPartsBehindAHole,
        Fault::DeleteTheSeal,
        Fault::RollBeforeTheSeal,
        Fault::ReloadWithoutSeal,
        Fault::ReleaseThenRead,
        Fault::DocumentsBeforeListing,
        Fault::RestoreSameGeneration,
        Fault::AcknowledgeOutOfOrder,
        Fault::UnknownIsFailure,
        Fault::TrimByAnOldDocument,
        Fault::StraySealLeftAlone,
        Fault::BeatWithoutLoops,
        Fault::BundleUnacknowledged,
    ];

    /// Faults of which it is not known how many seeds find them.
    pub(crate) const MORE: [Fault; 5] = [
        Fault::EmptyTailUnsealed,
        Fault::ReleaseBelievedNotDone,
        Fault::KeyAlone,
        Fault::NoRollForward,
        Fault::RestoreWhileLive,
    ];

    /// Whether it needs hundreds of seeds: then short runs leave it out.
    pub(crate) fn is_rare(self) -> bool {
        [
            Fault::DeleteTheSeal,
            Fault::ReloadWithoutSeal,
            Fault::ReleaseThenRead,
            Fault::RestoreSameGeneration,
            Fault::TrimByAnOldDocument,
            Fault::BundleUnacknowledged,
        ]
        .contains(&self)
    }

    /// The rule that is broken, and the defences that cover it.
    fn parts(self) -> (&'static [Breach], &'static [Breach]) {
        match self {
            // Leases end early, and writes count only.
            Fault::SkipTheSeal => (&[Breach::SkipSeal], &[Breach::TrustKeyAlone]),
            Fault::SealUnderAnotherName => (&[Breach::SealElsewhere], &[Breach::TrustKeyAlone]),
            // Revisions of documents are not compared: both are one breach.
            Fault::EqualEpochs => (&[Breach::EqualEpochs], &[]),
            Fault::IgnoreTheLease => (&[Breach::ReadWithoutLease], &[]),
            Fault::DeleteAtStart => (&[], &[]),
            Fault::CountPartsBehindAHole => (&[Breach::CountBehindHole], &[]),
            Fault::DeleteTheSeal => (&[Breach::DeleteTombstones], &[Breach::AcknowledgeWithoutLease]),
            Fault::RollBeforeTheSeal => (&[Breach::RollBeforeSeal], &[]),
            Fault::ReloadWithoutSeal => (&[Breach::ReloadWithoutSeal], &[]),
            Fault::ReleaseThenRead => (&[Breach::ReadUntilReleased], &[]),
            Fault::DocumentsBeforeListing => (&[Breach::DocumentsFirst], &[Breach::DeleteAtOnce]),
            Fault::RestoreSameGeneration => (&[Breach::RestoreSameGeneration], &[]),
            Fault::AcknowledgeOutOfOrder => (&[Breach::AcknowledgeOutOfOrder], &[]),
            Fault::UnknownIsFailure => (&[Breach::UnknownIsFailure], &[]),
            Fault::TrimByAnOldDocument => (&[Breach::NoRevisionCompare], &[]),
            Fault::BeatWithoutLoops => (&[Breach::BeatWithoutLoops], &[]),
            Fault::EmptyTailUnsealed => (&[Breach::SkipEmptySeal], &[Breach::AcknowledgeWithoutLease]),
            Fault::StraySealLeftAlone => (&[Breach::NoTakeAgain], &[]),
            Fault::ReleaseBelievedNotDone => (&[Breach::BelieveReadAfterRelease], &[]),
            Fault::KeyAlone => (&[Breach::TrustKeyAlone], &[]),
            Fault::NoRollForward => (&[Breach::NoRollForward], &[]),
            Fault::RestoreWhileLive => (&[Breach::RestoreWhileLive], &[]),
            Fault::BundleUnacknowledged => (&[Breach::BundleUnacknowledged], &[]),
        }
    }

    /// Whether the defences are off in the fault's own run, without the rule being broken.
    pub(crate) fn has_control(self) -> bool {
        !self.parts().1.is_empty()
    }
}

/// What is planted: of a control the defences alone, with which nothing may be found.
pub(crate) fn breaches(fault: Fault, is_control: bool) -> Vec<Breach> {
    let (rule, defences) = fault.parts();
    if is_control { defences.to_vec() } else { [rule, defences].concat() }
}
