//! Where the open extents of a range end now: by the headers of their parts, side by side.
//!
//! What always holds: nothing is sealed; an end is that of an unbroken chain, and one that is broken is said
//! with the end before it.

use crate::error::StampError;
use crate::extents::header_ahead::HeadersAhead;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use futures_util::StreamExt;
use futures_util::stream::iter;
use stamp::{Chain, ExtentName, Found, Link};

/// Extents that are walked at a time.
const WALKS_AT_ONCE_MAX: usize = 8;
/// How often a header is tried to read.
const TRIES_MAX: usize = 8;

/// An extent without a recorded length.
#[derive(Clone, Copy)]
pub(super) struct OpenExtent {
    pub(super) extent: ExtentName,
    /// Whether a load reads its parts, and what is read now is kept for it.
    pub(super) loads: bool,
}

/// Where an extent's chain of parts ends.
pub(super) struct FoundEnd {
    pub(super) extent: ExtentName,
    pub(super) length: u64,
    /// Why it does not go on, if that is not its end.
    pub(super) broken: Option<StampError>,
}

/// The ends of these extents, in the order of their names.
pub(super) async fn find_ends(surroundings: &Surroundings, extents: &[OpenExtent]) -> Vec<FoundEnd> {
    let walks: Vec<_> = extents.iter().map(|open| find_end(surroundings, *open)).collect();
    // In any order: behind a long walk the short ones would wait.
    let mut ends: Vec<FoundEnd> = iter(walks).buffer_unordered(WALKS_AT_ONCE_MAX).collect().await;
    ends.sort_unstable_by_key(|end| end.extent);
    ends
}

async fn find_end(surroundings: &Surroundings, open: OpenExtent) -> FoundEnd {
    let OpenExtent { extent, loads } = open;
    let mut chain = Chain::new(extent);
    let mut ahead = HeadersAhead::new(loads);
    let broken = loop {
        match read_header(surroundings, &mut ahead, extent, chain.end()).await {
            Ok(Found::Header(header)) => match chain.extend(&header) {
                Ok(Link::Part) => {}
                Ok(Link::Seal) => break None,
                Err(error) => break Some(error.into()),
            },
            Ok(Found::Damaged(error)) => break Some(error.into()),
            Ok(Found::NotThere | Found::Unknown) => break None,
            Err(error) => break Some(error),
        }
    };
    FoundEnd { extent, length: chain.end(), broken }
}

/// What the store says of a header: never [`Found::Unknown`].
async fn read_header(
    surroundings: &Surroundings,
    ahead: &mut HeadersAhead,
    extent: ExtentName,
    offset: u64,
) -> Result<Found, StampError> {
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        match ahead.read(surroundings, extent, offset).await {
            Found::Unknown => back_off.wait().await,
            found => return Ok(found),
        }
    }
    let error = StoreError::Unavailable("no answer".to_owned());
    Err(StampError::store(&format!("part at {offset} of extent {extent}"), error))
}
