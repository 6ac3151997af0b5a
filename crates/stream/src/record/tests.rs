//! Records come back whole, with a bit flipped, torn, and behind damage; what only looks like one does not.

use super::format::*;
use super::run::wanted_headers;
use super::*;
use base::checksum::crc64;
use bytes::Bytes;

/// A record as formats before 6 wrote it.
pub(crate) fn record_of_format_1(body: &[u8], generation: u64, sequence: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend_from_slice(&MAGIC_1.to_le_bytes());
    record.extend_from_slice(&(body.len() as u32).to_le_bytes());
    record.extend_from_slice(&generation.to_le_bytes());
    record.extend_from_slice(&sequence.to_le_bytes());
    let checksum = crc64(&[&record, body]);
    record.extend_from_slice(&checksum.to_le_bytes());
    record.extend_from_slice(body);
    record.resize(record.len().next_multiple_of(RECORD_ALIGNMENT), 0);
    record
}

fn encoded(generation: u64, sequence: u64, body: &[u8]) -> EncodedRecord {
    let mut builder = RecordBuilder::new();
    builder.body().extend_from_slice(body);
    builder.finish(generation, sequence)
}

/// A file as it is after these were written one after the other; zeros behind them.
pub(crate) fn file(generation: u64, bodies: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let EncodedRecord { bytes, len } = encoded(generation, 10 + index as u64, body);
        out.truncate(out.len().saturating_sub(END_MARK_SIZE));
        assert_eq!(bytes.len(), len + END_MARK_SIZE);
        out.extend_from_slice(&bytes);
    }
    out.resize(out.len() + 4 * RECORD_ALIGNMENT, 0);
    out
}

fn bodies(run: &Run) -> Vec<Bytes> {
    run.records.iter().map(|record| record.body.clone()).collect()
}

const BODIES: [&[u8]; 3] = [b"one", &[7; 5000], b"three"];

#[test]
fn records_come_back() {
    let run = read_run(&file(3, &BODIES).into(), 3, None);
    assert_eq!(bodies(&run), BODIES);
    assert_eq!((run.is_whole(), run.end), (true, End::Sure));
    assert_eq!(read_run(&file(3, &BODIES).into(), 4, None).records, []);
}

/// Whatever single bit is flipped: every record comes back.
#[test]
fn a_flipped_bit_is_undone() {
    let whole = file(3, &BODIES);
    let end = read_run(&whole.clone().into(), 3, None).size();
    for byte in (0..200).chain(4096..4200).chain(9000..9100).chain(end - 4096..end + 40) {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1 << (byte % 8);
        let run = read_run(&flipped.into(), 3, None);
        // The header of the first record could be of any generation.
        if byte >= RECORD_HEADER_SIZE {
            assert_eq!(bodies(&run), BODIES, "byte {byte}");
            assert_eq!((run.is_whole(), run.end), (true, End::Sure), "byte {byte}");
        } else {
            assert_eq!(
                (bodies(&run), run.gaps.clone()),
                (BODIES[1..].iter().map(|body| Bytes::from_static(body)).collect(), vec![0])
            );
        }
    }
}

/// A record of which any sector is lost is never taken for one that was not written.
#[test]
fn a_zeroed_sector_is_seen_wherever_it_lies() {
    let whole = file(3, &BODIES);
    let end = read_run(&whole.clone().into(), 3, None).size();
    for sector in (0..end + 512).step_by(512) {
        let mut zeroed = whole.clone();
        zeroed[sector..sector + 512].fill(0);
        if zeroed == whole {
            continue;
        }
        let run = read_run(&zeroed.into(), 3, None);
        let is_seen = !run.is_whole() || run.end != End::Sure;
        assert!(is_seen, "sector {sector}: {run:?}");
    }
    for pages in [1, 2, 4] {
        let mut zeroed = whole.clone();
        zeroed[end - 4096..end - 4096 + pages * 4096].fill(0);
        assert_eq!(read_run(&zeroed.into(), 3, None).end, End::Unsure);
    }
    let cut = whole[..end - 4096].to_vec();
    assert_eq!(read_run(&cut.into(), 3, None).end, End::Cut, "the end is cut off");
}

