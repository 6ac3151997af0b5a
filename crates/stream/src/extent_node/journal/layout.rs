//! The journal's files and kinds of records; `mod.rs` draws their bytes. Writer and recovery share them.

/// Files of the journal.
pub(crate) const SEGMENT_COUNT: usize = 3;

/// Path of the `index`th file.
pub(crate) fn segment_path(index: usize) -> String {
    format!("journal/{index}")
}

pub(super) const KIND_HEADER_1: u8 = 0;
pub(super) const KIND_GROUP: u8 = 1;
pub(super) const KIND_HEADER: u8 = 2;
