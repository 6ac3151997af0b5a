//! Large writes past the page cache, and reads of what is not read again soon: copying such bytes into the
//! cache and out again costs several times the transfer itself, in processor time and in the bandwidth of the
//! disk, and makes the syncs of others wait.
//!
//! What always holds: the file holds the same bytes as after an ordinary write, durable after the same sync.
//! The kernel transfers whole pages only, to and from aligned memory, so what a write has before its first
//! and behind its last whole page goes through the cache. Where the kernel or the file system refuses, all of
//! it does. Bytes that are not where the kernel takes them from are copied first; [`write_buffer`] makes room
//! where they need not be.

use bytes::Bytes;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Smaller writes go through the page cache: for them the copy is cheap.
const DIRECT_SIZE_BYTES_MIN: usize = 64 << 10;
/// Offset, length and memory are multiples of this: the page, and no disk has larger blocks. Whoever writes
/// from such a place to such an offset spares the disk a copy.
pub const WRITE_ALIGNMENT: usize = 4096;
/// Bytes are copied to aligned memory, and written, in pieces of this size, which stay in the processor's
/// cache. What the journal writes meanwhile waits for one piece of each other writer at most.
const PIECE_SIZE_BYTES: usize = 256 << 10;

/// Memory of one piece at an aligned address.
struct Piece {
    memory: Vec<u8>,
    start: usize,
}

thread_local! {
    static PIECE: RefCell<Option<Piece>> = const { RefCell::new(None) };
}

impl Piece {
    fn new() -> Self {
        let memory = vec![0; PIECE_SIZE_BYTES + WRITE_ALIGNMENT];
        let start = memory.as_ptr().align_offset(WRITE_ALIGNMENT);
        Piece { memory, start }
    }

    /// `bytes` at an aligned address.
    fn hold(&mut self, bytes: &[u8]) -> &[u8] {
        let place = &mut self.memory[self.start..][..bytes.len()];
        place.copy_from_slice(bytes);
        place
    }
}

/// A buffer with room for `len` bytes that will be written at `offset`, and where they start in it: behind so
/// many bytes without meaning that the real disk takes a large write from here and need not copy it.
pub fn write_buffer(offset: u64, len: usize) -> (Vec<u8>, usize) {
    let mut buffer: Vec<u8> = Vec::with_capacity(len + WRITE_ALIGNMENT);
    let in_page = (offset % WRITE_ALIGNMENT as u64) as usize;
    let start = (buffer.as_ptr().align_offset(WRITE_ALIGNMENT) + in_page) % WRITE_ALIGNMENT;
    buffer.resize(start, 0);
    (buffer, start)
}

/// Exactly `len` bytes from `offset`, which will not be read again soon.
pub(crate) fn read_exact_at(file: &File, offset: u64, len: usize) -> io::Result<Bytes> {
    let head = (offset % WRITE_ALIGNMENT as u64) as usize;
    if len >= DIRECT_SIZE_BYTES_MIN
        && let Ok(pages) = open_direct(file, OpenOptions::new().read(true))
            .and_then(|direct| read_pages(&direct, offset - head as u64, head + len))
    {
        return Ok(pages.slice(head..));
    }
    let mut buffer = vec![0; len];
    file.read_exact_at(&mut buffer, offset)?;
    Ok(buffer.into())
}

/// Memory of large reads that is used again: zeroing it, and having the kernel find pages for it, costs as
/// much as a copy.
mod read_memory {
    use super::WRITE_ALIGNMENT;
    use bytes::{Bytes, BytesMut};
    use parking_lot::Mutex;

    /// What compactions read of a checkpoint at once, the more checkpoints the less, and pages around it.
    /// What is larger gets memory of its own.
    const SIZES_BYTES: [usize; 4] =
        [with_pages(64 << 10), with_pages(128 << 10), with_pages(256 << 10), SIZE_BYTES];
    const SIZE_BYTES: usize = with_pages(512 << 10);
    /// All that is kept, in use or not: what a compaction reads ahead of all its checkpoints, and pages.
    const KEPT_SIZE_BYTES_MAX: usize = 16 * SIZE_BYTES;

