//! One damage to a data folder: chosen by a seed from what the folder holds, then done to a copy. What always
//! holds: the same folder and seed give the same damage, and choosing reads nothing but the image.

use super::image::{FileImage, Image, PAGE_SIZE_BYTES};
use crate::Outcome;
use base::random::splitmix64;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Start of a file that has its headers and tables.
const HEAD_SIZE_BYTES: u64 = 64 << 10;
/// Where the header of a file's first block or record lies.
const HEADER_SIZE_BYTES: u64 = 64;
/// What each record of the journal and of the stream manager's log begins with; its generation and sequence
/// number follow at 8 and 16. A log with other records has no last ones here, and is damaged anywhere.
const RECORD_MAGIC: &[u8] = b"LRC";
/// A record's header and the first bytes behind it.
const RECORD_START_SIZE_BYTES: u64 = 66;
/// So many of a log's newest records are worth a damage of their own.
const LAST_RECORDS: usize = 3;
const LARGE_ZEROED_SIZE_BYTES: u64 = 64 << 10;
const SECTOR_TRIES_MAX: usize = 16;
/// Holds the process id of a server, and nothing that is stored.
const LOCK: &str = "LOCK";
pub(crate) const FORMAT: &str = "FORMAT";

/// Groups of damages that the command line knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Class {
    /// No damage at all.
    Control,
    /// One flipped bit.
    Flip,
    /// One flipped bit in the start of one of the journal's newest records.
    Tail,
    /// One zeroed sector of 512 or 4096 bytes.
    Sector,
    /// One file cut, deleted, swapped with another, or 64 KiB of it zeroed.
    File,
}

/// What is done to a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Nothing,
    Flip { file: String, offset: u64, bit: u8 },
    Zero { file: String, offset: u64, size: u64 },
    Cut { file: String, size: u64 },
    Delete { file: String },
    Swap { file: String, other: String },
}

impl Damage {
    /// The row of the summary that it belongs to.
    pub(crate) fn row(&self) -> &'static str {
        match self {
            Damage::Nothing => "control",
            Damage::Flip { .. } => "flipped bit",
            Damage::Zero { size: LARGE_ZEROED_SIZE_BYTES, .. } => "64 KiB zeroed",
            Damage::Zero { .. } => "sector zeroed",
            Damage::Cut { size: 0, .. } => "file cut to 0",
            Damage::Cut { .. } => "file cut",
            Damage::Delete { .. } => "file deleted",
            Damage::Swap { .. } => "files swapped",
        }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damage::Nothing => write!(f, "no damage"),
            Damage::Flip { file, offset, bit } => write!(f, "{file}: bit {bit} of byte {offset} flipped"),
            Damage::Zero { file, offset, size } => write!(f, "{file}: {size} bytes from {offset} zeroed"),
            Damage::Cut { file, size } => write!(f, "{file}: cut to {size} bytes"),
            Damage::Delete { file } => write!(f, "{file}: deleted"),
            Damage::Swap { file, other } => write!(f, "{file}: swapped with {other}"),
        }
    }
}

fn below(random: &mut u64, bound: usize) -> usize {
    (splitmix64(random) % bound.max(1) as u64) as usize
}

fn is_shared(file: &FileImage) -> bool {
    file.path == FORMAT || file.path.starts_with("stream_manager/") || file.path.starts_with("journal/")
}

/// Chooses one damage of a class.
pub(crate) fn choose(class: Class, image: &Image, random: &mut u64) -> Damage {
    let files: Vec<&FileImage> = image.files.iter().filter(|file| file.path != LOCK).collect();
    let chosen = match class {
        Class::Control => Some(Damage::Nothing),
        Class::Flip => choose_flip(&files, random),
        Class::Tail => choose_tail_flip(&files, random),
        Class::Sector => choose_sector(&files, random),
        Class::File => choose_file_damage(&files, random),
    };
    chosen.unwrap_or(Damage::Nothing)
}

/// A byte of a used page: half uniformly over all, a quarter in the heads of files, a quarter in what all
/// ranges share, where the last records matter most: only they can be taken for never written.
fn choose_place(files: &[&FileImage], random: &mut u64) -> Option<(String, u64)> {
    let place = match below(random, 4) {
        0 | 1 => place_in(files, u64::MAX, random),
        2 => {
            let used: Vec<&FileImage> = files.iter().filter(|file| !file.pages.is_empty()).copied().collect();
            let file = used.get(below(random, used.len()))?;
            let until =
                if splitmix64(random).is_multiple_of(2) { HEADER_SIZE_BYTES } else { HEAD_SIZE_BYTES };
            place_in(&[*file], until, random)
        }
        _ => {
            let folders =
                ["FORMAT", "stream_manager/", "stream_manager/", "journal/", "journal/", "journal/"];
            let folder = folders[below(random, folders.len())];
            let shared: Vec<&FileImage> =
                files.iter().filter(|file| file.path.starts_with(folder)).copied().collect();
            match splitmix64(random).is_multiple_of(2) {
                true => place_in_last_record(&shared, random),
                false => None,
            }
            .or_else(|| place_in(&shared, u64::MAX, random))
        }
    };
    place.or_else(|| place_in(files, u64::MAX, random))
}

