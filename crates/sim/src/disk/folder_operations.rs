//! Operations on names of the simulated disk: open, list, rename, remove, and syncs of folders.
//!
//! What always holds: a change of names is durable only once its folder is synced; folders themselves are
//! durable at once.

use super::SimDisk;
use super::content::Content;
use super::file::SimFile;
use super::tree::{not_found, set_names};
use async_trait::async_trait;
use base::disk::{Disk, DiskFile, OpenMode, out_of_files};
use base::memory_disk::name_in;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

#[async_trait]
impl Disk for SimDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.operation("open", path, 0, &[]).await;
        let refused_one_in = self.tree.lock().faults.create_refused_one_in;
        if mode == OpenMode::CreateNew && self.random.one_in(refused_one_in) {
            return Err(out_of_files());
        }
        let mut tree = self.tree.lock();
        let id = match (mode, tree.names.get(path).copied()) {
            (OpenMode::CreateNew, Some(_)) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{path}: exists")));
            }
            (OpenMode::CreateNew, None) => {
                tree.next_file += 1;
                let id = tree.next_file;
                tree.files.insert(id, Content::default());
                tree.change_names(path, vec![(path.to_owned(), Some(id))]);
                id
            }
            (_, Some(id)) => id,
            (_, None) => return Err(not_found(path)),
        };
        Ok(Arc::new(SimFile { disk: self.clone(), id, path: path.to_owned() }))
    }

    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.operation("list", folder, 0, &[]).await;
        let tree = self.tree.lock();
        if !folder.is_empty() && !tree.folders.contains(folder) {
            return Err(not_found(folder));
        }
        let names: BTreeSet<String> = (tree.names.keys().chain(tree.folders.iter()))
            .filter_map(|path| name_in(folder, path))
            .map(str::to_owned)
            .collect();
        Ok(names.into_iter().collect())
    }

    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.operation("create_folder", folder, 0, &[]).await;
        // Folders are kept at once: the layers make them before anything that matters.
        self.tree.lock().folders.insert(folder.to_owned());
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operation("rename", from, 0, to.as_bytes()).await;
        let mut tree = self.tree.lock();
        let id = tree.names.get(from).copied().ok_or_else(|| not_found(from))?;
        tree.change_names(from, vec![(from.to_owned(), None), (to.to_owned(), Some(id))]);
        Ok(())
    }

    async fn remove(&self, path: &str) -> io::Result<()> {
        self.operation("remove", path, 0, &[]).await;
        let mut tree = self.tree.lock();
        if !tree.names.contains_key(path) {
            return Err(not_found(path));
        }
        tree.change_names(path, vec![(path.to_owned(), None)]);
        Ok(())
    }

    async fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.operation("sync_folder", folder, 0, &[]).await;
        let mut tree = self.tree.lock();
        let tree = &mut *tree;
        for change in tree.name_changes.iter().filter(|change| change.folder == folder) {
            set_names(&mut tree.durable_names, &change.changes);
        }
        tree.name_changes.retain(|change| change.folder != folder);
        Ok(())
    }

    async fn exists(&self, path: &str) -> io::Result<bool> {
        self.operation("exists", path, 0, &[]).await;
        let tree = self.tree.lock();
        Ok(tree.names.contains_key(path) || tree.folders.contains(path))
    }

    async fn free_bytes(&self) -> io::Result<u64> {
        let tree = self.tree.lock();
        let capacity = tree.faults.capacity_bytes;
        Ok(if capacity == 0 { u64::MAX } else { capacity.saturating_sub(tree.used_bytes()) })
    }

    async fn total_bytes(&self) -> io::Result<u64> {
        let capacity = self.tree.lock().faults.capacity_bytes;
        Ok(if capacity == 0 { u64::MAX } else { capacity })
    }
}
