//! Where the files of extents lie in the data folder: one file for each extent, named by its id.

use crate::ids::ExtentId;

/// Path of the extent's file.
pub(crate) fn extent_path(extent: ExtentId) -> String {
    format!("extents/{extent}")
}
