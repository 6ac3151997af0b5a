//! The data folder: how one is recognised, made and refused.
//!
//! ```text
//! FORMAT             "larimar data folder, format 7\nchecksum <16 hex>\n" (CRC-64/NVME of the first line;
//!                    up to format 5 only that); written last, so a folder without it was never finished,
//!                    unless it holds extents, which come later
//! FORMAT.second      the same, written before it
//! MIGRATION          there while the folder is made of a stamp's extents (see `copies/folder_target.rs`)
//! LOCK               held by the process that serves the folder (made by the binary)
//! journal/ extents/  the extent node
//! stream_manager/    the stream manager
//! reserve            space that is kept back for a full disk (see `space.rs`)
//! repair/            plans of repairs, and what they have replaced (made by the binary)
//! ```

use crate::error::{StreamError, is_disk_full};
use crate::space::{RESERVE_NEW_PATH, RESERVE_PATH};
use base::checksum::crc64;
use base::{Environment, OpenMode};
use bytes::Bytes;

/// The format that this program writes.
pub const FORMAT_VERSION: u32 = 7;
/// The oldest format that it still reads. It raises a folder to the present one before it writes to it.
const FORMAT_VERSION_MIN: u32 = 1;
/// The first format whose FORMAT file has a checksum and is kept twice.
const FORMAT_VERSION_TWICE: u32 = 6;
/// In the order in which one is looked at.
const FORMAT_PATHS: [&str; 2] = ["FORMAT", "FORMAT.second"];
const FORMAT_NEW_PATH: &str = "FORMAT.new";
/// There while the folder is made of extents from elsewhere.
pub(crate) const MIGRATION_PATH: &str = "MIGRATION";
const CHECKSUM_PREFIX: &str = "checksum ";
const FORMAT_PREFIX: &str = "larimar data folder, format ";
const FORMAT_SIZE_BYTES_MAX: u64 = 256;
/// Names that a folder may hold whose making was cut off.
const OWN_NAMES: [&str; 9] = [
    "LOCK",
    FORMAT_PATHS[1],
    FORMAT_NEW_PATH,
    RESERVE_NEW_PATH,
    RESERVE_PATH,
    "extents",
    "journal",
    "repair",
    "stream_manager",
];

/// What a folder turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Nothing was ever acknowledged in it: lay it out.
    Fresh,
    /// A folder of the present format.
    Ready {
        /// The FORMAT file that is missing or damaged, while the other is whole.
        damaged: Option<&'static str>,
    },
    /// A folder of an older format: [`raise`] it before anything of the present one is written.
    Older {
        /// The lowest format that its files name.
        version: u32,
    },
}

impl Folder {
    /// Whether its format has the second copies of what all streams share.
    pub(crate) fn is_kept_twice(&self) -> bool {
        !matches!(self, Folder::Older { version } if *version < FORMAT_VERSION_TWICE)
    }
}

/// Looks at the folder without changing it. A foreign or newer folder is an error that says what to do.
pub(crate) async fn inspect(env: &Environment) -> Result<Folder, StreamError> {
    let read_failed = |error: std::io::Error| {
        StreamError::Folder(format!("the data folder can't be read: {error}; check its permissions"))
    };
    let names = env.disk.list("").await.map_err(read_failed)?;
    let mut contents = [None, None];
    for (content, path) in contents.iter_mut().zip(FORMAT_PATHS) {
        if names.iter().any(|name| name == path) {
            let file = env.disk.open(path, OpenMode::Read).await.map_err(read_failed)?;
            let len = file.size().await.map_err(read_failed)?.min(FORMAT_SIZE_BYTES_MAX);
            *content = Some(file.read_at(0, len as usize).await.map_err(read_failed)?);
        }
    }
    let has_extents = has_extents(env, &names).await.map_err(read_failed)?;
    // The second one alone may be a layout's that was cut off.
    let [first, second] = contents;
    // Before the second FORMAT file counts: a migration that is cut off may have written that.
    if first.is_none() && names.iter().any(|name| name == MIGRATION_PATH) {
        return Err(StreamError::Folder(
            "a migration into the data folder is not finished: run larimar migrate again, or remove the folder"
                .to_owned(),
        ));
    }
    if first.is_some() || (second.is_some() && has_extents) {
        return check_formats(&[first, second]);
    }
    match names.iter().find(|name| !OWN_NAMES.contains(&name.as_str())) {
        None if has_extents => Err(StreamError::Folder(
            "the data folder has lost its FORMAT file but holds data; restore the file from a backup, or choose \
             another folder. Nothing was changed"
                .to_owned(),
        )),
        None => Ok(Folder::Fresh),
        Some(foreign) => Err(StreamError::Folder(format!(
            "the data folder holds other files (such as {foreign:?}) and is not a Larimar data folder; choose \
             another one"
        ))),
    }
}

