//! Reads a stream from one of its blocks to its end, over the borders of extents: recovery of a range replays
//! its log so.

use crate::error::StreamError;
use crate::extent_node::ExtentReader;
use crate::ids::Location;
use base::BoxFuture;
use bytes::Bytes;
use std::collections::VecDeque;

/// Blocks of a stream in order. Any block that does not verify is an error, never a skip.
pub struct Replay {
    pub(super) readers: VecDeque<ExtentReader>,
}

impl Replay {
    /// The next block, or `None` at the end.
    pub fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<(Location, Bytes)>, StreamError>> {
        Box::pin(async move {
            while let Some(reader) = self.readers.front_mut() {
                if let Some(block) = reader.next().await? {
                    return Ok(Some(block));
                }
                self.readers.pop_front();
            }
            Ok(None)
        })
    }
}
