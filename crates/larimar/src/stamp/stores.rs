//! The stores of a stamp, opened, and what its driver is given.

use crate::configuration::stamp::StampConfiguration;
use crate::stamp::local_block_cache::CacheFailure;
use base::{BoxFuture, Clock, Environment, Ticks};
use partition::is_loaded;
use sha2::{Digest, Sha256};
use stamp::{BundleBounds, StampId, WindowBounds};
use stamp_stores::{
    OpenError, OpenedObjectStore, RequestCounts, StoreSurroundings, open_key_values, open_object_store,
};
use stamp_streams::{Bundles, StampSettings, Surroundings};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an extent of a stream after which the next one is begun.
const EXTENT_SIZE_BYTES: u64 = 256 << 20;
/// The share of a lease time that a process does without, at most a second: it stops so much earlier.
const MARGIN_OF_LEASE: u32 = 5;
const MARGIN_MAX: Duration = Duration::from_secs(1);
/// The share of a lease time for which a part is tried: then another process may do better with the store.
const GIVE_UP_OF_LEASE: u32 = 4;

/// Parts of one log that are under way at once. With 4, eight uploads of 4 MiB had 58 % of the store's own
/// rate.
const WINDOW: WindowBounds = WindowBounds { parts_max: 16, size_bytes_max: 64 << 20 };

/// Why a process can't join its stamp.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StampFailure {
    #[error("--store, --etcd: {0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Cache(#[from] CacheFailure),
}

/// A clock whose monotonic time goes on while the machine is suspended, as leases need it.
struct SuspendClock(Arc<dyn Clock>);

impl Clock for SuspendClock {
    fn now(&self) -> Ticks {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
    }

    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(sleep_for)
    }
}

/// The stores.
pub(crate) struct Stores {
    pub(crate) objects: OpenedObjectStore,
    /// Of requests to etcd.
    pub(crate) key_counts: Arc<RequestCounts>,
    pub(crate) surroundings: Surroundings,
}

/// The id of a stamp of this name: the first bits of a hash, so that every process and a restore find it
/// without asking.
pub(crate) fn stamp_id(name: &str) -> StampId {
    let hash = Sha256::digest(format!("larimar stamp {name}"));
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    StampId(u128::from_be_bytes(id))
}

impl Stores {
    /// Opens both; neither is reached for yet.
    pub(crate) async fn open(
        configuration: &StampConfiguration,
        env: &Environment,
    ) -> Result<Self, StampFailure> {
        let system = StoreSurroundings::system();
        let objects = open_object_store(&configuration.store, &configuration.store_settings, &system).await?;
        let keys = open_key_values(&configuration.etcd, &configuration.etcd_settings, &system).await?;
        let ttl = configuration.lease;
        let settings = StampSettings {
            ttl,
            margin: (ttl / MARGIN_OF_LEASE).min(MARGIN_MAX),
            object_try_for: configuration.store_timeout,
            key_try_for: configuration.etcd_timeout,
            extent_size_bytes: EXTENT_SIZE_BYTES,
            give_up_after: ttl / GIVE_UP_OF_LEASE,
            window: WINDOW,
            bundles: Bundles { bounds: BundleBounds::default(), of: is_loaded },
            ..StampSettings::new(stamp_id(&configuration.name))
        };
        let surroundings = Surroundings {
            clock: Arc::new(SuspendClock(env.clock.clone())),
            random: env.random.clone(),
            spawner: env.spawner.clone(),
            objects: objects.store.clone(),
            cache: None,
            ahead: Arc::default(),
            keys: keys.store.clone(),
            settings: Arc::new(settings),
        };
        Ok(Stores { objects, key_counts: keys.counts, surroundings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of any version finds the stamp by its name.
    #[test]
    fn the_id_of_a_name_never_changes() {
        assert_eq!(stamp_id("prod").to_string().len(), 32);
        assert_eq!(stamp_id("prod"), stamp_id("prod"));
        assert_ne!(stamp_id("prod"), stamp_id("test"));
    }
}
