//! One question to each shard of a map.
//!
//! What always holds: each shard is queried once; at most [`FanOutSettings::shards_at_once`] at a time, each
//! with its own bound of time; of answers and failures each shard has exactly one; a connection whose answer
//! did not come is closed. Each answer is checked by what its shard knows of the map
//! ([`ShardConnector::check_part`]): with a map that is late all shards are asked again by a newer one, at
//! most [`ATTEMPTS_MAX`] times in all.

use super::error::{FanOutError, ShardFailure};
use super::merge::{BatchSource, SortedMerge};
use super::part::{PartRefusal, ShardPart};
use super::settings::{FanOutSettings, Needed};
use super::within::within;
use crate::fenced::router::Router;
use crate::pool::connector::ShardConnector;
use crate::pool::pool::PoolError;
use crate::pool::pools::Pools;
use base::{BoxFuture, Clock};
use futures_util::StreamExt;
use futures_util::stream;
use shard_map::{Name, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often all shards are asked, at most: by the cached map, and by newer ones.
const ATTEMPTS_MAX: u32 = 3;

/// A question to a shard, over its connection `T`. It changes nothing, and leaves no transaction open.
pub trait ShardQuery<T>: Send + Sync {
    /// The answer.
    type Output: Send;
    /// Its own errors.
    type Error: Send;

    /// Asks it of one shard. What is not [`ShardPart::holds`] is to be left out.
    fn query<'a>(
        &'a self,
        connection: &'a mut T,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<Self::Output, Self::Error>>;
}

/// Rows of a shard in an order, page by page. A page leaves no transaction open.
pub trait PagedQuery<T>: Send + Sync + 'static {
    /// A row.
    type Row: Clone + Send + Sync + 'static;
    /// Its own errors.
    type Error: Send + 'static;

    /// The rows of one shard after this one, or from the first one on, in the order that they are merged by:
    /// some of them, none at the end. What is not [`ShardPart::holds`] is left out.
    fn page<'a>(
        &'a self,
        connection: &'a mut T,
        part: &'a ShardPart,
        after: Option<&'a Self::Row>,
    ) -> BoxFuture<'a, Result<Vec<Self::Row>, Self::Error>>;
}

/// The answers, in the order of the shards' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut<T, E> {
    /// Each shard's answer.
    pub answers: Vec<(Name, T)>,
    /// Shards without one, and why; empty if all are needed.
    pub failed: BTreeMap<Name, ShardFailure<E>>,
}

/// Queries shards, or models of them, within bounds.
pub async fn query_shards<'a, P: Sync, T: Send, E: Send>(
    shards: &'a [(Name, P)],
    settings: &'a FanOutSettings,
    clock: &'a dyn Clock,
    query: impl Fn(&'a P) -> BoxFuture<'a, Result<T, ShardFailure<E>>> + Sync,
) -> Result<FanOut<T, E>, FanOutError<E>> {
    let query = &query;
    let ask = move |(name, shard): &'a (Name, P)| async move {
        let outcome = within(settings, clock, query(shard)).await;
        (name, outcome)
    };
    let mut asked = stream::iter(shards).map(ask).buffer_unordered(settings.shards_at_once.max(1));
    let (mut answers, mut failed) = (BTreeMap::new(), BTreeMap::new());
    while let Some((name, outcome)) = asked.next().await {
        match (outcome, settings.needed) {
            (Ok(answer), _) => drop(answers.insert(name.clone(), answer)),
            (Err(failure), Needed::AllShards) => {
                return Err(FanOutError::Shard { shard: name.clone(), failure });
            }
            (Err(failure), Needed::SomeShards) => drop(failed.insert(name.clone(), failure)),
        }
    }
    Ok(FanOut { answers: answers.into_iter().collect(), failed })
}

impl<C: ShardConnector> Router<C> {
    /// Asks each shard that has a mapping of the map. The answers are not of one instant, but none lacks a
    /// row that was there all the time.
    pub async fn fan_out<Q: ShardQuery<C::Connection>>(
        &self,
        map: &str,
        query: &Q,
        settings: &FanOutSettings,
    ) -> Result<FanOut<Q::Output, Q::Error>, FanOutError<Q::Error>> {
        for attempt in 1.. {
            let parts = self.parts(map, attempt).await?;
            let answers = query_shards(&parts, settings, &*self.clock, |part| {
                Box::pin(self.pools.ask(&*self.clock, part, async |connection: &mut C::Connection| {
                    query.query(connection, part).await
                }))
            })
            .await;
            let is_late = match &answers {
                Ok(answers) => answers.failed.values().any(ShardFailure::is_late),
                Err(error) => error.is_late(),
            };
            if !is_late || attempt >= ATTEMPTS_MAX {
                return answers;
            }
        }
        unreachable!("an attempt of the last number returns")
    }

