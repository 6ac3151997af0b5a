//! The facade: routes an operation to the shard of its keys, behind the shard's fence.
//!
//! What always holds: an operation is tried twice at most, and a second time only if nothing of the first was
//! done and a newer map may have another answer; what may have been done is not tried again; a map is read
//! anew before the second try, by a read that began after the first one failed.

use super::error::RouterError;
use super::keys::Keys;
use super::routed::{NoShard, Routed};
use super::work::{AttemptError, ShardWork};
use crate::map::cached_map::{CachedMap, LookupFailure};
use crate::map::map_read::{LookupError, MapRead};
use crate::pool::connector::ShardConnector;
use crate::pool::credentials::CredentialProvider;
use crate::pool::pool::{PoolError, PoolParts};
use crate::pool::pools::Pools;
use crate::pool::settings::PoolSettings;
use base::{Clock, Spawner};
use shard_backend::Capabilities;
use shard_store::Access;
use std::sync::Arc;

/// How often an operation is tried, at most.
const ATTEMPTS_MAX: u32 = 2;

/// What a router is made of.
pub struct RouterParts<C: ShardConnector> {
    /// The map. Routers for several kinds of shards may share one.
    pub map: CachedMap,
    /// Makes connections.
    pub connector: Arc<C>,
    /// Opens shards.
    pub credentials: Arc<dyn CredentialProvider>,
    /// Bounds of waits and ages.
    pub clock: Arc<dyn Clock>,
    /// Closes idle connections.
    pub spawner: Arc<dyn Spawner>,
    /// Bounds of each shard's connections.
    pub pool: PoolSettings,
}

/// Routes operations to shards of one kind. Cheap to clone; clones share map and connections.
pub struct Router<C: ShardConnector> {
    pub(crate) map: CachedMap,
    pub(crate) pools: Arc<Pools<C>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<C: ShardConnector> Clone for Router<C> {
    fn clone(&self) -> Self {
        Router { map: self.map.clone(), pools: self.pools.clone(), clock: self.clock.clone() }
    }
}

impl<C: ShardConnector> Router<C> {
    /// A router that has no connection yet.
    pub fn new(parts: RouterParts<C>) -> Self {
        let RouterParts { map, connector, credentials, clock, spawner, pool: settings } = parts;
        let parts = PoolParts { connector, credentials, clock: clock.clone(), spawner, settings };
        Router { map, pools: Arc::new(Pools::new(parts)), clock }
    }

    /// The map.
    pub fn map(&self) -> &CachedMap {
        &self.map
    }

    /// What its shards can do; [`Capabilities::fence`] is what guards writes against old maps.
    pub fn capabilities(&self) -> Capabilities {
        self.pools.connector().capabilities()
    }

    /// Runs an operation on the shard of its keys; see [`ShardWork`].
    pub async fn run<W: ShardWork<C::Connection>>(
        &self,
        keys: Keys<'_>,
        access: Access,
        work: &mut W,
    ) -> Result<W::Output, RouterError<W::Error>> {
        let mut read = self.map.within(self.pools.connector().map_for_max()).await?;
        for attempt in 1.. {
            let routed = match attempt {
                1 => self.first_route(read, &keys, access).await?,
                _ => Routed::find(&read, &keys, access).map_err(RouterError::of)?,
            };
            match self.attempt(&routed, work).await {
                Ok(output) => return Ok(output),
                Err(error) if attempt < ATTEMPTS_MAX && is_late(&error) => {
                    read = self.map.begun_after(self.clock.monotonic()).await?;
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("an attempt of the last number returns")
    }

    /// The route of the cached map; if that has none, or one that is not allowed, that of a newer map.
    async fn first_route<E>(
        &self,
        read: Arc<MapRead>,
        keys: &Keys<'_>,
        access: Access,
    ) -> Result<Routed, RouterError<E>> {
        let error = match Routed::find(&read, keys, access) {
            Ok(routed) => return Ok(routed),
            Err(error) if !error.may_change() => return Err(RouterError::of(error)),
            Err(error) => error,
        };
        if !matches!(error, NoShard::Lookup(_)) {
            let read = self.map.begun_after(self.clock.monotonic()).await?;
            return Routed::find(&read, keys, access).map_err(RouterError::of);
        }
        // The first key that has no route; what is wrong with others the newer map shows.
        let unrouted = keys.keys.iter().find(|key| read.route(keys.map, key).is_err());
        let unrouted: &[shard_map::KeyValue] = unrouted.copied().unwrap_or_default();
        let look = |read: &Arc<MapRead>| match Routed::find(read, keys, access) {
            Err(NoShard::Lookup(error)) => Err(error),
            found => Ok(found),
        };
        match self.map.lookup(read, keys.map, unrouted, look).await {
            Ok(found) => found.map_err(RouterError::of),
            Err(LookupFailure::Lookup(error)) => Err(RouterError::Lookup(error)),
            Err(LookupFailure::Map(error)) => Err(RouterError::Map(error)),
        }
    }

    async fn attempt<W: ShardWork<C::Connection>>(
        &self,
        routed: &Routed,
        work: &mut W,
    ) -> Result<W::Output, RouterError<W::Error>> {
        let pool = self.pools.of(routed.map_read(), routed.shard())?;
        let mut lent = pool.lend().await?;
        let shard = || routed.shard().name.clone();
        let operation_for = pool.settings().operation_for_max;
        let outcome = tokio::select! {
            biased;
            outcome = work.attempt(lent.connection(), routed) => outcome,
            // Its connection is closed, which ends what is open on it.
            () = self.clock.sleep(operation_for) => {
                return Err(RouterError::TimedOut { shard: shard(), operation_for });
            }
        };
        match outcome {
            Ok(output) => {
                lent.keep();
                Ok(output)
            }
            Err(AttemptError::Refused(refusal)) => {
                lent.keep();
                Err(RouterError::Refused { shard: Some(shard()), refusal })
            }
            Err(AttemptError::MapTooOld) => {
                lent.keep();
                Err(RouterError::MapTooOld { shard: shard() })
            }
            Err(AttemptError::RolledBack(error)) => {
                lent.keep();
                Err(RouterError::Failed { shard: shard(), error })
            }
            // What state its connection is in is not known: it is closed.
            Err(AttemptError::Failed(error)) => Err(RouterError::Failed { shard: shard(), error }),
            Err(AttemptError::MayBeDone(error)) => Err(RouterError::MayBeDone { shard: shard(), error }),
        }
    }

    /// The error of a lookup, for what reads the map only.
    pub async fn route_of(&self, keys: Keys<'_>, access: Access) -> Result<Routed, RouterError<LookupError>> {
        let read = self.map.get().await?;
        self.first_route(read, &keys, access).await
    }
}

/// Whether nothing was done and a newer map may have another answer.
fn is_late<E>(error: &RouterError<E>) -> bool {
    match error {
        RouterError::Refused { refusal, .. } => refusal.is_late(),
        RouterError::MapTooOld { .. } | RouterError::Pool(PoolError::Closed { .. }) => true,
        _ => false,
    }
}