/// A byte of the header, or just behind it, of one of the newest records of these log files.
fn place_in_last_record(files: &[&FileImage], random: &mut u64) -> Option<(String, u64)> {
    let mut records: Vec<(u64, u64, &str, u64)> = Vec::new();
    for file in files {
        for (at, page) in file.pages.iter().filter(|(_, page)| page.starts_with(RECORD_MAGIC)) {
            let field = |from: usize| Some(u64::from_le_bytes(page.get(from..from + 8)?.try_into().ok()?));
            let (Some(generation), Some(sequence)) = (field(8), field(16)) else { continue };
            records.push((generation, sequence, &file.path, *at));
        }
    }
    records.sort_unstable();
    let newest = &records[records.len().saturating_sub(LAST_RECORDS)..];
    let (_, _, path, at) = newest.get(below(random, newest.len()))?;
    Some(((*path).to_owned(), at + splitmix64(random) % RECORD_START_SIZE_BYTES))
}

/// A byte of the files' used pages before `until`, each as likely as any other.
fn place_in(files: &[&FileImage], until: u64, random: &mut u64) -> Option<(String, u64)> {
    let used = |page: &(u64, Vec<u8>)| (page.1.len() as u64).min(until.saturating_sub(page.0));
    let total: u64 = files.iter().flat_map(|file| &file.pages).map(used).sum();
    if total == 0 {
        return None;
    }
    let mut left = splitmix64(random) % total;
    for file in files {
        for page in &file.pages {
            if left < used(page) {
                return Some((file.path.clone(), page.0 + left));
            }
            left -= used(page);
        }
    }
    None
}

fn choose_flip(files: &[&FileImage], random: &mut u64) -> Option<Damage> {
    let (file, offset) = choose_place(files, random)?;
    Some(Damage::Flip { file, offset, bit: below(random, 8) as u8 })
}

fn choose_tail_flip(files: &[&FileImage], random: &mut u64) -> Option<Damage> {
    let journal: Vec<&FileImage> =
        files.iter().filter(|file| file.path.starts_with("journal/")).copied().collect();
    let (file, offset) = place_in_last_record(&journal, random)?;
    Some(Damage::Flip { file, offset, bit: below(random, 8) as u8 })
}

/// A sector that is not all zero already.
fn choose_sector(files: &[&FileImage], random: &mut u64) -> Option<Damage> {
    let mut chosen = None;
    for _ in 0..SECTOR_TRIES_MAX {
        let (file, at) = choose_place(files, random)?;
        let size = if splitmix64(random).is_multiple_of(2) { 512 } else { PAGE_SIZE_BYTES as u64 };
        let offset = at / size * size;
        let image = files.iter().find(|image| image.path == file)?;
        let page =
            image.pages.iter().find(|(start, page)| (*start..*start + page.len() as u64).contains(&at))?;
        let from = (offset - page.0) as usize;
        let sector = &page.1[from..(from + size as usize).min(page.1.len())];
        let is_used = sector.iter().any(|byte| *byte != 0);
        chosen = Some(Damage::Zero { file, offset, size: size.min(image.size - offset) });
        if is_used {
            break;
        }
    }
    chosen
}

/// Half of them hit what all ranges share.
fn choose_file_damage(files: &[&FileImage], random: &mut u64) -> Option<Damage> {
    let wants_shared = splitmix64(random).is_multiple_of(2);
    let candidates: Vec<&FileImage> =
        files.iter().filter(|file| is_shared(file) == wants_shared).copied().collect();
    let chosen = candidates.get(below(random, candidates.len()))?;
    let file = chosen.path.clone();
    Some(match below(random, 5) {
        // An extent whose bytes are in the journal only is an empty file, and can only be missed or taken for
        // another.
        0 | 1 if chosen.size == 0 => Damage::Delete { file },
        0 => Damage::Cut { file, size: 0 },
        1 => Damage::Cut { size: splitmix64(random) % chosen.size.max(1), file },
        2 => Damage::Delete { file },
        3 => {
            let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            let others: Vec<&&FileImage> = candidates
                .iter()
                .filter(|other| other.path != file && (other.size > 0 || chosen.size > 0))
                .filter(|other| folder(&other.path) == folder(&file))
                .collect();
            match others.get(below(random, others.len())) {
                Some(other) => Damage::Swap { file, other: other.path.clone() },
                None => Damage::Delete { file },
            }
        }
        _ => {
            let Some((file, at)) = place_in(&[*chosen], u64::MAX, random) else {
                return Some(Damage::Delete { file });
            };
            let offset = at / PAGE_SIZE_BYTES as u64 * PAGE_SIZE_BYTES as u64;
            Damage::Zero { file, offset, size: LARGE_ZEROED_SIZE_BYTES }
        }
    })
}