/// What the file of a migration into the folder says; none: there is nothing in the folder. Another folder is
/// an error.
pub(crate) async fn begun_migration(env: &Environment) -> Result<Option<Bytes>, StreamError> {
    let names = env.disk.list("").await.map_err(|error| StreamError::read("data folder", &error))?;
    let has = |path: &str| names.iter().any(|name| name == path);
    if has(MIGRATION_PATH) && !has(FORMAT_PATHS[0]) {
        let begun = async {
            let file = env.disk.open(MIGRATION_PATH, OpenMode::Read).await?;
            let size = file.size().await?.min(FORMAT_SIZE_BYTES_MAX);
            file.read_at(0, size as usize).await
        };
        return Ok(Some(begun.await.map_err(|error| StreamError::read(MIGRATION_PATH, &error))?));
    }
    if has(MIGRATION_PATH) {
        return Err(StreamError::Folder(
            "the migration into this folder is finished: it can be served. Nothing was changed".to_owned(),
        ));
    }
    match names.iter().find(|name| *name != "LOCK") {
        None => Ok(None),
        Some(name) => Err(StreamError::Folder(format!(
            "the folder is not empty (it holds {name:?}): choose another one. Nothing was changed"
        ))),
    }
}

/// Removes what a migration that was cut off behind its end has left in a folder that is whole.
pub(crate) async fn forget_migration(env: &Environment) -> Result<(), StreamError> {
    let removed = async {
        if env.disk.exists(MIGRATION_PATH).await? {
            env.disk.remove(MIGRATION_PATH).await?;
            env.disk.sync_folder("").await?;
        }
        Ok(())
    };
    removed.await.map_err(|error: std::io::Error| StreamError::write("data folder", &error))
}

/// Whether the folder, which holds `names`, was ever in use.
async fn has_extents(env: &Environment, names: &[String]) -> std::io::Result<bool> {
    Ok(names.iter().any(|name| name == "extents") && !env.disk.list("extents").await?.is_empty())
}

/// What the two files say; `None`: there is no such file.
fn check_formats(contents: &[Option<Bytes>; 2]) -> Result<Folder, StreamError> {
    let versions =
        contents.each_ref().map(|content| content.as_ref().and_then(|content| version_of(content)));
    // While a folder is raised they differ.
    let damaged = versions.iter().position(Option::is_none).map(|index| FORMAT_PATHS[index]);
    match versions.iter().flatten().max().copied() {
        Some(version) if version > FORMAT_VERSION => Err(StreamError::Folder(format!(
            "the data folder has format {version}, this program knows formats up to {FORMAT_VERSION}; run a newer \
             Larimar on it. Nothing was changed"
        ))),
        Some(FORMAT_VERSION) if versions.iter().flatten().all(|version| *version == FORMAT_VERSION) => {
            Ok(Folder::Ready { damaged })
        }
        // A folder that is being raised is still of the format that it is raised from.
        Some(FORMAT_VERSION_MIN..=FORMAT_VERSION) => {
            let version = versions.iter().flatten().min().copied().unwrap_or(FORMAT_VERSION_MIN);
            Ok(Folder::Older { version })
        }
        _ => Err(StreamError::Folder(
            "the data folder's FORMAT file is not one of Larimar's; choose another folder, or restore \
             the file from a backup. Nothing was changed"
                .to_owned(),
        )),
    }
}

/// The format that a FORMAT file names, if it is whole.
fn version_of(content: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(content).ok()?;
    let (line, rest) = text.split_once('\n')?;
    let version = line.strip_prefix(FORMAT_PREFIX)?.parse::<u32>().ok()?;
    let is_whole = match rest.strip_prefix(CHECKSUM_PREFIX) {
        // What a newer program says besides is its matter.
        Some(rest) if version > FORMAT_VERSION => rest.starts_with(&checksum_line(line)),
        Some(checksum) => checksum == checksum_line(line),
        None => version < FORMAT_VERSION_TWICE && rest.is_empty(),
    };
    is_whole.then_some(version)
}

fn checksum_line(line: &str) -> String {
    format!("{:016x}\n", crc64(&[line.as_bytes()]))
}

/// Removes what a cut-off layout left. Only for a folder that [`inspect`] called fresh.
pub(crate) async fn clear(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    for folder in ["journal", "extents", "stream_manager"] {
        if env.disk.exists(folder).await.map_err(failed)? {
            for name in env.disk.list(folder).await.map_err(failed)? {
                env.disk.remove(&format!("{folder}/{name}")).await.map_err(failed)?;
            }
        }
    }
    clear_formats(env).await
}

