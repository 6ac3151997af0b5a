//! What the backends over SQL share: which keys a scan reads, and the texts of statements.

pub(crate) mod statement;
pub(crate) mod window;
