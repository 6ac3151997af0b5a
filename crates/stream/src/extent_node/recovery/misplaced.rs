//! Files of extents that lie under each other's names, as a restore by hand may leave them: each block names
//! its extent, so they are put where they belong.
//!
//! ```text
//! extents/<16 hex>.found    a file on its way to that extent's name
//! ```
//!
//! What always holds: no file is removed or written over, and a move that was cut off is ended by the next
//! start.

use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::error::StreamError;
use crate::extent_node::extent_path;
use crate::extent_node::state::ExtentTable;
use crate::ids::{ExtentId, Location};
use base::{Disk, DiskFile, OpenMode};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const FOUND_SUFFIX: &str = ".found";

/// The extent that the file's first block names; `None`: the file is empty or that block does not read.
pub(crate) async fn owner_of(file: &dyn DiskFile, holder: ExtentId) -> Option<ExtentId> {
    let header = file.read_at(0, BLOCK_HEADER_SIZE).await.ok()?;
    let claimed = block::claimed(&header)?;
    if claimed.extent == holder || claimed.offset != 0 {
        return Some(holder);
    }
    let location = Location { offset: 0, ..claimed };
    let block = file.read_at(0, BLOCK_HEADER_SIZE + location.len as usize).await.ok()?;
    block::verify(&block, location).is_ok().then_some(location.extent)
}

/// Puts files of extents in `table` under their names. Returns what was found, in words for the operator.
pub(crate) async fn put_in_place(disk: &dyn Disk, table: &ExtentTable) -> Result<Vec<String>, StreamError> {
    finish(disk).await?;
    let mut owners: BTreeMap<ExtentId, ExtentId> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for extent in table.extents.keys() {
        let path = extent_path(*extent);
        match disk.open(&path, OpenMode::Read).await {
            Ok(file) => {
                let owner = owner_of(&*file, *extent).await;
                owners.extend(owner.filter(|owner| owner != extent).map(|owner| (*extent, owner)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.insert(*extent);
            }
            Err(error) => return Err(StreamError::read(&path, &error)),
        }
    }
    let mut found = Vec::new();
    let mut taken = BTreeSet::new();
    let is_free = |owner: &ExtentId| missing.contains(owner) || owners.contains_key(owner);
    for (holder, owner) in &owners {
        if is_free(owner) && taken.insert(*owner) {
            let to = format!("{}{FOUND_SUFFIX}", extent_path(*owner));
            disk.rename(&extent_path(*holder), &to).await.map_err(failed)?;
            found.push(format!("the file {} holds extent {owner}", extent_path(*holder)));
        }
    }
    if !found.is_empty() {
        disk.sync_folder("extents").await.map_err(failed)?;
        finish(disk).await?;
    }
    Ok(found)
}

/// Gives files that are on their way their names.
async fn finish(disk: &dyn Disk) -> Result<(), StreamError> {
    let names = disk.list("extents").await.map_err(|error| StreamError::read("folder extents", &error))?;
    let mut is_changed = false;
    for name in names.iter().filter_map(|name| name.strip_suffix(FOUND_SUFFIX)) {
        let path = format!("extents/{name}");
        if !disk.exists(&path).await.map_err(|error| StreamError::read(&path, &error))? {
            disk.rename(&format!("{path}{FOUND_SUFFIX}"), &path).await.map_err(failed)?;
            is_changed = true;
        }
    }
    if is_changed {
        disk.sync_folder("extents").await.map_err(failed)?;
    }
    Ok(())
}

fn failed(error: std::io::Error) -> StreamError {
    StreamError::write("folder extents", &error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent_node::state::ExtentState;
    use crate::owner::Owner;
    use base::memory_disk::MemoryDisk;
    use futures_util::FutureExt;

    async fn put(disk: &MemoryDisk, holder: u64, content: Option<u64>) {
        let file = disk.open(&extent_path(ExtentId(holder)), OpenMode::CreateNew).await.unwrap();
        let mut block = Vec::new();
        if let Some(owner) = content {
            block::put_block(&mut block, ExtentId(owner), 0, &owner.to_le_bytes());
        }
        file.write_at(0, block.into()).await.unwrap();
    }

    async fn holds(disk: &MemoryDisk, holder: u64) -> Option<ExtentId> {
        let file = disk.open(&extent_path(ExtentId(holder)), OpenMode::Read).await.ok()?;
        owner_of(&*file, ExtentId(holder)).await
    }

    #[test]
    fn files_return_to_their_names() {
        async {
            let disk = MemoryDisk::new();
            disk.create_folder("extents").await.unwrap();
            // 1 and 2 are exchanged, 3 lies where 4 was, which is lost; 5 is where it belongs, 6 is empty.
            for (holder, content) in [(1, Some(2)), (2, Some(1)), (4, Some(3)), (5, Some(5)), (6, None)] {
                put(&disk, holder, content).await;
            }
            let state = ExtentState::empty(Owner::default());
            let table = ExtentTable { extents: (1..7).map(|id| (ExtentId(id), state)).collect() };
            assert_eq!(put_in_place(&disk, &table).await.unwrap().len(), 3);
            for id in [1, 2, 3, 5] {
                assert_eq!(holds(&disk, id).await, Some(ExtentId(id)));
            }
            assert!(!disk.exists(&extent_path(ExtentId(4))).await.unwrap());
            assert!(disk.exists(&extent_path(ExtentId(6))).await.unwrap());
            assert_eq!(put_in_place(&disk, &table).await.unwrap(), [] as [&str; 0]);
            // Cut off in the middle.
            disk.rename(&extent_path(ExtentId(1)), "extents/0000000000000001.found").await.unwrap();
            put_in_place(&disk, &table).await.unwrap();
            assert_eq!(holds(&disk, 1).await, Some(ExtentId(1)));
        }
        .now_or_never()
        .unwrap();
    }
}
