//! The sweep: removes deleted blobs and snapshots whose time is over, which nobody can reach and nobody asks
//! for, staged blocks that were left alone for long, and pages of very large blobs whose removal was cut off.
//!
//! It walks over all blobs in small rounds, which take a small part of the time; all these times are counted
//! in days, so a walk need not be quick. What always holds: a round walks over a bounded number of rows; what
//! is removed is decided by an ordinary operation over the blob as it is then; a row that can't be decoded
//! stays, and keeps nothing that is behind it; rows that can't be read from the disk keep only those near
//! them, of which the log tells; a walk that is cut off begins anew with the next process.

use crate::blob_service::{BlobAt, BlobService};
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::listing::{Collect, Taken, Walk};
use crate::rows::blob_address::BlobAddress;
use crate::rows::head_row::Head;
use crate::rows::record::BlobRecord;
use crate::upkeep::remove_expired::{RemoveExpired, Staged, is_over};
use base::codec::DecodeError;
use base::{Clock, Spawner, Ticks};
use parking_lot::Mutex;
use partition::ObjectTable;
use service::PassedOver;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often rounds start, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// After a round the sweep rests this many times as long as the round took.
const REST_FACTOR: u32 = 50;

/// Blobs and snapshots that one round walks over.
const WALKED_RECORDS_MAX: usize = 10_000;
/// Containers that one round looks at.
const CONTAINERS_MAX: usize = 1000;

/// Walks over one container in a round, at most: each ends at rows that can't be read.
const ATTEMPT_COUNT_MAX: usize = 256;
/// Of a name so many last characters are left out one by one, before what is left is halved.
const NEAR_CHARS: usize = 8;
/// How much later than a name's character another one is that is tried in its place.
const LATER_BY: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32];

/// Where a walk goes on: at a marker in a container, or after it.
#[derive(Clone, Debug, Default)]
struct Position {
    account: String,
    container_id: u64,
    /// `None`: the container is done.
    marker: Option<String>,
}

impl BlobService {
    /// Starts the sweep: it removes deleted blobs after their retention, for as long as the service is there.
    pub fn start_sweeping(self: &Arc<Self>, spawner: &dyn Spawner) {
        spawner.spawn("blob sweep", Box::pin(run(Arc::downgrade(self), self.clock.clone())));
    }
}

/// Runs rounds for as long as the service is there.
async fn run(service: Weak<BlobService>, clock: Arc<dyn Clock>) {
    let mut rest_for = SWEEP_EVERY;
    let mut position = None;
    loop {
        clock.sleep(rest_for).await;
        let Some(service) = service.upgrade() else { return };
        let began_at = clock.monotonic();
        let mut passed_over = PassedOver::default();
        let swept = sweep_round(&service, &mut position, &mut passed_over).await;
        passed_over.log("deleted blobs");
        match swept {
            Ok(0) => {}
            Ok(removed) => {
                tracing::debug!("{removed} blobs whose time after a deletion was over were removed")
            }
            Err(error) => {
                tracing::warn!("deleted blobs whose time is over could not be removed: {error}");
                position = None;
            }
        }
        let took_for = clock.monotonic().saturating_sub(began_at);
        rest_for = SWEEP_EVERY.max(took_for.saturating_mul(REST_FACTOR));
    }
}

