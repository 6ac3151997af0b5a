//! The offline check of a data folder's streams: reads everything that counts, changes nothing, and names
//! what is damaged and which streams it belongs to.
//!
//! What always holds: whatever makes the server refuse to start is named here; a torn tail of the journal or
//! of the stream manager's log is not damage. What the blocks mean is the upper layer's matter.

use crate::error::StreamError;
use crate::extent_node::{DamagedPart, NodeFacts, extent_path, read_node};
use crate::folder::{self, Folder};
use crate::ids::{ExtentId, StreamName};
use crate::local_streams::listed_extents;
use crate::stream_manager::{LOG_PATHS, State, StreamManager};
use base::{BoxFuture, Environment};

/// One damaged thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDamage {
    /// The file, as a path in the folder.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// Which part of it.
    pub part: DamagedPart,
    /// The streams whose content it is; empty: of none, or of all if the other files can't be read without
    /// this one.
    pub streams: Vec<StreamName>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCheck {
    /// All that is damaged.
    pub damages: Vec<StreamDamage>,
    /// Extents that were read.
    pub extent_count: u64,
    /// Those of them that were begun before digests were kept: that their blocks are the right ones can't be
    /// checked.
    pub undigested_extent_count: u64,
    /// Whole blocks in them.
    pub block_count: u64,
    /// Bytes of extents.
    pub size_bytes: u64,
    /// Bytes that only the journal holds: the next start writes them to their extents, over whatever is
    /// there.
    pub journaled_bytes: u64,
    /// The folder was never finished or is empty: there is nothing in it.
    pub is_fresh: bool,
    /// That the journal's last record is not whole, as a crash leaves it: not known to be damage.
    pub torn: Option<String>,
}

/// Checks the folder of `env`. `progress` is called with the bytes that were read, and with all there are. A
/// folder of another program or of a newer version is an error.
pub fn check_streams<'a>(
    env: &'a Environment,
    progress: &'a mut (dyn FnMut(u64, u64) + Send),
) -> BoxFuture<'a, Result<StreamCheck, StreamError>> {
    Box::pin(async move {
        let mut found = StreamCheck::default();
        let folder = folder::inspect(env).await?;
        if folder == Folder::Fresh {
            found.is_fresh = true;
            return Ok(found);
        }
        let mut whole = |place: &str, problem: String, part| {
            let place = place.to_owned();
            found.damages.push(StreamDamage { place, problem, part, streams: Vec::new() });
        };
        if let Folder::Ready { damaged: Some(path) } = folder {
            whole(path, "the file is missing or damaged".to_owned(), DamagedPart::Mended);
        }
        let is_kept_twice = folder.is_kept_twice();
        let listed = match StreamManager::read(env, is_kept_twice).await {
            Ok(recovered) => {
                for place in recovered.damaged {
                    whole(place, "the file is missing or damaged".to_owned(), DamagedPart::Mended);
                }
                Some(recovered.state)
            }
            Err(error) => {
                whole(LOG_PATHS[0], error.to_string(), DamagedPart::File);
                None
            }
        };
        for problem in listed.iter().flat_map(State::inconsistencies) {
            whole(LOG_PATHS[0], problem, DamagedPart::File);
        }
        let extents = listed.as_ref().map(listed_extents).unwrap_or_default();
        let facts = match read_node(env, &extents, is_kept_twice).await {
            Ok(facts) => Some(facts),
            Err(error) => {
                whole("journal", error.to_string(), DamagedPart::File);
                None
            }
        };
        for finding in facts.iter().flat_map(|facts| &facts.findings) {
            let part = if finding.is_mended { DamagedPart::Mended } else { DamagedPart::File };
            whole(&finding.place, finding.problem.clone(), part);
        }
        found.torn = facts.as_ref().and_then(|facts| facts.torn.clone());
        if let Some(facts) = &facts {
            check_extents(env, facts, listed.as_ref(), &mut found, progress).await;
        }
        Ok(found)
    })
}

fn streams_of(listed: Option<&State>, extent: ExtentId) -> Vec<StreamName> {
    let streams = listed.into_iter().flat_map(|state| &state.streams);
    streams.filter(|(_, info)| info.extents.contains(&extent)).map(|(name, _)| name.clone()).collect()
}

async fn check_extents(
    env: &Environment,
    facts: &NodeFacts,
    listed: Option<&State>,
    found: &mut StreamCheck,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) {
    let all_bytes = facts.table.extents.values().map(|state| state.length).sum();
    let mut read_bytes = 0;
    progress(read_bytes, all_bytes);
    for (&extent, &state) in &facts.table.extents {
        let mut read = |bytes| {
            read_bytes += bytes;
            progress(read_bytes, all_bytes);
        };
        let checked = facts.check_extent(&*env.disk, extent, state, &mut read).await;
        let unsure_bytes = facts.unsure_bytes(&*env.disk, extent, state).await;
        if unsure_bytes > 0
            && let Some(torn) = &mut found.torn
        {
            let place = extent_path(extent);
            *torn += &format!(
                "; the next start takes the {unsure_bytes} bytes behind the end of {place} if they are whole blocks"
            );
        }
        found.extent_count += 1;
        found.undigested_extent_count += u64::from(state.digest.is_none());
        found.block_count += checked.block_count;
        found.journaled_bytes += checked.journaled_bytes;
        found.size_bytes += state.length;
        let wanted =
            listed.is_none_or(|state| state.extents.get(&extent).is_some_and(|info| info.references > 0));
        for damage in checked.damages {
            // What no stream lists goes at the next start, whatever its blocks are like; its file must be
            // there.
            if !wanted && damage.part != DamagedPart::File {
                continue;
            }
            found.damages.push(StreamDamage {
                place: extent_path(extent),
                problem: damage.problem,
                part: damage.part,
                streams: streams_of(listed, extent),
            });
        }
    }
}
