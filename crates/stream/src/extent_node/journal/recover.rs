//! What the journal's files say after a stop of any kind: a pure function of their bytes.
//!
//! What always holds: a torn tail is cut; anything else that does not read is an error, never a shorter history.

use super::super::state::{Entry, ExtentTable};
use super::{KIND_GROUP, KIND_HEADER, KIND_HEADER_1, SEGMENT_COUNT};
use crate::error::StreamError;
use crate::ids::ExtentId;
use crate::record::{self, Record, Wanted};
use base::codec::{DecodeError, Decoder};
use bytes::Bytes;

/// The node's state at the last acknowledged moment.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Every extent's facts.
    pub(crate) table: ExtentTable,
    /// Journaled bytes that may be missing in their extents' files, in order.
    pub(crate) appends: Vec<(ExtentId, u64, Bytes)>,
    /// Generation of the newest segment.
    pub(crate) generation: u64,
    /// Sequence number of the newest record.
    pub(crate) sequence: u64,
    /// A file that no recovery needs, once the newest segment is on the disk.
    pub(crate) free_file: usize,
    /// The newest segment's file and header, if nothing follows that, which would have been written after it was synced.
    pub(crate) unconfirmed: Option<(usize, Bytes)>,
    /// That the record after the last one is there and is not whole, in words for the operator: nobody can tell whether it was
    /// never finished or was damaged since.
    pub(crate) torn: Option<String>,
}

struct Segment {
    file: usize,
    oldest: u64,
    /// Whether its table has digests.
    digests: bool,
    table: ExtentTable,
    records: Vec<Record>,
}

impl Segment {
    fn generation(&self) -> u64 {
        self.records[0].generation
    }
    fn last_sequence(&self) -> u64 {
        self.records[self.records.len() - 1].sequence
    }
}

/// Reads the journal back.
pub(crate) fn recover(files: &[Bytes; SEGMENT_COUNT]) -> Result<Recovered, StreamError> {
    let mut segments = Vec::new();
    let mut unreadable = Vec::new();
    for (file, bytes) in files.iter().enumerate() {
        match read_segment(file, bytes)? {
            Some(segment) => segments.push(segment),
            None => unreadable.push(file),
        }
    }
    segments.sort_by_key(Segment::generation);
    let newest = segments.pop().ok_or_else(|| damaged("no segment is readable"))?;
    for file in unreadable {
        if record::find_successor(&files[file], 0, Wanted::NewerThan(newest.generation())).is_some() {
            return Err(damaged(&format!(
                "the start of file {file}, which holds newer records, is unreadable"
            )));
        }
    }
    let mut table;
    let mut appends = Vec::new();
    let mut needed = vec![newest.file];
    if newest.oldest == newest.generation() {
        table = newest.table.clone();
    } else {
        let older = segments.pop().filter(|older| older.generation() == newest.oldest);
        let older = older
            .ok_or_else(|| damaged(&format!("the segment of generation {} is missing", newest.oldest)))?;
        if older.last_sequence() + 1 != newest.records[0].sequence {
            return Err(damaged("records between two segments are missing"));
        }
        needed.push(older.file);
        table = older.table.clone();
        replay(&older, &mut table, &mut appends)?;
        let table_then = if newest.digests { table.clone() } else { table.without_digests() };
        if table_then != newest.table {
            return Err(damaged("the newest segment's table differs from what the older one adds up to"));
        }
    }
    replay(&newest, &mut table, &mut appends)?;
    appends.retain(|(extent, _, _)| table.extents.contains_key(extent));
    let free_file = (0..SEGMENT_COUNT).find(|file| !needed.contains(file)).unwrap_or(0);
    // A copy: it must not keep the whole file.
    let header = || Bytes::copy_from_slice(&files[newest.file][..record::size_of(&newest.records)]);
    let unconfirmed = (newest.records.len() == 1).then(|| (newest.file, header()));
    let torn = record::torn_behind(&files[newest.file], &newest.records).map(|at| {
        format!(
            "the journal's last record ({}, byte {at}) is not whole and is left out: a crash cut it short, and then nobody was \
             told that it is stored; or the disk has damaged it since, and then writes of the last moment are lost",
            super::segment_path(newest.file)
        )
    });
    Ok(Recovered {
        table,
        appends,
        generation: newest.generation(),
        sequence: newest.last_sequence(),
        free_file,
        unconfirmed,
        torn,
    })
}

