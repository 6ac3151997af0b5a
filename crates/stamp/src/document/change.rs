//! A change of a range's document, as data, and what it drops: pure.
//!
//! What always holds: an extent without a recorded length can't leave the document or be shared; a recorded
//! length never changes; a trim point only rises; a refused change changes nothing. An extent that no stream
//! of the document lists any more is dropped. What no header of a part says (streams and their names, what is
//! shared, a tail that was closed without a seal) needs a backup.

use crate::document::range_document::{ExtentEntry, KeyLimits, RangeDocument, StreamEntry, TrimPoint};
use crate::ids::{ExtentName, StreamId};
use std::collections::BTreeSet;

/// One change. Several in one list are made all or not at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// A new stream without extents.
    CreateStream {
        /// Its id, new.
        stream: StreamId,
        /// What it is for; no other stream of the range has it.
        purpose: String,
    },
    /// The stream is for something else from now on.
    RenameStream {
        /// Which stream.
        stream: StreamId,
        /// What it is for; no other stream of the range has it.
        purpose: String,
    },
    /// The stream and its list go.
    DeleteStream {
        /// Which stream.
        stream: StreamId,
    },
    /// A new extent becomes the stream's last. Its first part is sent after this is committed.
    AddExtent {
        /// Which stream.
        stream: StreamId,
        /// Its name, new.
        extent: ExtentName,
    },
    /// The extent is sealed and has this length.
    RecordLength {
        /// Which stream.
        stream: StreamId,
        /// Which extent of it.
        extent: ExtentName,
        /// Bytes that it has for ever.
        length: u64,
    },
    /// The stream's last extent ends here, whatever the store has: it does not answer for the next name. Only
    /// the owner that wrote the extent may say so, and its end is that of what it acknowledged.
    CloseAlone {
        /// Which stream.
        stream: StreamId,
        /// Its last extent.
        extent: ExtentName,
        /// Bytes that it has for ever.
        length: u64,
    },
    /// A backup object has all that the document says.
    BackedUp,
    /// What lies before this place is not needed; extents that are wholly before it leave the list.
    Trim {
        /// Which stream.
        stream: StreamId,
        /// The first place that is needed.
        to: TrimPoint,
    },
    /// These extents leave the list, wherever they stand in it.
    Unlist {
        /// Which stream.
        stream: StreamId,
        /// Which extents of it.
        extents: Vec<ExtentName>,
    },
    /// Sealed extents of one stream are also listed, in this order, at the end of another of the same range.
    Share {
        /// The stream that lists them now.
        from: StreamId,
        /// The stream that lists them too.
        to: StreamId,
        /// Which.
        extents: Vec<ExtentName>,
    },
}

impl Change {
    /// Whether it adds to the document, which has a bound.
    pub fn grows(&self) -> bool {
        matches!(self, Change::CreateStream { .. } | Change::AddExtent { .. } | Change::Share { .. })
    }
}

/// Why a change was refused: the caller's picture of the document is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No such stream.
    #[error("there is no stream {0}")]
    NoStream(StreamId),
    /// The stream, or one for the same purpose, is there.
    #[error("stream {0} or one for its purpose is there")]
    StreamExists(StreamId),
    /// The stream does not list the extent.
    #[error("stream {stream} does not list extent {extent}")]
    NoExtent {
        /// Which stream.
        stream: StreamId,
        /// Which extent.
        extent: ExtentName,
    },
    /// The extent is listed already.
    #[error("extent {0} is listed already")]
    ExtentExists(ExtentName),
    /// The extent must be sealed, and its length recorded, first.
    #[error("extent {0} has no recorded length")]
    NotSealed(ExtentName),
    /// Another length is recorded.
    #[error("extent {extent} has {recorded} bytes, not {given}")]
    OtherLength {
        /// Which extent.
        extent: ExtentName,
        /// Its bytes for ever.
        recorded: u64,
        /// Bytes of the change.
        given: u64,
    },
    /// The trim point is higher already, or behind the stream's end.
    #[error("stream {0} can't be trimmed to there")]
    TrimPoint(StreamId),
}

