//! A pool for each shard of a catalog.
//!
//! What always holds: a pool is of a shard's name and location as the newest epoch has them that was seen;
//! the pools of shards that are gone, or moved, are closed.

use super::connector::ShardConnector;
use super::pool::{Pool, PoolError, PoolParts};
use crate::map::map_read::MapRead;
use parking_lot::Mutex;
use shard_map::{Name, Shard};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pools by the names of shards: at most as many as a catalog has shards.
pub(crate) struct Pools<C: ShardConnector> {
    parts: PoolParts<C>,
    state: Mutex<State<C>>,
}

struct State<C: ShardConnector> {
    /// The newest epoch that was seen.
    newest: Option<Arc<MapRead>>,
    pools: BTreeMap<Name, Arc<Pool<C>>>,
}

impl<C: ShardConnector> Pools<C> {
    pub(crate) fn new(parts: PoolParts<C>) -> Self {
        Pools { parts, state: Mutex::new(State { newest: None, pools: BTreeMap::new() }) }
    }

    /// The connector of all of them.
    pub(crate) fn connector(&self) -> &Arc<C> {
        &self.parts.connector
    }

    /// The pool of a shard, which a newer epoch may have closed.
    pub(crate) fn of(&self, read: &Arc<MapRead>, shard: &Shard) -> Result<Arc<Pool<C>>, PoolError> {
        let mut state = self.state.lock();
        let epoch = |read: &Arc<MapRead>| read.catalog.epoch();
        if state.newest.as_ref().is_none_or(|newest| epoch(newest) < epoch(read)) {
            state.newest = Some(read.clone());
            state.pools.retain(|_, pool| {
                let is_there = has_same(read, &pool.shard);
                if !is_there {
                    pool.close();
                }
                is_there
            });
        }
        if !state.newest.as_ref().is_some_and(|newest| has_same(newest, shard)) {
            return Err(PoolError::Closed { shard: shard.name.clone() });
        }
        let make = || Pool::new(shard.clone(), self.parts.clone());
        Ok(state.pools.entry(shard.name.clone()).or_insert_with(make).clone())
    }
}

impl<C: ShardConnector> Drop for Pools<C> {
    fn drop(&mut self) {
        self.state.lock().pools.values().for_each(|pool| pool.close());
    }
}

/// Whether the catalog has this shard at this location.
fn has_same(read: &MapRead, shard: &Shard) -> bool {
    read.catalog.shard(shard.name.as_str()).is_some_and(|there| there.location == shard.location)
}
