//! One question to each shard of a map.
//!
//! What always holds: each shard is queried once; at most [`FanOutSettings::shards_at_once`] at a time, each
//! with its own bound of time; of answers and failures each shard has exactly one; a connection whose answer
//! did not come is closed.

use super::error::{FanOutError, ShardFailure};
use super::merge::{BatchSource, SortedMerge};
use super::part::ShardPart;
use super::settings::{FanOutSettings, Needed};
use super::within::within;
use crate::fenced::router::Router;
use crate::map::map_read::MapRead;
use crate::pool::connector::ShardConnector;
use crate::pool::pools::Pools;
use base::{BoxFuture, Clock};
use futures_util::StreamExt;
use futures_util::stream;
use shard_map::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A question to a shard, over its connection `T`. It changes nothing.
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

/// Rows of a shard in an order, page by page.
pub trait PagedQuery<T>: Send + Sync + 'static {
    /// A row.
    type Row: Clone + Send + 'static;
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
    /// Asks each shard that has a mapping of the map. The answers are not of one instant: see
    /// [`FanOutSettings::needs_same_map`].
    pub async fn fan_out<Q: ShardQuery<C::Connection>>(
        &self,
        map: &str,
        query: &Q,
        settings: &FanOutSettings,
    ) -> Result<FanOut<Q::Output, Q::Error>, FanOutError<Q::Error>> {
        let (read, parts) = self.parts(map).await?;
        let answers = query_shards(&parts, settings, &*self.clock, |part| {
            Box::pin(async move {
                let connection = |error| ShardFailure::Connection(format!("{error}"));
                let pool = self.pools.of(part.read(), part.shard()).map_err(connection)?;
                let mut lent = pool.lend().await.map_err(connection)?;
                let answer = query.query(lent.connection(), part).await.map_err(ShardFailure::Failed)?;
                lent.keep();
                Ok(answer)
            })
        })
        .await?;
        self.check_same(map, &read, settings).await?;
        Ok(answers)
    }

    /// The rows of all shards, merged in the order of a key, at most `limit`; each with its shard's name.
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
        let (_, parts) = self.parts(map).await?;
        let source = |(name, part): (Name, ShardPart)| {
            let (pools, query) = (self.pools.clone(), query.clone());
            let pages = Pages { pools, part, query, last: None, is_at_end: false };
            (name, Box::new(pages) as Box<dyn BatchSource<Q::Row, Q::Error>>)
        };
        let sources = parts.into_iter().map(source).collect();
        Ok(SortedMerge::new(sources, key, limit, settings, self.clock.clone()))
    }

    async fn parts<E>(&self, map: &str) -> Result<(Arc<MapRead>, Vec<(Name, ShardPart)>), FanOutError<E>> {
        let read = self.map.within(self.pools.connector().map_for_max()).await?;
        let parts = ShardPart::all(&read, map)?;
        let named = parts.into_iter().map(|part| (part.shard().name.clone(), part)).collect();
        Ok((read, named))
    }

    async fn check_same<E>(
        &self,
        map: &str,
        read: &Arc<MapRead>,
        settings: &FanOutSettings,
    ) -> Result<(), FanOutError<E>> {
        if !settings.needs_same_map {
            return Ok(());
        }
        let newer = self.map.begun_after(self.clock.monotonic()).await?;
        match newer.map(map)? == read.map(map)? {
            true => Ok(()),
            false => Err(FanOutError::MapChanged { map: read.map(map)?.name().clone() }),
        }
    }
}

/// The pages of a shard. Each takes a connection and returns it.
struct Pages<C: ShardConnector, Q: PagedQuery<C::Connection>> {
    pools: Arc<Pools<C>>,
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
            let connection = |error| ShardFailure::Connection(format!("{error}"));
            let pool = self.pools.of(self.part.read(), self.part.shard()).map_err(connection)?;
            let mut lent = pool.lend().await.map_err(connection)?;
            let page = self.query.page(lent.connection(), &self.part, self.last.as_ref()).await;
            let page = page.map_err(ShardFailure::Failed)?;
            lent.keep();
            self.last = page.last().cloned();
            self.is_at_end = page.is_empty();
            Ok(page)
        })
    }
}
