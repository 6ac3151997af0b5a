//! What the log's two files add up to, whole, cut off and damaged.

use super::super::state::ExtentInfo;
use super::*;
use crate::ids::{ExtentId, StreamName};
use crate::owner::Owner;
use crate::record::tests::record_of_format_1;
use crate::sealed::Seal;

/// The bytes of a snapshot as format 1 wrote them: one stream with a sealed extent and an open one.
#[test]
fn a_snapshot_of_format_1_is_read() {
    let mut body = Vec::new();
    body.put_u8_field(0);
    body.put_u64_field(7);
    body.put_varint(2);
    body.put_u64_field(5);
    body.put_varint(1000 + 1);
    body.put_u64_field(6);
    body.put_varint(0);
    body.put_varint(1);
    body.put_bytes_field(b"a/log");
    body.put_u64_field(3);
    body.put_varint(2);
    body.put_u64_field(5);
    body.put_u64_field(6);
    let log = Bytes::from(record_of_format_1(&body, 1, 0));
    let state = recover(&[Some(log), None], false).unwrap().state;
    let sealed = Some(Seal { length: 1000, digest: None });
    assert_eq!(state.extents[&ExtentId(5)], ExtentInfo { sealed, references: 1 });
    assert_eq!(state.extents[&ExtentId(6)], ExtentInfo { sealed: None, references: 1 });
    assert_eq!((state.next_extent, state.streams.len()), (7, 1));
}

/// A log of three streams, and how many bytes of it are used.
fn log() -> (Bytes, usize) {
    let mut bytes = encode_snapshot(&State::default(), 9).bytes.to_vec();
    for at in 0..3u64 {
        let mut record = RecordBuilder::new();
        record.body().put_u8_field(KIND_COMMANDS);
        Command::Create(StreamName::new(&format!("stream/{at}")).owned_by(Owner::default()))
            .encode(record.body());
        bytes.truncate(bytes.len() - record::END_MARK_SIZE);
        bytes.extend_from_slice(&record.finish(9, at + 1).bytes);
    }
    let used = bytes.len() - record::END_MARK_SIZE;
    bytes.resize(bytes.len() + 8192, 0);
    (bytes.into(), used)
}

fn streams(contents: [Option<Vec<u8>>; 2]) -> (usize, Vec<&'static str>) {
    let recovered = recover(&contents.map(|content| content.map(Bytes::from)), true).unwrap();
    (recovered.state.streams.len(), recovered.damaged)
}

#[test]
fn whatever_becomes_of_one_file_the_other_has_it() {
    let (log, used) = log();
    let whole = || Some(log.to_vec());
    assert_eq!(streams([whole(), whole()]), (3, vec![]));
    for (index, path) in PATHS.into_iter().enumerate() {
        let with =
            |content: Option<Vec<u8>>| if index == 0 { [content, whole()] } else { [whole(), content] };
        let mut damages = vec![None, Some(Vec::new()), Some(vec![0; log.len()])];
        damages.extend([5000, 8200].map(|len| Some(log[..len].to_vec())));
        for at in (0..used).filter(|at| at % 4096 < 48) {
            let mut flipped = log.to_vec();
            flipped[at] ^= 1 << (at % 8);
            damages.push(Some(flipped));
        }
        for at in (0..used).step_by(4096) {
            let mut zeroed = log.to_vec();
            zeroed[at..].fill(0);
            damages.push(Some(zeroed));
        }
        for (number, damaged) in damages.into_iter().enumerate() {
            let is_last_record =
                damaged.as_ref().is_some_and(|damaged| damaged.get(..used - 4096) == log.get(..used - 4096));
            let (count, told) = streams(with(damaged));
            // The second file may lack the last record after a crash.
            let expected = if index == 1 && is_last_record { told.clone() } else { vec![path] };
            assert_eq!((count, told), (3, expected), "{path}, damage {number}");
        }
    }
}

#[test]
fn a_crash_between_the_two_files_is_no_damage() {
    let (log, used) = log();
    let mut before = log[..used - 4096].to_vec();
    before.extend_from_slice(&[0; 8192]);
    assert_eq!(streams([Some(log.to_vec()), Some(before)]), (3, vec![]));
    // The new log is in place of the first one only.
    let next = encode_snapshot(&recover(&[Some(log.clone()), None], false).unwrap().state, 10).bytes;
    assert_eq!(streams([Some(next.to_vec()), Some(log.to_vec())]), (3, vec![]));
}

