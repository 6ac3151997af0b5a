//! Extents whose deletion was in a record of the journal that is lost.
//!
//! The stream manager lists an extent no longer before it is deleted, and the journal has the deletion before
//! the file is removed. So one that no stream lists and that has no file was deleted, whatever the journal
//! says: to report that its file is missing would be false, and nothing could mend it.

use super::misplaced::FOUND_SUFFIX;
use super::settle::ListedExtent;
use crate::error::StreamError;
use crate::extent_node::extent_path;
use crate::extent_node::journal::JournalRecovery;
use crate::ids::ExtentId;
use base::Disk;
use std::collections::BTreeSet;

/// Forgets extents that no stream lists and that have no file. Changes nothing on the disk.
pub(crate) async fn forget_deleted(
    disk: &dyn Disk,
    recovered: &mut JournalRecovery,
    listed: &[ListedExtent],
) -> Result<(), StreamError> {
    let listed: BTreeSet<ExtentId> = listed.iter().map(|listed| listed.extent).collect();
    let known = recovered.table.extents.keys().copied();
    let unlisted: Vec<ExtentId> = known.filter(|extent| !listed.contains(extent)).collect();
    for extent in unlisted {
        let path = extent_path(extent);
        let mut has_file = false;
        for name in [path.clone(), format!("{path}{FOUND_SUFFIX}")] {
            has_file |= disk.exists(&name).await.map_err(|error| StreamError::read(&name, &error))?;
        }
        if !has_file {
            recovered.table.extents.remove(&extent);
            let older = &recovered.appends[..recovered.newest_appends_from.min(recovered.appends.len())];
            recovered.newest_appends_from = older.iter().filter(|(of, ..)| *of != extent).count();
            recovered.appends.retain(|(of, ..)| *of != extent);
        }
    }
    Ok(())
}
