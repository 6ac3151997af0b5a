//! Of each row of a block the eight bytes of its key behind what all keys begin with, and where it starts.
//!
//! Why: a look-up goes to its row at once. The rows of a block lie far apart, and each one that is passed is
//! fetched from memory; for the same reason all of this lies side by side. What always holds: keys begin with
//! the prefix and their heads do not fall, or there are none; rows with the same head are compared whole by
//! the caller.

use crate::checkpoint::abbreviated_keys::{GROUP_LEN, firsts_of, head, heads_below};
use std::cmp::Ordering;
use std::ops::Range;

/// The heads and places of a block's rows.
#[derive(Debug)]
pub(super) struct RowDirectory {
    /// What all keys begin with, eight bytes each, filled up with zeros; the first head of each group; all
    /// heads, in order as the keys are; where rows start, two each.
    words: Box<[u64]>,
    prefix_len: usize,
    row_count: usize,
}

impl RowDirectory {
    /// The last for the firsts of groups.
    pub(super) const BYTES_PER_ROW: usize = size_of::<u64>() + size_of::<u32>() + 1;

    /// Of rows that begin with `prefix`, with these heads behind it and at these starts, one each. The heads
    /// do not fall.
    pub(super) fn new(prefix: &[u8], heads: &[u64], starts: &[u32]) -> Self {
        let pair = |pair: &[u32]| {
            u64::from(pair[0]) | pair.get(1).map_or(0, |second| u64::from(*second) << u32::BITS)
        };
        let words = prefix.chunks(size_of::<u64>()).map(head);
        let words = words.chain(firsts_of(heads)).chain(heads.iter().copied());
        let words = words.chain(starts.chunks(2).map(pair)).collect();
        RowDirectory { words, prefix_len: prefix.len(), row_count: heads.len() }
    }

    fn prefix_words(&self) -> &[u64] {
        &self.words[..self.prefix_len.div_ceil(size_of::<u64>())]
    }

    /// The first heads of groups, and all.
    fn heads(&self) -> (&[u64], &[u64]) {
        let rest = &self.words[self.prefix_words().len()..];
        let (firsts, rest) = rest.split_at(self.row_count.div_ceil(GROUP_LEN));
        (firsts, &rest[..self.row_count])
    }

    /// Where the row numbered `at` starts.
    pub(super) fn start(&self, at: usize) -> Option<usize> {
        let starts_at = self.words.len() - self.row_count.div_ceil(2);
        let shift = if at.is_multiple_of(2) { 0 } else { u32::BITS };
        let start = (at < self.row_count).then(|| (self.words[starts_at + at / 2] >> shift) as u32);
        start.map(|start| start as usize)
    }

    /// So much of the beginnings of a key and of the rows that [`Self::rows_with_head_of`] tells for it is
    /// the same, as far as they reach.
    pub(super) fn compared_len(&self) -> usize {
        self.prefix_len + size_of::<u64>()
    }

    /// The bytes that are compared of the row numbered `at`, filled up with zeros.
    pub(super) fn put_compared(&self, at: usize, out: &mut Vec<u8>) {
        let start = out.len();
        self.prefix_words().iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        out.truncate(start + self.prefix_len);
        let head = self.heads().1.get(at).copied().unwrap_or_default();
        out.extend_from_slice(&head.to_be_bytes());
    }

    /// The rows that may have this key, or be the first after it: rows before them are before the key, rows
    /// behind them after it. Those in it have the key's own head.
    pub(super) fn rows_with_head_of(&self, key: &[u8]) -> Range<usize> {
        let (start, rest) = key.split_at(self.prefix_len.min(key.len()));
        let order = start.chunks(size_of::<u64>()).map(head).cmp(self.prefix_words().iter().copied());
        match order.then(start.len().cmp(&self.prefix_len)) {
            Ordering::Less => 0..0,
            Ordering::Greater => self.row_count..self.row_count,
            Ordering::Equal => {
                let wanted = head(rest);
                let (firsts, heads) = self.heads();
                let from = heads_below(firsts, heads, wanted);
                let count = heads[from..].iter().take_while(|head| **head == wanted).count();
                from..from + count
            }
        }
    }
}
