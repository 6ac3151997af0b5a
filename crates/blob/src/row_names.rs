//! What rows of containers and blobs are called, for who has only their stored form: the offline check and repair.

use crate::container_row::ContainerRow;
use partition::key::parse_row_key;

/// A blob by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobName {
    /// Its account.
    pub account: String,
    /// Its container, by id.
    pub container_id: u64,
    /// Its name.
    pub blob: String,
}

/// The blob that the row of this key belongs to, with all its snapshots, versions and staged blocks; `None`: no row has
/// this key.
pub fn blob_name_of(key: &[u8]) -> Option<BlobName> {
    let parts = parse_row_key(key)?;
    Some(BlobName { account: parts.account, container_id: parts.container_id, blob: parts.partition_name })
}

/// Id and name of the container whose row in the Container object table is stored like this; `None`: it does not read.
pub fn container_name_of(row: &[u8]) -> Option<(u64, String)> {
    let row = ContainerRow::decode(row).ok()?;
    Some((row.id, row.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob_rows::{HEAD, chunk_row, garbage_row, region_row, snapshot_row, staged_row, version_row};
    use partition::RowKey;

    #[test]
    fn all_rows_of_a_blob_have_its_name() {
        let rows = [
            HEAD.to_owned(),
            snapshot_row(1),
            version_row(2),
            chunk_row(3, 4),
            region_row(5, 6),
            garbage_row(7),
            staged_row(b"id"),
        ];
        for row in rows {
            let key = RowKey::new("acct", 7, "a/b", &row);
            let expected = BlobName { account: "acct".to_owned(), container_id: 7, blob: "a/b".to_owned() };
            assert_eq!(blob_name_of(key.as_bytes()), Some(expected), "{row}");
        }
        assert_eq!((blob_name_of(b"acct"), container_name_of(b"?")), (None, None));
    }
}
