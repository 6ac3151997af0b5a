//! A data folder in memory, by the pages that are used, so that each trial gets a copy of its own at the cost
//! of these. What always holds: a copy has the same names, sizes and bytes; pages of zeros are holes in it.

use crate::Outcome;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Unit of what is used.
pub(crate) const PAGE_SIZE_BYTES: usize = 4096;
/// The file of noise that is given up on a full disk. It is never copied, since only its size counts.
pub(crate) const RESERVE: &str = "reserve";

/// One file of a folder.
pub(crate) struct FileImage {
    /// Inside the folder, with `/` between names.
    pub(crate) path: String,
    pub(crate) size: u64,
    /// Pages that are not all zero: where they begin, and their bytes (the last one of a file may be short).
    pub(crate) pages: Vec<(u64, Vec<u8>)>,
}

/// A folder that no process holds.
pub(crate) struct Image {
    root: PathBuf,
    pub(crate) files: Vec<FileImage>,
    folders: Vec<String>,
    has_reserve: bool,
}

impl Image {
    pub(crate) fn read(root: &Path) -> Outcome<Self> {
        let mut image =
            Image { root: root.to_owned(), files: Vec::new(), folders: Vec::new(), has_reserve: false };
        image.read_folder("")?;
        image.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(image)
    }

    fn read_folder(&mut self, inside: &str) -> Outcome<()> {
        for entry in std::fs::read_dir(self.root.join(inside))? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| format!("odd name {name:?}"))?;
            let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            if entry.file_type()?.is_dir() {
                self.folders.push(path.clone());
                self.read_folder(&path)?;
            } else if path == RESERVE {
                self.has_reserve = true;
            } else {
                self.files.push(read_file(&self.root, path)?);
            }
        }
        Ok(())
    }

    /// Bytes of all pages that are used.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.pages).map(|(_, page)| page.len() as u64).sum()
    }

    /// Writes the folder anew at `to`, which is not there.
    pub(crate) fn copy(&self, to: &Path) -> Outcome<()> {
        std::fs::create_dir_all(to)?;
        for folder in &self.folders {
            std::fs::create_dir(to.join(folder))?;
        }
        for image in &self.files {
            let file = File::create(to.join(&image.path))?;
            file.set_len(image.size)?;
            for (offset, page) in &image.pages {
                file.write_all_at(page, *offset)?;
            }
        }
        if self.has_reserve {
            // Trials that live for seconds on a disk with room never change it.
            std::fs::hard_link(self.root.join(RESERVE), to.join(RESERVE))?;
        }
        Ok(())
    }
}

fn read_file(root: &Path, path: String) -> Outcome<FileImage> {
    let mut file = File::open(root.join(&path))?;
    let mut pages = Vec::new();
    let mut offset = 0;
    let mut part = vec![0; 256 * PAGE_SIZE_BYTES];
    loop {
        let mut filled = 0;
        while filled < part.len() {
            match file.read(&mut part[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        for page in part[..filled].chunks(PAGE_SIZE_BYTES) {
            if page.iter().any(|byte| *byte != 0) {
                pages.push((offset, page.to_vec()));
            }
            offset += page.len() as u64;
        }
        if filled < part.len() {
            return Ok(FileImage { path, size: offset, pages });
        }
    }
}
