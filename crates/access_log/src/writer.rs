//! The thread that writes the access log: it opens the file, appends, puts it aside when it is large, and
//! opens it again when it was moved or removed.
//!
//! What always holds: a failure is one line of the log, and another one once it works again, with how many
//! lines are lost; a file that is full holds whole lines only.

use crate::buffer::{LineBuffer, Waiting};
use crate::settings::{AccessTarget, Announce};
use rustix::fs::OFlags;
use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Lines are written after so long at the latest.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// Files that were put aside and are kept: FILE.1 is the latest.
const KEPT_COUNT_MAX: u32 = 4;
/// The end of the process waits so long for the last lines.
const CLOSE_FOR_MAX: Duration = Duration::from_secs(2);
/// Who asked for what is nobody else's matter.
const OWN_FILE_MODE: u32 = 0o600;

/// The thread, from outside.
#[derive(Debug)]
pub(crate) struct WriterThread {
    buffer: Arc<LineBuffer>,
    reopens: Arc<AtomicBool>,
    /// Disconnected when it has ended.
    ended: Receiver<()>,
}

impl WriterThread {
    pub(crate) fn start(
        buffer: Arc<LineBuffer>,
        target: AccessTarget,
        size_max: u64,
        announce: Announce,
    ) -> io::Result<Self> {
        let reopens = Arc::new(AtomicBool::new(false));
        let (sender, ended) = sync_channel(0);
        let mut writer = Writer::new(target, size_max, announce);
        let (lines, reopened) = (buffer.clone(), reopens.clone());
        let run = move || {
            let _sender = sender;
            writer.run(&lines, &reopened);
        };
        std::thread::Builder::new().name("access-log".to_owned()).spawn(run)?;
        Ok(WriterThread { buffer, reopens, ended })
    }

    pub(crate) fn reopen(&self) {
        self.reopens.store(true, Ordering::Relaxed);
    }

    pub(crate) fn close(self) {
        self.buffer.close();
        // A disk that does not answer holds up no end.
        let _ = self.ended.recv_timeout(CLOSE_FOR_MAX);
    }
}

/// A file that is open.
struct Opened {
    file: File,
    size_bytes: u64,
}

struct Writer {
    target: AccessTarget,
    size_max: u64,
    file: Option<Opened>,
    /// Lines lost since it failed.
    lost: u64,
    has_failed: bool,
    /// Whether the file could not be put aside the last time.
    grows: bool,
    announce: Announce,
}

impl Writer {
    fn new(target: AccessTarget, size_max: u64, announce: Announce) -> Self {
        Writer { target, size_max, file: None, lost: 0, has_failed: false, grows: false, announce }
    }

    fn run(&mut self, buffer: &LineBuffer, reopens: &AtomicBool) {
        let mut memory = Vec::new();
        loop {
            let Waiting { mut bytes, lines, is_closed } = buffer.take(memory, WRITE_EVERY);
            if reopens.swap(false, Ordering::Relaxed) {
                self.file = None;
            }
            if lines > 0 {
                match self.write(&bytes) {
                    Ok(()) => {
                        buffer.counts.written.add(lines);
                        self.note_success();
                    }
                    Err(error) => {
                        buffer.counts.lost.add(lines);
                        self.note_failure(lines, &error);
                    }
                }
            }
            if is_closed {
                return;
            }
            bytes.clear();
            memory = bytes;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let AccessTarget::File(path) = self.target.clone() else {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            return out.flush();
        };
        if self.file.as_ref().is_some_and(|opened| !is_at(&path, &opened.file)) {
            self.file = None;
        }
        let opened = match &mut self.file {
            Some(opened) => opened,
            None => self.file.insert(open(&path)?),
        };
        if let Err(error) = opened.file.write_all(bytes) {
            // Half a line would spoil the next one, too. What can't be cut off is a device.
            let _ = opened.file.set_len(opened.size_bytes);
            return Err(error);
        }
        opened.size_bytes += bytes.len() as u64;
        if self.size_max > 0 && opened.size_bytes >= self.size_max {
            let rotated = put_aside(&path);
            self.note_rotation(&path, rotated);
        }
        Ok(())
    }

    /// A file that can't be put aside goes on growing: its lines are there, so they are not lost.
    fn note_rotation(&mut self, path: &Path, rotated: io::Result<()>) {
        match rotated {
            Ok(()) => {
                self.file = None;
                self.grows = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.grows, true) {
                    let path = path.display();
                    (self.announce)(&format!(
                        "the access log {path} grows over its size, it can't be renamed: {error}"
                    ));
                }
            }
        }
    }

    fn note_failure(&mut self, lines: u64, error: &io::Error) {
        self.lost += lines;
        if !self.has_failed {
            self.has_failed = true;
            (self.announce)(&format!(
                "the access log ({}) can't be written, its lines are left out and counted until it can: {error}",
                self.target
            ));
        }
    }

    fn note_success(&mut self) {
        if std::mem::take(&mut self.has_failed) {
            let lost = std::mem::take(&mut self.lost);
            (self.announce)(&format!(
                "the access log ({}) is written again; {lost} lines are lost",
                self.target
            ));
        }
    }
}

