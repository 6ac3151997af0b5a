//! Brings what a damaged journal says of the extents in line with the stream manager's records of them: a
//! pure function.
//!
//! What always holds: an extent that a stream lists stays known, whatever the journal says. One without a
//! certain length is frozen, and its end is in doubt. A seal is taken from the stream manager, which
//! records it only after the journal has acknowledged it; so where the journal does not have it, a record
//! is lost, and whatever else that held.

use crate::extent_node::extent_path;
use crate::extent_node::journal::{Finding, JournalRecovery};
use crate::extent_node::state::ExtentState;
use crate::ids::ExtentId;
use crate::owner::Owner;
use crate::sealed::Seal;

/// An extent that streams list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedExtent {
    pub(crate) extent: ExtentId,
    /// What it was when it was sealed, if it was.
    pub(crate) sealed: Option<Seal>,
    /// Whose stream ends with it, if it takes appends.
    pub(crate) owner: Option<Owner>,
}

/// Settles what `recovered` says of these extents, and notes what is wrong.
pub(crate) fn settle(recovered: &mut JournalRecovery, listed: &[ListedExtent]) {
    if let Some(extent) = listed.iter().find_map(|listed| shows_loss(recovered, listed)) {
        // Its last record is not one that was never finished: it was acknowledged, and is damaged.
        let problem = format!(
            "the stream manager knows more of extent {extent} than the journal: at least its last record is lost"
        );
        recovered.findings.push(Finding { place: "journal".to_owned(), problem, is_mended: false });
        recovered.torn = None;
        recovered.has_gaps = true;
        let open = recovered.table.extents.iter().filter(|(_, state)| !state.frozen);
        recovered.in_doubt.extend(open.map(|(extent, _)| *extent));
    }
    let mut in_doubt = std::mem::take(&mut recovered.in_doubt);
    for ListedExtent { extent, sealed, owner } in listed.iter().copied() {
        let mut known = recovered.table.extents.get_mut(&extent);
        // Appends have epochs only: where the record of who made it is lost, the owner in that epoch goes on.
        let owner = owner.filter(|owner| {
            let known = known.as_ref().map(|state| state.owner);
            known == Some(Owner::of_epoch(owner.epoch))
        });
        if let (Some(state), Some(owner)) = (&mut known, owner) {
            state.owner = owner;
        }
        if known.is_none() && !recovered.has_gaps {
            let problem = "streams list it, the journal does not know it".to_owned();
            let is_mended = sealed.is_some();
            recovered.findings.push(Finding { place: extent_path(extent), problem, is_mended });
        }
        match (known, sealed) {
            (None, Some(sealed)) => {
                recovered.table.extents.insert(extent, settled(Owner::default(), sealed));
            }
            (None, None) => {
                recovered.table.extents.insert(extent, ExtentState::empty(Owner::default()));
                in_doubt.insert(extent);
            }
            (Some(state), Some(sealed)) if in_doubt.contains(&extent) || recovered.has_gaps => {
                *state = settled(state.owner, sealed);
                in_doubt.remove(&extent);
            }
            (Some(state), Some(sealed)) => {
                if let Some(problem) = sealed.contradiction(state.sealed(), state.frozen) {
                    recovered.findings.push(Finding {
                        place: extent_path(extent),
                        problem,
                        is_mended: false,
                    });
                    state.frozen = true;
                    state.in_doubt = true;
                }
            }
            (Some(_), None) => {}
        }
    }
    // What no stream lists goes.
    for extent in listed.iter().map(|listed| listed.extent).filter(|extent| in_doubt.contains(extent)) {
        if let Some(state) = recovered.table.extents.get_mut(&extent) {
            state.frozen = true;
            state.in_doubt = true;
        }
    }
}

/// The extent, if the manager's record of it shows that the journal has lost what it had acknowledged, which
/// the journal does not show itself.
fn shows_loss(recovered: &JournalRecovery, listed: &ListedExtent) -> Option<ExtentId> {
    if recovered.has_gaps || recovered.in_doubt.contains(&listed.extent) {
        return None;
    }
    let is_lost = match (recovered.table.extents.get(&listed.extent), listed.sealed) {
        (Some(state), Some(sealed)) => !state.frozen && sealed.may_follow(state.sealed()),
        // It was made, or else the manager has lost its deletion.
        (None, None) => recovered.torn.is_some(),
        (Some(_), None) | (None, Some(_)) => false,
    };
    is_lost.then_some(listed.extent)
}

