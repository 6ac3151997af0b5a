//! The cached map.

pub(crate) mod cached_map;
pub(crate) mod choose_read;
pub(crate) mod error;
pub(crate) mod map_read;
pub(crate) mod negative;
pub(crate) mod settings;
