//! A data folder that is made of extents that come from elsewhere.
//!
//! ```text
//! MIGRATION          "larimar migration of <fingerprint, 16 hex>\n": which source; there until the folder is
//!                    finished
//! extents/<16 hex>   written one by one, synced
//! journal/ stream_manager/ FORMAT…   as a fresh folder has them, and FORMAT last
//! ```
//!
//! What always holds: a folder that was not finished is none, and no server takes it for one; what is found
//! in an extent's file is kept only once it was compared with its source.

use crate::block;
use crate::copies::manifest::StreamManifest;
use crate::error::{StreamError, is_disk_full};
use crate::extent_node::{ExtentNode, ExtentState, ExtentTable, extent_path};
use crate::folder::{self, MIGRATION_PATH};
use crate::ids::{ExtentId, Location};
use crate::owner::Owner;
use crate::sealed::{ExtentDigest, Seal};
use crate::settings::StreamSettings;
use crate::space::Space;
use crate::stream_manager::{State, StreamManager};
use base::{DiskFile, Environment, OpenMode};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Ids that must be left above those of the extents, for new ones.
const IDS_LEFT_MIN: u64 = 1 << 32;

/// A folder that is being made. Whoever begins it has made and locked it.
pub struct FolderTarget {
    env: Environment,
    settings: StreamSettings,
}

fn failed(what: &str) -> impl Fn(io::Error) -> StreamError {
    move |error| if is_disk_full(&error) { StreamError::DiskFull } else { StreamError::write(what, &error) }
}

impl FolderTarget {
    /// Begins a folder, or goes on with one that was begun of the same source.
    ///
    /// # Errors
    ///
    /// If the folder holds anything else, or the extents' ids leave none for new ones.
    pub async fn begin(
        env: &Environment,
        settings: StreamSettings,
        manifest: &StreamManifest,
    ) -> Result<Self, StreamError> {
        if manifest.extents.keys().next_back().is_some_and(|last| last.0 > u64::MAX - IDS_LEFT_MIN) {
            let why =
                format!("an extent has an id that leaves fewer than {IDS_LEFT_MIN} for new ones in a folder");
            return Err(StreamError::Folder(why));
        }
        // What is kept back for a full disk is made by the first start.
        let settings = StreamSettings { reserve_size_bytes: 0, ..settings };
        settings.check().map_err(StreamError::Folder)?;
        let target = FolderTarget { env: env.clone(), settings };
        let text = format!("larimar migration of {:016x}\n", manifest.fingerprint());
        match folder::begun_migration(env).await? {
            Some(begun) if begun[..] == *text.as_bytes() => target.clear_all_but_extents().await?,
            // Nothing was copied, and the file itself may have been cut off.
            Some(_) if !target.has_extents().await? => {
                env.disk.remove(MIGRATION_PATH).await.map_err(failed("data folder"))?;
                target.lay_out(text).await?;
            }
            Some(_) => {
                return Err(StreamError::Folder(
                    "the folder has an unfinished migration of another stamp, or the stamp has changed since: \
                     remove the folder, and begin again"
                        .to_owned(),
                ));
            }
            None => target.lay_out(text).await?,
        }
        Ok(target)
    }

    async fn lay_out(&self, text: String) -> Result<(), StreamError> {
        let disk = &self.env.disk;
        let written = async {
            let file = disk.open(MIGRATION_PATH, OpenMode::CreateNew).await?;
            file.write_at(0, Bytes::from(text)).await?;
            file.sync_data().await?;
            disk.create_folder("extents").await?;
            disk.sync_folder("").await
        };
        written.await.map_err(failed("data folder"))
    }

    async fn has_extents(&self) -> Result<bool, StreamError> {
        match self.env.disk.list("extents").await {
            Ok(names) => Ok(!names.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StreamError::read("folder extents", &error)),
        }
    }

    /// Removes what a finish that was cut off has made.
    async fn clear_all_but_extents(&self) -> Result<(), StreamError> {
        let disk = &self.env.disk;
        // First: with it the folder counts as one.
        folder::clear_formats(&self.env).await?;
        let cleared = async {
            disk.sync_folder("").await?;
            for folder in ["journal", "stream_manager"] {
                let names = match disk.list(folder).await {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                    names => names?,
                };
                for name in names {
                    disk.remove(&format!("{folder}/{name}")).await?;
                }
            }
            disk.create_folder("extents").await
        };
        cleared.await.map_err(failed("data folder"))
    }