fn settled(owner: Owner, sealed: Seal) -> ExtentState {
    ExtentState { owner, length: sealed.length, frozen: true, digest: sealed.digest, in_doubt: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::OwnerEpoch;
    use crate::owner::Incarnation;
    use crate::sealed::ExtentDigest;
    use std::collections::{BTreeMap, BTreeSet};

    const E: ExtentId = ExtentId(1);

    fn recovered(state: Option<ExtentState>, in_doubt: bool, has_gaps: bool) -> JournalRecovery {
        JournalRecovery {
            table: crate::extent_node::state::ExtentTable {
                extents: BTreeMap::from_iter(state.map(|state| (E, state))),
            },
            in_doubt: BTreeSet::from_iter(in_doubt.then_some(E)),
            is_clean: false,
            has_gaps,
            appends: Vec::new(),
            newest_appends_from: 0,
            generation: 1,
            sequence: 1,
            segment_size_bytes: None,
            free_files: Vec::new(),
            unconfirmed: None,
            open_segment: None,
            torn: None,
            is_end_unsure: false,
            findings: Vec::new(),
        }
    }

    #[test]
    fn what_streams_list_stays_known_and_what_nobody_knows_for_certain_is_in_doubt() {
        let state = |length, frozen| ExtentState { length, frozen, ..ExtentState::empty(Owner::default()) };
        let seal = |length| Some(Seal { length, digest: Some(ExtentDigest::EMPTY) });
        let (open, frozen) = (Some(state(9, false)), Some(state(9, true)));
        // Known, in doubt, with gaps; listed with a seal; then: length, frozen, in doubt, findings.
        for (known, in_doubt, has_gaps, sealed, expected) in [
            (open, false, false, None, (9, false, false, 0)),
            (frozen, false, false, seal(9), (9, true, false, 0)),
            (frozen, false, false, seal(8), (9, true, true, 1)),
            (frozen, false, false, seal(10), (9, true, true, 1)),
            // Only the journal has lost the freeze, and perhaps appends before it.
            (open, false, false, seal(9), (9, true, false, 1)),
            (open, false, false, seal(12), (12, true, false, 1)),
            (open, false, false, seal(8), (9, true, true, 1)),
            (open, true, true, None, (9, true, true, 0)),
            (open, true, true, seal(12), (12, true, false, 0)),
            (frozen, false, true, seal(12), (12, true, false, 0)),
            (None, false, true, None, (0, true, true, 0)),
            (None, false, true, seal(7), (7, true, false, 0)),
            (None, false, false, None, (0, true, true, 1)),
            (None, false, false, seal(7), (7, true, false, 1)),
        ] {
            let mut found = recovered(known, in_doubt, has_gaps);
            settle(&mut found, &[ListedExtent { extent: E, sealed, owner: None }]);
            let state = found.table.extents[&E];
            let settled = (state.length, state.frozen, state.in_doubt, found.findings.len());
            assert_eq!(settled, expected, "{known:?} {in_doubt} {has_gaps} {sealed:?}");
        }
        // What else was in the record that had the freeze is unknown: an extent that takes appends is in
        // doubt with it.
        let mut others = recovered(open, false, false);
        others.torn = Some("the last record is not whole".to_owned());
        let (other, sealed) = (ExtentId(2), ExtentId(3));
        let frozen = frozen.unwrap();
        others.table.extents.extend([(other, state(5, false)), (sealed, frozen)]);
        let listed = [(E, seal(9)), (other, None), (sealed, seal(9))];
        let listed = listed.map(|(extent, sealed)| ListedExtent { extent, sealed, owner: None });
        settle(&mut others, &listed);
        let doubted = [E, other, sealed].map(|extent| others.table.extents[&extent].in_doubt);
        assert_eq!((doubted, others.torn), ([false, true, false], None));
        let owner =
            |incarnation, epoch| Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(epoch) };
        for (known, listed, expected) in [
            (owner(0, 2), Some(owner(7, 2)), owner(7, 2)),
            // It has changed hands, and the new owner has not appended.
            (owner(0, 1), Some(owner(7, 2)), owner(0, 1)),
            (owner(8, 2), Some(owner(7, 2)), owner(8, 2)),
            (owner(0, 2), None, owner(0, 2)),
        ] {
            let state = ExtentState { owner: known, ..state(5, false) };
            let mut found = recovered(Some(state), false, true);
            settle(&mut found, &[ListedExtent { extent: E, sealed: None, owner: listed }]);
            assert_eq!(found.table.extents[&E], ExtentState { owner: expected, ..state }, "{known}");
        }
        let mut unlisted = recovered(open, true, true);
        settle(&mut unlisted, &[]);
        assert!(!unlisted.table.extents[&E].in_doubt, "no stream lists it: it goes");
    }
}
