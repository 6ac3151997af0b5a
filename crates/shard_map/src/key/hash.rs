//! The hash that spreads keys over virtual shards: named and versioned, because keys stay where it put them.
//!
//! `sha256`, version 1: the first four bytes of the SHA-256 of the key's bytes, as a big-endian number `h`;
//! of `n` virtual shards the key's is `h * n / 2^32`, rounded down. Databases and other languages have
//! SHA-256 at hand, nobody can choose keys that all fall into one shard, and with `k * n` virtual shards
//! those of `v` are `k * v` to `k * v + k - 1`, so their number can be multiplied without moving a key.

use sha2::{Digest, Sha256};

/// Virtual shards of a map, at most: with 32 bits of hash the largest has at most 1 / 2^16 more keys than the
/// smallest is to have.
pub const VIRTUAL_SHARDS_MAX: u32 = 1 << 16;

/// A hash of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    /// `sha256`, version 1.
    Sha256V1,
}

impl KeyHash {
    /// All that there are.
    pub const ALL: [KeyHash; 1] = [KeyHash::Sha256V1];

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            KeyHash::Sha256V1 => "sha256",
        }
    }

    /// Its version.
    pub fn version(self) -> u32 {
        match self {
            KeyHash::Sha256V1 => 1,
        }
    }

    /// The hash of a name and version.
    pub fn named(name: &str, version: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.name() == name && hash.version() == version)
    }

    /// The virtual shard of a key, below `count`.
    pub fn virtual_shard(self, bytes: &[u8], count: u32) -> u32 {
        let hash = match self {
            KeyHash::Sha256V1 => {
                let digest = Sha256::digest(bytes);
                u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
            }
        };
        // Below `count`, which has 32 bits.
        ((u64::from(hash) * u64::from(count)) >> 32) as u32
    }
}
