//! Which of the blobs of one name a request means: the base blob, a snapshot or a version.

use crate::rows::former_row::{snapshot_row, version_row};
use crate::rows::head_row::Head;

/// Which of the blobs of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revision {
    /// The base blob.
    #[default]
    Current,
    /// The snapshot of this time.
    Snapshot(u64),
    /// The version with this id, be it the base blob or a former one.
    Version(u64),
}

impl Revision {
    /// The row of its own that it has, or may have.
    pub(crate) fn row(self) -> Option<String> {
        match self {
            Revision::Current => None,
            Revision::Snapshot(snapshot) => Some(snapshot_row(snapshot)),
            Revision::Version(version) => Some(version_row(version)),
        }
    }

    /// The same, with a version that is the base blob as such.
    pub(crate) fn resolve(self, head: &Head) -> Revision {
        match (self, head.live()) {
            (Revision::Version(version), Some(live)) if live.version.id == Some(version) => Revision::Current,
            _ => self,
        }
    }
}
