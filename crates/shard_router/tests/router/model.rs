//! A model of a shard: a copy, and rows that are in the shard whatever else fails. Its operations take time.

use crate::setup::Setup;
use base::{BoxFuture, Clock, Random};
use parking_lot::Mutex;
use shard_backend::Capabilities;
use shard_map::{Name, Shard};
use shard_router::{
    AttemptError, ConnectError, MAP_FOR_MAX, PartRefusal, Routed, ShardConnector, ShardCredentials,
    ShardPart, ShardQuery, ShardWork,
};
use shard_store::{Access, MemoryLocal};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A row: a key and a number that no other row has.
pub(crate) type ModelRow = (i32, u64);

/// A shard.
pub(crate) struct ModelShard {
    pub(crate) local: Arc<MemoryLocal>,
    pub(crate) rows: Mutex<BTreeSet<ModelRow>>,
}

/// All shards. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct ModelConnector {
    pub(crate) shards: BTreeMap<Name, Arc<ModelShard>>,
    pub(crate) capabilities: Capabilities,
    /// Planted: answers of all shards are not checked.
    pub(crate) believes_all: bool,
}

impl ModelConnector {
    pub(crate) fn new(setup: &Setup) -> Self {
        let shard = |(name, local): (&Name, &Arc<MemoryLocal>)| {
            (name.clone(), Arc::new(ModelShard { local: local.clone(), rows: Mutex::default() }))
        };
        ModelConnector {
            shards: setup.locals.iter().map(shard).collect(),
            capabilities: Capabilities::SQLITE,
            believes_all: false,
        }
    }
}

impl ShardConnector for ModelConnector {
    type Connection = Arc<ModelShard>;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        _credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<Arc<ModelShard>, ConnectError>> {
        let found = self.shards.get(&shard.name).cloned();
        Box::pin(async move { found.ok_or_else(|| ConnectError::new("there is none")) })
    }

    fn check_part<'a>(
        &'a self,
        shard: &'a mut Arc<ModelShard>,
        part: &'a ShardPart,
        _now: Duration,
    ) -> BoxFuture<'a, Result<(), PartRefusal>> {
        Box::pin(async move {
            match self.believes_all {
                true => Ok(()),
                false => shard.local.hold(|copy| part.check_copy(copy)),
            }
        })
    }
}

/// How writes are fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// Checked and held until the commit.
    Held,
    /// By the end of a signature that counts from the read of the map.
    Signed,
    /// Planted: not at all.
    NoFence,
    /// Planted: checked, and not held.
    WithoutLock,
    /// Planted: the end counts from when the signature is made.
    SignatureOutlivesMap,
    /// Planted: held, but answers of all shards are believed.
    BelievesAll,
}

impl Fencing {
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Fencing::Signed | Fencing::SignatureOutlivesMap)
    }
}

/// Time and chance of one client.
#[derive(Clone)]
pub(crate) struct Client {
    /// May be wrong.
    pub(crate) clock: Arc<dyn Clock>,
    /// The service's.
    pub(crate) true_clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) fencing: Fencing,
}

impl Client {
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Some milliseconds; now and then longer than a move.
    async fn pause(&self) {
        let ms = if self.below(12) == 0 { self.below(60_000) } else { self.below(20) };
        self.clock.sleep(Duration::from_millis(ms)).await;
    }
}

/// Writes one row.
pub(crate) struct WriteRow {
    pub(crate) client: Client,
    pub(crate) row: ModelRow,
    pub(crate) attempts: u32,
    pub(crate) was_uncertain: bool,
}

impl ShardWork<Arc<ModelShard>> for WriteRow {
    type Output = ();
    type Error = String;

    fn attempt<'a>(
        &'a mut self,
        shard: &'a mut Arc<ModelShard>,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<(), AttemptError<String>>> {
        Box::pin(async move {
            assert!(!self.was_uncertain, "what may have been done was tried again");
            self.attempts += 1;
            self.write(shard, routed).await?;
            self.was_uncertain = self.client.below(20) == 0;
            match self.was_uncertain {
                true => Err(AttemptError::MayBeDone("the answer was lost".to_owned())),
                false => Ok(()),
            }
        })
    }
}

impl WriteRow {
    async fn write(&self, shard: &ModelShard, routed: &Routed) -> Result<(), AttemptError<String>> {
        let client = &self.client;
        let check = || shard.local.hold(|copy| check(copy, routed, Access::Write));
        let put = || {
            shard.rows.lock().insert(self.row);
        };
        match client.fencing {
            Fencing::Held | Fencing::BelievesAll => {
                client.pause().await;
                shard.local.hold(|copy| check_then(copy, routed, Access::Write, put))
            }
            Fencing::NoFence => {
                client.pause().await;
                put();
                Ok(())
            }
            Fencing::WithoutLock => {
                client.pause().await;
                check()?;
                client.pause().await;
                put();
                Ok(())
            }
            Fencing::Signed | Fencing::SignatureOutlivesMap => {
                client.pause().await;
                let now = client.clock.now();
                let from = match client.fencing {
                    Fencing::Signed => routed.map_read_at(),
                    _ => now,
                };
                let ends_at = from.plus(MAP_FOR_MAX);
                if now >= ends_at {
                    return Err(AttemptError::MapTooOld);
                }
                client.pause().await;
                // The service.
                if client.true_clock.now() >= ends_at {
                    return Err(AttemptError::MapTooOld);
                }
                put();
                Ok(())
            }
        }
    }
}

fn check(
    copy: Option<&shard_store::LocalCopy>,
    routed: &Routed,
    access: Access,
) -> Result<(), AttemptError<String>> {
    for mapping in routed.mappings() {
        let here = copy.and_then(|copy| copy.mapping(routed.map().name().as_str(), &mapping.mapping));
        shard_store::check_fence(routed.map().name(), &mapping.mapping, here, mapping.since, access)
            .map_err(AttemptError::Refused)?;
    }
    Ok(())
}

fn check_then<T>(
    copy: Option<&shard_store::LocalCopy>,
    routed: &Routed,
    access: Access,
    then: impl FnOnce() -> T,
) -> Result<T, AttemptError<String>> {
    check(copy, routed, access)?;
    Ok(then())
}

/// All rows of a shard that the map has there.
pub(crate) struct AllRows(pub(crate) Client);

impl ShardQuery<Arc<ModelShard>> for AllRows {
    type Output = Vec<ModelRow>;
    type Error = String;

    fn query<'a>(
        &'a self,
        shard: &'a mut Arc<ModelShard>,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<Vec<ModelRow>, String>> {
        Box::pin(async move {
            self.0.pause().await;
            let rows: Vec<ModelRow> = shard.rows.lock().iter().copied().collect();
            self.0.pause().await;
            Ok(rows.into_iter().filter(|(key, _)| part.holds(&[(*key).into()])).collect())
        })
    }
}

/// Reads the rows of one key, behind a fence that is held.
pub(crate) struct ReadRows {
    pub(crate) client: Client,
    pub(crate) key: i32,
}

impl ShardWork<Arc<ModelShard>> for ReadRows {
    type Output = BTreeSet<ModelRow>;
    type Error = String;

    fn attempt<'a>(
        &'a mut self,
        shard: &'a mut Arc<ModelShard>,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<BTreeSet<ModelRow>, AttemptError<String>>> {
        Box::pin(async move {
            self.client.pause().await;
            shard.local.hold(|copy| {
                let rows = || shard.rows.lock().iter().filter(|(key, _)| *key == self.key).copied().collect();
                check_then(copy, routed, Access::Read, rows)
            })
        })
    }
}
