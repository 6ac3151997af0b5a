//! The documents after a restore: those of the backup, rolled forward by what the store has: a pure choice.
//!
//! Since the backup owners may have added extents and acknowledged into them. Headers say to which stream an
//! extent belongs and where in it, so the extents at and above each stream's next ordinal are appended in
//! order. Lengths that were recorded since are not known: everything without a length is sealed again, and
//! its seal is there. Then:
//!
//! 1. all processes are stopped, or a lease time and its margin has passed since the lost store answered
//!    last;
//! 2. the documents are written under a **new generation**, without owners, with a higher epoch, collection
//!    off;
//! 3. every extent without a length is sealed, the lengths are recorded;
//! 4. a complete backup is made, and collection is turned on.
//!
//! What always holds: only extents of the backup's own generation are appended; a missing ordinal is an
//! error, never an end. Extents of streams and ranges that the backup does not have are left out. They are
//! orphans of what was gone before the backup, or of streams that are younger: what those say, the extents
//! that the backup names say too, and these were not deleted since. A younger range has no parts before a
//! backup has the range (`first_part.rs`).

use crate::backup::choose_backup::BackedUp;
use crate::document::change::push_extent;
use crate::document::range_document::{OwnEntry, RangeDocument, StreamEntry};
use crate::error::StoredError;
use crate::extent::part_header::{PartHeader, StampLife};
use crate::ids::{Generation, Incarnation, Mark, RangeId, StreamId, next_epoch};
use std::collections::BTreeMap;
use std::time::Duration;
use stream::OwnerEpoch;

/// Whether the processes of the lost store can't write any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreStart {
    /// None can.
    Go,
    /// One may: wait for so long.
    Wait(Duration),
}

/// Chooses by whether the operator says that all processes are stopped, and for how long the lost store is
/// known to have answered nothing; the lease time and its margin are those of the stamp.
pub fn choose_restore_start(
    all_stopped: bool,
    silent_for: Duration,
    ttl: Duration,
    margin: Duration,
) -> RestoreStart {
    let silence_min = ttl.saturating_add(margin);
    match silence_min.checked_sub(silent_for) {
        Some(rest) if !all_stopped && !rest.is_zero() => RestoreStart::Wait(rest),
        _ => RestoreStart::Go,
    }
}

/// What a restore writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The stamp, and the new life of its metadata store.
    pub life: StampLife,
    /// How many restores came before it, this one included.
    pub restores: u64,
    /// The documents, without owners.
    pub documents: Vec<RangeDocument>,
}

/// Chooses by the backup and the headers of all first objects of extents (parts or seals at offset 0) that
/// the store has. The restorer is an incarnation of its own, which has made no marks yet.
pub fn choose_restore(
    backup: &BackedUp,
    first_objects: &[PartHeader],
    generation: Generation,
    restorer: Incarnation,
) -> Result<Restored, StoredError> {
    let mut found: BTreeMap<(RangeId, StreamId), BTreeMap<u64, PartHeader>> = BTreeMap::new();
    let mut epochs: BTreeMap<RangeId, u64> = BTreeMap::new();
    for header in first_objects.iter().filter(|header| header.life == backup.life) {
        let place = header.place;
        let epoch = epochs.entry(place.range).or_default();
        *epoch = header.writer.epoch.0.max(*epoch);
        let stream = found.entry((place.range, place.stream)).or_default();
        if let Some(other) = stream.insert(place.ordinal, *header).filter(|other| other.place != place) {
            let (first, second) = (other.place.extent, place.extent);
            let why = format_args!("extents {first} and {second} have the same ordinal {}", place.ordinal);
            return Err(StoredError::malformed(&format_args!("stream {}", place.stream), &why));
        }
    }
    let mut documents = Vec::new();
    for (counter, document) in (0..).zip(backup.documents.values()) {
        let mut restored = (**document).clone();
        for (id, stream) in &mut restored.streams {
            if let Some(found) = found.get(&(document.range, *id)) {
                roll_forward(*id, stream, found)?;
            }
        }
        let highest = document.own.epoch.0.max(epochs.get(&document.range).copied().unwrap_or_default());
        restored.own = OwnEntry::released(next_epoch(OwnerEpoch(highest)));
        restored.mark = Mark::new(restorer, counter);
        restored.needs_backup = true;
        documents.push(restored);
    }
    let life = StampLife { generation, ..backup.life };
    Ok(Restored { life, restores: backup.restores + 1, documents })
}

