//! What a decision sees of a blob's rows, and how much of them it looks at.

use super::*;
use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots};
use crate::condition::Conditions;
use crate::content::{BlockContent, Chunk};
use crate::limits::ROWS_OF_A_BLOB_MAX;
use crate::rows::chunk_row::chunk_row;
use crate::rows::decision::memory_blob::{MemoryBlob, VISITED_COUNT};
use crate::rows::decision::row_request::RowRequest;
use crate::rows::former_row::{encode_snapshot, snapshot_row, version_row};
use crate::rows::record::{BlobType, Deletion};
use crate::rows::region_row::region_row;
use crate::rows::revision::Revision;
use crate::upkeep::remove_expired::RemoveExpired;
use proptest::prelude::*;

const DAY: u64 = 86_400 * base::clock::TICKS_PER_SECOND;

fn record(content: Content) -> BlobRecord {
    let mut record = BlobRecord::new(BlobType::Block, Ticks(1));
    record.content = content;
    record
}

fn blocks(generation: u64) -> Content {
    let chunks = vec![Chunk { blocks: 1, size: 1 }];
    Content::Blocks(BlockContent { generation, chunks, ..BlockContent::default() })
}

fn seen_all() -> VisibleRows {
    VisibleRows { points: Vec::new(), prefixes: BTreeMap::from([(String::new(), None)]) }
}

/// A name with so many snapshots of contents of so many rows each; `deleted`: they wait for their end.
fn many(pages: bool, snapshot_count: u64, rows_of_each: u64, deleted: bool) -> MemoryBlob {
    let mut blob = MemoryBlob::default();
    for at in 1..=snapshot_count {
        let mut record = record(if pages { Content::Pages(at) } else { blocks(at) });
        record.deleted = deleted.then_some(Deletion { at: Ticks(1), days: 1 });
        blob.rows.insert(snapshot_row(at), encode_snapshot(&record).unwrap().into());
        for index in 0..rows_of_each {
            let name = if pages { region_row(at, index) } else { chunk_row(at, index as usize) };
            blob.rows.insert(name, Bytes::from_static(b"row"));
        }
    }
    let count = snapshot_count as u32;
    let (snapshots, deleted_snapshots) = if deleted { (0, count) } else { (count, 0) };
    let current = (!deleted).then(|| record(Content::Inline(Bytes::new())));
    let head = Head { snapshots, deleted_snapshots, current, ..Head::default() };
    blob.rows.insert(HEAD.to_owned(), head.encode().unwrap().into());
    blob
}

/// A decision that removed many snapshots looked at all rows of the name for each of them: twenty seconds for
/// a page blob of a hundred regions with two thousand snapshots, while all writers of the range waited.
#[test]
fn a_decision_looks_at_each_row_a_bounded_number_of_times() {
    for (pages, deleted) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut blob = many(pages, 200, 10, deleted);
        let row_count = blob.rows.len();
        match deleted {
            true => assert_eq!(blob.run(RemoveExpired, 2 * DAY), Ok(200)),
            false => {
                let (conditions, tier) = (Conditions::default(), Default::default());
                let (revision, snapshots) = (Revision::Current, DeleteSnapshots::Include);
                let (retention_days, versioned) = (None, false);
                let delete = DeleteBlob { revision, snapshots, conditions, tier, retention_days, versioned };
                assert_eq!(blob.run(delete, 2), Ok(()));
            }
        }
        assert_eq!(blob.rows.len(), 0, "nothing is left");
        let looked_at = VISITED_COUNT.get();
        assert!(looked_at <= 3 * row_count, "{looked_at} of {row_count} rows; pages: {pages}");
    }
}

/// A list that was committed once read all that was stored under the name: each of its former versions, and
/// their lists.
#[test]
fn an_operation_reads_what_it_needs_however_much_is_stored_under_the_name() {
    let mut blob = many(false, 1000, 10, false);
    let stage = |id: &'static [u8]| crate::block::put_block::PutBlock {
        id: Bytes::from_static(id),
        size: 10,
        pieces: vec![partition::Piece::for_tests(1, 0, 10)],
        lease: None,
        encryption: Default::default(),
        create_only: false,
    };
    blob.run(stage(b"a"), 2000).unwrap();
    blob.run(stage(b"b"), 2001).unwrap();
    blob.rows_read = 0;
    let list = vec![(crate::block::put_block_list::BlockSource::Latest, Bytes::from_static(b"b"))];
    let (new, replacement) = Default::default();
    blob.run(crate::block::put_block_list::PutBlockList { list, new, replacement }, 2002).unwrap();
    assert_eq!(blob.rows_read, 3, "head and staged blocks");
    assert_eq!(blob.count(STAGED_PREFIX), 0);
    blob.rows_read = 0;
    let delete = DeleteBlob {
        revision: Revision::Snapshot(500),
        snapshots: DeleteSnapshots::Refuse,
        conditions: Conditions::default(),
        tier: Default::default(),
        retention_days: None,
        versioned: false,
    };
    blob.run(delete, 2003).unwrap();
    assert_eq!((blob.count(SNAPSHOT_PREFIX), blob.count("3c")), (999, 9990));
    assert!(blob.rows_read < 4 * 1000, "{} rows: snapshots, and the chunks of one", blob.rows_read);
}

