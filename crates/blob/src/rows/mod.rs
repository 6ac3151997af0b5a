//! What is stored of a blob: a file for each family of rows, the record that several of them hold, and the
//! decisions over all rows of one name.

pub(crate) mod blob_address;
pub(crate) mod blob_change;
pub(crate) mod blob_operation;
pub(crate) mod blob_rows;
pub(crate) mod chunk_row;
pub(crate) mod fields;
pub(crate) mod former_row;
pub(crate) mod head_row;
#[cfg(test)]
pub(crate) mod memory_blob;
pub(crate) mod record;
pub(crate) mod region_row;
pub(crate) mod revision;
pub(crate) mod row_names;
pub(crate) mod row_request;
pub(crate) mod staged_row;
pub(crate) mod stop;
pub(crate) mod visible_rows;
