//! Reads a stream from one of its blocks to its end, over the borders of extents: recovery of a range replays
//! its log so.

use crate::error::StreamError;
use crate::extent_node::ExtentReader;
use crate::ids::Location;
use crate::stream_layer::ReplayBlocks;
use base::BoxFuture;
use bytes::Bytes;
use std::collections::VecDeque;

/// Blocks of a stream in order. Any block that does not verify is an error, never a skip.
pub struct Replay(pub(super) Blocks);

pub(super) enum Blocks {
    Local(LocalReplay),
    Stamp(Box<dyn ReplayBlocks>),
}

/// Blocks of a stream of a data folder.
pub(crate) struct LocalReplay {
    pub(crate) readers: VecDeque<ExtentReader>,
}

impl Replay {
    /// The next block, or `None` at the end.
    pub fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<(Location, Bytes)>, StreamError>> {
        match &mut self.0 {
            Blocks::Local(local) => Box::pin(local.next()),
            Blocks::Stamp(blocks) => blocks.next(),
        }
    }
}

impl LocalReplay {
    async fn next(&mut self) -> Result<Option<(Location, Bytes)>, StreamError> {
        while let Some(reader) = self.readers.front_mut() {
            if let Some(block) = reader.next().await? {
                return Ok(Some(block));
            }
            self.readers.pop_front();
        }
        Ok(None)
    }
}
