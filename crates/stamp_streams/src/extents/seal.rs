//! Finding the end of an extent and sealing it there: carries out `stamp::SealWalk`.
//!
//! What always holds: nothing is sent once `may_go_on` says no.

use crate::extents::header_ahead::HeadersAhead;
use crate::extents::parts::content;
use crate::settings::Breach;
use crate::surroundings::Surroundings;
use futures_util::StreamExt;
use futures_util::stream;
use stamp::{Found, PartHeader, PartPath, PutAnswer, SealWalk, Taking, WalkStep};

/// Extents that a taker seals at a time.
const SEALS_AT_ONCE_MAX: usize = 16;

/// How a seal is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealFor {
    /// A taker of a range.
    Taker,
    /// An owner, a sweep, a restore.
    Other,
}

/// Goes on with a walk until it has ended, or may not go on.
pub(crate) async fn seal(
    surroundings: &Surroundings,
    mut walk: SealWalk,
    seal_for: SealFor,
    may_go_on: impl Fn() -> bool,
) -> SealWalk {
    let mut back_off = surroundings.back_off();
    let mut ahead = HeadersAhead::default();
    while may_go_on() {
        match walk.step() {
            WalkStep::Read { offset } => {
                let found = ahead.read(surroundings, walk.place().extent, offset).await;
                walk.found(&found);
                if found == Found::Unknown {
                    back_off.wait().await;
                }
            }
            WalkStep::Create(header) => {
                let answer = create(surroundings, &header, &walk.body(), seal_for).await;
                walk.answered(answer);
                if answer == PutAnswer::Unknown {
                    back_off.wait().await;
                }
            }
            WalkStep::Sealed { .. } | WalkStep::Stopped(_) => break,
        }
    }
    walk
}

async fn create(
    surroundings: &Surroundings,
    header: &PartHeader,
    body: &[u8],
    seal_for: SealFor,
) -> PutAnswer {
    let planted = &surroundings.settings.planted;
    if seal_for == SealFor::Taker {
        let is_empty = header.offset == 0;
        if planted.has(Breach::SkipSeal) || planted.has(Breach::SkipEmptySeal) && is_empty {
            return PutAnswer::Created;
        }
        if planted.has(Breach::SealElsewhere) {
            let path = PartPath { extent: header.place.extent, offset: u64::MAX };
            let name = path.format(surroundings.settings.stamp);
            return match surroundings.put_named(&name, &content(header, body)).await {
                PutAnswer::Refused => PutAnswer::Created,
                answer => answer,
            };
        }
    }
    surroundings.put_part(header, &content(header, body)).await
}

/// Goes on with all walks of a taking, side by side.
pub(crate) async fn seal_all(surroundings: &Surroundings, taking: &mut Taking, may_go_on: impl Fn() -> bool) {
    let walks: Vec<SealWalk> = taking.walks().cloned().collect();
    let sealing: Vec<_> =
        walks.into_iter().map(|walk| seal(surroundings, walk, SealFor::Taker, &may_go_on)).collect();
    let ended: Vec<SealWalk> = stream::iter(sealing).buffered(SEALS_AT_ONCE_MAX).collect().await;
    for (index, walk) in ended.into_iter().enumerate() {
        if let Some(of_taking) = taking.walk_mut(index) {
            *of_taking = walk;
        }
    }
}
