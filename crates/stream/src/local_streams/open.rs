//! Opens the stream layer: recovers the extent node and the stream manager, brings the folder to the present
//! format, makes both agree, and starts the layer's tasks.

use super::{LocalStreams, listed_extents};
use crate::error::StreamError;
use crate::extent_node::{ExtentNode, ListedExtent, OnNoSpace, RecoveredNode};
use crate::extent_rolls::Rolls;
use crate::folder::{self, Folder};
use crate::scrub::Scrub;
use crate::settings::StreamSettings;
use crate::space::{RESERVE_PATH, Space};
use crate::stream_manager::{Command, StreamManager};
use base::{BoxFuture, Environment};
use std::sync::Arc;

impl LocalStreams {
    /// Opens the data folder of `env`, laying it out first if it is new.
    pub(crate) fn open<'a>(
        env: &'a Environment,
        settings: StreamSettings,
    ) -> BoxFuture<'a, Result<Self, StreamError>> {
        Box::pin(async move {
            settings.check().map_err(StreamError::Folder)?;
            let folder = folder::inspect(env).await?;
            let space = Space::open(env, &settings).await;
            let space = space.map_err(|error| StreamError::read(RESERVE_PATH, &error))?;
            if folder == Folder::Fresh {
                folder::clear(env).await?;
                ExtentNode::format(env, &settings, &space).await?;
                StreamManager::format(env, &settings, &space).await?;
                folder::finish(env).await?;
            }
            let is_kept_twice = folder.is_kept_twice();
            let listed = StreamManager::read(env, is_kept_twice).await?;
            for place in &listed.damaged {
                tracing::warn!(
                    place,
                    "the stream manager's log was missing or damaged there, and is written anew"
                );
            }
            let extents = listed_extents(&listed.state);
            let recovered = recover_node(env, &extents, is_kept_twice, &space).await?;
            folder::forget_migration(env).await?;
            match folder {
                Folder::Fresh => {}
                Folder::Ready { damaged: None } => folder::confirm(env).await?,
                Folder::Ready { damaged: Some(path) } => match folder::mend(env, path).await {
                    Err(StreamError::DiskFull) => {
                        tracing::warn!(
                            place = path,
                            "the file is missing or damaged, and there is no space for it"
                        );
                        folder::confirm(env).await?;
                    }
                    mended => mended?,
                },
                Folder::Older { .. } => {
                    // From here on journal and log hold what programs of the older format would misread.
                    let given_up = space.given_up();
                    match folder::raise(env).await {
                        Err(StreamError::DiskFull) if space.give_up_at_start(given_up).await => {
                            folder::raise(env).await?
                        }
                        raised => raised?,
                    }
                }
            }
            let (has_losses, next_extent) = (recovered.has_losses, recovered.next_extent);
            let node = ExtentNode::start(env, &settings, recovered, space.clone()).await?;
            let manager = Arc::new(StreamManager::start(env, &settings, listed, next_extent, &space).await?);
            let rolling = Arc::new(tokio::sync::Mutex::default());
            let (collecting, joined) = Default::default();
            let scrub = Arc::new(Scrub::default());
            let rolls = Rolls::start(&*env.spawner, node.clone(), manager.clone(), rolling.clone())?;
            let streams =
                LocalStreams { node, manager, settings, scrub, space, rolling, rolls, collecting, joined };
            match streams.reconcile(has_losses).await {
                Err(StreamError::DiskFull) => {
                    tracing::info!("the disk is full: not all that was left to be removed could be");
                }
                reconciled => reconciled?,
            }
            if streams.settings.scrub_bytes_per_second > 0 {
                let rate = streams.settings.scrub_bytes_per_second;
                let (scrub, node) = (streams.scrub.clone(), Arc::downgrade(&streams.node));
                let task = scrub.clone().run(scrub.closing(), node, env.clock.clone(), rate);
                env.spawner
                    .spawn_background("scrub", Box::pin(task))
                    .map_err(StreamError::no_thread("scrub"))?;
            }
            if streams.settings.reserve_size_bytes > 0 {
                let space = streams.space.clone();
                let task = space.clone().run(space.closing(), env.clock.clone());
                env.spawner
                    .spawn_background("space", Box::pin(task))
                    .map_err(StreamError::no_thread("space"))?;
            }
            Ok(streams)
        })
    }

    /// Makes the manager and the node, which has all extents that streams list, agree after a stop: finishes
    /// deletions and sealings, removes extents that no stream ever listed.
    async fn reconcile(&self, has_losses: bool) -> Result<(), StreamError> {
        let mut outcome = Ok(());
        // What a full disk has no space for is done later, or by the next start, and stops nothing else.
        let mut note = |done: Result<(), StreamError>| match done {
            Err(StreamError::DiskFull) => {
                outcome = Err(StreamError::DiskFull);
                Ok(())
            }
            done => done,
        };
        note(self.collect().await)?;
        let known = self.manager.with(|state| state.extents.clone());
        for extent in self.node.list() {
            if !known.contains_key(&extent) && !has_losses {
                tracing::info!(%extent, "removing an extent that no stream lists");
                note(self.node.delete(extent).await)?;
            }
        }
        for (extent, info) in known {
            if info.references == 0 {
                continue;
            }
            let stat = self
                .node
                .stat(extent)
                .map_err(|_| StreamError::Corrupt(format!("extent {extent} is missing")))?;
            if info.sealed.is_none() && stat.frozen {
                let stream = self.manager.with(|state| state.listed_by(extent));
                let seal = Command::Seal { stream, extent, sealed: stat.sealed() };
                note(self.manager.multi_modify(vec![seal]).await)?;
            }
        }
        outcome
    }
}

/// Recovers the extent node. On a full disk the reserve is given up for that; what there is no space for even
/// then stays pending.
async fn recover_node(
    env: &Environment,
    extents: &[ListedExtent],
    has_copies: bool,
    space: &Space,
) -> Result<RecoveredNode, StreamError> {
    let mut given_up = space.given_up();
    let mut no_space = OnNoSpace::Fail;
    loop {
        match ExtentNode::recover(env, extents, has_copies, no_space).await {
            Err(StreamError::DiskFull) if no_space == OnNoSpace::Fail => {
                if !space.give_up_at_start(given_up).await {
                    no_space = OnNoSpace::KeepPending;
                }
                given_up = space.given_up();
            }
            recovered => return recovered,
        }
    }
}