/// A document after changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The document, with the mark that it had.
    pub document: RangeDocument,
    /// Extents that it listed before and does not list now.
    pub dropped: BTreeSet<ExtentName>,
}

/// Makes all of `changes`, or none.
pub fn apply_changes(document: &RangeDocument, changes: &[Change]) -> Result<Changed, ChangeError> {
    let mut changed = document.clone();
    for change in changes {
        apply(&mut changed, change)?;
    }
    let dropped = document.extents().difference(&changed.extents()).copied().collect();
    Ok(Changed { document: changed, dropped })
}

fn apply(document: &mut RangeDocument, change: &Change) -> Result<(), ChangeError> {
    match change {
        Change::CreateStream { stream, purpose } => {
            if document.streams.contains_key(stream) {
                return Err(ChangeError::StreamExists(*stream));
            }
            check_purpose(document, *stream, purpose)?;
            let entry = StreamEntry { purpose: purpose.clone(), ..StreamEntry::default() };
            document.streams.insert(*stream, entry);
            document.needs_backup = true;
        }
        Change::RenameStream { stream, purpose } => {
            check_purpose(document, *stream, purpose)?;
            stream_of(document, *stream)?.purpose.clone_from(purpose);
            document.needs_backup = true;
        }
        Change::DeleteStream { stream } => {
            let entry = stream_of(document, *stream)?;
            entry.extents.iter().try_for_each(check_sealed)?;
            document.streams.remove(stream);
        }
        Change::AddExtent { stream, extent } => {
            if document.names(*extent) {
                return Err(ChangeError::ExtentExists(*extent));
            }
            push_extent(stream_of(document, *stream)?, *extent, None, None);
        }
        Change::RecordLength { stream, extent, length } => {
            let entry = stream_of(document, *stream)?;
            let entry = extent_of(entry, *stream, *extent)?;
            match entry.length {
                Some(recorded) if recorded != *length => {
                    return Err(ChangeError::OtherLength { extent: *extent, recorded, given: *length });
                }
                _ => entry.length = Some(*length),
            }
        }
        Change::CloseAlone { stream, extent, length } => {
            apply(document, &Change::RecordLength { stream: *stream, extent: *extent, length: *length })?;
            document.needs_backup = true;
        }
        Change::BackedUp => document.needs_backup = false,
        Change::Trim { stream, to } => trim(stream_of(document, *stream)?, *stream, *to)?,
        Change::Unlist { stream, extents } => {
            let entry = stream_of(document, *stream)?;
            for extent in extents {
                check_sealed(extent_of(entry, *stream, *extent)?)?;
            }
            entry.extents.retain(|listed| !extents.contains(&listed.name));
        }
        Change::Share { from, to, extents } => {
            share(document, *from, *to, extents)?;
            document.needs_backup = true;
        }
    }
    Ok(())
}

fn check_purpose(document: &RangeDocument, stream: StreamId, purpose: &str) -> Result<(), ChangeError> {
    match document.streams.iter().any(|(id, entry)| *id != stream && entry.purpose == purpose) {
        true => Err(ChangeError::StreamExists(stream)),
        false => Ok(()),
    }
}

fn stream_of(document: &mut RangeDocument, stream: StreamId) -> Result<&mut StreamEntry, ChangeError> {
    document.streams.get_mut(&stream).ok_or(ChangeError::NoStream(stream))
}

fn extent_of(
    entry: &mut StreamEntry,
    stream: StreamId,
    extent: ExtentName,
) -> Result<&mut ExtentEntry, ChangeError> {
    let found = entry.extents.iter_mut().find(|listed| listed.name == extent);
    found.ok_or(ChangeError::NoExtent { stream, extent })
}

fn check_sealed(entry: &ExtentEntry) -> Result<(), ChangeError> {
    entry.length.map(drop).ok_or(ChangeError::NotSealed(entry.name))
}

