//! A file's bytes as they are seen, as they are durable, and what a power loss leaves of the difference.

use crate::random::SimRandom;
use bytes::Bytes;

const SECTOR_SIZE: usize = 512;

#[derive(Default)]
pub(super) struct Content {
    pub(super) current: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
}

#[derive(Clone)]
pub(super) enum Change {
    Write { offset: usize, bytes: Bytes },
    SetLen(usize),
}

impl Change {
    pub(super) fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => to.resize(*len, 0),
        }
    }

    /// What a power loss leaves of this change.
    pub(super) fn tear(&self, to: &mut Vec<u8>, random: &SimRandom) {
        let Change::Write { offset, bytes } = self else {
            return if random.one_in(2) {
                self.apply(to)
            };
        };
        match random.below(3) {
            0 => {}
            1 => self.apply(to),
            _ => {
                let mut at = 0;
                while at < bytes.len() {
                    let sector_end = (offset + at + 1).next_multiple_of(SECTOR_SIZE) - offset;
                    let end = sector_end.min(bytes.len());
                    if random.one_in(2) {
                        Change::Write { offset: offset + at, bytes: bytes.slice(at..end) }.apply(to);
                    }
                    at = end;
                }
            }
        }
    }
}
