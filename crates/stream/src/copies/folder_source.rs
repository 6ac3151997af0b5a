//! A data folder that nobody serves, read as its next start would read it, and not changed: what that start
//! would write goes to a disk in memory over the folder, at most what the journal holds.
//!
//! What always holds: nothing in the folder is written; each block that is read has the right checksum, each
//! extent that is read to its end the right digest, else there is an error.

use crate::copies::manifest::{ManifestExtent, StreamManifest};
use crate::error::StreamError;
use crate::extent_node::ExtentReader;
use crate::folder::{self, Folder};
use crate::ids::ExtentId;
use crate::local_streams::LocalStreams;
use crate::settings::StreamSettings;
use base::Environment;
use base::overlay_disk::OverlayDisk;
use bytes::Bytes;
use std::sync::Arc;

/// A folder whose streams are copied elsewhere. Whoever opens it has locked the folder.
pub struct FolderSource {
    streams: LocalStreams,
    manifest: StreamManifest,
}

impl FolderSource {
    /// Opens the folder of `env`.
    ///
    /// # Errors
    ///
    /// If nothing was ever stored there, it is no folder of this program or a newer one, or it is damaged.
    pub async fn open(env: &Environment) -> Result<Self, StreamError> {
        if folder::inspect(env).await? == Folder::Fresh {
            return Err(StreamError::Folder("nothing was ever stored here".to_owned()));
        }
        let env = Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env.clone() };
        let settings =
            StreamSettings { scrub_bytes_per_second: 0, reserve_size_bytes: 0, ..StreamSettings::default() };
        let streams = LocalStreams::open(&env, settings).await?;
        match manifest_of(&streams) {
            Ok(manifest) => Ok(FolderSource { streams, manifest }),
            Err(error) => {
                streams.close().await;
                Err(error)
            }
        }
    }

    /// Its streams.
    pub fn manifest(&self) -> &StreamManifest {
        &self.manifest
    }

    /// Reads the blocks of an extent, from the first to the last.
    ///
    /// # Errors
    ///
    /// If the folder has no such extent.
    pub fn read(&self, extent: ExtentId) -> Result<SourceExtent, StreamError> {
        Ok(SourceExtent(self.streams.node().reader(extent, 0)?))
    }

    /// Ends the tasks that opening has begun.
    pub async fn close(&self) {
        self.streams.close().await;
    }
}

fn manifest_of(streams: &LocalStreams) -> Result<StreamManifest, StreamError> {
    let mut manifest = StreamManifest::default();
    for stream in streams.list("") {
        manifest.streams.entry(stream.clone()).or_default();
        for (extent, _) in streams.listed(&stream)? {
            let stat = streams.node().stat(extent)?;
            let digest = stat.digest.map(|digest| digest.0);
            manifest.list(&stream, extent, ManifestExtent { length: stat.length, digest });
        }
    }
    Ok(manifest)
}

/// The blocks of an extent of a folder.
pub struct SourceExtent(ExtentReader);

impl SourceExtent {
    /// The next block with its header, or `None` at the end.
    ///
    /// # Errors
    ///
    /// If it is not what was appended, or the disk fails.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        Ok(self.0.next_whole().await?.map(|(_, block)| block))
    }
}