/// Lists an extent at the end, under the stream's next ordinal.
pub(crate) fn push_extent(
    entry: &mut StreamEntry,
    name: ExtentName,
    length: Option<u64>,
    limits: Option<KeyLimits>,
) {
    entry.extents.push(ExtentEntry { name, ordinal: entry.next_ordinal, length, limits });
    entry.next_ordinal += 1;
}

fn trim(entry: &mut StreamEntry, stream: StreamId, to: TrimPoint) -> Result<(), ChangeError> {
    let end = TrimPoint { ordinal: entry.next_ordinal, offset: 0 };
    if to < entry.trim || to > end {
        return Err(ChangeError::TrimPoint(stream));
    }
    let before = entry.extents.iter().filter(|listed| listed.ordinal < to.ordinal);
    before.clone().try_for_each(check_sealed)?;
    entry.extents.retain(|listed| listed.ordinal >= to.ordinal);
    entry.trim = to;
    Ok(())
}

fn share(
    document: &mut RangeDocument,
    from: StreamId,
    to: StreamId,
    extents: &[ExtentName],
) -> Result<(), ChangeError> {
    let source = stream_of(document, from)?;
    let mut shared = Vec::new();
    for extent in extents {
        let entry = extent_of(source, from, *extent)?;
        check_sealed(entry)?;
        shared.push(entry.clone());
    }
    let target = stream_of(document, to)?;
    for entry in shared {
        if target.extent(entry.name).is_some() {
            return Err(ChangeError::ExtentExists(entry.name));
        }
        push_extent(target, entry.name, entry.length, entry.limits);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::OwnEntry;
    use crate::ids::{Incarnation, Mark, RangeId};
    use stream::OwnerEpoch;

    const BY: Incarnation = Incarnation(1);

    fn stream(counter: u64) -> StreamId {
        StreamId::new(BY, counter)
    }

    fn extent(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    fn add(counter: u64) -> Change {
        Change::AddExtent { stream: stream(1), extent: extent(counter) }
    }

    fn record(counter: u64, length: u64) -> Change {
        Change::RecordLength { stream: stream(1), extent: extent(counter), length }
    }

    fn trim(ordinal: u64) -> Change {
        Change::Trim { stream: stream(1), to: TrimPoint { ordinal, offset: 0 } }
    }

    fn create(counter: u64, purpose: &str) -> Change {
        Change::CreateStream { stream: stream(counter), purpose: purpose.to_owned() }
    }

    /// A log of the extents 10 (sealed), 11 (sealed), 12, and an empty stream.
    fn document() -> RangeDocument {
        let own = OwnEntry { owner: Some(BY), epoch: OwnerEpoch(1) };
        let empty = RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0));
        let changes =
            [create(1, "log"), create(2, "data"), add(10), record(10, 5), add(11), record(11, 0), add(12)];
        apply_changes(&empty, &changes).unwrap().document
    }

    fn listed(changed: &Changed, counter: u64) -> Vec<u64> {
        let entry = &changed.document.streams[&stream(counter)];
        entry.extents.iter().map(|entry| entry.name.0.counter).collect()
    }

    fn dropped(changed: &Changed) -> Vec<u64> {
        changed.dropped.iter().map(|name| name.0.counter).collect()
    }

    #[test]
    fn extents_are_listed_recorded_and_dropped() {
        let share = Change::Share { from: stream(1), to: stream(2), extents: vec![extent(11), extent(10)] };
        let unlist = |extents: &[u64]| Change::Unlist {
            stream: stream(1),
            extents: extents.iter().map(|counter| extent(*counter)).collect(),
        };
        let delete = |counter| Change::DeleteStream { stream: stream(counter) };
        type Case<'a> = (Vec<Change>, &'a [u64], &'a [u64], &'a [u64]);
        let cases: [Case<'_>; 7] = [
            (vec![add(13)], &[10, 11, 12, 13], &[], &[]),
            (vec![trim(1)], &[11, 12], &[], &[10]),
            (vec![trim(2)], &[12], &[], &[10, 11]),
            (vec![unlist(&[11])], &[10, 12], &[], &[11]),
            (vec![share.clone()], &[10, 11, 12], &[11, 10], &[]),
            (vec![share.clone(), trim(2)], &[12], &[11, 10], &[]),
            (vec![share, trim(2), delete(2), create(2, "x")], &[12], &[], &[10, 11]),
        ];
        for (changes, log, data, gone) in cases {
            let changed = apply_changes(&document(), &changes).unwrap();
            assert_eq!(listed(&changed, 1), log, "{changes:?}");
            assert_eq!(listed(&changed, 2), data, "{changes:?}");
            assert_eq!(dropped(&changed), gone, "{changes:?}");
        }
    }

    #[test]
    fn what_headers_do_not_say_needs_a_backup() {
        let backed_up = apply_changes(&document(), &[Change::BackedUp]).unwrap().document;
        assert!(document().needs_backup && !backed_up.needs_backup);
        let close = Change::CloseAlone { stream: stream(1), extent: extent(12), length: 3 };
        let closed = apply_changes(&backed_up, &[close]).unwrap().document;
        assert!(closed.needs_backup);
        assert_eq!(closed.streams[&stream(1)].extents[2].length, Some(3));
        let others = [add(13), record(12, 1), trim(2)];
        assert!(!apply_changes(&backed_up, &others).unwrap().document.needs_backup);
        let rename = Change::RenameStream { stream: stream(2), purpose: "new".to_owned() };
        let share = Change::Share { from: stream(1), to: stream(2), extents: vec![extent(10)] };
        for change in [create(3, "new"), rename, share] {
            assert!(apply_changes(&backed_up, &[change]).unwrap().document.needs_backup);
        }
    }

    #[test]
    fn ordinals_are_never_used_again() {
        let changes = [record(12, 0), trim(3), add(13)];
        let changed = apply_changes(&document(), &changes).unwrap();
        let entry = &changed.document.streams[&stream(1)];
        assert_eq!((entry.extents[0].ordinal, entry.next_ordinal), (3, 4));
    }

    #[test]
    fn refused_changes() {
        let missing = stream(9);
        let cases = [
            (trim(3), ChangeError::NotSealed(extent(12))),
            (Change::DeleteStream { stream: stream(1) }, ChangeError::NotSealed(extent(12))),
            (
                Change::Unlist { stream: stream(1), extents: vec![extent(12)] },
                ChangeError::NotSealed(extent(12)),
            ),
            (
                Change::Share { from: stream(1), to: stream(2), extents: vec![extent(12)] },
                ChangeError::NotSealed(extent(12)),
            ),
            (trim(4), ChangeError::TrimPoint(stream(1))),
            (add(10), ChangeError::ExtentExists(extent(10))),
            (record(10, 6), ChangeError::OtherLength { extent: extent(10), recorded: 5, given: 6 }),
            (record(99, 6), ChangeError::NoExtent { stream: stream(1), extent: extent(99) }),
            (create(1, "new"), ChangeError::StreamExists(stream(1))),
            (create(3, "log"), ChangeError::StreamExists(stream(3))),
            (
                Change::RenameStream { stream: stream(2), purpose: "log".to_owned() },
                ChangeError::StreamExists(stream(2)),
            ),
            (Change::AddExtent { stream: missing, extent: extent(99) }, ChangeError::NoStream(missing)),
        ];
        for (change, error) in cases {
            assert_eq!(apply_changes(&document(), std::slice::from_ref(&change)), Err(error), "{change:?}");
        }
        let trimmed = apply_changes(&document(), &[trim(2)]).unwrap().document;
        assert_eq!(apply_changes(&trimmed, &[trim(1)]), Err(ChangeError::TrimPoint(stream(1))));
        let same = apply_changes(&document(), &[record(10, 5)]).unwrap();
        assert_eq!(same.document, document(), "the same length may be recorded again");
    }
}
