//! What is stored of a blob: the rows, their keys, and the encoding of their values.

pub(crate) mod blob_rows;
pub(crate) mod fields;
pub(crate) mod record;
pub(crate) mod row_names;