/// Walks on from `position`; `None`: from the start. Returns how many blobs and snapshots it removed.
async fn sweep_round(
    service: &BlobService,
    position: &mut Option<Position>,
    passed_over: &mut PassedOver,
) -> Result<u64, BlobError> {
    let (mut walked, mut removed) = (0, 0);
    for _ in 0..CONTAINERS_MAX {
        if walked >= WALKED_RECORDS_MAX {
            return Ok(removed);
        }
        let here = match position.take() {
            Some(here) if here.marker.is_some() => here,
            before => {
                let after = before.as_ref().map(|before| (before.account.as_str(), before.container_id));
                let next = match service.partitions.next_container(ObjectTable::Blob, after).await {
                    Ok(next) => next,
                    Err(error) => {
                        let place = match after {
                            Some((account, id)) => format!("containers behind {id} of {account}: {error}"),
                            None => format!("all containers: {error}"),
                        };
                        passed_over.note_failure(Some(&error), &place);
                        // What can't be read for good keeps no round from what is before it.
                        *position = before.filter(|_| error.is_transient());
                        return Ok(removed);
                    }
                };
                let Some((account, container_id)) = next else { return Ok(removed) };
                Position { account, container_id, marker: Some(String::new()) }
            }
        };
        let (collected, marker) =
            walk_container(service, &here, WALKED_RECORDS_MAX - walked, passed_over).await?;
        walked = WALKED_RECORDS_MAX - collected.left;
        let account: Arc<str> = here.account.as_str().into();
        let address = |name: String| {
            let (account, container_id) = (account.clone(), here.container_id);
            BlobAddress { account, container_id, name: name.into() }
        };
        for name in collected.names {
            let at = BlobAt {
                address: address(name),
                container: String::new(),
                encryption: ContainerEncryption::default(),
            };
            match service.run(&at, RemoveExpired).await {
                Ok(count) => removed += count,
                Err(error) => passed_over.note_failure(error.below(), &error),
            }
        }
        for (name, owner) in collected.garbage {
            match service.remove_pages(&address(name), owner, usize::MAX).await {
                Ok(_) => removed += 1,
                Err(error) => passed_over.note_failure(error.below(), &error),
            }
        }
        *position = Some(Position { marker, ..here });
    }
    Ok(removed)
}

/// Walks on in one container. Where rows can't be read it goes on behind them, as near as it finds a name to
/// begin at. Says what it found, and where the next round goes on.
async fn walk_container(
    service: &BlobService,
    here: &Position,
    left: usize,
    passed_over: &mut PassedOver,
) -> Result<(Found, Option<String>), BlobError> {
    let place = |after: &str, before: &str, error: &BlobError| {
        let Position { account, container_id, .. } = here;
        format!("blobs behind {after:?} up to {before:?} in container {container_id} of {account}: {error}")
    };
    let mut found = Found { left, ..Found::default() };
    // The last name before rows that can't be read, and names behind it that are still to be tried.
    let mut stuck: Option<(String, BlobError)> = None;
    let mut starts = VecDeque::new();
    let mut start = String::new();
    for _ in 0..ATTEMPT_COUNT_MAX {
        let walk =
            Walk::new(&service.partitions, &here.account, here.container_id, "", here.marker.as_deref())?;
        let shared = Arc::new(Mutex::new(std::mem::take(&mut found)));
        let collect = CollectExpired { now: service.now(), found: shared.clone() };
        let ended = walk.starting_at(&start).run(collect).await;
        found = std::mem::take(&mut *shared.lock());
        passed_over.add(std::mem::take(&mut found.passed_over));
        let last = found.last.take();
        if (ended.is_ok() || last.is_some())
            && let Some((after, error)) = stuck.take()
        {
            passed_over.note(&place(&after, &start, &error));
        }
        match ended {
            Ok((_, marker)) => return Ok((found, marker)),
            Err(error) if error.below().is_some_and(|below| below.is_transient()) => {
                passed_over.put_off(&error);
                return Ok((found, None));
            }
            Err(error) => {
                if let Some(last) = last {
                    starts = starts_behind(&last).into();
                    stuck = Some((last, error));
                } else if stuck.is_none() {
                    stuck = Some((start.clone(), error));
                }
            }
        }
        match starts.pop_front() {
            Some(next) => start = next,
            None => break,
        }
    }
    if let Some((after, error)) = stuck {
        passed_over.note(&place(&after, "the last", &error));
    }
    Ok((found, None))
}

