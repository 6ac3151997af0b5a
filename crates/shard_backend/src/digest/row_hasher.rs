//! The keyed hash of a row, `hmac-sha256-128`, version 1: the first 16 bytes of the HMAC-SHA-256 of its
//! canonical encoding, as a big-endian number.
//!
//! What always holds: the head that all rows of a table have is hashed once, not for each row.

use super::canonical::{column_order, push_head, push_values};
use crate::schema::table::TableSchema;
use crate::value::row::Row;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The key of a digest's hash. A sum of hashes is safe only against those who did not know the key when they
/// chose their rows: draw one by chance for each digest, and publish it with the digest, not before.
#[derive(Clone, PartialEq, Eq)]
pub struct DigestKey([u8; 16]);

impl DigestKey {
    /// The key of these random bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        DigestKey(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Not the key itself: logs come before certificates.
impl fmt::Debug for DigestKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DigestKey(…)")
    }
}

/// The hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowHash(pub u128);

/// Hashes rows of one table.
#[derive(Clone)]
pub struct RowHasher {
    /// Keyed, and fed with the head.
    state: Hmac<Sha256>,
    order: Vec<usize>,
    row: Vec<u8>,
}

impl RowHasher {
    /// The hash in certificates.
    pub const NAME: &'static str = "hmac-sha256-128";
    /// Its version, and that of the encoding.
    pub const VERSION: u32 = 1;

    /// For rows of a table.
    pub fn new(key: &DigestKey, table: &TableSchema) -> Self {
        let order = column_order(table);
        let mut row = Vec::new();
        push_head(table, &order, &mut row);
        let mut state = match Hmac::<Sha256>::new_from_slice(&key.0) {
            Ok(state) => state,
            Err(error) => unreachable!("HMAC takes keys of any length: {error}"),
        };
        state.update(&row);
        RowHasher { state, order, row }
    }

    /// The hash of a row, which [`TableSchema::check_row`] let pass.
    pub fn hash(&mut self, row: &Row) -> RowHash {
        self.row.clear();
        push_values(row, &self.order, &mut self.row);
        let mut state = self.state.clone();
        state.update(&self.row);
        let mac = state.finalize().into_bytes();
        RowHash(mac.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
    }
}
