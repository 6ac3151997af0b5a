//! Entities of a file, as many as are worked on at once: lines of JSON, whatever the file's format.

/// Bytes of a window, about.
pub(crate) const WINDOW_SIZE_BYTES: usize = 4 << 20;

/// Lines of JSON, one after the other.
pub(crate) struct Window {
    pub(crate) text: Vec<u8>,
    /// Where each line is in the text, and which line of the file it is, from 1; of Parquet which row.
    pub(crate) lines: Vec<Line>,
    /// Where the next window begins in the file.
    pub(crate) end: u64,
}

/// A line of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: std::ops::Range<usize>,
    pub(crate) number: u64,
    /// Where it ends in the file: bytes, of Parquet rows.
    pub(crate) file_end: u64,
}
