//! Rows of staged blocks: uploaded, and in no list of blocks yet.
//!
//! ```text
//! row name = 5u ID   ID is the block's id in hexadecimal digits
//! ```

/// Start of the row names of staged blocks.
pub(crate) const STAGED_PREFIX: &str = "5u";

/// Row name of a staged block.
pub(crate) fn staged_row(id: &[u8]) -> String {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{STAGED_PREFIX}{digits}")
}