fn read_segment(file: usize, bytes: &Bytes) -> Result<Option<Segment>, StreamError> {
    let records = record::scan_prefix(bytes);
    let Some(first) = records.first() else {
        return Ok(None);
    };
    let mut header = Decoder::new(&first.body);
    let digests = match header.u8("kind").map_err(malformed)? {
        KIND_HEADER => true,
        KIND_HEADER_1 => false,
        _ => return Ok(None),
    };
    let oldest = header.u64("oldest generation").map_err(malformed)?;
    let table = ExtentTable::decode(&mut header).map_err(malformed)?;
    header.finish("segment header").map_err(malformed)?;
    record::check_tail(bytes, &records, &format!("journal file {file}"))?;
    Ok(Some(Segment { file, oldest, digests, table, records }))
}

fn replay(
    segment: &Segment,
    table: &mut ExtentTable,
    appends: &mut Vec<(ExtentId, u64, Bytes)>,
) -> Result<(), StreamError> {
    for record in &segment.records[1..] {
        let mut decoder = Decoder::new(&record.body);
        if decoder.u8("kind").map_err(malformed)? != KIND_GROUP {
            return Err(damaged("a record is of an unknown kind"));
        }
        while !decoder.is_empty() {
            let entry = Entry::decode(&mut decoder).map_err(malformed)?;
            table.apply(&entry).map_err(|error| damaged(&error.to_string()))?;
            if let Entry::Append { extent, offset, blocks, .. } = entry {
                appends.push((extent, offset, record.body.slice_ref(blocks)));
            }
        }
    }
    Ok(())
}

fn damaged(why: &str) -> StreamError {
    StreamError::Corrupt(format!("journal: {why}"))
}

fn malformed(error: DecodeError) -> StreamError {
    damaged(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::KIND_GROUP;
    use super::*;
    use crate::block::put_block;
    use crate::ids::OwnerEpoch;
    use crate::record::RecordBuilder;
    use crate::sealed::ExtentDigest;
    use base::codec::Encode;

    const E: ExtentId = ExtentId(3);

    /// A file: a header of the kind with the table, and a group of entries.
    fn file(
        kind: u8,
        generation: u64,
        oldest: u64,
        sequence: u64,
        table: &ExtentTable,
        group: &[Entry<'_>],
    ) -> Bytes {
        let mut header = RecordBuilder::new();
        header.body().put_u8_field(kind);
        header.body().put_u64_field(oldest);
        table.encode(header.body());
        let mut file = header.finish(generation, sequence).to_vec();
        let mut body = RecordBuilder::new();
        body.body().put_u8_field(KIND_GROUP);
        group.iter().for_each(|entry| entry.encode(body.body()));
        file.extend_from_slice(&body.finish(generation, sequence + 1));
        file.into()
    }

    /// Segment 8, in which an extent is made, and segment 9, whose header has `table_then`.
    fn recovered(
        kind: u8,
        table_then: impl FnOnce(&ExtentTable) -> ExtentTable,
    ) -> Result<Recovered, StreamError> {
        let mut block = Vec::new();
        put_block(&mut block, E, 0, b"block");
        let entries = [
            Entry::Create { extent: E, epoch: OwnerEpoch(1) },
            Entry::Append { extent: E, epoch: OwnerEpoch(1), offset: 0, blocks: &block },
        ];
        let mut table = ExtentTable::default();
        entries.iter().for_each(|entry| table.apply(entry).unwrap());
        let older = file(kind, 8, 8, 1, &ExtentTable::default(), &entries);
        let newest = file(kind, 9, 8, 3, &table_then(&table), &[]);
        recover(&[older, newest, Bytes::new()])
    }

    /// What the older segment adds up to has digests, the table that format 1 wrote behind it has none.
    #[test]
    fn a_journal_of_format_1_is_no_contradiction() {
        let found = recovered(KIND_HEADER_1, ExtentTable::without_digests).unwrap();
        assert_eq!((found.generation, found.sequence, found.appends.len()), (9, 4, 1));
        assert_eq!(found.table.extents[&E].length, 37);
    }

    #[test]
    fn a_table_that_differs_in_a_digest_is_damage() {
        let same = recovered(KIND_HEADER, ExtentTable::clone).unwrap().table;
        assert!(same.extents[&E].digest.is_some());
        for digest in [None, Some(ExtentDigest(7))] {
            let differs = recovered(KIND_HEADER, |table| {
                let mut table = table.clone();
                table.extents.get_mut(&E).unwrap().digest = digest;
                table
            });
            assert!(matches!(differs, Err(StreamError::Corrupt(_))), "{digest:?}");
        }
    }
}
