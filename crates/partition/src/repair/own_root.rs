//! The root of a checkpoint whose metadata is lost, among what reads of its stream.
//!
//! Why it is not just any root: the stream may list extents of others before its own, those of the parts
//! before of a compaction in parts for one, and these have roots that know less. What always holds: a root is
//! taken only if nothing follows it; a lost one is not replaced by an earlier one.

use crate::checkpoint::Root;
use stream::{Location, Salvaged};

/// What a walk over the stream has found.
#[derive(Default)]
pub(super) struct OwnRoot {
    at: Option<Location>,
    /// Something does not read.
    is_damaged: bool,
}

/// What became of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundRoot {
    At(Location),
    /// It does not read.
    Lost,
    /// It was never written.
    Unwritten,
}

impl OwnRoot {
    /// The next part of the stream.
    pub(super) fn visit(&mut self, salvaged: &Salvaged) {
        match salvaged {
            Salvaged::Block(location, payload) => {
                self.at = Root::decode(payload).is_ok().then_some(*location);
            }
            Salvaged::Missing { extent, is_end, .. } => {
                self.is_damaged = true;
                // Where the end is in doubt behind a root there may be nothing.
                self.at = self.at.filter(|root| *is_end && root.extent == *extent);
            }
        }
    }

    pub(super) fn found(&self) -> FoundRoot {
        match self.at {
            Some(root) => FoundRoot::At(root),
            None if self.is_damaged => FoundRoot::Lost,
            None => FoundRoot::Unwritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use stream::ExtentId;

    fn at(extent: u64, offset: u64) -> Location {
        Location { extent: ExtentId(extent), offset, len: 1 }
    }

    /// A root as it is stored: kind, format, numbers and an empty key.
    fn root(extent: u64, offset: u64) -> Salvaged {
        let mut payload = vec![4, 1, 0, 0, 0, 0];
        payload.extend([0; 16]);
        payload.extend([0, 0]);
        assert!(Root::decode(&payload).is_ok());
        Salvaged::Block(at(extent, offset), payload.into())
    }

    fn row_block(extent: u64, offset: u64) -> Salvaged {
        Salvaged::Block(at(extent, offset), Bytes::from_static(&[1, 2, 3]))
    }

    fn missing(extent: u64, from: u64, is_end: bool) -> Salvaged {
        let (extent, problem) = (ExtentId(extent), String::new());
        Salvaged::Missing { extent, from, to: u64::MAX, is_end, problem }
    }

    /// With a checkpoint that was compacted in parts, the root of a part before its last one was taken: the
    /// rows of the last part were neither there nor listed as lost.
    #[test]
    fn an_earlier_root_is_not_taken_for_one_that_is_lost() {
        for (name, salvaged, expected) in [
            ("nothing", vec![], FoundRoot::Unwritten),
            ("one root", vec![row_block(1, 0), root(1, 5)], FoundRoot::At(at(1, 5))),
            ("cut off", vec![row_block(1, 0)], FoundRoot::Unwritten),
            ("lost", vec![row_block(1, 0), missing(1, 5, false)], FoundRoot::Lost),
            (
                "a doubtful end",
                vec![row_block(1, 0), root(1, 5), missing(1, 6, true)],
                FoundRoot::At(at(1, 5)),
            ),
            ("two parts", vec![root(1, 5), row_block(2, 0), root(2, 5)], FoundRoot::At(at(2, 5))),
            ("two parts, cut off", vec![root(1, 5), row_block(2, 0)], FoundRoot::Unwritten),
            ("two parts, lost", vec![root(1, 5), row_block(2, 0), missing(2, 5, false)], FoundRoot::Lost),
            ("the second part lost", vec![root(1, 5), missing(2, 0, true)], FoundRoot::Lost),
            (
                "the first part damaged",
                vec![missing(1, 0, false), root(1, 5), root(2, 5)],
                FoundRoot::At(at(2, 5)),
            ),
        ] {
            let mut walk = OwnRoot::default();
            salvaged.iter().for_each(|salvaged| walk.visit(salvaged));
            assert_eq!(walk.found(), expected, "{name}");
        }
    }
}
