//! The changes of streams' extent lists that [`Streams::multi_modify`](crate::Streams::multi_modify) makes.

use crate::ids::ExtentId;
use crate::owner::OwnedStream;

/// One change of [`Streams::multi_modify`](crate::Streams::multi_modify). A list with
/// one that a former owner asks for is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamChange {
    /// A new stream without extents.
    Create(OwnedStream),
    /// The stream goes; its extents stay as long as another lists them.
    Delete(OwnedStream),
    /// The stream gets another name, which is free.
    Rename {
        /// Its name.
        from: OwnedStream,
        /// Its new name.
        to: OwnedStream,
    },
    /// All extents of one stream are also listed at the end of another. Its last extent is sealed first.
    Share {
        /// The stream that lists them now.
        from: OwnedStream,
        /// The stream that lists them too.
        to: OwnedStream,
    },
    /// The same of those among these extents that the first stream lists.
    ShareSome {
        /// The stream that lists them now.
        from: OwnedStream,
        /// The stream that lists them too.
        to: OwnedStream,
        /// Which ones.
        extents: Vec<ExtentId>,
    },
    /// The stream lists these extents no longer. They must be sealed.
    Unlist {
        /// Which stream.
        stream: OwnedStream,
        /// Which of its extents.
        extents: Vec<ExtentId>,
    },
}