#[test]
fn what_both_files_have_lost_is_an_error() {
    let (log, _) = log();
    let mut lost = log.to_vec();
    lost[4096..8192].fill(0);
    assert!(recover(&[Some(lost.clone().into()), Some(lost.into())], true).is_err());
}

/// A log is begun again in its place: first in one file, then in the other. Neither is damaged, wherever that
/// was cut off.
#[test]
fn a_log_that_was_being_begun_again_is_no_damage() {
    let (log, _) = log();
    let state = recover(&[Some(log.clone()), None], false).unwrap().state;
    let next = |parts: usize| {
        let mut begun = log.to_vec();
        let snapshot = encode_snapshot(&state, 10).bytes;
        let size = snapshot.len() * parts / 4;
        begun[..size].copy_from_slice(&snapshot[..size]);
        if parts > 0 && parts < 4 {
            // The body goes on in pages that were not written.
            begun[60..100].fill(9);
        }
        Some(begun)
    };
    for (parts, other) in [(0, 0), (0, 1), (0, 4), (1, 4), (4, 4)] {
        assert_eq!(streams([next(parts), next(other)]), (3, vec![]), "{parts} and {other} quarters");
        assert_eq!(streams([next(other), next(parts)]).0, 3, "{parts} and {other} quarters, exchanged");
    }
    // A bit was flipped, or the header does not read either.
    let mut flipped = next(4).unwrap();
    flipped[70] ^= 1;
    assert_eq!(streams([Some(flipped), next(4)]), (3, vec![PATHS[0]]));
    let mut damaged = next(4).unwrap();
    damaged[20] ^= 9;
    damaged[700..900].fill(9);
    assert_eq!(streams([Some(damaged), next(4)]), (3, vec![PATHS[0]]));
}

/// The first sector of a file is on the disk before any other of the next log is written.
#[test]
fn a_log_that_is_begun_again_in_its_place_is_no_damage_whatever_is_left_of_the_rest() {
    let (old, used) = log();
    let state = recover(&[Some(old.clone()), Some(old.clone())], true).unwrap().state;
    let mut new = encode_snapshot(&state, 10).bytes.to_vec();
    new.resize(old.len(), 0);
    let starts: Vec<usize> =
        (512..used).step_by(512).filter(|at| old[*at..at + 512] != new[*at..at + 512]).collect();
    assert!((3..12).contains(&starts.len()), "{starts:?}");
    for kept in 0..2 {
        for written in 0..1u32 << starts.len() {
            let mut torn = old.to_vec();
            torn[..512].copy_from_slice(&new[..512]);
            for (_, at) in starts.iter().enumerate().filter(|(index, _)| written >> index & 1 == 1) {
                torn[*at..at + 512].copy_from_slice(&new[*at..at + 512]);
            }
            for other in [&old[..], &new] {
                let mut contents = [Some(torn.clone()), Some(other.to_vec())];
                contents.rotate_left(kept);
                assert_eq!(streams(contents), (3, vec![]), "{kept} {written:b}");
            }
        }
    }
}

/// A sync that failed may leave the next log's only record with a flipped bit, and the other file with the
/// log that it was to replace: that one can be kept, or a full disk would have no start.
#[test]
fn the_log_that_was_being_replaced_is_kept_if_the_next_one_is_damaged() {
    let (old, used) = log();
    let state = recover(&[Some(old.clone()), None], false).unwrap().state;
    let mut flipped = encode_snapshot(&state, 10).bytes.to_vec();
    flipped[70] ^= 1;
    flipped.resize(old.len(), 0);
    let flipped = Bytes::from(flipped);
    let whole = |contents| recover(&contents, true).unwrap().whole;
    let kept = Some(old.slice(..used));
    assert_eq!(whole([Some(old.clone()), Some(flipped.clone())]), [kept.clone(), None]);
    assert_eq!(whole([Some(flipped.clone()), Some(old.clone())]), [None, kept]);
    // It says something else: it was replaced, and changed since.
    let mut other = encode_snapshot(&State::default(), 9).bytes.to_vec();
    other.resize(old.len(), 0);
    assert_eq!(whole([Some(other.into()), Some(flipped)]), [None, None]);
}
