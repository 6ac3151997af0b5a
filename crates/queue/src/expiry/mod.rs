//! Expired messages: the sweep that looks for them and the operations that remove them.

pub(crate) mod remove_expired;
pub(crate) mod sweep;
