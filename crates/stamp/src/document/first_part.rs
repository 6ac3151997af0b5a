//! When the first part of an extent may be sent: a pure choice.
//!
//! If parts of two extents of one stream were under way at a time, the later could land and the earlier not,
//! and a successor would read a history with a hole. So an extent takes its first part when the one before it
//! in its stream is known to be sealed: its length is recorded in the committed document, or this owner's
//! walk ended with its seal. Naming the extent in the document earlier is fine. An extent is opened once:
//! what was sent to it before may still arrive.
//!
//! A restore rebuilds from a backup and from headers of parts. What only the document says (a range that is
//! new or was split, a tail that was closed without a seal) must be in a backup before a part relies on it:
//! otherwise the restored document would not fit the part, and what it acknowledged would be lost.

use crate::document::range_document::RangeDocument;
use crate::ids::{ExtentName, StreamId};

/// Whether the first part of an extent may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPart {
    /// It may.
    May,
    /// Not before this extent is sealed.
    AfterSealOf(ExtentName),
    /// Not before a backup has the document, and that is recorded.
    AfterBackup,
    /// The committed document does not list the extent as the stream's last, its length is recorded, or this
    /// owner has opened it before.
    Never,
}

/// How far an owner is with the log that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogProgress {
    /// The extent that it opened last.
    pub opened: Option<ExtentName>,
    /// The extent that it sealed last, by a walk of its own.
    pub sealed: Option<ExtentName>,
}

/// Chooses for `extent` of `stream` in the committed document.
pub fn choose_first_part(
    document: &RangeDocument,
    stream: StreamId,
    extent: ExtentName,
    progress: LogProgress,
) -> FirstPart {
    let extents = document.streams.get(&stream).and_then(|entry| entry.extents.split_last());
    let Some((last, before)) = extents else { return FirstPart::Never };
    if last.name != extent || last.length.is_some() || progress.opened == Some(extent) {
        return FirstPart::Never;
    }
    // All before, not only the one before: a list with two open extents is sealed in order.
    let open = before.iter().find(|entry| entry.length.is_none() && Some(entry.name) != progress.sealed);
    match open {
        Some(entry) => FirstPart::AfterSealOf(entry.name),
        None if document.needs_backup => FirstPart::AfterBackup,
        None => FirstPart::May,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::{ExtentEntry, KeyLimits, OwnEntry, StreamEntry};
    use crate::ids::{Incarnation, Mark, RangeId};
    use stream::OwnerEpoch;

    const BY: Incarnation = Incarnation(1);

    fn name(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    fn document(lengths: &[Option<u64>]) -> RangeDocument {
        let entry = |(ordinal, length): (u64, &Option<u64>)| ExtentEntry {
            name: name(ordinal),
            ordinal,
            length: *length,
            limits: None,
        };
        let stream =
            StreamEntry { extents: (0..).zip(lengths).map(entry).collect(), ..StreamEntry::default() };
        let own = OwnEntry::released(OwnerEpoch(1));
        let document = RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0));
        let streams = [(StreamId::new(BY, 1), stream)].into();
        RangeDocument { streams, needs_backup: false, ..document }
    }

    #[test]
    fn the_first_part_waits_for_the_seal_before_it() {
        use FirstPart::{AfterSealOf, May, Never};
        type Case<'a> = (&'a [Option<u64>], u64, Option<u64>, FirstPart);
        let cases: [Case<'_>; 9] = [
            (&[None], 0, None, May),
            (&[Some(5), None], 1, None, May),
            (&[None, None], 1, None, AfterSealOf(name(0))),
            (&[None, None], 1, Some(0), May),
            (&[None, None, None], 2, Some(1), AfterSealOf(name(0))),
            (&[None, None], 0, None, Never),
            (&[Some(5)], 0, None, Never),
            (&[Some(5)], 7, None, Never),
            (&[], 0, None, Never),
        ];
        let stream = StreamId::new(BY, 1);
        for (lengths, extent, sealed, expected) in cases {
            let progress = LogProgress { sealed: sealed.map(name), opened: None };
            let chosen = choose_first_part(&document(lengths), stream, name(extent), progress);
            assert_eq!(chosen, expected, "{lengths:?}, {extent}, {sealed:?}");
            let again = LogProgress { opened: Some(name(extent)), ..progress };
            assert_eq!(choose_first_part(&document(lengths), stream, name(extent), again), Never);
        }
        let other = StreamId::new(BY, 2);
        assert_eq!(choose_first_part(&document(&[None]), other, name(0), LogProgress::default()), Never);
    }

    #[test]
    fn the_first_part_waits_for_a_backup_of_what_headers_do_not_say() {
        let stream = StreamId::new(BY, 1);
        let unsaved = RangeDocument { needs_backup: true, ..document(&[Some(5), None]) };
        let progress = LogProgress::default();
        assert_eq!(choose_first_part(&unsaved, stream, name(1), progress), FirstPart::AfterBackup);
    }
}
