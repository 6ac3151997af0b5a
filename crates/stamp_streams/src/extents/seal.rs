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
const SEALS_AT_ONCE_MAX: usize = 32;

/// How a seal is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealFor {
    /// A taker of a range, whose load reads the parts of what is sealed, or not.
    Taker { loads: bool },
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
    let mut ahead = HeadersAhead::new(seal_for == SealFor::Taker { loads: true });
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
    if matches!(seal_for, SealFor::Taker { .. }) {
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
    let document = taking.held().document().clone();
    let walks: Vec<SealWalk> = taking.walks().cloned().collect();
    let sealing: Vec<_> = walks
        .into_iter()
        .enumerate()
        .map(|(index, walk)| {
            let stream = document.streams.get(&walk.place().stream);
            let loads = stream.is_some_and(|stream| surroundings.ahead.keeps_whole(&stream.purpose));
            let sealed = seal(surroundings, walk, SealFor::Taker { loads }, &may_go_on);
            async move { (index, sealed.await) }
        })
        .collect();
    // In any order: behind a long walk the short ones would wait.
    let mut sealing = stream::iter(sealing).buffer_unordered(SEALS_AT_ONCE_MAX);
    while let Some((index, walk)) = sealing.next().await {
        if let Some(of_taking) = taking.walk_mut(index) {
            *of_taking = walk;
        }
    }
}
