//! What an owner does when one of its logs has stopped, and when a chain is broken: pure choices.
//!
//! An append that ended otherwise than in order leaves parts of unknown outcome behind. The owner seals the
//! extent at the end that it finds **before** it reads anything again: otherwise a part that lands later
//! would meet another at its offset, or stand in a history that was read without it. If another has sealed
//! the extent, the own entry decides: a range that is still ours is taken again, as from another, because a
//! seal may be a stray one of a take that was given up, and nobody else would ever serve the range.
//!
//! What always holds: no log is read again before its extent is sealed; damage is reported only by an owner
//! that has just been confirmed.

use crate::document::range_document::OwnEntry;
use crate::extent::choose_after_append::AppendStop;
use crate::ids::Owner;

/// What an owner does with a range whose log has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStop {
    /// Seal the extent at the end that is found, record the length, read again, go on in a new extent.
    SealAndReload,
    /// Serve nothing, and read the own entry.
    ReadOwnEntry,
    /// The lease has ended: drop every range, take a new incarnation, join again.
    DropAll,
}

/// Chooses by why the log has stopped and whether the lease still holds.
pub fn choose_after_stop(stop: &AppendStop, lease_holds: bool) -> AfterStop {
    match stop {
        _ if !lease_holds => AfterStop::DropAll,
        AppendStop::LeaseEnded => AfterStop::DropAll,
        AppendStop::SealedOut | AppendStop::Deleted => AfterStop::ReadOwnEntry,
        AppendStop::Closed | AppendStop::Failed(_) | AppendStop::GivenUp => AfterStop::SealAndReload,
    }
}

/// What an owner does that was sealed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSealedOut {
    /// The range is still ours: take it again, with the next epoch.
    TakeAgain,
    /// It is another's: forget it.
    Forget,
}

/// Chooses by the own entry, read linearizably after the seal was found; none if the range is gone.
pub fn choose_after_sealed_out(own: Option<OwnEntry>, owner: Owner) -> AfterSealedOut {
    match own {
        Some(own) if own.owner == Some(owner.incarnation) => AfterSealedOut::TakeAgain,
        _ => AfterSealedOut::Forget,
    }
}

/// What a sealer or loader does that found a chain broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterBroken {
    /// It is the owner: the stored data is damaged. The range is not served.
    Damage,
    /// It is not: what it read was being changed by the owner. Forget the range.
    Forget,
}

/// Chooses by the own entry, read linearizably after the chain was found broken; none if the range is gone.
pub fn choose_after_broken(own: Option<OwnEntry>, owner: Owner) -> AfterBroken {
    if own == Some(OwnEntry::of(owner)) { AfterBroken::Damage } else { AfterBroken::Forget }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;
    use stream::OwnerEpoch;

    const W: Owner = Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(2) };

    #[test]
    fn why_a_log_stopped_says_what_is_next() {
        for (stop, expected) in [
            (AppendStop::GivenUp, AfterStop::SealAndReload),
            (AppendStop::Failed(507), AfterStop::SealAndReload),
            (AppendStop::Closed, AfterStop::SealAndReload),
            (AppendStop::SealedOut, AfterStop::ReadOwnEntry),
            (AppendStop::Deleted, AfterStop::ReadOwnEntry),
            (AppendStop::LeaseEnded, AfterStop::DropAll),
        ] {
            assert_eq!(choose_after_stop(&stop, true), expected, "{stop}");
            assert_eq!(choose_after_stop(&stop, false), AfterStop::DropAll, "{stop}, without a lease");
        }
    }

    #[test]
    fn the_own_entry_decides_after_a_seal_or_a_broken_chain_was_found() {
        let epoch = OwnerEpoch(2);
        let other = OwnEntry { owner: Some(Incarnation(9)), epoch: OwnerEpoch(3) };
        let newer = OwnEntry { owner: Some(W.incarnation), epoch: OwnerEpoch(3) };
        for (own, sealed_out, broken) in [
            (Some(OwnEntry::of(W)), AfterSealedOut::TakeAgain, AfterBroken::Damage),
            (Some(newer), AfterSealedOut::TakeAgain, AfterBroken::Forget),
            (Some(other), AfterSealedOut::Forget, AfterBroken::Forget),
            (Some(OwnEntry::released(epoch)), AfterSealedOut::Forget, AfterBroken::Forget),
            (None, AfterSealedOut::Forget, AfterBroken::Forget),
        ] {
            assert_eq!(choose_after_sealed_out(own, W), sealed_out, "{own:?}");
            assert_eq!(choose_after_broken(own, W), broken, "{own:?}");
        }
    }
}
