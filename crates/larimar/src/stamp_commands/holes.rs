//! Objects behind the end of an open extent: those that lie behind a part that is missing.
//!
//! A writer has at most a window of parts under way, and one that died may have left a hole in front of some
//! of them, which were never acknowledged. More than that can only lie there if a part has gone. What always
//! holds: a hole that a writer may have left is said, and is no damage.

use crate::stamp_commands::check_parts::Look;
use stamp::{ExtentName, PartPath, StampId};
use std::collections::BTreeMap;
use stream::{DamagedPart, StreamDamage};

/// An open extent with objects behind its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(super) extent: ExtentName,
    /// The object that is missing.
    pub(super) object: String,
    /// Objects behind it.
    pub(super) behind_count: usize,
}

/// The holes of open extents of these lengths, by a listing that is older than the lengths.
pub(crate) fn find_holes(
    objects: &[PartPath],
    open: &BTreeMap<ExtentName, u64>,
    stamp: StampId,
) -> Vec<Hole> {
    let mut behind: BTreeMap<PartPath, usize> = BTreeMap::new();
    for path in objects {
        let Some(end) = open.get(&path.extent) else { continue };
        if path.offset > *end {
            *behind.entry(PartPath { extent: path.extent, offset: *end }).or_default() += 1;
        }
    }
    let hole = |(path, behind_count): (PartPath, usize)| Hole {
        extent: path.extent,
        object: path.format(stamp),
        behind_count,
    };
    behind.into_iter().map(hole).collect()
}

/// Those that no writer can have left, as damage, and the others.
pub(crate) fn judge(holes: Vec<Hole>, parts_max: usize, look: &Look) -> (Vec<StreamDamage>, Vec<Hole>) {
    let (damaged, others): (Vec<Hole>, Vec<Hole>) =
        holes.into_iter().partition(|hole| is_damage(hole.behind_count, parts_max));
    let damage = |hole: Hole| StreamDamage {
        place: hole.object,
        problem: format!("it is missing, and {} objects lie behind it", hole.behind_count),
        part: DamagedPart::File,
        streams: look.streams_of(hole.extent),
    };
    (damaged.into_iter().map(damage).collect(), others)
}

/// Whether a writer with so many parts under way, the missing one among them, can't have left that many. One
/// more may be a seal.
fn is_damage(behind_count: usize, parts_max: usize) -> bool {
    behind_count > parts_max
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::Incarnation;

    #[test]
    fn what_lies_behind_the_end_of_an_open_extent_is_a_hole() {
        let extent = |counter| ExtentName::new(Incarnation(1), counter);
        let path = |counter, offset| PartPath { extent: extent(counter), offset };
        let objects = [path(1, 0), path(1, 9), path(1, 20), path(2, 0), path(2, 9), path(3, 50)];
        let open = BTreeMap::from([(extent(1), 5), (extent(2), 9)]);
        let stamp = StampId(1);
        let hole = Hole { extent: extent(1), object: path(1, 5).format(stamp), behind_count: 2 };
        assert_eq!(find_holes(&objects, &open, stamp), [hole]);
        for (behind_count, is) in [(1, false), (4, false), (5, true)] {
            assert_eq!(is_damage(behind_count, 4), is, "{behind_count}");
        }
    }
}
