//! Connections to one shard.
//!
//! What always holds: an operation holds a permit for as long as it has a connection, and longer if something
//! of it goes on when its caller gave it up (a thread); idle ones are only those of former operations, so
//! there are never more connections than [`PoolSettings::connections_max`]. A connection is lent to one
//! operation at a time, and closed unless that says that it is fine. Once the pool is closed nothing is lent,
//! and what comes back is closed.

use super::connector::{ConnectError, ShardConnector};
use super::credentials::CredentialProvider;
use super::lease::Lease;
use super::settings::PoolSettings;
use base::{Clock, Spawner};
use parking_lot::Mutex;
use shard_map::{Name, Shard};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why an operation got no connection. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// All connections are in use, and too many operations wait already.
    #[error("shard `{shard}`: {waiters} operations wait for a connection already; send less at a time")]
    TooManyWait {
        /// The shard.
        shard: Name,
        /// How many wait.
        waiters: usize,
    },
    /// All connections were in use for too long.
    #[error(
        "shard `{shard}`: no connection was free within {wait_for:?}; send less at a time, or allow more"
    )]
    WaitedTooLong {
        /// The shard.
        shard: Name,
        /// How long it was waited for.
        wait_for: Duration,
    },
    /// No connection was made.
    #[error("shard `{shard}`: {error}")]
    Connect {
        /// The shard.
        shard: Name,
        /// Why.
        error: ConnectError,
    },
    /// The shard was removed from the map, or its location changed.
    #[error("shard `{shard}`: it is not in the map any more, or at another location; try again")]
    Closed {
        /// The shard.
        shard: Name,
    },
}

/// What connections are made with, and what bounds them.
pub(crate) struct PoolParts<C: ShardConnector> {
    pub(crate) connector: Arc<C>,
    pub(crate) credentials: Arc<dyn CredentialProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) settings: PoolSettings,
}

impl<C: ShardConnector> Clone for PoolParts<C> {
    fn clone(&self) -> Self {
        let PoolParts { connector, credentials, clock, spawner, settings } = self;
        PoolParts {
            connector: connector.clone(),
            credentials: credentials.clone(),
            clock: clock.clone(),
            spawner: spawner.clone(),
            settings: *settings,
        }
    }
}

/// Connections to one shard.
pub(crate) struct Pool<C: ShardConnector> {
    pub(super) shard: Shard,
    parts: PoolParts<C>,
    permits: Arc<Semaphore>,
    waiters: AtomicUsize,
    idle: Mutex<IdleConnections<C::Connection>>,
}

struct IdleConnections<T> {
    /// The one that was used last is at the end. Never more than permits.
    connections: Vec<(T, Duration)>,
    is_closed: bool,
    is_swept: bool,
}

/// A connection that one operation has; dropped, it is closed.
pub(crate) struct Lent<C: ShardConnector> {
    connection: C::Connection,
    pool: Arc<Pool<C>>,
    _lease: Lease,
}

