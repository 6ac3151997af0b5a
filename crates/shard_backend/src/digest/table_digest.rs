//! The digest of a set of rows of one table: their count, and the sum of their hashes modulo 2^128.
//!
//! What always holds: the order of rows and the parts in which they are summed do not matter; a row that is
//! missing, there twice or another one changes the digest, but for a chance of about 2^-128.

use super::row_hasher::RowHash;
use std::fmt;

/// The digest of a set of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableDigest {
    /// How many rows.
    pub rows: u64,
    /// The sum of their hashes, modulo 2^128.
    pub sum: u128,
}

impl TableDigest {
    /// Takes a row in.
    pub fn add(&mut self, row: RowHash) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(row.0);
    }

    /// Takes a row out that was taken in.
    pub fn remove(&mut self, row: RowHash) {
        self.rows = self.rows.saturating_sub(1);
        self.sum = self.sum.wrapping_sub(row.0);
    }

    /// Takes in all rows of another digest by the same key.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// `3 rows, 0000…`: the sum in 32 hexadecimal digits.
impl fmt::Display for TableDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} rows, {:032x}", self.rows, self.sum)
    }
}
