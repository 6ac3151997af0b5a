//! The stream layer: named streams of append-only, checksummed, sealable extents.
//!
//! [`Streams`] is the facade. Beneath it the stream manager (which extents has a stream?) and the extent node
//! (which bytes has an extent?) do not depend on each other. What always holds: a returned append is durable,
//! an acknowledged block reads back the same bytes for ever or fails loudly, and an append with an old owner
//! epoch is refused.

mod block;
mod check;
mod copies;
mod error;
mod extent_node;
mod extent_rolls;
mod folder;
mod ids;
mod local_streams;
mod owner;
mod record;
mod repair;
mod scrub;
mod sealed;
mod settings;
mod space;
mod stream_layer;
mod stream_manager;
mod streams;

pub use block::{
    BLOCK_HEADER_SIZE, BLOCK_PAYLOAD_SIZE_MAX, put_block, step as step_over_block, verify as verify_block,
};
pub use check::{StreamCheck, StreamDamage, check_streams};
pub use copies::folder_source::{FolderSource, SourceExtent};
pub use copies::folder_target::{FolderTarget, TargetExtent};
pub use copies::manifest::{ManifestExtent, StreamManifest};
pub use error::{OwnerConflict, StreamError};
pub use extent_node::DamagedPart;
pub use folder::FORMAT_VERSION;
pub use ids::{ExtentId, Location, OwnerEpoch, STREAM_NAME_SIZE_MAX, StreamName};
pub use owner::{Incarnation, OWNER_SIZE, OwnedStream, Owner};
pub use repair::Salvaged;
pub use scrub::ScrubStatistics;
pub use settings::{IN_MEMORY_SEGMENT_SIZE_BYTES, StreamSettings};
pub use space::Claim;
pub use stream_layer::{ReplayBlocks, StreamLayer};
pub use streams::{Replay, StreamChange, StreamStat, Streams};
