//! The changes of streams' extent lists that [`Streams::multi_modify`](crate::Streams::multi_modify) makes.

use crate::ids::{ExtentId, StreamName};

/// One change of [`Streams::multi_modify`](crate::Streams::multi_modify).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamChange {
    /// A new stream without extents.
    Create(StreamName),
    /// The stream goes; its extents stay as long as another lists them.
    Delete(StreamName),
    /// The stream gets another name, which is free.
    Rename {
        /// Its name.
        from: StreamName,
        /// Its new name.
        to: StreamName,
    },
    /// All extents of one stream are also listed at the end of another. Its last extent is sealed first.
    Share {
        /// The stream that lists them now.
        from: StreamName,
        /// The stream that lists them too.
        to: StreamName,
    },
    /// The same of those among these extents that the first stream lists.
    ShareSome {
        /// The stream that lists them now.
        from: StreamName,
        /// The stream that lists them too.
        to: StreamName,
        /// Which ones.
        extents: Vec<ExtentId>,
    },
    /// The stream lists these extents no longer. They must be sealed.
    Unlist {
        /// Which stream.
        stream: StreamName,
        /// Which of its extents.
        extents: Vec<ExtentId>,
    },
}