fn roll_forward(
    id: StreamId,
    stream: &mut StreamEntry,
    found: &BTreeMap<u64, PartHeader>,
) -> Result<(), StoredError> {
    for (ordinal, header) in found.range(stream.next_ordinal..) {
        if *ordinal != stream.next_ordinal {
            let (extent, missing) = (header.place.extent, stream.next_ordinal);
            let why = format_args!("extent {extent} has ordinal {ordinal}, and {missing} is missing");
            return Err(StoredError::malformed(&format_args!("stream {id}"), &why));
        }
        push_extent(stream, header.place.extent, None, None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::{ExtentEntry, KeyLimits};
    use crate::extent::part_header::{ExtentPlace, PartKind};
    use crate::ids::{ExtentName, Owner, StampId};
    use std::sync::Arc;

    const BY: Incarnation = Incarnation(1);
    const OLD: StampLife = StampLife { stamp: StampId(1), generation: Generation(5) };

    fn extent(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    /// A range of epoch 4 with a log whose first extent has ordinal 3.
    fn backup() -> BackedUp {
        let (range, own) = (RangeId::new(BY, 0), OwnEntry { owner: Some(BY), epoch: OwnerEpoch(4) });
        let mut document = RangeDocument::new(range, own, KeyLimits::default(), Mark::new(BY, 0));
        let listed = ExtentEntry { name: extent(10), ordinal: 3, length: None, limits: None };
        let stream = StreamEntry { next_ordinal: 4, extents: vec![listed], ..StreamEntry::default() };
        document.streams.insert(StreamId::new(BY, 1), stream);
        BackedUp { life: OLD, restores: 2, documents: BTreeMap::from([(range, Arc::new(document))]) }
    }

    fn first_object(counter: u64, ordinal: u64, epoch: u64) -> PartHeader {
        PartHeader {
            kind: PartKind::Part,
            life: OLD,
            place: ExtentPlace {
                extent: extent(counter),
                range: RangeId::new(BY, 0),
                stream: StreamId::new(BY, 1),
                ordinal,
            },
            offset: 0,
            body_length: 1,
            writer: Owner { incarnation: BY, epoch: OwnerEpoch(epoch) },
            body_checksum: 0,
            previous: 0,
        }
    }

    fn restore(found: &[PartHeader]) -> Result<Restored, StoredError> {
        choose_restore(&backup(), found, Generation(6), Incarnation(99))
    }

    #[test]
    fn extents_that_are_newer_than_the_backup_are_appended_in_order() {
        let of_another_life = |counter, ordinal| PartHeader {
            life: StampLife { generation: Generation(4), ..OLD },
            ..first_object(counter, ordinal, 9)
        };
        let mut of_another_range = first_object(30, 4, 9);
        of_another_range.place.range = RangeId::new(BY, 77);
        let mut of_another_stream = first_object(31, 9, 4);
        of_another_stream.place.stream = StreamId::new(BY, 77);
        let cases: [(&[PartHeader], &[u64], u64); 5] = [
            (&[], &[10], 5),
            (&[first_object(10, 3, 4)], &[10], 5),
            (&[first_object(12, 5, 6), first_object(11, 4, 5)], &[10, 11, 12], 7),
            (&[of_another_life(20, 4), first_object(11, 4, 4)], &[10, 11], 5),
            (&[of_another_range, of_another_stream, first_object(9, 2, 3)], &[10], 5),
        ];
        for (found, listed, epoch) in cases {
            let restored = restore(found).unwrap();
            let document = &restored.documents[0];
            let stream = document.streams.values().next().unwrap();
            let names: Vec<u64> = stream.extents.iter().map(|entry| entry.name.0.counter).collect();
            assert_eq!(names, listed);
            assert_eq!(document.own, OwnEntry::released(OwnerEpoch(epoch)));
            assert!(document.needs_backup, "nothing is written before the new life has a backup");
            assert_eq!((restored.life.generation, restored.restores), (Generation(6), 3));
        }
    }

    #[test]
    fn a_gap_and_two_extents_of_one_ordinal_are_errors() {
        for (found, why) in [
            ([first_object(10, 3, 4), first_object(12, 5, 4)], "has ordinal 5, and 4 is missing"),
            ([first_object(11, 4, 4), first_object(12, 4, 4)], "have the same ordinal 4"),
        ] {
            let error = restore(&found).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_restore_waits_until_no_writer_can_be_left() {
        let (ttl, margin) = (Duration::from_secs(10), Duration::from_secs(1));
        for (all_stopped, silent_seconds, expected) in [
            (true, 0, RestoreStart::Go),
            (false, 0, RestoreStart::Wait(Duration::from_secs(11))),
            (false, 10, RestoreStart::Wait(Duration::from_secs(1))),
            (false, 11, RestoreStart::Go),
            (false, 100, RestoreStart::Go),
        ] {
            let silent_for = Duration::from_secs(silent_seconds);
            assert_eq!(choose_restore_start(all_stopped, silent_for, ttl, margin), expected);
        }
    }
}