    /// The rows of all shards, merged in the order of a key, at most `limit`; each with its shard's name. The
    /// first page of each shard is read here.
    pub async fn merge<Q, K>(
        &self,
        map: &str,
        query: Arc<Q>,
        key: fn(&Q::Row) -> K,
        limit: Option<u64>,
        settings: FanOutSettings,
    ) -> Result<SortedMerge<Q::Row, K, Q::Error>, FanOutError<Q::Error>>
    where
        Q: PagedQuery<C::Connection>,
        K: Ord + Send,
    {
        for attempt in 1.. {
            let parts = self.parts(map, attempt).await?;
            let source = |(name, part): (Name, ShardPart)| {
                let (pools, clock, query) = (self.pools.clone(), self.clock.clone(), query.clone());
                let pages = Pages { pools, clock, part, query, last: None, is_at_end: false };
                (name, Box::new(pages) as Box<dyn BatchSource<Q::Row, Q::Error>>)
            };
            let sources = parts.into_iter().map(source).collect();
            let mut merge = SortedMerge::new(sources, key, limit, settings, self.clock.clone());
            let begun = merge.begin().await;
            let is_late = match &begun {
                Ok(()) => merge.failed().values().any(ShardFailure::is_late),
                Err(error) => error.is_late(),
            };
            if !is_late || attempt >= ATTEMPTS_MAX {
                return begun.map(|()| merge);
            }
        }
        unreachable!("an attempt of the last number returns")
    }

    /// The parts of the cached map, and of one that is read now for a further attempt. A map of pins alone
    /// may have a new one on a shard that the cached map does not ask, which no other shard knows: it is read
    /// now.
    async fn parts<E>(&self, map: &str, attempt: u32) -> Result<Vec<(Name, ShardPart)>, FanOutError<E>> {
        let began_at = self.clock.monotonic();
        let mut read = match attempt {
            1 => self.map.within(self.pools.connector().map_for_max()).await?,
            _ => self.map.begun_after(began_at).await?,
        };
        let of = read.map(map)?;
        if of.ranges().len() == 0 && of.virtual_shards().is_none() {
            read = self.map.begun_after(began_at).await?;
        }
        let parts = ShardPart::all(&read, map)?;
        Ok(parts.into_iter().map(|part| (part.shard().name.clone(), part)).collect())
    }
}

impl<C: ShardConnector> Pools<C> {
    /// An answer of a shard, if it lacks no row of the part.
    async fn ask<T, E>(
        &self,
        clock: &dyn Clock,
        part: &ShardPart,
        ask: impl AsyncFnOnce(&mut C::Connection) -> Result<T, E>,
    ) -> Result<T, ShardFailure<E>> {
        if part.state() == State::Offline {
            return Err(ShardFailure::Part(PartRefusal::Offline));
        }
        let connection = |error| match error {
            PoolError::Closed { .. } => ShardFailure::Part(PartRefusal::Gone),
            error => ShardFailure::Connection(format!("{error}")),
        };
        let pool = self.of(part.read(), part.shard()).map_err(connection)?;
        let mut lent = pool.lend().await.map_err(connection)?;
        let answer = ask(lent.connection()).await.map_err(ShardFailure::Failed)?;
        let checked = self.connector().check_part(lent.connection(), part, clock.monotonic()).await;
        if !matches!(checked, Err(PartRefusal::Unread(_))) {
            lent.keep();
        }
        checked.map(|()| answer).map_err(ShardFailure::Part)
    }
}

/// The pages of a shard. Each takes a connection and returns it.
struct Pages<C: ShardConnector, Q: PagedQuery<C::Connection>> {
    pools: Arc<Pools<C>>,
    clock: Arc<dyn Clock>,
    part: ShardPart,
    query: Arc<Q>,
    last: Option<Q::Row>,
    is_at_end: bool,
}

impl<C: ShardConnector, Q: PagedQuery<C::Connection>> BatchSource<Q::Row, Q::Error> for Pages<C, Q> {
    fn next_batch(&mut self) -> BoxFuture<'_, Result<Vec<Q::Row>, ShardFailure<Q::Error>>> {
        Box::pin(async move {
            if self.is_at_end {
                return Ok(Vec::new());
            }
            let (query, part, last) = (&self.query, &self.part, self.last.as_ref());
            let page = self
                .pools
                .ask(&*self.clock, part, async |connection: &mut C::Connection| {
                    query.page(connection, part, last).await
                })
                .await?;
            self.last = page.last().cloned();
            self.is_at_end = page.is_empty();
            Ok(page)
        })
    }
}