/// Names to begin at behind rows that can't be read, of which only the last name before them is known, in
/// order: the first ones leave out names that share nearly all of it, the last ones those that share its
/// first character.
fn starts_behind(last: &str) -> Vec<String> {
    let mut shared: Vec<char> = last.chars().collect();
    let mut starts = Vec::new();
    let mut tried_count = 0;
    while let Some(&next) = shared.last() {
        // What begins with the shared ones, then what goes on with a later character instead of the last of
        // them. Nothing is behind U+FFFF in the order of names, which is that of UTF-16.
        starts.push(shared.iter().copied().chain(['\u{ffff}']).collect());
        let others = LATER_BY.iter().filter_map(|by| char::from_u32(u32::from(next) + by));
        // Those beyond U+FFFF come before some of the others.
        let others = others.filter(|other| other.len_utf16() == next.len_utf16());
        let before = &shared[..shared.len() - 1];
        starts.extend(others.map(|other| before.iter().copied().chain([other]).collect::<String>()));
        tried_count += 1;
        shared.truncate(if tried_count < NEAR_CHARS { shared.len() - 1 } else { shared.len() / 2 });
    }
    starts.retain(|start: &String| start.encode_utf16().gt(last.encode_utf16()));
    starts
}

/// What a walk found, kept where it is not lost with a walk that ends in an error.
#[derive(Debug, Default)]
struct Found {
    left: usize,
    /// The last name that was seen.
    last: Option<String>,
    names: Vec<String>,
    /// Names and owners of pages.
    garbage: Vec<(String, u64)>,
    /// Rows that can't be decoded.
    passed_over: PassedOver,
}

/// Collects names with something that is due.
struct CollectExpired {
    now: Ticks,
    found: Arc<Mutex<Found>>,
}

impl CollectExpired {
    fn take(&mut self, name: &str, is_due: bool) -> Taken {
        let mut found = self.found.lock();
        if found.left == 0 {
            return Taken::Full;
        }
        found.left -= 1;
        found.last = Some(name.to_owned());
        if is_due && found.names.last().is_none_or(|last| last != name) {
            found.names.push(name.to_owned());
        }
        Taken::Next
    }
}

impl Collect for CollectExpired {
    fn head(&mut self, name: &str, head: Head) -> Taken {
        let is_over = head.current.as_ref().is_some_and(|current| is_over(current.deleted, self.now));
        self.take(name, is_over || Staged::choose(&head, self.now) != Staged::Keep)
    }

    fn snapshot(&mut self, name: &str, _snapshot: u64, record: BlobRecord) -> Taken {
        self.take(name, is_over(record.deleted, self.now))
    }

    fn garbage(&mut self, name: &str, owner: u64) -> Taken {
        self.found.lock().garbage.push((name.to_owned(), owner));
        Taken::Next
    }

    fn wants_snapshots(&self) -> bool {
        true
    }

    fn passes_over(&mut self, damage: &DecodeError) -> bool {
        self.found.lock().passed_over.note(damage);
        true
    }

    fn version(&mut self, name: &str, _version: u64, record: BlobRecord) -> Taken {
        self.take(name, is_over(record.deleted, self.now))
    }

    fn wants_versions(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_tries_to_begin_near_what_it_can_t_read() {
        let starts = starts_behind("ab");
        assert_eq!(starts[..4], ["ab\u{ffff}", "ac", "ad", "ae"]);
        assert_eq!(starts[11..14], ["a\u{ffff}", "b", "c"]);
        assert!(starts_behind("").is_empty());
        let order = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        for last in ["ab", "\u{d7ff}\u{ffff}", "logs/2026/000123.gz"] {
            let starts = starts_behind(last);
            assert!(starts.iter().all(|start| order(start) > order(last)), "{last}: {starts:?}");
            assert!(starts.is_sorted_by_key(|start| order(start)), "{last}: {starts:?}");
        }
        assert!(starts_behind(&"x".repeat(1024)).len() < ATTEMPT_COUNT_MAX);
    }
}