/// Removes what there is of FORMAT files that were not finished.
pub(crate) async fn clear_formats(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    for path in [FORMAT_NEW_PATH, FORMAT_PATHS[1]] {
        if env.disk.exists(path).await.map_err(failed)? {
            env.disk.remove(path).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Declares the layout finished.
pub(crate) async fn finish(env: &Environment) -> Result<(), StreamError> {
    write_formats(env).await
}

/// Writes a FORMAT file anew that was lost or damaged.
pub(crate) async fn mend(env: &Environment, damaged: &'static str) -> Result<(), StreamError> {
    write_format(env, damaged).await?;
    tracing::warn!(place = damaged, "the file was missing or damaged, and is written anew");
    Ok(())
}

/// Makes sure of the FORMAT file of a folder that has one. A former process may have ended between giving the
/// file its name and syncing that: then a power loss would take the name, or bring back that of an older
/// format, which what this process writes is not in.
pub(crate) async fn confirm(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    env.disk.sync_folder("").await.map_err(failed)
}

/// Declares a folder of an older format to be one of the present format, which older programs refuse. Only
/// once its log and its journal were read whole and agree, because there is no way back.
pub(crate) async fn raise(env: &Environment) -> Result<(), StreamError> {
    write_formats(env).await?;
    tracing::info!(
        "the data folder was raised to format {FORMAT_VERSION}; older programs refuse it from now on"
    );
    Ok(())
}

async fn write_formats(env: &Environment) -> Result<(), StreamError> {
    // The first one says that the folder is finished, and that older programs must not touch it: what says
    // the same again is there before.
    for path in [FORMAT_PATHS[1], FORMAT_PATHS[0]] {
        write_format(env, path).await?;
    }
    Ok(())
}

async fn write_format(env: &Environment, path: &'static str) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    let not_written =
        |error: std::io::Error| if is_disk_full(&error) { StreamError::DiskFull } else { failed(error) };
    // Left by one that was cut off.
    if env.disk.exists(FORMAT_NEW_PATH).await.map_err(failed)? {
        env.disk.remove(FORMAT_NEW_PATH).await.map_err(failed)?;
    }
    let file = env.disk.open(FORMAT_NEW_PATH, OpenMode::CreateNew).await.map_err(not_written)?;
    file.write_at(0, Bytes::from(format_text(FORMAT_VERSION))).await.map_err(not_written)?;
    file.sync_data().await.map_err(not_written)?;
    env.disk.rename(FORMAT_NEW_PATH, path).await.map_err(failed)?;
    env.disk.sync_folder("").await.map_err(failed)
}

fn format_text(version: u32) -> String {
    let line = format!("{FORMAT_PREFIX}{version}");
    format!("{line}\n{CHECKSUM_PREFIX}{}", checksum_line(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(first: Option<&str>, second: Option<&str>) -> Result<Folder, StreamError> {
        check_formats(&[first, second].map(|text| text.map(|text| Bytes::copy_from_slice(text.as_bytes()))))
    }

    #[test]
    fn formats_are_told_apart() {
        let present = format_text(FORMAT_VERSION);
        let present = Some(present.as_str());
        assert_eq!(checked(present, present), Ok(Folder::Ready { damaged: None }));
        for version in 1..6 {
            let older = format!("larimar data folder, format {version}\n");
            let expected = Folder::Older { version };
            assert_eq!(checked(Some(&older), None), Ok(expected));
            assert_eq!(checked(Some(&older), present), Ok(expected), "it was being raised");
            assert!(!expected.is_kept_twice());
        }
        let older = format_text(6);
        assert_eq!(checked(Some(&older), Some(&older)), Ok(Folder::Older { version: 6 }));
        assert_eq!(checked(Some(&older), present), Ok(Folder::Older { version: 6 }), "it was being raised");
        assert!(Folder::Older { version: 6 }.is_kept_twice());
        assert!(checked(Some("larimar data folder, format 0\n"), None).is_err());
        assert!(checked(Some("larimar data folder, format 7\n"), None).is_err(), "without a checksum");
        for newer in [(Some(format_text(8)), None), (None, Some(format_text(8)))] {
            let newer = checked(newer.0.as_deref(), newer.1.as_deref()).unwrap_err().to_string();
            assert!(newer.contains("newer Larimar"), "{newer}");
        }
        assert!(checked(Some("something else"), None).is_err());
    }

    #[test]
    fn whatever_bit_of_one_is_flipped_the_other_counts() {
        let present = format_text(FORMAT_VERSION);
        for bit in 0..present.len() * 8 {
            let mut flipped = present.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = check_formats(&[Some(flipped.into()), Some(Bytes::from(present.clone()))]);
            assert_eq!(found, Ok(Folder::Ready { damaged: Some("FORMAT") }), "bit {bit}");
        }
        assert_eq!(checked(Some(&present), Some("")), Ok(Folder::Ready { damaged: Some("FORMAT.second") }));
        assert_eq!(checked(Some(&present), None), Ok(Folder::Ready { damaged: Some("FORMAT.second") }));
        assert_eq!(checked(None, Some(&present)), Ok(Folder::Ready { damaged: Some("FORMAT") }));
    }
}