impl<C: ShardConnector> Pool<C> {
    pub(crate) fn new(shard: Shard, parts: PoolParts<C>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(parts.settings.connections_max.max(1)));
        let idle = IdleConnections { connections: Vec::new(), is_closed: false, is_swept: false };
        Arc::new(Pool { shard, parts, permits, waiters: AtomicUsize::new(0), idle: Mutex::new(idle) })
    }

    /// Its bounds.
    pub(crate) fn settings(&self) -> &PoolSettings {
        &self.parts.settings
    }

    /// An idle connection, or a new one.
    pub(crate) async fn lend(self: &Arc<Self>) -> Result<Lent<C>, PoolError> {
        let lease = Lease::new(self.permit().await?);
        while let Some(connection) = self.take_idle()? {
            if self.parts.connector.is_usable(&connection) {
                return Ok(self.lent(connection, lease));
            }
        }
        let settings = &self.parts.settings;
        let connecting = async {
            let credentials = self.parts.credentials.credentials(&self.shard).await;
            let credentials = credentials.map_err(ConnectError::new)?;
            self.parts.connector.connect(&self.shard, &credentials).await
        };
        let connected = tokio::select! {
            connected = connecting => connected,
            () = self.parts.clock.sleep(settings.connect_for_max) => {
                Err(ConnectError(format!("no connection within {:?}; is it reachable?", settings.connect_for_max)))
            }
        };
        let connection =
            connected.map_err(|error| PoolError::Connect { shard: self.shard.name.clone(), error })?;
        Ok(self.lent(connection, lease))
    }

    fn lent(self: &Arc<Self>, mut connection: C::Connection, lease: Lease) -> Lent<C> {
        self.parts.connector.set_lease(&mut connection, Some(lease.clone()));
        Lent { connection, pool: self.clone(), _lease: lease }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, PoolError> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let shard = || self.shard.name.clone();
        let settings = &self.parts.settings;
        let waiters = Waiter::enter(&self.waiters);
        if waiters.before >= settings.waiters_max {
            return Err(match self.permits.is_closed() {
                true => PoolError::Closed { shard: shard() },
                false => PoolError::TooManyWait { shard: shard(), waiters: waiters.before },
            });
        }
        tokio::select! {
            permit = self.permits.clone().acquire_owned() => {
                permit.map_err(|_| PoolError::Closed { shard: shard() })
            }
            () = self.parts.clock.sleep(settings.wait_for_max) => {
                Err(PoolError::WaitedTooLong { shard: shard(), wait_for: settings.wait_for_max })
            }
        }
    }

    fn take_idle(&self) -> Result<Option<C::Connection>, PoolError> {
        let now = self.parts.clock.monotonic();
        let mut idle = self.idle.lock();
        if idle.is_closed {
            return Err(PoolError::Closed { shard: self.shard.name.clone() });
        }
        let fresh = |since: &Duration| now.saturating_sub(*since) < self.parts.settings.idle_for_max;
        let taken = idle.connections.pop();
        Ok(taken.filter(|(_, since)| fresh(since)).map(|(connection, _)| connection))
    }

    fn put_idle(self: &Arc<Self>, connection: C::Connection) {
        let mut idle = self.idle.lock();
        if idle.is_closed {
            return;
        }
        idle.connections.push((connection, self.parts.clock.monotonic()));
        if std::mem::replace(&mut idle.is_swept, true) {
            return;
        }
        drop(idle);
        let (clock, idle_for) = (self.parts.clock.clone(), self.parts.settings.idle_for_max);
        let pool = Arc::downgrade(self);
        let task = async move {
            loop {
                clock.sleep(idle_for).await;
                if !Self::sweep(&pool, &*clock) {
                    break;
                }
            }
        };
        self.parts.spawner.spawn("idle connections", Box::pin(task));
    }

    /// Closes what was idle for too long; whether anything is still idle.
    fn sweep(pool: &Weak<Self>, clock: &dyn Clock) -> bool {
        let Some(pool) = pool.upgrade() else { return false };
        let now = clock.monotonic();
        let mut idle = pool.idle.lock();
        let idle_for = pool.parts.settings.idle_for_max;
        idle.connections.retain(|(_, since)| now.saturating_sub(*since) < idle_for);
        idle.is_swept = !idle.connections.is_empty();
        idle.is_swept
    }

    /// Closes idle connections, and the others once their operations are done.
    pub(crate) fn close(&self) {
        self.permits.close();
        let mut idle = self.idle.lock();
        idle.is_closed = true;
        idle.connections.clear();
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle.lock().connections.len()
    }
}

impl<C: ShardConnector> Lent<C> {
    pub(crate) fn connection(&mut self) -> &mut C::Connection {
        &mut self.connection
    }

    /// It works, and nothing is open on it: it serves the next operation.
    pub(crate) fn keep(self) {
        let Lent { mut connection, pool, _lease } = self;
        pool.parts.connector.set_lease(&mut connection, None);
        // Before the permit is free, so that the next one finds it.
        pool.put_idle(connection);
    }
}

/// One that waits, for as long as this is not dropped.
struct Waiter<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiter<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        Waiter { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