    /// Whether there is a file of this length for an extent: of a run before this one.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub async fn has(&self, extent: ExtentId, length: u64) -> Result<bool, StreamError> {
        let path = extent_path(extent);
        let size = async { self.env.disk.open(&path, OpenMode::Read).await?.size().await };
        match size.await {
            Ok(size) => Ok(size == length),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StreamError::read(&path, &error)),
        }
    }

    /// Begins an extent's file, anew if there is one.
    ///
    /// # Errors
    ///
    /// If the disk fails, or is full.
    pub async fn write(&self, extent: ExtentId) -> Result<TargetExtent, StreamError> {
        let (disk, path) = (&self.env.disk, extent_path(extent));
        let made = async {
            if disk.exists(&path).await? {
                disk.remove(&path).await?;
            }
            disk.open(&path, OpenMode::CreateNew).await
        };
        let file = made.await.map_err(failed(&path))?;
        Ok(TargetExtent { file, extent, offset: 0, digest: ExtentDigest::EMPTY })
    }

    /// Begins to compare an extent's file with its source.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub async fn compare(&self, extent: ExtentId) -> Result<TargetExtent, StreamError> {
        let path = extent_path(extent);
        let opened = self.env.disk.open(&path, OpenMode::Write).await;
        let file = opened.map_err(|error| StreamError::read(&path, &error))?;
        Ok(TargetExtent { file, extent, offset: 0, digest: ExtentDigest::EMPTY })
    }

    /// Makes a folder of it: all extents were written and compared, which gave their digests. `owner` had the
    /// streams last; the next one's epoch is higher.
    ///
    /// # Errors
    ///
    /// If the disk fails, or is full; then it is no folder.
    pub async fn finish(
        self,
        manifest: &StreamManifest,
        digests: &BTreeMap<ExtentId, u64>,
        owner: Owner,
    ) -> Result<(), StreamError> {
        let (env, settings) = (&self.env, &self.settings);
        self.remove_others(manifest).await?;
        let (table, state) = tables(manifest, digests, owner)?;
        let space = Space::open(env, settings).await.map_err(failed("data folder"))?;
        ExtentNode::format_with(env, settings, &space, table).await?;
        StreamManager::format_with(env, settings, &space, &state).await?;
        folder::finish(env).await?;
        env.disk.remove(MIGRATION_PATH).await.map_err(failed("data folder"))?;
        env.disk.sync_folder("").await.map_err(failed("data folder"))
    }

    /// Removes files of extents that no stream lists, so that there is nothing else.
    async fn remove_others(&self, manifest: &StreamManifest) -> Result<(), StreamError> {
        let disk = &self.env.disk;
        let removed = async {
            for name in disk.list("extents").await? {
                let id = u64::from_str_radix(&name, 16).map(ExtentId);
                if !id.is_ok_and(|id| manifest.extents.contains_key(&id)) {
                    disk.remove(&format!("extents/{name}")).await?;
                }
            }
            disk.sync_folder("extents").await
        };
        removed.await.map_err(failed("folder extents"))
    }
}

/// What the extent node and the stream manager say of these extents: all are sealed.
fn tables(
    manifest: &StreamManifest,
    digests: &BTreeMap<ExtentId, u64>,
    owner: Owner,
) -> Result<(ExtentTable, State), StreamError> {
    let (mut table, mut sealed) = (ExtentTable::default(), BTreeMap::new());
    for (id, extent) in &manifest.extents {
        let digest = digests.get(id).copied().map(ExtentDigest);
        if digest.is_none() {
            return Err(StreamError::Corrupt(format!("extent {id} was not compared")));
        }
        let length = extent.length;
        table.extents.insert(*id, ExtentState { owner, length, frozen: true, digest, in_doubt: false });
        sealed.insert(*id, Seal { length, digest });
    }
    Ok((table, State::of_sealed(&manifest.streams, &sealed, owner)))
}

/// The file of an extent, which is written or compared from its start.
pub struct TargetExtent {
    file: Arc<dyn DiskFile>,
    extent: ExtentId,
    offset: u64,
    digest: ExtentDigest,
}

impl TargetExtent {
    /// Writes whole blocks behind those before.
    ///
    /// # Errors
    ///
    /// If the disk fails, or is full.
    pub async fn append(&mut self, blocks: Bytes) -> Result<(), StreamError> {
        let size = blocks.len() as u64;
        self.file.write_at(self.offset, blocks).await.map_err(failed(&extent_path(self.extent)))?;
        self.offset += size;
        Ok(())
    }

    /// Whether these whole blocks are the next ones. Each is verified.
    ///
    /// # Errors
    ///
    /// If the blocks are none of this place, or the disk fails.
    pub async fn has_next(&mut self, blocks: &Bytes) -> Result<bool, StreamError> {
        let found = match self.file.read_once_at(self.offset, blocks.len()).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            found => found.map_err(|error| StreamError::read(&extent_path(self.extent), &error))?,
        };
        if found != *blocks {
            return Ok(false);
        }
        let mut at = 0;
        while at < blocks.len() {
            let offset = self.offset + at as u64;
            let (size, checksum) = block::step(&blocks[at..], self.extent, offset)?;
            let len = (size - block::BLOCK_HEADER_SIZE) as u32;
            block::verify(&blocks.slice(at..at + size), Location { extent: self.extent, offset, len })?;
            self.digest = self.digest.then(checksum);
            at += size;
        }
        self.offset += blocks.len() as u64;
        Ok(true)
    }

    /// Makes what was written or compared durable. The digest of what was compared, if nothing is behind it.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub async fn end(self) -> Result<Option<u64>, StreamError> {
        let ended = async {
            self.file.sync_data().await?;
            self.file.size().await
        };
        let size = ended.await.map_err(failed(&extent_path(self.extent)))?;
        Ok((size == self.offset).then_some(self.digest.0))
    }
}
