//! Encoded keys, and the bounds of ranges, as bytes in their order.
//!
//! What always holds: a bound is at or before a key exactly if its bytes are not greater than the key's.
//! Bounds that cut at the same place have the same bytes.

use super::columns::KeyBytes;
use super::hex::to_hex;
use std::borrow::Borrow;
use std::fmt;

/// An encoded key of a map; [`crate::KeyType::encode`] makes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodedKey(pub(super) KeyBytes);

/// A cut between keys: before all keys that begin with its columns, and after all lesser ones. Without
/// columns it is before the first key. [`crate::KeyType::bound`] makes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound(pub(super) KeyBytes);

impl EncodedKey {
    /// The bytes, in whose order keys are.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Bound {
    /// The cut before the first key.
    pub fn first() -> Self {
        Bound(KeyBytes::new())
    }

    /// The bytes, in whose order bounds and keys are.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is before the first key.
    pub fn is_first(&self) -> bool {
        self.0.is_empty()
    }
}

impl Borrow<[u8]> for EncodedKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Bound {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EncodedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "EncodedKey({})", to_hex(&self.0))
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Bound({})", to_hex(&self.0))
    }
}
