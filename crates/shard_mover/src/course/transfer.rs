//! Copies and compares all tables of a move.
//!
//! What always holds: a copy goes on from its last position; rows before it are on the target, because the
//! source takes no writes and the target only this copy's.

use super::mover::Mover;
use super::observe::Watch;
use crate::error::MoveError;
use crate::log::position::{Position, key_texts, read_key};
use crate::log::state::{FORMAT, Move, MoveState};
use crate::progress::{Meter, Phase, ProgressSink};
use crate::rows::clear::clear;
use crate::rows::copy::{CopySink, copy};
use crate::rows::side::Side;
use crate::rows::verify::{Compared, compare};
use crate::settings::PlantedFault;
use base::BoxFuture;
use shard_backend::{RowKey, TableSchema};
use shard_map::Epoch;
use std::sync::atomic::{AtomicU64, Ordering};

/// A copy that is under way.
struct Transfer<'a> {
    mover: &'a Mover,
    of: &'a Move,
    source: Side,
    target: Side,
    claim: Epoch,
    meter: Meter<'a>,
    /// How far it is, when that was put last, and under which number.
    position: Position,
    put_at_rows: u64,
    number: u64,
}

impl Mover {
    /// Copies all tables; the state that follows.
    pub(super) async fn copy_all(
        &self,
        of: &Move,
        claim: Epoch,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<MoveState, MoveError> {
        let (mut source, mut target) =
            (self.side(&of.order.from, of, watch)?, self.side(&of.order.to, of, watch)?);
        if self.settings.planted.is(PlantedFault::SwappedPair) {
            std::mem::swap(&mut source, &mut target);
        }
        let (position, number) = self.log.position(&of.id).await?;
        // Without an order of keys a copy that was cut off begins again.
        let is_ordered = source.backend.capabilities().ordered_scan;
        let position = position.filter(|_| is_ordered);
        let rows = position.as_ref().map_or(0, |position| position.rows);
        let meter = Meter::new(&of.id, progress, Phase::Copying, of.order.rows, self.clock.monotonic());
        let meter = meter.starting_at(rows);
        let first = || Position { format: FORMAT, ..Position::default() };
        let position = position.unwrap_or_else(first);
        let claim = self.claim_of(claim);
        let mut transfer =
            Transfer { mover: self, of, source, target, claim, meter, position, put_at_rows: rows, number };
        for table in self.schema.tables().filter(|table| table.is_sharded()) {
            if table.name() >= transfer.position.table.as_str() {
                transfer.table(table, progress).await?;
            }
        }
        Ok(MoveState::Copied { rows: transfer.position.rows })
    }

    /// Compares all tables; the state that follows.
    pub(super) async fn verify_all(
        &self,
        of: &Move,
        watch: &Watch,
        progress: &ProgressSink,
    ) -> Result<MoveState, MoveError> {
        let (source, target) = (self.side(&of.order.from, of, watch)?, self.side(&of.order.to, of, watch)?);
        let meter = Meter::new(&of.id, progress, Phase::Verifying, of.order.rows, self.clock.monotonic());
        let (key, planted) = (&self.settings.digest_key, self.settings.planted);
        let (mut tables, rows) = (Vec::new(), AtomicU64::new(0));
        for table in self.schema.tables().filter(|table| table.is_sharded()) {
            let shown = |more: u64| {
                let rows = rows.fetch_add(more, Ordering::Relaxed) + more;
                meter.show(rows, self.clock.monotonic());
            };
            match compare(table, &source, &target, &key.key, planted, shown).await? {
                Compared::Equal(report) => tables.push(report),
                Compared::Differs(_) if planted.is(PlantedFault::SwitchBeforeVerify) => {}
                Compared::Differs(reason) => return Ok(MoveState::Failed { reason }),
            }
        }
        Ok(MoveState::Verified { key_id: key.id.clone(), tables })
    }
}

impl Transfer<'_> {
    /// Copies a table, or the rest of it.
    async fn table(&mut self, table: &TableSchema, progress: &ProgressSink) -> Result<(), MoveError> {
        let after = match &self.position.after {
            Some(texts) if self.position.table == table.name() => read_key(table, texts),
            _ => None,
        };
        if after.is_none() {
            let now = self.mover.clock.monotonic();
            let meter = Meter::new(&self.of.id, progress, Phase::Clearing, self.of.order.rows, now);
            let looked_at = clear(table, &self.source, &self.target, self.claim).await?;
            meter.show(looked_at, self.mover.clock.monotonic());
        }
        if self.position.table != table.name() || after.is_none() {
            self.position.table = table.name().to_owned();
            self.position.after = None;
        }
        let (source, target, claim) = (self.source.clone(), self.target.clone(), self.claim);
        copy(table, &source, &target, claim, after, self).await
    }

    /// Counts a batch, and puts how far the copy is now and then.
    async fn count(&mut self, last: Option<&RowKey>, rows: u64) -> Result<(), MoveError> {
        self.position.rows += rows;
        self.meter.show(self.position.rows, self.mover.clock.monotonic());
        let Some(last) = last else { return Ok(()) };
        self.position.after = Some(key_texts(last));
        if self.position.rows - self.put_at_rows >= self.mover.settings.progress_every_rows {
            self.mover.log.put_position(&self.of.id, self.number, &self.position).await?;
            self.put_at_rows = self.position.rows;
            self.number += 1;
        }
        Ok(())
    }
}

impl CopySink for Transfer<'_> {
    fn copied<'a>(&'a mut self, last: Option<&'a RowKey>, rows: u64) -> BoxFuture<'a, Result<(), MoveError>> {
        Box::pin(self.count(last, rows))
    }
}
