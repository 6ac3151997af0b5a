//! Journals that are whole, torn, and damaged in every way, and what is reported of them.

use super::super::layout::KIND_GROUP;
use super::super::synced_mark::SyncPosition;
use super::*;
use crate::block::put_block;
use crate::extent_node::state::{Entry, ExtentState};
use crate::ids::OwnerEpoch;
use crate::owner::Owner;
use crate::record::END_MARK_SIZE;
use crate::record::tests::record_of_format_1;
use crate::sealed::ExtentDigest;

const E: ExtentId = ExtentId(3);
const F: ExtentId = ExtentId(4);
const EPOCH: OwnerEpoch = OwnerEpoch(1);
const FILE_SIZE: usize = 64 << 10;

fn block(extent: ExtentId, offset: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_block(&mut out, extent, offset, b"block");
    out
}

/// A journal file: a header, and a group for each list of entries.
fn file(
    generation: u64,
    oldest: u64,
    sequence: u64,
    table: &ExtentTable,
    groups: &[&[Entry<'_>]],
) -> Vec<u8> {
    let mut header = RecordBuilder::new();
    put_header(&mut header, oldest, table);
    let mut out = header.finish(generation, sequence).bytes.to_vec();
    for (index, group) in groups.iter().enumerate() {
        let mut body = RecordBuilder::new();
        body.body().put_u8_field(KIND_GROUP);
        group.iter().for_each(|entry| entry.encode(body.body()));
        out.truncate(out.len() - END_MARK_SIZE);
        out.extend_from_slice(&body.finish(generation, sequence + 1 + index as u64).bytes);
    }
    out.resize(FILE_SIZE, 0);
    out
}

/// The journal's files, as bytes.
#[derive(Clone)]
struct Files {
    segments: [Option<Vec<u8>>; 3],
    copies: [Option<Vec<u8>>; 2],
    synced: Option<Vec<u8>>,
}

impl Files {
    fn recover(&self) -> Result<JournalRecovery, StreamError> {
        let bytes = |content: &Option<Vec<u8>>| content.clone().map(Bytes::from);
        recover(&JournalContents {
            segments: self.segments.each_ref().map(bytes),
            copies: self.copies.each_ref().map(bytes),
            synced: bytes(&self.synced),
            has_copies: true,
        })
    }
}

fn copy(
    generation: u64,
    sequence: u64,
    oldest_generation: u64,
    table: &ExtentTable,
    is_clean: bool,
) -> Vec<u8> {
    let (table, segment_size_bytes) = (table.clone(), FILE_SIZE as u64);
    let copy = TableCopy { generation, sequence, is_clean, oldest_generation, segment_size_bytes, table };
    copy.encode().bytes.to_vec()
}

/// Segment 8 makes two extents; segment 9 has a group for each block of the first, three of them.
fn journal() -> (Files, ExtentTable) {
    let (first, other) = (block(E, 0), block(F, 0));
    let made = [
        Entry::Create { extent: E, owner: Owner::of_epoch(EPOCH) },
        Entry::Create { extent: F, owner: Owner::of_epoch(EPOCH) },
        Entry::Append { extent: E, epoch: EPOCH, offset: 0, blocks: &first },
        Entry::Append { extent: F, epoch: EPOCH, offset: 0, blocks: &other },
    ];
    let mut table = ExtentTable::default();
    made.iter().for_each(|entry| table.apply(entry).unwrap());
    let older = file(8, 8, 1, &ExtentTable::default(), &[&made]);
    let blocks: Vec<Vec<u8>> = (1..4).map(|at| block(E, 37 * at)).collect();
    let appends: Vec<Entry<'_>> = blocks
        .iter()
        .enumerate()
        .map(|(index, blocks)| Entry::Append {
            extent: E,
            epoch: EPOCH,
            offset: 37 * (index as u64 + 1),
            blocks,
        })
        .collect();
    let groups: Vec<&[Entry<'_>]> = appends.iter().map(std::slice::from_ref).collect();
    let newest = file(9, 8, 3, &table, &groups);
    let copy = copy(9, 3, 8, &table, false);
    let files = Files {
        segments: [Some(older), Some(newest), Some(vec![0; FILE_SIZE])],
        copies: [Some(copy.clone()), Some(copy)],
        synced: None,
    };
    appends.iter().for_each(|entry| table.apply(entry).unwrap());
    (files, table)
}

fn losses(recovered: &JournalRecovery) -> usize {
    recovered.findings.iter().filter(|finding| !finding.is_mended).count()
}

#[test]
fn a_whole_journal_is_nothing_to_speak_of() {
    let (files, table) = journal();
    let found = files.recover().unwrap();
    assert_eq!((found.table, found.findings, found.torn), (table, vec![], None));
    assert_eq!((found.generation, found.sequence, found.appends.len()), (9, 6, 5));
    assert_eq!((found.free_files, found.has_gaps), (vec![2], false));
}

/// Whatever single bit of the parts in use is flipped: nothing is lost.
#[test]
fn a_flipped_bit_loses_nothing() {
    let (files, table) = journal();
    let used = [(0, 4096 + 300), (1, 4 * 4096 + 40)];
    for (index, used) in used {
        for byte in (0..used).filter(|byte| byte % 4096 < 320) {
            let mut flipped = files.clone();
            flipped.segments[index].as_mut().unwrap()[byte] ^= 1 << (byte % 8);
            let found = flipped.recover().unwrap();
            assert_eq!(
                (&found.table, losses(&found)),
                (&table, usize::from(index == 0 && byte < 40)),
                "{index} {byte}"
            );
            assert_eq!((found.in_doubt.len(), found.torn), (0, None), "{index} {byte}");
        }
    }
    for index in 0..2 {
        for byte in 0..160 {
            let mut flipped = files.clone();
            flipped.copies[index].as_mut().unwrap()[byte] ^= 1 << (byte % 8);
            let found = flipped.recover().unwrap();
            assert_eq!((&found.table, losses(&found)), (&table, 0), "copy {index} {byte}");
        }
    }
}

/// A zeroed sector, or many, or a file that is cut or gone: never silence, and never a shorter extent that is
/// not in doubt.
#[test]
fn whatever_is_zeroed_cut_or_gone_is_told() {
    let (files, table) = journal();
    let judge = |damaged: &Files, what: &str| {
        let found = damaged.recover().unwrap();
        let is_told = !found.findings.is_empty() || found.torn.is_some();
        let is_same = |extent| found.table.extents.get(&extent) == table.extents.get(&extent);
        for extent in [E, F] {
            // Its digest is not known any more if a block of it is.
            let is_as_long = found.table.extents.get(&extent).map(|state| state.length)
                == table.extents.get(&extent).map(|state| state.length);
            let is_safe =
                is_same(extent) || is_as_long || found.in_doubt.contains(&extent) || found.torn.is_some();
            assert!(is_safe, "{what}: {extent} is {:?}", found.table.extents.get(&extent));
        }
        assert!(is_told || is_same(E) && is_same(F), "{what}");
        found
    };
    for index in 0..2 {
        for (sector, size) in (0..40).flat_map(|at| [(at * 512, 512), (at * 512, 4096), (at * 512, 32 << 10)])
        {
            let mut zeroed = files.clone();
            zeroed.segments[index].as_mut().unwrap()[sector..sector + size].fill(0);
            judge(&zeroed, &format!("{size} bytes of {index} from {sector}"));
        }
        for len in (0..FILE_SIZE).step_by(2048) {
            let mut cut = files.clone();
            cut.segments[index].as_mut().unwrap().truncate(len);
            judge(&cut, &format!("{index} cut at {len}"));
        }
        let mut gone = files.clone();
        gone.segments[index] = None;
        judge(&gone, &format!("{index} gone"));
        let mut gone = files.clone();
        gone.copies[index] = None;
        assert_eq!(losses(&judge(&gone, "a copy gone")), 0);
    }
    let mut newest_gone = files.clone();
    newest_gone.segments[1] = None;
    let found = newest_gone.recover().unwrap();
    assert_eq!((found.in_doubt.len(), found.has_gaps, losses(&found)), (2, true, 1));
    let mut exchanged = files.clone();
    exchanged.segments.swap(0, 1);
    let found = exchanged.recover().unwrap();
    assert_eq!((found.table, found.findings.len()), (table, 0));
}

#[test]
fn a_gap_leaves_those_in_doubt_of_which_nothing_is_said_later() {
    let (files, table) = journal();
    let mut damaged = files;
    // The first group, whose extent the second one extends.
    damaged.segments[1].as_mut().unwrap()[4096..4096 + 512].fill(0);
    let found = damaged.recover().unwrap();
    assert_eq!(found.in_doubt.iter().copied().collect::<Vec<_>>(), [F]);
    assert_eq!(found.table.extents[&E].length, table.extents[&E].length);
    assert_eq!((found.table.extents[&E].digest, losses(&found)), (None, 1));
}

/// The note of how far the journal was synced separates what was acknowledged from what was never finished.
#[test]
fn records_that_were_synced_and_do_not_read_are_damage() {
    let (files, _) = journal();
    let note = |sequence| Some(SyncPosition { generation: 9, sequence }.encode().to_vec());
    // All three groups are zeroed, and what stands behind them: nothing of the file says that they were
    // there.
    let mut zeroed = files.clone();
    zeroed.segments[1].as_mut().unwrap()[4096..].fill(0);
    for (synced, lost) in [(None, false), (note(3), false), (note(4), true), (note(6), true)] {
        let found = Files { synced: synced.clone(), ..zeroed.clone() }.recover().unwrap();
        assert_eq!(
            (found.has_gaps, losses(&found) > 0, found.torn.is_none()),
            (lost, lost, lost),
            "{synced:?}"
        );
        assert_eq!(found.in_doubt.len(), if lost { 2 } else { 0 });
    }
    for synced in [note(6), note(5), Some(vec![0; 32])] {
        let found = Files { synced, ..files.clone() }.recover().unwrap();
        assert_eq!((found.findings, found.torn), (vec![], None));
    }
}

#[test]
fn after_a_clean_stop_no_byte_of_the_journal_is_needed() {
    let (mut files, table) = journal();
    files.copies[0] = Some(copy(9, 7, 8, &table, true));
    let noise = files.segments.clone().map(|_| Some(vec![7; 100]));
    // What reads of it restores damaged blocks.
    for (segments, appends) in [([None, None, None], 0), (noise, 0), (files.segments.clone(), 5)] {
        let found = Files { segments, ..files.clone() }.recover().unwrap();
        assert_eq!((found.table, found.findings, found.torn), (table.clone(), vec![], None));
        assert_eq!((found.generation, found.sequence, found.appends.len()), (9, 7, appends));
    }
    // It was started again since, and stopped before the copies were written.
    files.segments[2] = Some(file(10, 10, 8, &table, &[]));
    let found = files.recover().unwrap();
    assert_eq!((found.generation, found.unconfirmed.is_some()), (10, true));
}

#[test]
fn neither_table_nor_segment_is_an_error() {
    let (mut files, _) = journal();
    files.segments = [None, None, None];
    files.copies = [None, None];
    assert!(files.recover().is_err());
}

/// What the older segment adds up to has digests, the table that format 1 wrote behind it has none.
#[test]
fn a_journal_of_format_1_is_no_contradiction() {
    let blocks = block(E, 0);
    let entries = [
        Entry::Create { extent: E, owner: Owner::of_epoch(EPOCH) },
        Entry::Append { extent: E, epoch: EPOCH, offset: 0, blocks: &blocks },
    ];
    let mut table = ExtentTable::default();
    let mut group = vec![KIND_GROUP];
    for entry in &entries {
        table.apply(entry).unwrap();
        entry.encode(&mut group);
    }
    let header = |oldest: u64, table: &ExtentTable| {
        let mut body = vec![KIND_HEADER_1];
        body.put_u64_field(oldest);
        table.encode(&mut body);
        body
    };
    let mut older = record_of_format_1(&header(8, &ExtentTable::default()), 8, 1);
    older.extend(record_of_format_1(&group, 8, 2));
    let mut newest = record_of_format_1(&header(8, &table.without_digests()), 9, 3);
    newest.extend(record_of_format_1(&[KIND_GROUP], 9, 4));
    let segments = [older, newest, Vec::new()].map(|file| Some(Bytes::from(file)));
    let contents = JournalContents { segments, copies: [None, None], synced: None, has_copies: false };
    let found = recover(&contents).unwrap();
    assert_eq!((found.generation, found.sequence, found.appends.len(), found.findings), (9, 4, 1, vec![]));
    assert_eq!(found.table.extents[&E].length, 37);
}

#[test]
fn a_table_that_differs_in_a_digest_is_damage() {
    for digest in [None, Some(ExtentDigest(7))] {
        let (mut files, _) = journal();
        let state = ExtentState { length: 37, digest, ..ExtentState::empty(Owner::of_epoch(EPOCH)) };
        let table = ExtentTable { extents: [(E, state), (F, state)].into() };
        files.segments[1] = Some(file(9, 8, 3, &table, &[]));
        assert_eq!(losses(&files.recover().unwrap()), 1, "{digest:?}");
    }
}

/// The journal goes on in its newest segment only where nothing is wrong with what is needed: else the next
/// start would find what this one knows besides contradicted.
#[test]
fn a_segment_is_open_only_where_all_that_is_needed_is_whole() {
    let (files, _) = journal();
    let found = files.recover().unwrap();
    let open = found.open_segment.expect("all of it is whole");
    assert_eq!((open.file, open.oldest_generation, open.first_sequence), (1, 8, 3));
    let newest = files.segments[1].as_ref().unwrap();
    let end = open.records.len();
    assert_eq!([open.records, open.end_mark].concat(), newest[..end + END_MARK_SIZE]);
    let of_newest: Vec<u64> =
        found.appends[found.newest_appends_from..].iter().map(|append| append.1).collect();
    assert_eq!((found.newest_appends_from, of_newest), (2, vec![37, 74, 111]));
    let is_open = |change: &dyn Fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        files.recover().unwrap().open_segment.is_some()
    };
    // A copy of the table is written anew; a record that was begun and its end mark are written over.
    assert!(is_open(&|files| files.copies[1] = None));
    assert!(is_open(&|files| files.segments[1].as_mut().unwrap()[end..].fill(9)));
    for at in [0, 4096, 8192] {
        assert!(!is_open(&|files| files.segments[1].as_mut().unwrap()[at + 50] ^= 1), "a bit at {at}");
    }
    assert!(!is_open(&|files| files.segments[0].as_mut().unwrap()[4096..8192].fill(0)));
    assert!(!is_open(&|files| files.segments[0] = None));
    let synced = SyncPosition { generation: 9, sequence: 8 }.encode().to_vec();
    assert!(!is_open(&|files| files.synced = Some(synced.clone())), "records are lost");
}

/// A start had begun a segment in one file, a power loss took its first page, and the next start began the
/// same segment in another file, which was appended to. What was left in the first file was then taken for
/// the newest segment.
#[test]
fn what_a_torn_start_left_in_another_file_hides_no_record() {
    let (files, table) = journal();
    let newest = files.segments[1].clone().unwrap();
    let header = newest[..4096].to_vec();
    // Only the header's end mark is left.
    let mut left_over = vec![0; FILE_SIZE];
    let begun = file(9, 8, 3, &ExtentTable::default(), &[]);
    let mark_at = RecordBuilder::new().finish(9, 3).bytes.len() - END_MARK_SIZE;
    left_over[mark_at..mark_at + END_MARK_SIZE].copy_from_slice(&begun[mark_at..mark_at + END_MARK_SIZE]);
    for (left_over, what) in [(left_over, "an end mark"), (header, "a header")] {
        for at in [0, 2] {
            let mut files = files.clone();
            // The older segment lies in the last file then.
            files.segments.swap(0, 2);
            if at == 2 {
                files.segments.swap(0, 2);
            }
            files.segments[at] = Some(left_over.clone());
            files.synced = Some(SyncPosition { generation: 9, sequence: 6 }.encode().to_vec());
            let found = files.recover().unwrap();
            assert_eq!((losses(&found), found.has_gaps), (0, false), "{what} in {at}: {:?}", found.findings);
            assert_eq!(found.table, table, "{what} in {at}");
        }
    }
}
