//! What backends can do, and what follows for moves between them.

pub(crate) mod capabilities;
pub(crate) mod choose_move;