/// Opens the file, or makes it. It waits for nobody: a pipe would, for its reader, and is refused.
fn open(path: &Path) -> io::Result<Opened> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = File::options().append(true).create(true).mode(OWN_FILE_MODE).custom_flags(flags).open(path);
    let is_pipe = |kind: FileType| kind.is_fifo() || kind.is_socket();
    let refused = || io::Error::new(ErrorKind::InvalidInput, "it is a pipe, whose reader could stop the log");
    let file = match opened {
        // Of a pipe without a reader.
        Err(_) if std::fs::metadata(path).is_ok_and(|found| is_pipe(found.file_type())) => {
            return Err(refused());
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    if is_pipe(found.file_type()) {
        return Err(refused());
    }
    Ok(Opened { file, size_bytes: found.len() })
}

/// Whether lines can be written to the file, which is made unless it is there.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    open(path).map(drop)
}

/// Whether the path still names this file.
fn is_at(path: &Path, file: &File) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}

/// Makes the file FILE.1, that one FILE.2, and so on; the oldest goes.
fn put_aside(path: &Path) -> io::Result<()> {
    let kept = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..KEPT_COUNT_MAX).rev() {
        match std::fs::rename(kept(number), kept(number + 1)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, kept(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::LineCounts;

    fn writer(path: &Path, size_max: u64) -> Writer {
        let target = AccessTarget::File(path.to_owned());
        Writer::new(target, size_max, |_| {})
    }

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn files_are_put_aside_by_size_and_the_oldest_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let mut writer = writer(&path, 4);
        for number in 0..8 {
            writer.write(format!("a{number}\n").as_bytes()).expect("written");
        }
        assert_eq!(text(&path), "");
        let aside = |number: u32| text(&folder.path().join(format!("access.log.{number}")));
        assert_eq!([1, 2, 3, 4].map(aside), ["a6\na7\n", "a4\na5\n", "a2\na3\n", "a0\na1\n"]);
        for number in 8..10 {
            writer.write(format!("a{number}\n").as_bytes()).expect("written");
        }
        assert_eq!((aside(1), aside(4), aside(5)), ("a8\na9\n".into(), "a2\na3\n".into(), String::new()));
    }

    #[test]
    fn a_file_that_can_not_be_put_aside_grows_and_loses_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        // A folder is where the oldest file should go.
        let in_the_way = folder.path().join("access.log.4");
        std::fs::create_dir(&in_the_way).expect("a folder");
        std::fs::write(folder.path().join("access.log.3"), b"old\n").expect("a file");
        let mut writer = writer(&path, 4);
        for number in 0..4 {
            writer.write(format!("a{number}\n").as_bytes()).expect("written");
        }
        assert_eq!((text(&path).as_str(), writer.grows), ("a0\na1\na2\na3\n", true));
        std::fs::remove_dir(&in_the_way).expect("removed");
        writer.write(b"a4\n").expect("written");
        assert_eq!((text(&path).as_str(), writer.grows), ("", false));
    }

    #[test]
    fn a_file_that_was_moved_or_removed_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let mut writer = writer(&path, 0);
        writer.write(b"one\n").expect("written");
        std::fs::rename(&path, folder.path().join("moved")).expect("moved");
        writer.write(b"two\n").expect("written");
        assert_eq!((text(&folder.path().join("moved")), text(&path)), ("one\n".into(), "two\n".into()));
        std::fs::remove_file(&path).expect("removed");
        writer.write(b"three\n").expect("written");
        assert_eq!(text(&path), "three\n");
        let mode = std::fs::metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o777, OWN_FILE_MODE);
    }

    /// The thread waited for the pipe's reader for ever.
    #[test]
    fn a_pipe_in_place_of_the_file_is_an_error_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe");
        let mut writer = writer(&path, 0);
        assert_eq!(writer.write(b"one\n").expect_err("refused").kind(), ErrorKind::InvalidInput);
        let reader = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
        assert!(reader.is_ok() && check(&path).is_err(), "with a reader, too");
        std::fs::remove_file(&path).expect("removed");
        writer.write(b"two\n").expect("written");
        assert_eq!(text(&path), "two\n");
    }

    #[test]
    fn what_a_full_disk_refuses_is_lost_and_counted() {
        let metrics = base::Metrics::default();
        let buffer = LineBuffer::new(LineCounts::new(&metrics));
        let mut writer = writer(Path::new("/dev/full"), 0);
        buffer.push(b"one\n");
        buffer.push(b"two\n");
        buffer.close();
        writer.run(&buffer, &AtomicBool::new(false));
        assert_eq!((writer.lost, writer.has_failed), (2, true));
        let folder = tempfile::tempdir().expect("a folder");
        writer.target = AccessTarget::File(folder.path().join("access.log"));
        writer.write(b"three\n").expect("written");
        writer.note_success();
        assert_eq!((writer.lost, writer.has_failed), (0, false));
        assert!(self::writer(&folder.path().join("absent/access.log"), 0).write(b"x").is_err());
    }
}
