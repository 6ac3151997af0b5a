//! The sweep: removes deleted blobs and snapshots whose time is over, which nobody can reach and nobody asks for, staged
//! blocks that were left alone for long, and pages of very large blobs whose removal was cut off.
//!
//! It walks over all blobs in small rounds, which take a small part of the time; all these times are counted in days, so a
//! walk need not be quick. What always holds: a round walks over a bounded number of rows; what is removed is decided by an
//! ordinary operation over the blob as it is then; a row that can't be
//! decoded stays, and keeps nothing that is behind it (rows that can't be read from the disk end the walk over their
//! container); a walk that is cut off begins anew with the next process.

use crate::blob_rows::{BlobAddress, Head};
use crate::blob_service::{BlobAt, BlobService};
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::listing::{Collect, Taken, Walk};
use crate::record::BlobRecord;
use crate::remove_expired::{RemoveExpired, Staged, is_over};
use base::codec::DecodeError;
use base::{Clock, Ticks};
use partition::ObjectTable;
use service::PassedOver;
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

/// Where a walk goes on: at a marker in a container, or after it.
#[derive(Clone, Debug, Default)]
struct Position {
    account: String,
    container_id: u64,
    /// `None`: the container is done.
    marker: Option<String>,
}

/// Runs rounds for as long as the service is there.
pub(crate) async fn run(service: Weak<BlobService>, clock: Arc<dyn Clock>) {
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
                let next = service.partitions.next_container(ObjectTable::Blob, after).await?;
                let Some((account, container_id)) = next else { return Ok(removed) };
                Position { account, container_id, marker: Some(String::new()) }
            }
        };
        let walk =
            Walk::new(&service.partitions, &here.account, here.container_id, "", here.marker.as_deref())?;
        let left = WALKED_RECORDS_MAX - walked;
        let collect = CollectExpired { left, ..CollectExpired::new(service.now()) };
        let (collected, marker) = match walk.run(collect).await {
            Ok(ended) => ended,
            Err(error) => {
                // Of this container nothing more can be read now; there are others.
                passed_over.note(&error);
                *position = Some(Position { marker: None, ..here });
                continue;
            }
        };
        passed_over.add(collected.passed_over);
        walked = WALKED_RECORDS_MAX - collected.left;
        let address = |name| {
            let (account, container_id) = (here.account.clone(), here.container_id);
            BlobAddress { account, container_id, name }
        };
        for name in collected.names {
            let at = BlobAt {
                address: address(name),
                container: String::new(),
                encryption: ContainerEncryption::default(),
            };
            match service.run(&at, RemoveExpired).await {
                Ok(count) => removed += count,
                Err(error) => passed_over.note(&error),
            }
        }
        for (name, owner) in collected.garbage {
            match service.remove_pages(&address(name), owner, usize::MAX).await {
                Ok(_) => removed += 1,
                Err(error) => passed_over.note(&error),
            }
        }
        *position = Some(Position { marker, ..here });
    }
    Ok(removed)
}

/// Collects names with something that is due.
struct CollectExpired {
    now: Ticks,
    left: usize,
    names: Vec<String>,
    /// Names and owners of pages.
    garbage: Vec<(String, u64)>,
    /// Rows that can't be read.
    passed_over: PassedOver,
}

impl CollectExpired {
    fn new(now: Ticks) -> Self {
        let (names, garbage, passed_over) = Default::default();
        CollectExpired { now, left: WALKED_RECORDS_MAX, names, garbage, passed_over }
    }

    fn take(&mut self, name: String, is_due: bool) -> Taken {
        if self.left == 0 {
            return Taken::Full;
        }
        self.left -= 1;
        if is_due && self.names.last() != Some(&name) {
            self.names.push(name);
        }
        Taken::Next
    }
}

impl Collect for CollectExpired {
    fn head(&mut self, name: String, head: Head) -> Taken {
        let is_over = head.current.as_ref().is_some_and(|current| is_over(current.deleted, self.now));
        self.take(name, is_over || Staged::choose(&head, self.now) != Staged::Keep)
    }

    fn snapshot(&mut self, name: String, _snapshot: u64, record: BlobRecord) -> Taken {
        self.take(name, is_over(record.deleted, self.now))
    }

    fn garbage(&mut self, name: String, owner: u64) -> Taken {
        self.garbage.push((name, owner));
        Taken::Next
    }

    fn wants_snapshots(&self) -> bool {
        true
    }

    fn passes_over(&mut self, damage: &DecodeError) -> bool {
        self.passed_over.note(damage);
        true
    }

    fn version(&mut self, name: String, _version: u64, record: BlobRecord) -> Taken {
        self.take(name, is_over(record.deleted, self.now))
    }

    fn wants_versions(&self) -> bool {
        true
    }
}
