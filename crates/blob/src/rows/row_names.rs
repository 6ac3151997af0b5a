//! What rows of containers and blobs are called, for who has only their stored form: the offline check and
//! repair.

use crate::container::container_row::ContainerRow;
use crate::rows::former_row::{SNAPSHOT_PREFIX, VERSION_PREFIX};
use crate::rows::staged_row::STAGED_PREFIX;
use base::Ticks;
use partition::key::parse_row_key;
use service::seven_digits_text;

/// A blob by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobName {
    /// Its account.
    pub account: String,
    /// Its container, by id.
    pub container_id: u64,
    /// Its name.
    pub blob: String,
    /// What of it the row is; `None`: the base blob, or what several may share.
    pub part: Option<BlobPart>,
}

/// A part of what is stored under a blob's name that can be there without the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobPart {
    /// The snapshot of this time, as requests name it.
    Snapshot(String),
    /// The former version with this id.
    Version(String),
    /// The staged block with this id, in hexadecimal.
    StagedBlock(String),
}

/// The part whose row has this name.
fn part_of(row: &str) -> Option<BlobPart> {
    let time = |digits: &str| u64::from_str_radix(digits, 16).ok().map(|at| seven_digits_text(Ticks(at)));
    if let Some(digits) = row.strip_prefix(SNAPSHOT_PREFIX) {
        return time(digits).map(BlobPart::Snapshot);
    }
    if let Some(digits) = row.strip_prefix(VERSION_PREFIX) {
        return time(digits).map(BlobPart::Version);
    }
    row.strip_prefix(STAGED_PREFIX).map(|digits| BlobPart::StagedBlock(digits.to_owned()))
}

/// The blob that the row of this key belongs to; without a part, with all its snapshots, versions and staged
/// blocks. `None`: no row has this key.
pub fn blob_name_of(key: &[u8]) -> Option<BlobName> {
    let parts = parse_row_key(key)?;
    let part = part_of(&parts.object_name);
    Some(BlobName {
        account: parts.account,
        container_id: parts.container_id,
        blob: parts.partition_name,
        part,
    })
}

/// Id and name of the container whose row in the Container object table is stored like this; `None`: it does
/// not read.
pub fn container_name_of(row: &[u8]) -> Option<(u64, String)> {
    let row = ContainerRow::decode(row).ok()?;
    Some((row.id, row.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::chunk_row::chunk_row;
    use crate::rows::former_row::{snapshot_row, version_row};
    use crate::rows::head_row::HEAD;
    use crate::rows::region_row::{garbage_row, region_row};
    use crate::rows::staged_row::staged_row;
    use partition::RowKey;

    #[test]
    fn all_rows_of_a_blob_have_its_name() {
        let time = || "1601-01-01T00:00:00.0000001Z".to_owned();
        let rows = [
            (HEAD.to_owned(), None),
            (snapshot_row(1), Some(BlobPart::Snapshot(time()))),
            (version_row(1), Some(BlobPart::Version(time()))),
            (chunk_row(3, 4), None),
            (region_row(5, 6), None),
            (garbage_row(7), None),
            (staged_row(b"id"), Some(BlobPart::StagedBlock("6964".to_owned()))),
        ];
        for (row, part) in rows {
            let key = RowKey::new("acct", 7, "a/b", &row);
            let (account, blob) = ("acct".to_owned(), "a/b".to_owned());
            let expected = BlobName { account, container_id: 7, blob, part };
            assert_eq!(blob_name_of(key.as_bytes()), Some(expected), "{row}");
        }
        assert_eq!((blob_name_of(b"acct"), container_name_of(b"?")), (None, None));
    }
}
