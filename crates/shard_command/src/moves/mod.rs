//! Plans, moves and rules of integrity, as commands.

pub(crate) mod document;
pub(crate) mod operation;
pub(crate) mod outcome;
pub(crate) mod progress_text;
pub(crate) mod request;
