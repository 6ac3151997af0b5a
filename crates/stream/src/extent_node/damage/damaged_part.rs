//! Which part of a file is damaged, as a check names it.

use crate::ids::ExtentId;

/// Which part of a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedPart {
    /// The file as such: it is missing, too short, or contradicts another.
    File,
    /// One block does not read.
    Block {
        /// The extent it belongs to.
        extent: ExtentId,
        /// Where it starts in the extent, in bytes.
        offset: u64,
    },
    /// A bit of one block was flipped: readers see it as it was, and a repair writes it anew.
    Flipped {
        /// The extent it belongs to.
        extent: ExtentId,
        /// Where it starts in the extent, in bytes.
        offset: u64,
    },
    /// It is not certain that the extent's last blocks are all that were appended.
    End {
        /// Which extent.
        extent: ExtentId,
    },
    /// The next start mends it from its other copy.
    Mended,
    /// Every block of the extent reads, but they are not the ones that were appended. Which ones is unknown.
    Exchanged,
}
