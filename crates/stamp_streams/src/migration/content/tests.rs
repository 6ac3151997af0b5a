//! Tests of what a document says of a migration.

use super::*;

const BY: Incarnation = Incarnation(7);
const LANES: [u64; 2] = [1, 2];

fn empty() -> RangeDocument {
    let own = OwnEntry { owner: Some(BY), epoch: OwnerEpoch(1) };
    RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0))
}

fn manifest(lists: &[(&str, &[u64])]) -> StreamManifest {
    let mut manifest = StreamManifest::default();
    for (name, extents) in lists {
        let name = StreamName::new(name);
        manifest.streams.entry(name.clone()).or_default();
        for id in *extents {
            manifest.list(&name, ExtentId(*id), ManifestExtent { length: id * 10, digest: None });
        }
    }
    manifest
}

/// A document whose lanes list these extents with these lengths, in turn.
fn with_copies(copies: &[(u64, u64)]) -> RangeDocument {
    let lane = |lane| StreamId::new(BY, lane);
    let create = |number: u64| Change::CreateStream {
        stream: lane(number),
        purpose: lane_purpose(5, number as usize),
    };
    let mut changes: Vec<Change> = LANES.map(create).into();
    for (at, (id, length)) in copies.iter().enumerate() {
        let (stream, extent) = (lane(LANES[at % 2]), ExtentName::of_short(BY, ExtentId(*id)));
        changes.push(Change::AddExtent { stream, extent });
        changes.push(Change::RecordLength { stream, extent, length: *length });
    }
    apply_changes(&empty(), &changes).unwrap().document
}

fn end(document: &RangeDocument, manifest: &StreamManifest) -> Option<RangeDocument> {
    let mut counter = 100;
    let changes = last_changes(document, manifest, || {
        counter += 1;
        StreamId::new(BY, counter)
    })?;
    let changed = apply_changes(document, &changes).unwrap();
    assert_eq!(changed.dropped.len(), 0, "nothing that was copied goes");
    Some(changed.document)
}

#[test]
fn streams_list_the_same_extents_in_the_same_order() {
    let lists: [(&str, &[u64]); 4] = [("a", &[3, 1, 2]), ("b", &[]), ("c", &[2, 4, 1]), ("d", &[4])];
    let manifest = manifest(&lists);
    let copies: Vec<(u64, u64)> = [1, 2, 3, 4].map(|id| (id, id * 10)).into();
    let document = end(&with_copies(&copies), &manifest).expect("all are there");
    assert!(manifest_of(&document).unwrap().has_same_lists(&manifest));
    assert_eq!(content_of(&document), Content::Streams(4));
    assert!(!is_unfinished(&document) && document.needs_backup);
    assert_eq!(end(&with_copies(&copies[1..]), &manifest), None, "one is missing");
}

#[test]
fn what_was_cut_off_is_not_taken_for_whole() {
    let manifest = manifest(&[("a", &[1, 2, 3])]);
    let found = copied(&with_copies(&[(1, 10), (2, 19), (3, 0), (9, 90)]), &manifest);
    assert_eq!(found.whole.keys().copied().collect::<Vec<_>>(), [ExtentId(1)]);
    let cut_off: Vec<_> = found.cut_off.iter().map(|(_, name)| name.short().0).collect();
    assert_eq!(cut_off, [3, 2, 9], "by stream");
}

#[test]
fn documents_say_what_they_hold() {
    assert_eq!(content_of(&empty()), Content::Empty);
    assert_eq!(content_of(&with_copies(&[])), Content::Unfinished(5));
    let with = |purposes: &[&str]| {
        let create = |(at, purpose): (usize, &&str)| Change::CreateStream {
            stream: StreamId::new(BY, at as u64),
            purpose: (*purpose).to_owned(),
        };
        let changes: Vec<Change> = purposes.iter().enumerate().map(create).collect();
        content_of(&apply_changes(&empty(), &changes).unwrap().document)
    };
    let (one, other) = (lane_purpose(1, 0), lane_purpose(2, 1));
    assert_eq!(with(&[&one]), Content::Unfinished(1));
    assert_eq!(with(&[&one, &other]), Content::Streams(2));
    assert_eq!(with(&[&one, "entity/1/log"]), Content::Streams(2));
    assert_eq!(with(&["migrating/x"]), Content::Streams(1));
}

#[test]
fn a_manifest_that_is_too_large_is_refused_with_the_numbers() {
    let stamp = StampId(1);
    let ids: Vec<u64> = (1..=7000).collect();
    let small = manifest(&[("a", &ids[..4000])]);
    assert_eq!(check_size(&small, stamp), Ok(()));
    let large = manifest(&[("a", &ids[..5000]), ("b", &ids[4000..])]);
    let why = check_size(&large, stamp).unwrap_err();
    assert!(why.contains("2 streams list 8000 extents") && why.contains("of 212992"), "{why}");
    // What is counted is what the last change makes.
    let copies: Vec<(u64, u64)> = ids[..50].iter().map(|id| (*id, id * 10)).collect();
    let few = manifest(&[("a", &ids[..50]), ("b", &ids[..9])]);
    let size = encode_document(&end(&with_copies(&copies), &few).unwrap(), stamp).len();
    assert_eq!(size_with(&few, stamp), Ok(size));
}
