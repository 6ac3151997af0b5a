//! Places in the commit log from which a replay can start, so that the log can be trimmed behind a
//! checkpoint, and how many groups a replay would find.

use crate::operation::RowVersion;
use std::collections::VecDeque;
use stream::{ExtentId, Location};

/// A place is remembered for each extent, and each time this many bytes have followed the last one.
const POSITION_DISTANCE_BYTES: u64 = 4 << 20;

/// Remembered places, oldest first.
#[derive(Debug, Default)]
pub(crate) struct LogPositions {
    /// A group's place, and the newest version before it.
    marks: VecDeque<(Location, RowVersion)>,
    /// Since the memory table that takes changes began.
    table_groups: u64,
    /// In the extent of the newest group.
    extent: Option<(ExtentId, u64)>,
}

impl LogPositions {
    /// A group was appended at `location`; `before` is the newest version of the groups before it.
    pub(crate) fn note(&mut self, location: Location, before: RowVersion) {
        let far = self.marks.back().is_none_or(|(last, _)| {
            last.extent != location.extent || location.offset >= last.offset + POSITION_DISTANCE_BYTES
        });
        if far {
            self.marks.push_back((location, before));
        }
        self.table_groups += 1;
        let before_it = self.extent.filter(|(extent, _)| *extent == location.extent);
        self.extent = Some((location.extent, before_it.map_or(0, |(_, groups)| groups) + 1));
    }

    /// A memory table was frozen: groups from now on are those of the next one.
    pub(crate) fn begin_table(&mut self) {
        self.table_groups = 0;
    }

    /// Groups that a replay would read for the memory table that takes changes.
    pub(crate) fn table_groups(&self) -> u64 {
        self.table_groups
    }

    /// Groups in the extent of the newest one.
    pub(crate) fn extent_groups(&self) -> u64 {
        self.extent.map_or(0, |(_, groups)| groups)
    }

    /// The latest place from which a replay finds every change after `flushed`; older places are forgotten.
    pub(crate) fn start_after(&mut self, flushed: RowVersion) -> Option<Location> {
        while self.marks.len() > 1 && self.marks[1].1 <= flushed {
            self.marks.pop_front();
        }
        self.marks.front().filter(|(_, before)| *before <= flushed).map(|(location, _)| *location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::ExtentId;

    #[test]
    fn a_start_never_skips_an_unflushed_change() {
        let place = |extent, offset| Location { extent: ExtentId(extent), offset, len: 1 };
        let mut marks = LogPositions::default();
        marks.note(place(1, 0), RowVersion(0));
        marks.note(place(1, 100), RowVersion(5));
        marks.note(place(1, POSITION_DISTANCE_BYTES), RowVersion(10));
        marks.note(place(2, 0), RowVersion(20));
        assert_eq!(marks.start_after(RowVersion(9)), Some(place(1, 0)));
        assert_eq!(marks.start_after(RowVersion(10)), Some(place(1, POSITION_DISTANCE_BYTES)));
        assert_eq!(marks.start_after(RowVersion(25)), Some(place(2, 0)));
        assert_eq!(LogPositions::default().start_after(RowVersion(9)), None);
    }

    #[test]
    fn groups_are_counted_by_table_and_by_extent() {
        let mut marks = LogPositions::default();
        let note = |extent, groups: std::ops::Range<u64>, marks: &mut LogPositions| {
            for group in groups {
                let place = Location { extent: ExtentId(extent), offset: 10 * group, len: 1 };
                marks.note(place, RowVersion(group));
            }
        };
        note(1, 0..300, &mut marks);
        assert_eq!((marks.table_groups(), marks.extent_groups()), (300, 300));
        marks.begin_table();
        note(1, 300..310, &mut marks);
        assert_eq!((marks.table_groups(), marks.extent_groups()), (10, 310));
        note(2, 310..311, &mut marks);
        assert_eq!((marks.table_groups(), marks.extent_groups()), (11, 1));
    }
}
