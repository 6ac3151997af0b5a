//! The folder of a process for blocks that it has read from the object store.
//!
//! What always holds: only a folder that is empty or a cache's is used, by one process at a time; files are
//! for the user of the server alone, since what is in them is not encrypted.

use crate::configuration::stamp::CacheConfiguration;
use base::Environment;
use base::file_lock::{FileLock, SystemFileLock};
use base::system::SystemDisk;
use stamp_streams::{BlockCache, CacheBounds};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

const OWN_FOLDER_MODE: u32 = 0o700;
/// The file whose lock a process holds.
const LOCK_NAME: &str = "LOCK";
/// How a cache names its files.
const BLOCKS_PREFIX: &str = "blocks-";
/// The share of the memory budget that may know where blocks are, and what one of them takes.
const SHARE_OF_MEMORY: u64 = 32;
const BLOCK_MEMORY_BYTES: u64 = 80;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheFailure {
    #[error("--cache {}: it can't be made or read: {error}", folder.display())]
    Folder { folder: PathBuf, error: std::io::Error },
    #[error("--cache {}: it has {name}, which is no cache's: give a folder of its own", folder.display())]
    Others { folder: PathBuf, name: String },
    #[error("--cache {}: another process uses it: each needs its own", folder.display())]
    InUse { folder: PathBuf },
}

/// The cache, and the lock of its folder.
pub(crate) struct LocalBlockCache {
    pub(crate) cache: Arc<BlockCache>,
    _lock: Box<dyn Send + Sync>,
}

impl LocalBlockCache {
    /// Opens it. `memory_budget_bytes`: of the process.
    pub(crate) async fn open(
        configuration: &CacheConfiguration,
        env: &Environment,
        memory_budget_bytes: u64,
    ) -> Result<Self, CacheFailure> {
        let folder = || configuration.folder.clone();
        let failed = |error| CacheFailure::Folder { folder: folder(), error };
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(OWN_FOLDER_MODE).recursive(true).create(&configuration.folder).map_err(failed)?;
        for entry in std::fs::read_dir(&configuration.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if name != LOCK_NAME && !name.starts_with(BLOCKS_PREFIX) {
                return Err(CacheFailure::Others { folder: folder(), name });
            }
        }
        let lock = SystemFileLock::new(&configuration.folder.join(LOCK_NAME)).try_lock().map_err(failed)?;
        let lock = lock.ok_or_else(|| CacheFailure::InUse { folder: folder() })?;
        let bounds = CacheBounds {
            size_bytes_max: configuration.size_bytes_max,
            blocks_max: (memory_budget_bytes / SHARE_OF_MEMORY / BLOCK_MEMORY_BYTES) as usize,
        };
        let disk = Arc::new(SystemDisk::new(&configuration.folder));
        let opened = BlockCache::open(disk, env.clock.clone(), &*env.spawner, bounds).await;
        Ok(LocalBlockCache { cache: opened.map_err(failed)?, _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_of_others_is_refused_and_so_is_one_in_use() {
        let scratch = tempfile::tempdir().expect("a folder");
        let env = base::system::environment(scratch.path());
        let configuration =
            CacheConfiguration { folder: scratch.path().join("a/b"), size_bytes_max: 512 << 20 };
        let open = async |configuration: &CacheConfiguration| {
            LocalBlockCache::open(configuration, &env, 1 << 30).await.err().map(|error| error.to_string())
        };
        let opened = LocalBlockCache::open(&configuration, &env, 1 << 30).await;
        assert!(opened.is_ok());
        let second = open(&configuration).await.expect("refused");
        assert!(second.contains("another process uses it"), "{second}");
        drop(opened);
        assert_eq!(open(&configuration).await, None);
        let parent = CacheConfiguration { folder: scratch.path().join("a"), ..configuration };
        let others = open(&parent).await.expect("refused");
        assert!(others.contains("it has b, which is no cache's"), "{others}");
    }
}
