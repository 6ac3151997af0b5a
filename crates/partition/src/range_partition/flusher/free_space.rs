//! Giving space back while it is scarce, beyond what flushes and merges do anyway: what memory holds is
//! flushed although its table is not full, and the log behind it goes.
//!
//! Why: memory tables are flushed when they are full, and the log frees whole extents, behind the one
//! that is being appended to. On a full disk neither fills up any more, so what was deleted would stay in the
//! log for ever. What always holds: nothing is written for less than it frees, and the log is trimmed
//! only behind what is in checkpoints.

use crate::error::PartitionError;
use crate::range_partition::flusher::Flusher;
use crate::range_partition::range_tree::Standing;
use crate::tree::Tree;
use crate::tree::merging_iterator::MergingIterator;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing, or something else first.
    Rest,
    /// What is in memory is frozen, and the log goes on in another extent.
    Freeze,
    /// Everything is in checkpoints: the log goes on in another extent.
    BeginExtent,
    /// There is such an extent: those before it go.
    Trim,
}

/// What a memory table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InMemory {
    /// Bytes of rows that a checkpoint of it takes.
    bytes: u64,
    /// Bytes of rows in checkpoints that it deletes, roughly: they go with the next merge.
    deleted_bytes: u64,
}

/// What a range holds in its log, and why.
#[derive(Clone, Copy, Debug)]
struct Held {
    log_bytes: u64,
    /// `None`: nothing is in memory.
    memory: Option<InMemory>,
    /// The log could begin with a later extent than it does.
    can_be_trimmed: bool,
}

fn choose_step(held: Held, gain_min_bytes: u64) -> Step {
    match held.memory {
        None if held.can_be_trimmed => Step::Trim,
        None if held.log_bytes >= gain_min_bytes => Step::BeginExtent,
        Some(memory) if held.log_bytes + memory.deleted_bytes >= memory.bytes + gain_min_bytes => {
            Step::Freeze
        }
        _ => Step::Rest,
    }
}

impl Flusher {
    /// Takes one step, if space is scarce. The next one can be taken once a flush that this one asked for is
    /// done.
    pub(crate) async fn free_space(&self) -> Result<(), PartitionError> {
        let Ok(_flushing) = self.core.gate.flushing.try_lock() else { return Ok(()) };
        if !self.core.is_scarce() || self.core.gate.keeps_memory.load(Ordering::Acquire) {
            return Ok(());
        }
        self.trim_left().await;
        let tree = self.core.tree();
        if !tree.frozen.is_empty() {
            return Ok(());
        }
        let streams = &self.core.shared.streams;
        let extents = streams.stat(&self.core.names.log)?.extents;
        let log_bytes = extents.iter().map(|(_, length)| *length).sum();
        let gain_min_bytes = self.core.gain_min_bytes();
        let memory = match tree.active.size_bytes() {
            0 => None,
            _ => Some(look_into_memory(&tree).await?),
        };
        if !streams.has_room_for(memory.unwrap_or_default().bytes).await {
            return Ok(());
        }
        let mut metadata = self.core.metadata.lock().await;
        // While the lock is held nothing new is decided that these would not see.
        let (step, flushed, log_start) = {
            let mut serial = self.core.serial.lock();
            let tree = self.core.tree.load();
            if !matches!(serial.standing, Standing::Open) || !tree.frozen.is_empty() {
                return Ok(());
            }
            // Else something may be in the log and not in a checkpoint.
            let is_idle = serial.pending.size_bytes() == 0 && serial.last_version == self.core.visible();
            if memory.is_none() && tree.active.size_bytes() > 0 {
                return Ok(());
            }
            let flushed = serial.last_version;
            let log_start = self.core.log.positions.lock().start_after(flushed);
            let first = extents.first().map(|(extent, _)| *extent);
            let can_be_trimmed =
                is_idle && log_start.is_some_and(|start| first.is_some_and(|first| first != start.extent));
            let step = choose_step(Held { log_bytes, memory, can_be_trimmed }, gain_min_bytes);
            if step == Step::Freeze {
                self.core.tree.store(Arc::new(tree.with_active_frozen(flushed)));
            }
            if matches!(step, Step::Freeze | Step::BeginExtent) {
                self.core.log.begin_table();
                // A group without operations: its place is where the log can begin.
                serial.pending.begin_group();
            }
            (step, flushed, log_start)
        };
        match step {
            Step::Rest => {}
            Step::Freeze => {
                self.core.log.wake.notify_one();
                self.core.shared.maintenance.wake_flush();
            }
            Step::BeginExtent => self.core.log.wake.notify_one(),
            Step::Trim => {
                if (metadata.flushed_version, metadata.log_start) != (flushed, log_start) {
                    let mut next = metadata.clone();
                    next.flushed_version = flushed;
                    next.log_start = log_start;
                    self.core.write_metadata(&mut metadata, next).await?;
                }
                if let Some(start) = log_start {
                    self.core.trim(&self.core.names.log, start.extent).await;
                }
            }
        }
        Ok(())
    }

    /// Trims the log if that was refused, by the stream manager's full log perhaps, when a flush had made it
    /// possible.
    async fn trim_left(&self) {
        let metadata = self.core.metadata.lock().await;
        let (streams, owner) = (&self.core.shared.streams, self.core.owner);
        if let Some(start) = metadata.log_start
            && let Err(error) = streams.trim(&self.core.names.log, owner, start.extent).await
        {
            tracing::debug!(%error, "the log can't be trimmed yet");
        }
    }
}

/// Looks at all rows of the table that takes changes.
async fn look_into_memory(tree: &Tree) -> Result<InMemory, PartitionError> {
    let mut rows = MergingIterator::over_memory(tree.active.clone(), false);
    let (mut bytes, mut deleted_count) = (0, 0u64);
    while let Some(row) = rows.row() {
        bytes += row.size_bytes();
        deleted_count += u64::from(row.value.is_none());
        rows.step().await?;
    }
    let roots = || tree.checkpoints.iter().map(|checkpoint| &checkpoint.checkpoint.root);
    let stored_bytes: u64 = roots().map(|root| root.stored_bytes).sum();
    let stored_count: u64 = roots().map(|root| root.row_count).sum();
    let deleted_bytes = stored_bytes / stored_count.max(1) * deleted_count.min(stored_count);
    Ok(InMemory { bytes, deleted_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_for_what_they_give_back() {
        let held = |log_bytes, memory, can_be_trimmed| Held { log_bytes, memory, can_be_trimmed };
        let memory = |bytes, deleted_bytes| Some(InMemory { bytes, deleted_bytes });
        for (held, expected) in [
            (held(0, None, false), Step::Rest),
            (held(99, None, false), Step::Rest),
            (held(100, None, false), Step::BeginExtent),
            (held(100, None, true), Step::Trim),
            (held(99, None, true), Step::Trim),
            (held(1000, memory(1000, 0), false), Step::Rest),
            (held(1000, memory(901, 0), true), Step::Rest),
            (held(1000, memory(900, 0), true), Step::Freeze),
            (held(1000, memory(1000, 99), false), Step::Rest),
            (held(1000, memory(1000, 100), false), Step::Freeze),
            (held(1000, memory(0, 0), false), Step::Freeze),
            (held(99, memory(0, 0), false), Step::Rest),
        ] {
            assert_eq!(choose_step(held, 100), expected, "{held:?}");
        }
    }
}
