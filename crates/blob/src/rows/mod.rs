//! What is stored of a blob: a file for each family of rows, the record that several of them hold, and in
//! `decision` how all rows of one name are decided over.

pub(crate) mod blob_address;
pub(crate) mod chunk_row;
pub(crate) mod decision;
pub(crate) mod fields;
pub(crate) mod former_row;
pub(crate) mod head_row;
pub(crate) mod record;
pub(crate) mod region_row;
pub(crate) mod revision;
pub(crate) mod row_names;
pub(crate) mod staged_row;
