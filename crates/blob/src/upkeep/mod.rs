//! Upkeep: what is removed in the background, because it expired, or because its bytes are lost.

pub(crate) mod remove_expired;
pub(crate) mod remove_lost;
pub(crate) mod sweep;
