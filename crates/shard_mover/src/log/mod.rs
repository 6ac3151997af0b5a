//! What is stored of moves: records that are put once, beside the map.

pub(crate) mod id;
pub(crate) mod keys;
pub(crate) mod move_log;
pub(crate) mod position;
pub(crate) mod state;
