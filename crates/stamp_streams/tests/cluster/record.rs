//! Records of the application, and its state.
//!
//! ```text
//! log, a part:         records of 25 bytes: key, id, id of the write of the key before it,
//!                      id of the write of the log before it
//! checkpoint, a part:  8 first ordinal of the log that it does not cover, 8 last write of the log,
//!                      then for each key: 1 key, 4 count, ids
//! ```

use std::collections::BTreeMap;

/// The id of a write. 0 is none.
pub(crate) type WriteId = u64;

const RECORD_SIZE: usize = 25;

/// A write in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: u8,
    pub(crate) id: WriteId,
    /// The write of the key that it was decided over.
    pub(crate) over: WriteId,
    /// The write of the log that it was decided over.
    pub(crate) behind: WriteId,
}

pub(crate) fn encode_records(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        out.push(record.key);
        for number in [record.id, record.over, record.behind] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    out
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

pub(crate) fn decode_records(bytes: &[u8]) -> Vec<Record> {
    assert_eq!(bytes.len() % RECORD_SIZE, 0, "a part of the log is cut");
    let decode = |record: &[u8]| Record {
        key: record[0],
        id: number(&record[1..9]),
        over: number(&record[9..17]),
        behind: number(&record[17..25]),
    };
    bytes.chunks(RECORD_SIZE).map(decode).collect()
}

/// All writes of each key, in order.
pub(crate) type Writes = BTreeMap<u8, Vec<WriteId>>;

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) writes: Writes,
    /// The last write of the range's own log.
    pub(crate) last: WriteId,
}

impl State {
    /// The last write of a key.
    pub(crate) fn last_of(&self, key: u8) -> WriteId {
        self.writes.get(&key).and_then(|writes| writes.last()).copied().unwrap_or(0)
    }

    /// A write that is decided over this state.
    pub(crate) fn decide(&mut self, key: u8, id: WriteId) -> Record {
        let record = Record { key, id, over: self.last_of(key), behind: self.last };
        self.writes.entry(key).or_default().push(id);
        self.last = id;
        record
    }

    /// Applies a record of the log; `is_own` if it was written for this range.
    pub(crate) fn apply(&mut self, record: &Record, is_own: bool) -> Result<(), String> {
        let (over, behind) = (self.last_of(record.key), self.last);
        if record.over != over || (is_own && record.behind != behind) {
            return Err(format!(
                "{record:?} is in the log behind write {behind}, over write {over} of its key"
            ));
        }
        self.writes.entry(record.key).or_default().push(record.id);
        if is_own {
            self.last = record.id;
        }
        Ok(())
    }

    pub(crate) fn encode(&self, covered_to: u64) -> Vec<u8> {
        let mut out = covered_to.to_le_bytes().to_vec();
        out.extend_from_slice(&self.last.to_le_bytes());
        for (key, writes) in &self.writes {
            out.push(*key);
            out.extend_from_slice(&(writes.len() as u32).to_le_bytes());
            writes.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
        }
        out
    }

    /// The state and the first ordinal that it does not cover.
    pub(crate) fn decode(bytes: &[u8]) -> (Self, u64) {
        let (covered_to, last) = (number(&bytes[..8]), number(&bytes[8..16]));
        let mut state = State { last, ..State::default() };
        let mut rest = &bytes[16..];
        while let Some((key, behind)) = rest.split_first() {
            let count = u32::from_le_bytes(behind[..4].try_into().expect("four bytes")) as usize;
            let ids = behind[4..4 + 8 * count].chunks(8).map(number).collect();
            state.writes.insert(*key, ids);
            rest = &behind[4 + 8 * count..];
        }
        (state, covered_to)
    }
}
