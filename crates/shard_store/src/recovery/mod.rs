//! From the map to the shards, and back: bringing shards' copies up to the map, and a lost or old map up to
//! the shards.

pub(crate) mod choose_writes;
pub(crate) mod claims;
pub(crate) mod detach;
pub(crate) mod differences;
pub(crate) mod losses;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod recovered;
