//! Files of settings, read whole: no more of one than shows that it is too large.

use settings_file::FILE_SIZE_BYTES_MAX;
use std::io::{self, Read};
use std::path::Path;

/// The text of the file; of one that is too large, one byte more than it may have.
pub(crate) fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_SIZE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}