/// Does it to the folder.
pub(crate) fn apply(damage: &Damage, folder: &Path) -> Outcome<()> {
    let open = |file: &str| File::options().read(true).write(true).open(folder.join(file));
    match damage {
        Damage::Nothing => {}
        Damage::Flip { file, offset, bit } => {
            let file = open(file)?;
            let mut byte = [0];
            file.read_exact_at(&mut byte, *offset)?;
            file.write_all_at(&[byte[0] ^ (1 << bit)], *offset)?;
        }
        Damage::Zero { file, offset, size } => {
            let file = open(file)?;
            let size = (*size).min(file.metadata()?.len().saturating_sub(*offset));
            file.write_all_at(&vec![0; size as usize], *offset)?;
        }
        Damage::Cut { file, size } => open(file)?.set_len(*size)?,
        Damage::Delete { file } => std::fs::remove_file(folder.join(file))?,
        Damage::Swap { file, other } => {
            let aside = folder.join("swapped");
            std::fs::rename(folder.join(file), &aside)?;
            std::fs::rename(folder.join(other), folder.join(file))?;
            std::fs::rename(aside, folder.join(other))?;
        }
    }
    Ok(())
}

/// Whether the damage made FORMAT name a newer format, word for word as a newer program would: only then may
/// a start be refused.
pub(crate) fn names_newer_format(before: &[u8], after: &[u8]) -> bool {
    let split = |line: &[u8]| {
        let text = std::str::from_utf8(line).ok()?.trim_end().to_owned();
        let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[text.len() - digits..].parse().ok()?;
        Some((text[..text.len() - digits].to_owned(), number))
    };
    match (split(before), split(after)) {
        (Some((words, old)), Some((other_words, new))) => words == other_words && new > old,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, pages: &[u64]) -> FileImage {
        let pages: Vec<(u64, Vec<u8>)> = pages.iter().map(|page| (page * 4096, vec![7; 4096])).collect();
        FileImage { path: path.to_owned(), size: 1 << 20, pages }
    }

    #[test]
    fn places_lie_in_used_pages_of_all_files_and_follow_from_the_seed() {
        let files = [file("extents/1", &[0, 3]), file("journal/0", &[1]), file("FORMAT", &[0])];
        let files: Vec<&FileImage> = files.iter().collect();
        let (mut random, mut again, mut hit) = (1, 1, std::collections::BTreeSet::new());
        for _ in 0..500 {
            let (path, offset) = choose_place(&files, &mut random).unwrap();
            assert_eq!(choose_place(&files, &mut again).unwrap(), (path.clone(), offset));
            let image = files.iter().find(|file| file.path == path).unwrap();
            assert!(image.pages.iter().any(|(start, _)| offset / 4096 * 4096 == *start), "{path} {offset}");
            hit.insert((path, offset / 4096));
        }
        assert_eq!(hit.len(), 4, "{hit:?}");
    }

    #[test]
    fn the_newest_records_are_found_by_generation_and_sequence() {
        let record = |generation: u64, sequence: u64| {
            let mut page = [b"LRC1".as_slice(), &[0; 4092]].concat();
            page[8..16].copy_from_slice(&generation.to_le_bytes());
            page[16..24].copy_from_slice(&sequence.to_le_bytes());
            page
        };
        let older = vec![(0, record(8, 900)), (4096, record(8, 901)), (8192, vec![1; 4096])];
        let newer = vec![(0, record(9, 902)), (4096, record(9, 903)), (8192, record(7, 999))];
        let file = |path: &str, pages| FileImage { path: path.to_owned(), size: 1 << 20, pages };
        let files = [file("journal/0", newer), file("journal/1", older)];
        let (mut random, mut hit) = (1, std::collections::BTreeSet::new());
        for _ in 0..100 {
            let (path, at) = place_in_last_record(&files.iter().collect::<Vec<_>>(), &mut random).unwrap();
            assert!(at % 4096 < RECORD_START_SIZE_BYTES);
            hit.insert((path, at / 4096));
        }
        let newest = [("journal/0", 0), ("journal/0", 1), ("journal/1", 1)];
        assert_eq!(hit, newest.map(|(path, page)| (path.to_owned(), page)).into());
    }

    #[test]
    fn each_damage_of_a_file_is_chosen() {
        let empty = FileImage { size: 0, ..file("extents/3", &[]) };
        let files = [file("extents/1", &[0]), file("extents/2", &[0]), file("FORMAT", &[0]), empty];
        let files: Vec<&FileImage> = files.iter().collect();
        let mut random = 1;
        let rows: std::collections::BTreeSet<_> =
            (0..300).map(|_| choose_file_damage(&files, &mut random).unwrap().row()).collect();
        assert_eq!(rows.len(), 5, "{rows:?}");
    }

    #[test]
    fn only_a_higher_number_after_the_same_words_is_newer() {
        let before = b"larimar data folder, format 5\n";
        assert!(names_newer_format(before, b"larimar data folder, format 7\n"));
        assert!(!names_newer_format(before, b"larimar data folder, format 4\n"));
        assert!(!names_newer_format(before, b"larimaR data folder, format 7\n"));
        assert!(!names_newer_format(before, b"larimar data folder, format u\n"));
        assert!(!names_newer_format(before, b""));
    }
}