    const fn with_pages(size_bytes: usize) -> usize {
        size_bytes + 4 * WRITE_ALIGNMENT
    }

    /// Those that are in use too; nobody else refers to the others.
    static KEPT: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());

    /// At least `len` bytes of whatever content.
    pub(super) fn take(len: usize) -> BytesMut {
        let Some(size) = SIZES_BYTES.into_iter().find(|size| *size >= len) else {
            return BytesMut::zeroed(len);
        };
        let mut kept = KEPT.lock();
        let free = kept.iter().position(|memory| memory.len() == size && memory.is_unique());
        let free = free.map(|index| kept.swap_remove(index));
        drop(kept);
        let free = free.and_then(|free| free.try_into_mut().ok());
        free.unwrap_or_else(|| BytesMut::zeroed(size))
    }

    /// The bytes that were read; once nobody has them any more, [`take`] gives their memory out again.
    pub(super) fn keep(memory: BytesMut) -> Bytes {
        let memory = memory.freeze();
        if SIZES_BYTES.contains(&memory.len()) {
            keep_in(&mut KEPT.lock(), &memory);
        }
        memory
    }

    /// Unused memory of another size makes room: the next reads are likely to be like this one.
    fn keep_in(kept: &mut Vec<Bytes>, memory: &Bytes) {
        let mut size_bytes: usize = kept.iter().map(Bytes::len).sum();
        while size_bytes + memory.len() > KEPT_SIZE_BYTES_MAX {
            let is_unused = |other: &Bytes| other.len() != memory.len() && other.is_unique();
            let Some(unused) = kept.iter().position(is_unused) else { return };
            size_bytes -= kept.swap_remove(unused).len();
        }
        kept.push(memory.clone());
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_is_kept_is_bounded_whatever_the_sizes() {
            let mut kept = Vec::new();
            let size_bytes = |kept: &[Bytes]| kept.iter().map(Bytes::len).sum::<usize>();
            let small: Vec<Bytes> = (0..500).map(|_| Bytes::from(vec![0; SIZES_BYTES[0]])).collect();
            small.iter().for_each(|memory| keep_in(&mut kept, memory));
            assert!(kept.len() < small.len() && size_bytes(&kept) <= KEPT_SIZE_BYTES_MAX);
            let large = Bytes::from(vec![0; SIZE_BYTES]);
            let before = kept.len();
            keep_in(&mut kept, &large);
            assert_eq!(kept.len(), before, "all is in use");
            drop(small);
            keep_in(&mut kept, &large);
            assert!(kept.len() < before && kept.iter().any(|memory| memory.len() == SIZE_BYTES));
            assert!(size_bytes(&kept) <= KEPT_SIZE_BYTES_MAX);
        }
    }
}

