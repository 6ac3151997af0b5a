//! Keys: their kinds, values, encoding, and the hash that spreads them.

pub(crate) mod columns;
pub(crate) mod encoded;
pub(crate) mod error;
pub(crate) mod hash;
pub(crate) mod hex;
pub(crate) mod key_type;
pub(crate) mod kind;
pub(crate) mod value;
