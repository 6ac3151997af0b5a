//! Taking a range, step by step: a pure machine.
//!
//! 1. The transaction of `choose_take.rs` is committed: own entry and document have the new owner.
//! 2. **Every** extent of that document without a recorded length is sealed, empty ones too. Their order is
//!    the stream's, and the tails go side by side.
//! 3. One transaction records the lengths.
//! 4. The streams are loaded up to those lengths, replayed, and served.
//!
//! What always holds: the extents are those of the document as step 1 wrote it, so that a seal that arrives
//! late meets only extents that every later owner seals too; nothing is loaded before step 3 is committed.

use crate::document::change::Change;
use crate::extent::part_header::ExtentPlace;
use crate::extent::seal_walk::{SealWalk, WalkStep, WalkStop};
use crate::ids::StreamId;
use crate::metadata::held_range::HeldRange;

/// The sealing of a range that was taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taking {
    held: HeldRange,
    walks: Vec<(StreamId, SealWalk)>,
}

/// What the taker does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakingStep {
    /// Go on with the walks that have not ended.
    Seal,
    /// Record the lengths: begin these changes of the range. None if nothing was open: load.
    Record(Vec<Change>),
    /// A walk can't go on: see `choose_after_stop.rs`.
    Stopped(WalkStop),
}

impl Taking {
    /// Begins the sealing of a range that is held since its take was committed.
    pub fn new(held: HeldRange) -> Self {
        let document = held.document().clone();
        let walk = |(stream, entry): (StreamId, &crate::document::range_document::ExtentEntry)| {
            let (extent, ordinal) = (entry.name, entry.ordinal);
            let place = ExtentPlace { extent, range: document.range, stream, ordinal };
            (stream, SealWalk::new(held.life(), place, held.owner()))
        };
        let walks = document.unsealed().map(walk).collect();
        Taking { held, walks }
    }

    /// The walks, in stream order.
    pub fn walks(&self) -> impl Iterator<Item = &SealWalk> {
        self.walks.iter().map(|(_, walk)| walk)
    }

    /// One of the walks, to report what was found and answered.
    pub fn walk_mut(&mut self, index: usize) -> Option<&mut SealWalk> {
        self.walks.get_mut(index).map(|(_, walk)| walk)
    }

    /// The range.
    pub fn held(&self) -> &HeldRange {
        &self.held
    }

    /// The range, for the transaction of step 3.
    pub fn held_mut(&mut self) -> &mut HeldRange {
        &mut self.held
    }

    /// The range, once the lengths are recorded.
    pub fn into_held(self) -> HeldRange {
        self.held
    }

    /// What is to be done.
    pub fn step(&self) -> TakingStep {
        let mut changes = Vec::new();
        let mut is_open = false;
        for (stream, walk) in &self.walks {
            match walk.step() {
                WalkStep::Sealed { length } => {
                    let extent = walk.place().extent;
                    changes.push(Change::RecordLength { stream: *stream, extent, length });
                }
                WalkStep::Stopped(stop) => return TakingStep::Stopped(stop),
                WalkStep::Read { .. } | WalkStep::Create(_) => is_open = true,
            }
        }
        if is_open { TakingStep::Seal } else { TakingStep::Record(changes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::change::apply_changes;
    use crate::document::range_document::{KeyLimits, OwnEntry, RangeDocument};
    use crate::extent::choose_after_append::Found;
    use crate::extent::fixtures::life;
    use crate::extent::put_answer::PutAnswer;
    use crate::ids::{ExtentName, Incarnation, Mark, Owner, RangeId};
    use crate::metadata::transaction::Revision;
    use std::sync::Arc;
    use stream::OwnerEpoch;

    const BY: Incarnation = Incarnation(2);

    fn taking() -> Taking {
        let owner = Owner { incarnation: BY, epoch: OwnerEpoch(3) };
        let own = OwnEntry::of(owner);
        let empty = RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0));
        let mut changes = Vec::new();
        for (counter, purpose) in [(1, "log"), (2, "data")] {
            let stream = StreamId::new(BY, counter);
            changes.push(Change::CreateStream { stream, purpose: purpose.to_owned() });
            for extent in [counter * 10, counter * 10 + 1] {
                changes.push(Change::AddExtent { stream, extent: ExtentName::new(BY, extent) });
            }
        }
        let (stream, extent) = (StreamId::new(BY, 1), ExtentName::new(BY, 10));
        changes.push(Change::RecordLength { stream, extent, length: 6 });
        let document = apply_changes(&empty, &changes).unwrap().document;
        Taking::new(HeldRange::new(life(), owner, Arc::new(document), Revision(4)))
    }

    #[test]
    fn every_extent_without_a_length_is_sealed_and_then_recorded() {
        let mut taking = taking();
        let open: Vec<u64> = taking.walks().map(|walk| walk.place().extent.0.counter).collect();
        assert_eq!(open, [11, 20, 21]);
        for index in [2, 0, 1] {
            assert_eq!(taking.step(), TakingStep::Seal);
            let walk = taking.walk_mut(index).unwrap();
            walk.found(&Found::NotThere);
            walk.answered(PutAnswer::Created);
        }
        let TakingStep::Record(changes) = taking.step() else { panic!("{:?}", taking.step()) };
        let mark = Mark::new(BY, 9);
        let sent = taking.held_mut().begin(&changes, mark).unwrap();
        assert_eq!(sent.document.unsealed().count(), 0);
    }

    #[test]
    fn a_walk_that_stops_stops_the_taking() {
        let mut taking = taking();
        let walk = taking.walk_mut(1).unwrap();
        walk.found(&Found::NotThere);
        walk.answered(PutAnswer::Failed { status: 403 });
        assert_eq!(taking.step(), TakingStep::Stopped(WalkStop::Failed(403)));
    }
}