/// `len` bytes from `offset`, which is aligned. The pages are read to their end, or to the file's.
fn read_pages(direct: &File, offset: u64, len: usize) -> io::Result<Bytes> {
    let size = len.next_multiple_of(WRITE_ALIGNMENT);
    let mut memory = read_memory::take(size + WRITE_ALIGNMENT);
    let start = memory.as_ptr().align_offset(WRITE_ALIGNMENT);
    let mut read = 0;
    while read < len {
        let rest = &mut memory[start + read..start + size];
        match direct.read_at(rest, offset + read as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    Ok(read_memory::keep(memory).slice(start..start + len))
}

/// After so many large writes a file keeps the descriptor for them, one for as long as it is open: opening it
/// anew takes each write some ten microseconds. More than most extents ever have, of which there are many, so
/// that the journal's few files are nearly the only ones with two.
const LARGE_WRITES_BEFORE_KEPT: u32 = 1000;

/// What a file has for its large writes.
#[derive(Default)]
pub(crate) struct LargeWrites {
    count: AtomicU32,
    kept: OnceLock<File>,
}

impl LargeWrites {
    /// Has pages of the file written past the page cache.
    fn write(&self, file: &File, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        if let Some(kept) = self.kept.get() {
            return write(kept);
        }
        let direct = open_direct(file, OpenOptions::new().write(true))?;
        write(&direct)?;
        if self.count.fetch_add(1, Ordering::Relaxed) >= LARGE_WRITES_BEFORE_KEPT {
            self.kept.get_or_init(|| direct);
        }
        Ok(())
    }
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(file: &File, large: &LargeWrites, bytes: &[u8], offset: u64) -> io::Result<()> {
    let Some((head, pages)) = whole_pages(offset, bytes.len()) else {
        return file.write_all_at(bytes, offset);
    };
    let at = |index: usize| offset + index as u64;
    let written = large.write(file, |direct| write_pages(direct, &bytes[head..pages], at(head)));
    match written {
        Ok(()) => {
            file.write_all_at(&bytes[..head], offset)?;
            file.write_all_at(&bytes[pages..], at(pages))
        }
        // No room and a broken disk are what they are; anything else is a refusal, and an ordinary write says
        // more.
        Err(error) if is_final(&error) => Err(error),
        Err(_) => file.write_all_at(bytes, offset),
    }
}

/// Start and end, in the bytes of a write, of its whole pages; `None`: it is too small.
fn whole_pages(offset: u64, len: usize) -> Option<(usize, usize)> {
    let head = (offset.next_multiple_of(WRITE_ALIGNMENT as u64) - offset) as usize;
    let tail = (offset % WRITE_ALIGNMENT as u64) as usize + len;
    let pages = len.checked_sub(tail % WRITE_ALIGNMENT)?;
    (pages >= head + DIRECT_SIZE_BYTES_MIN).then_some((head, pages))
}

/// The same file, past the page cache. By its descriptor, because its name may have changed.
fn open_direct(file: &File, options: &mut OpenOptions) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    options.custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32).open(path)
}

fn write_pages(direct: &File, pages: &[u8], offset: u64) -> io::Result<()> {
    let pieces = pages.chunks(PIECE_SIZE_BYTES);
    let mut pieces = pieces.zip((offset..).step_by(PIECE_SIZE_BYTES));
    if pages.as_ptr().align_offset(WRITE_ALIGNMENT) == 0 {
        return pieces.try_for_each(|(bytes, offset)| direct.write_all_at(bytes, offset));
    }
    PIECE.with_borrow_mut(|piece| {
        let piece = piece.get_or_insert_with(Piece::new);
        pieces.try_for_each(|(bytes, offset)| direct.write_all_at(piece.hold(bytes), offset))
    })
}

/// Whether an ordinary write would fail alike.
fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let broken = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    broken || matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_of_a_write() {
        let large = DIRECT_SIZE_BYTES_MIN;
        let cases = [
            (0, large, Some((0, large))),
            (0, large - 1, None),
            (0, large + 1, Some((0, large))),
            (1, large, None),
            (1, large + WRITE_ALIGNMENT, Some((WRITE_ALIGNMENT - 1, large + WRITE_ALIGNMENT - 1))),
            (WRITE_ALIGNMENT as u64, large + 5, Some((0, large))),
            (10 * WRITE_ALIGNMENT as u64 - 7, large + 7, Some((7, large + 7))),
            (3, 0, None),
            (3, 5, None),
        ];
        for (offset, len, expected) in cases {
            assert_eq!(whole_pages(offset, len), expected, "{len} bytes at {offset}");
            if let Some((head, pages)) = expected {
                assert!((offset + head as u64).is_multiple_of(WRITE_ALIGNMENT as u64));
                assert!((pages - head).is_multiple_of(WRITE_ALIGNMENT));
                assert!(head < WRITE_ALIGNMENT && len - pages < WRITE_ALIGNMENT);
            }
        }
    }

    /// Against a plain model: writes of all sizes at odd places, over each other and beyond the end, read
    /// back after each one, with neighbours that are in the page cache and with ones that are not.
    #[test]
    fn a_file_holds_what_was_written_whichever_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut model: Vec<u8> = Vec::new();
        let mut state = 1;
        // Half of the rounds come after the descriptor is kept.
        let large_writes = LargeWrites::default();
        for round in 0..200u64 {
            if round == 100 {
                large_writes.count.store(LARGE_WRITES_BEFORE_KEPT, Ordering::Relaxed);
            }
            let mut draw = |bound: u64| crate::random::splitmix64(&mut state) % bound;
            let large = draw(3) > 0;
            let len = draw(if large { 3 << 20 } else { 9000 }) as usize;
            let place = draw(model.len() as u64 + 5000);
            let end = [place, model.len() as u64, place & !4095][draw(3) as usize];
            let bytes: Vec<u8> = (0..len).map(|index| (index as u64 * 31 + round) as u8).collect();
            if draw(2) > 0 {
                write_all_at(&file, &large_writes, &bytes, end).unwrap();
            } else {
                let (mut buffer, start) = write_buffer(end, len);
                let place = buffer.as_ptr();
                buffer.extend_from_slice(&bytes);
                assert_eq!(buffer.as_ptr(), place, "there was room");
                assert!(
                    (buffer[start..].as_ptr().addr() as u64 ^ end).is_multiple_of(WRITE_ALIGNMENT as u64)
                );
                write_all_at(&file, &large_writes, &buffer[start..], end).unwrap();
            }
            let end = end as usize;
            model.resize(model.len().max(end + len), 0);
            model[end..end + len].copy_from_slice(&bytes);
            if round % 2 == 0 {
                assert!(std::fs::read(&path).unwrap() == model, "{len} bytes at {end}, round {round}");
            }
            let from = draw(model.len() as u64 + 1) as usize;
            let count = draw((model.len() - from) as u64 + 1) as usize;
            let read = read_exact_at(&file, from as u64, count).unwrap();
            assert!(read == model[from..from + count], "{count} bytes from {from}, round {round}");
            assert!(read_exact_at(&file, from as u64, model.len() - from + 1).is_err());
            if model.len() > 12 << 20 {
                model.truncate(5 << 20);
                file.set_len(5 << 20).unwrap();
            }
        }
        // Unless this file system knows no such writes.
        let is_refused = open_direct(&file, OpenOptions::new().write(true)).is_err();
        assert!(is_refused || large_writes.kept.get().is_some());
    }

    #[test]
    fn memory_of_a_read_is_left_alone_while_somebody_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..2u32 << 20).map(|index| (index % 253) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        // More than are kept, all in use; then again, when none is.
        for _ in 0..2 {
            let mut reads = Vec::new();
            for index in 0..40 {
                let (offset, len) = (index * 1000, [64 << 10, 300_001, 512 << 10, 1 << 20][index % 4]);
                reads.push((offset, len, read_exact_at(&file, offset as u64, len).unwrap()));
            }
            for (offset, len, read) in reads {
                assert!(read == content[offset..offset + len], "{len} bytes at {offset}");
            }
        }
    }

    /// A renamed file was once at risk: its old name may belong to another one by now.
    #[test]
    fn a_renamed_file_gets_its_writes() {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let file = File::options().read(true).write(true).create_new(true).open(&before).unwrap();
        std::fs::rename(&before, &after).unwrap();
        std::fs::write(&before, b"another").unwrap();
        let bytes = vec![7; 2 * PIECE_SIZE_BYTES + 11];
        write_all_at(&file, &LargeWrites::default(), &bytes, 5).unwrap();
        assert_eq!(std::fs::read(&after).unwrap()[5..], bytes);
        assert_eq!(std::fs::read(&before).unwrap(), b"another");
        std::fs::remove_file(&after).unwrap();
        write_all_at(&file, &LargeWrites::default(), &bytes, 5).unwrap();
    }
}
