//! What a repair needs of the streams: whatever still reads of one, and where it does not. Other readers stop
//! at the first damaged block.

use crate::error::StreamError;
use crate::extent_node::WalkStep;
use crate::ids::{ExtentId, Location, StreamName};
use crate::streams::Streams;
use base::BoxFuture;
use bytes::Bytes;

/// A part of a damaged stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Salvaged {
    /// A whole block; one with a flipped bit is as it was.
    Block(Location, Bytes),
    /// Blocks may be missing here.
    Missing {
        /// In which extent.
        extent: ExtentId,
        /// From which byte on; 0 if the whole extent is lost.
        from: u64,
        /// Up to which byte; `u64::MAX`: where the extent ended is unknown.
        to: u64,
        /// The extent's end is in doubt: perhaps nothing is missing.
        is_end: bool,
        /// Why.
        problem: String,
    },
}

impl Streams {
    /// All that reads of the stream, in order, and where something is missing. One extent's is in memory at a
    /// time.
    pub fn salvage<'a>(
        &'a self,
        stream: &'a StreamName,
        visit: &'a mut (dyn FnMut(Salvaged) + Send),
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            for (extent, length) in self.local()?.listed(stream)? {
                let walked = match self.local()?.node().walk(extent).await {
                    Ok(walked) => walked,
                    Err(error) => {
                        visit(Salvaged::Missing {
                            extent,
                            from: 0,
                            to: u64::MAX,
                            is_end: false,
                            problem: error.to_string(),
                        });
                        continue;
                    }
                };
                let mut end = 0;
                for walked in walked {
                    match walked {
                        WalkStep::Whole { location, payload, .. } => {
                            end = location.end();
                            visit(Salvaged::Block(location, payload));
                        }
                        WalkStep::Flipped { location, block, .. } => {
                            end = location.end();
                            visit(Salvaged::Block(location, block.slice(crate::BLOCK_HEADER_SIZE..)));
                        }
                        WalkStep::Unread { from, to, error } => {
                            end = to;
                            visit(Salvaged::Missing {
                                extent,
                                from,
                                to,
                                is_end: false,
                                problem: error.to_string(),
                            });
                        }
                    }
                }
                if self.local()?.node().is_in_doubt(extent)? {
                    let problem = "the journal was damaged: what was appended last may be lost".to_owned();
                    visit(Salvaged::Missing { extent, from: end, to: u64::MAX, is_end: true, problem });
                } else if length.is_some_and(|length| end < length) {
                    let problem = format!("the file ends at byte {end}");
                    visit(Salvaged::Missing { extent, from: end, to: u64::MAX, is_end: false, problem });
                }
            }
            Ok(())
        })
    }

    /// Whether the stream reads from its first block to its last.
    pub fn is_whole<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<bool, StreamError>> {
        Box::pin(async move {
            let mut is_whole = true;
            let mut look = |salvaged| is_whole &= matches!(salvaged, Salvaged::Block(..));
            self.salvage(stream, &mut look).await?;
            Ok(is_whole)
        })
    }

    /// The same, but ends may be in doubt: for a caller that knows what the last block must be.
    pub fn is_whole_but_for_its_end<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<bool, StreamError>> {
        Box::pin(async move {
            let mut is_whole = true;
            let mut look =
                |salvaged| is_whole &= !matches!(salvaged, Salvaged::Missing { is_end: false, .. });
            self.salvage(stream, &mut look).await?;
            Ok(is_whole)
        })
    }

    /// Writes all blocks of which one bit was flipped as they were, in every extent. Returns where they lie.
    pub fn mend_flipped_bits<'a>(&'a self) -> BoxFuture<'a, Result<Vec<(ExtentId, u64)>, StreamError>> {
        Box::pin(async move {
            let mut mended = Vec::new();
            for extent in self.local()?.node().list() {
                match self.local()?.node().mend(extent).await {
                    Ok(offsets) => mended.extend(offsets.into_iter().map(|offset| (extent, offset))),
                    // Its file is lost: nothing is there to be mended.
                    Err(StreamError::Read { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(mended)
        })
    }

    /// The extents that this stream lists whose ends are in doubt end where they do from now on. To be called
    /// only after all that is there of them was read, and what may be missing was reported. Returns how many
    /// there were.
    pub fn accept_ends<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<u64, StreamError>> {
        Box::pin(async move {
            let mut accepted = 0;
            for (extent, _) in self.local()?.listed(stream)? {
                if self.local()?.node().is_in_doubt(extent)? {
                    self.local()?.node().accept_end(extent).await?;
                    accepted += 1;
                }
            }
            Ok(accepted)
        })
    }
}
