//! A file for a report: opened before the run, so that a mistake shows at once, and written after it.
//!
//! What always holds: what was in the file stays until there is a report; a new file without one is removed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An open file.
pub(super) struct OutputFile {
    path: PathBuf,
    file: File,
    /// It was made, and nothing is in it yet.
    is_empty: bool,
}

impl OutputFile {
    /// Opens it, or makes it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let opened = File::options().write(true).create_new(true).open(path);
        let (file, is_empty) = match opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (File::options().write(true).open(path)?, false)
            }
            opened => (opened?, true),
        };
        Ok(OutputFile { path: path.to_owned(), file, is_empty })
    }

    /// Replaces its content. An error names it.
    pub(super) fn write(mut self, content: &str) -> io::Result<()> {
        self.is_empty = false;
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{} can't be written: {error}", self.path.display()))
        };
        // Of a device or a pipe there is nothing to cut off.
        let _ = self.file.set_len(0);
        self.file.write_all(content.as_bytes()).map_err(named)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_empty {
            // It stays, empty, if it can't be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_a_report_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report");
        drop(OutputFile::open(&path).expect("a new file"));
        assert!(!path.exists());
        OutputFile::open(&path).expect("a new file").write("a longer report").expect("written");
        drop(OutputFile::open(&path).expect("the same file"));
        assert_eq!(std::fs::read_to_string(&path).expect("a report"), "a longer report");
        OutputFile::open(&path).expect("the same file").write("short").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("a report"), "short");
        assert!(OutputFile::open(folder.path()).is_err());
        assert!(OutputFile::open(&folder.path().join("no/folder")).is_err());
    }
}
