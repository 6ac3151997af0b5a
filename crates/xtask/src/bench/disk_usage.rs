//! What a data folder takes on the disk.

use crate::Outcome;
use std::path::Path;

/// Bytes that the files of a folder take on the disk, and those of the journal among them.
pub(super) fn used_bytes(folder: &Path) -> Outcome<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let (mut used, mut journal) = (0, 0);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A file may have gone meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            let (inside, of_journal) = used_bytes(&entry.path())?;
            let is_journal = entry.file_name() == "journal";
            used += inside;
            journal += if is_journal { inside } else { of_journal };
        } else {
            used += metadata.blocks() * 512;
        }
    }
    Ok((used, journal))
}
