//! The data folder: how one is recognised, made and refused.
//!
//! ```text
//! FORMAT             "larimar data folder, format 5\n"; written last, so a folder without it was never finished, unless
//!                    it holds extents, which come later
//! LOCK               held by the process that serves the folder (made by the binary)
//! journal/ extents/  the extent node
//! stream_manager/    the stream manager
//! reserve            space that is kept back for a full disk (see `space.rs`)
//! ```

use crate::error::{StreamError, is_disk_full};
use crate::space::{RESERVE_NEW_PATH, RESERVE_PATH};
use base::{Environment, OpenMode};
use bytes::Bytes;

/// The format that this program writes.
pub const FORMAT_VERSION: u32 = 5;
/// The oldest format that it still reads. It raises a folder to the present one before it writes to it.
const FORMAT_VERSION_MIN: u32 = 1;
const FORMAT_PATH: &str = "FORMAT";
const FORMAT_NEW_PATH: &str = "FORMAT.new";
const FORMAT_PREFIX: &str = "larimar data folder, format ";
const FORMAT_SIZE_BYTES_MAX: u64 = 256;
/// Names that a folder may hold whose making was cut off.
const OWN_NAMES: [&str; 7] =
    ["LOCK", FORMAT_NEW_PATH, RESERVE_NEW_PATH, RESERVE_PATH, "extents", "journal", "stream_manager"];

/// What a folder turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Nothing was ever acknowledged in it: lay it out.
    Fresh,
    /// A folder of the present format.
    Ready,
    /// A folder of an older format: [`raise`] it before anything of the present one is written.
    Older,
}

/// Looks at the folder without changing it. A foreign or newer folder is an error that says what to do.
pub(crate) async fn inspect(env: &Environment) -> Result<Folder, StreamError> {
    let read_failed = |error: std::io::Error| {
        StreamError::Folder(format!("the data folder can't be read: {error}; check its permissions"))
    };
    let names = env.disk.list("").await.map_err(read_failed)?;
    if !names.iter().any(|name| name == FORMAT_PATH) {
        return match names.iter().find(|name| !OWN_NAMES.contains(&name.as_str())) {
            None if has_extents(env, &names).await.map_err(read_failed)? => Err(StreamError::Folder(
                "the data folder has lost its FORMAT file but holds data; restore the file from a backup, or choose \
                 another folder. Nothing was changed"
                    .to_owned(),
            )),
            None => Ok(Folder::Fresh),
            Some(foreign) => Err(StreamError::Folder(format!(
                "the data folder holds other files (such as {foreign:?}) and is not a Larimar data folder; choose \
                 another one"
            ))),
        };
    }
    let file = env.disk.open(FORMAT_PATH, OpenMode::Read).await.map_err(read_failed)?;
    let len = file.size().await.map_err(read_failed)?.min(FORMAT_SIZE_BYTES_MAX);
    let content = file.read_at(0, len as usize).await.map_err(read_failed)?;
    check_format(&content)
}

/// Whether the folder, which holds `names`, was ever in use.
async fn has_extents(env: &Environment, names: &[String]) -> std::io::Result<bool> {
    Ok(names.iter().any(|name| name == "extents") && !env.disk.list("extents").await?.is_empty())
}

fn check_format(content: &[u8]) -> Result<Folder, StreamError> {
    let version = std::str::from_utf8(content).ok().and_then(|text| text.strip_prefix(FORMAT_PREFIX));
    match version.and_then(|text| text.trim_end().parse::<u32>().ok()) {
        Some(FORMAT_VERSION) => Ok(Folder::Ready),
        Some(FORMAT_VERSION_MIN..FORMAT_VERSION) => Ok(Folder::Older),
        Some(version) if version > FORMAT_VERSION => Err(StreamError::Folder(format!(
            "the data folder has format {version}, this program knows formats up to {FORMAT_VERSION}; run a newer \
             Larimar on it. Nothing was changed"
        ))),
        _ => Err(StreamError::Folder(
            "the data folder's FORMAT file is not one of Larimar's; choose another folder, or restore \
             the file from a backup. Nothing was changed"
                .to_owned(),
        )),
    }
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
    if env.disk.exists(FORMAT_NEW_PATH).await.map_err(failed)? {
        env.disk.remove(FORMAT_NEW_PATH).await.map_err(failed)?;
    }
    Ok(())
}

/// Declares the layout finished.
pub(crate) async fn finish(env: &Environment) -> Result<(), StreamError> {
    write_format(env).await
}

/// Makes sure of the FORMAT file of a folder that has one. A former process may have ended between giving the file its
/// name and syncing that: then a power loss would take the name, or bring back that of an older format, which what this
/// process writes is not in.
pub(crate) async fn confirm(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    env.disk.sync_folder("").await.map_err(failed)
}

/// Declares a folder of an older format to be one of the present format, which older programs refuse. Only once
/// its log and its journal were read whole and agree, because there is no way back.
pub(crate) async fn raise(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    // Left by a raise that was cut off.
    if env.disk.exists(FORMAT_NEW_PATH).await.map_err(failed)? {
        env.disk.remove(FORMAT_NEW_PATH).await.map_err(failed)?;
    }
    write_format(env).await?;
    tracing::info!(
        "the data folder was raised to format {FORMAT_VERSION}; older programs refuse it from now on"
    );
    Ok(())
}

async fn write_format(env: &Environment) -> Result<(), StreamError> {
    let failed = |error: std::io::Error| StreamError::write("data folder", &error);
    let not_written =
        |error: std::io::Error| if is_disk_full(&error) { StreamError::DiskFull } else { failed(error) };
    let file = env.disk.open(FORMAT_NEW_PATH, OpenMode::CreateNew).await.map_err(not_written)?;
    let text = format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n");
    file.write_at(0, Bytes::from(text)).await.map_err(not_written)?;
    file.sync_data().await.map_err(not_written)?;
    env.disk.rename(FORMAT_NEW_PATH, FORMAT_PATH).await.map_err(failed)?;
    env.disk.sync_folder("").await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        assert_eq!(check_format(b"larimar data folder, format 5\n"), Ok(Folder::Ready));
        for older in 1..5 {
            let older = format!("larimar data folder, format {older}\n");
            assert_eq!(check_format(older.as_bytes()), Ok(Folder::Older));
        }
        assert!(check_format(b"larimar data folder, format 0\n").is_err());
        let newer = check_format(b"larimar data folder, format 6\n").unwrap_err().to_string();
        assert!(newer.contains("newer Larimar"), "{newer}");
        assert!(check_format(b"something else").is_err());
        assert!(check_format(&[0xff, 0xfe]).is_err());
    }
}