/// What a refusal says can be done: one by one most snapshots go, however many there are. Whether the chunks
/// of a long list are still named only all snapshots tell: of too many of them it is refused even so, and
/// they go with their container.
#[test]
fn one_of_too_many_snapshots_can_be_deleted_unless_its_list_is_long() {
    for (pages, expected) in [(true, Ok(())), (false, Err(BlobError::TooManyRows))] {
        let mut blob = many(pages, ROWS_OF_A_BLOB_MAX as u64 + 10, 0, false);
        let delete = |revision, snapshots| {
            let (conditions, tier) = Default::default();
            DeleteBlob { revision, snapshots, conditions, tier, retention_days: None, versioned: false }
        };
        let all = blob.run(delete(Revision::Current, DeleteSnapshots::Include), 2);
        assert_eq!(all, Err(BlobError::TooManyRows));
        let one = blob.run(delete(Revision::Snapshot(500), DeleteSnapshots::Refuse), 3);
        assert_eq!(one, expected, "pages: {pages}");
    }
}

#[test]
fn what_was_not_asked_for_is_not_taken_for_absent() {
    let row = |name: &str| (name.to_owned(), Bytes::from_static(b"row"));
    let found = BTreeMap::from([row("1sb"), row("5ua"), row("5ub")]);
    let prefixes = BTreeMap::from([("1s".to_owned(), None), ("5u".to_owned(), Some("5ub".to_owned()))]);
    let mut rows =
        BlobRows::open(None, found, VisibleRows { points: vec!["0gx".to_owned()], prefixes }).unwrap();
    let absent = Ok(None);
    assert_eq!(rows.row("0gx"), absent);
    assert_eq!(rows.row("1sa"), absent);
    assert_eq!(rows.row("5uaa"), absent, "before the last one that was visible");
    assert_eq!(rows.row("5uc"), Err(BlobError::TooManyRows.into()), "behind it");
    assert_eq!(rows.row("0gy"), Err(Stop::Need("0gy".to_owned())));
    assert_eq!(rows.names("3c1"), Err(Stop::Need("3c1".to_owned())));
    assert_eq!(rows.names("5u"), Err(BlobError::TooManyRows.into()));
    assert_eq!(rows.names("5ua"), Ok(vec!["5ua".to_owned()]));
    rows.delete("0gy");
    assert_eq!(rows.row("0gy"), absent, "whatever was there");
}

#[test]
fn few_prefixes_of_a_kind_are_asked_for_one_by_one() {
    let mut request =
        RowRequest { content: true, points: Vec::new(), prefixes: BTreeSet::new(), rows_max: 1 };
    for (prefix, expected) in [
        ("5u", &["5u"][..]),
        ("3ca", &["3ca", "5u"]),
        ("3cb", &["3ca", "3cb", "5u"]),
        ("3cc", &["3c", "5u"]),
        ("3cd", &["3c", "5u"]),
        ("0gx", &["0gx", "3c", "5u"]),
        ("0g", &["0g", "3c", "5u"]),
    ] {
        request.add(prefix.to_owned());
        assert_eq!(request.prefixes.iter().collect::<Vec<_>>(), expected, "{prefix}");
    }
}

proptest! {
    /// Names are those that a look at every row finds.
    #[test]
    fn names_are_those_of_all_rows_as_they_are_now(
        found in proptest::collection::btree_set("[0-2][a-c]{0,3}", 0..20),
        changed in proptest::collection::btree_map("[0-2][a-c]{0,3}", any::<bool>(), 0..20),
        prefix in "[0-2]?[a-c]{0,2}",
    ) {
        let found: BTreeMap<String, Bytes> = found.into_iter().map(|name| (name, Bytes::new())).collect();
        let mut rows = BlobRows::open(None, found, seen_all()).unwrap();
        for (name, is_there) in changed {
            if is_there { rows.put(name, vec![1]) } else { rows.delete(&name) }
        }
        let all = rows.found.keys().chain(rows.changed.keys());
        let mut expected: Vec<String> =
            all.filter(|name| name.starts_with(&prefix) && rows.row_if_visible(name).is_some())
                .cloned()
                .collect();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(rows.names(&prefix).unwrap(), expected);
    }

    /// Chunks go with the last record that names them, whatever was changed before in the same decision.
    #[test]
    fn chunks_stay_as_long_as_a_record_names_them(
        head in proptest::option::of(0..4_u64),
        former in proptest::collection::vec((any::<bool>(), 0..4_u64), 0..8),
        steps in proptest::collection::vec((0..8_usize, proptest::option::of(0..4_u64)), 0..12),
    ) {
        let mut found = BTreeMap::new();
        let row_of = |index: usize, version: bool| match version {
            true => version_row(index as u64),
            false => snapshot_row(index as u64),
        };
        for (index, (version, generation)) in former.iter().enumerate() {
            let value = encode_snapshot(&record(blocks(*generation))).unwrap();
            found.insert(row_of(index, *version), Bytes::from(value));
        }
        for generation in 0..4 {
            found.insert(chunk_row(generation, 0), Bytes::new());
        }
        let current = head.map(|generation| record(blocks(generation)));
        let head_row = Head { current, ..Head::default() }.encode().unwrap().into();
        let mut rows = BlobRows::open(Some(head_row), found, seen_all()).unwrap();
        let mut named: Vec<Option<u64>> = former.iter().map(|(_, generation)| Some(*generation)).collect();
        let mut is_there = [true; 4];
        for (index, instead) in steps {
            let Some((version, _)) = former.get(index) else { continue };
            let name = row_of(index, *version);
            match instead {
                Some(generation) => rows.put(name, encode_snapshot(&record(blocks(generation))).unwrap()),
                None => rows.delete(&name),
            }
            if let Some(before) = std::mem::replace(&mut named[index], instead) {
                rows.release(&blocks(before)).unwrap();
                is_there[before as usize] &= head == Some(before) || named.contains(&Some(before));
            }
            let is_left = |generation| rows.row_if_visible(&chunk_row(generation, 0)).is_some();
            let left = [0, 1, 2, 3].map(is_left);
            prop_assert_eq!(left, is_there);
        }
    }
}