#[test]
fn a_torn_record_is_told_from_damage() {
    let before = file(3, &BODIES[..1]);
    let after = file(3, &BODIES);
    let at = read_run(&before.clone().into(), 3, None).size();
    // Sectors of the second record were written up to this one; of the first one it has none.
    for written in (512..8192).step_by(512) {
        let mut torn = before.clone();
        torn.resize(after.len(), 0);
        torn[at..at + written].copy_from_slice(&after[at..at + written]);
        let run = read_run(&torn.clone().into(), 3, None);
        if written < 5120 {
            assert_eq!((run.records.len(), run.end), (1, End::Begun), "{written}");
        }
        torn[at..at + 512].copy_from_slice(&before[at..at + 512]);
        let run = read_run(&torn.into(), 3, None);
        assert_eq!((run.records.len(), run.end), (1, End::Sure), "all but its first sector, {written}");
    }
}

#[test]
fn what_follows_a_damaged_record_is_read() {
    let mut bytes = file(3, &BODIES);
    bytes[4096 + 512..4096 + 1024].fill(0);
    let run = read_run(&bytes.into(), 3, None);
    assert_eq!(
        (bodies(&run), run.gaps.clone(), run.end),
        (vec![Bytes::from("one"), Bytes::from("three")], vec![1], End::Sure)
    );
}

#[test]
fn records_of_older_formats_are_read() {
    let mut bytes = record_of_format_1(b"one", 3, 1);
    bytes.extend(record_of_format_1(b"two", 3, 2));
    bytes.resize(bytes.len() + RECORD_ALIGNMENT, 0);
    let run = read_run(&bytes.clone().into(), 3, None);
    assert_eq!((bodies(&run), run.end), (vec![Bytes::from("one"), Bytes::from("two")], End::Sure));
    bytes[4096 + 33] ^= 1;
    let run = read_run(&bytes.into(), 3, None);
    assert_eq!((run.records.len(), run.end), (1, End::Begun));
}

/// An append whose pages look like records made each start hash the rest of the file for each of them.
#[test]
fn what_only_looks_like_records_is_not_hashed() {
    const PAGE_COUNT: usize = 4000;
    let generation = 1 << 40;
    let mut bytes = file(generation, &[b"one", b"two"]);
    let from = read_run(&bytes.clone().into(), generation, None).size();
    bytes.resize(from + PAGE_COUNT * RECORD_ALIGNMENT, 0);
    for page in 1..PAGE_COUNT {
        let at = from + page * RECORD_ALIGNMENT;
        let body_len = (PAGE_COUNT - page) * RECORD_ALIGNMENT - RECORD_HEADER_SIZE;
        let guessed = [0, 1, page as u64, u64::MAX - page as u64, 1 << 62][page % 5];
        let header = header_bytes(body_len as u32, guessed, u64::MAX, 0);
        bytes[at..at + RECORD_HEADER_SIZE].copy_from_slice(&header);
    }
    let wanted = [SearchScope::Behind { generation, sequence: 11 }, SearchScope::Near(generation)];
    for wanted in wanted {
        let hashed: usize = wanted_headers(&bytes, from, wanted).map(|(_, header)| header.body_len).sum();
        assert_eq!(hashed, 0);
    }
    assert_eq!(read_run(&bytes.clone().into(), generation, None).records.len(), 2);
    // Among them the true ones are still found.
    let at = from + 3000 * RECORD_ALIGNMENT;
    for (lost, wanted) in [(generation, wanted[0]), (generation + 2, wanted[1])] {
        let EncodedRecord { bytes: record, len } = encoded(lost, 15, b"lost");
        bytes[at..at + len].copy_from_slice(&record[..len]);
        let found = find_successor(&bytes.clone().into(), from, wanted).map(|record| record.generation);
        assert_eq!(found, Some(lost));
    }
}

#[test]
fn older_content_of_a_recycled_file_is_not_a_successor() {
    let mut bytes = file(3, &[b"one", b"two", b"three"]);
    let newer = encoded(4, 10, b"new").bytes;
    bytes[..newer.len()].copy_from_slice(&newer);
    let run = read_run(&bytes.into(), 4, None);
    assert_eq!((run.records.len(), run.is_whole()), (1, true));
}
