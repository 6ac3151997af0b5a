//! Files that settings name, read whole: settings, rules, accounts, certificates.
//!
//! What always holds: a file that may have no end, or that nobody writes to, such as a device or a FIFO, is
//! refused before anything of it is read; no more of one is read than shows that it is too large.

use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The bytes of a regular file that has `size_bytes_max` at most.
pub(crate) fn read_bounded(path: &Path, size_bytes_max: usize) -> io::Result<Vec<u8>> {
    // To open a FIFO waits for a writer, unless it is opened so; of a regular file it changes nothing.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut content = Vec::new();
    file.take(size_bytes_max as u64 + 1).read_to_end(&mut content)?;
    if content.len() > size_bytes_max {
        let what = format!("it has more than {size_bytes_max} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(content)
}

/// The same as text.
pub(crate) fn read_text_bounded(path: &Path, size_bytes_max: usize) -> io::Result<String> {
    let content = read_bounded(path, size_bytes_max)?;
    String::from_utf8(content).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A FIFO in the place of a file of settings held up the server that was to read it again.
    #[test]
    fn files_are_regular_and_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, content: &[u8]| std::fs::write(path(name), content).expect("a file");
        write("fits", b"1234");
        write("large", b"12345");
        write("bytes", &[0xff]);
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).expect("a FIFO");
        std::os::unix::fs::symlink("fits", path("link")).expect("a link");
        for (name, expected) in [
            ("fits", Ok("1234")),
            ("link", Ok("1234")),
            ("large", Err("it has more than 4 bytes")),
            ("bytes", Err("it is not UTF-8 text")),
            ("fifo", Err("it is no regular file")),
            ("/dev/zero", Err("it is no regular file")),
            (".", Err("is a directory")),
            ("absent", Err("No such file")),
        ] {
            match (read_text_bounded(&path(name), 4), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{name}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{name}: {error}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
        assert_eq!(read_bounded(&path("bytes"), 1).expect("a file"), [0xff]);
    }
}
