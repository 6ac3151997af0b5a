//! Files of entities, and of states of unfinished work.

pub(crate) mod output;
pub(crate) mod records;
pub(crate) mod state_file;
