//! Canonical rows, and digests of sets of rows.

pub(crate) mod canonical;
pub(crate) mod row_hasher;
pub(crate) mod table_digest;
