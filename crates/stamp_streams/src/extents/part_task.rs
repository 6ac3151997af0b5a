//! One part under way: sent until the store's answer is known, the lease ends or its writer gives up.
//!
//! What always holds: the same bytes are sent each time; nothing is sent after the lease's end or after the
//! window has stopped; what is decided is decided by `stamp::AppendWindow`.

use crate::error::AppendError;
use crate::extents::log_core::LogState;
use crate::extents::log_handle::Log;
use crate::extents::parts::content;
use crate::membership::cut_off::{PartWaiting, note_answer};
use crate::range::range_stop::RangeStop;
use crate::settings::Breach;
use bytes::Bytes;
use stamp::{
    AfterAppend, AfterStop, AppendStop, AppendWindow, Found, PartHeader, PutAnswer, choose_after_stop,
};

/// Sends a part until its outcome is settled.
pub(crate) async fn send(log: Log, header: PartHeader, body: Bytes) {
    let surroundings = log.range.life.surroundings.clone();
    let content = content(&header, &body);
    let started = surroundings.clock.monotonic();
    let _waiting = PartWaiting::begin(&log.range.life);
    let mut back_off = surroundings.back_off();
    loop {
        let tried_for = surroundings.clock.monotonic().saturating_sub(started);
        if !may_send(&log, &header, tried_for >= surroundings.settings.give_up_after) {
            return;
        }
        let answer = surroundings.put_part(&header, &content).await;
        if answer != PutAnswer::Unknown {
            note_answer(&log.range.life);
        }
        let mut choice = answered(&log, &header, answer, None);
        while choice == Some(AfterAppend::ReadHeader) {
            let tried_for = surroundings.clock.monotonic().saturating_sub(started);
            if !may_send(&log, &header, tried_for >= surroundings.settings.give_up_after) {
                return;
            }
            let found = surroundings.read_header(header.place.extent, header.offset).await;
            if found != Found::Unknown {
                note_answer(&log.range.life);
            }
            choice = answered(&log, &header, answer, Some(&found));
            if choice == Some(AfterAppend::ReadHeader) {
                back_off.wait().await;
            }
        }
        if choice != Some(AfterAppend::SendAgain) {
            return;
        }
        back_off.wait().await;
    }
}

fn window_of<'a>(state: &'a mut LogState, header: &PartHeader) -> Option<&'a mut AppendWindow> {
    state.window.as_mut().filter(|window| window.place() == header.place)
}

/// Whether the part may be sent, or sent again. If not, the window has stopped.
fn may_send(log: &Log, header: &PartHeader, gives_up: bool) -> bool {
    let holds = log.range.life.holds() && log.range.is_held();
    let mut state = log.core.state.lock();
    let Some(window) = window_of(&mut state, header) else { return false };
    if !holds {
        window.stop(AppendStop::LeaseEnded);
    } else if gives_up {
        window.stop(AppendStop::GivenUp);
    }
    let is_stopped = window.stopped().is_some();
    settle(log, &mut state, header);
    !is_stopped
}

/// The part was answered, and read since then, if it was.
fn answered(log: &Log, header: &PartHeader, answer: PutAnswer, found: Option<&Found>) -> Option<AfterAppend> {
    let planted = &log.range.life.surroundings.settings.planted;
    // The lease is read after the answer.
    let holds = log.range.life.holds() || planted.has(Breach::AcknowledgeWithoutLease);
    let is_failure = answer == PutAnswer::Unknown && planted.has(Breach::UnknownIsFailure);
    let answer = if is_failure { PutAnswer::Failed { status: 0 } } else { answer };
    let mut state = log.core.state.lock();
    let window = window_of(&mut state, header)?;
    let choice = window.answered(header.offset, answer, found, holds);
    let mut durable = window.acknowledge(holds);
    if planted.has(Breach::AcknowledgeOutOfOrder) && choice == Some(AfterAppend::Acknowledge) {
        durable.push(*header);
    }
    if is_failure && let Some(waiting) = state.waiting.remove(&(header.place.extent, header.offset)) {
        drop(waiting.send(Err(AppendError::not_sent("a planted fault"))));
    }
    let has_more = !durable.is_empty();
    for part in durable {
        if let Some(waiting) = state.waiting.remove(&(part.place.extent, part.offset)) {
            // Whoever does not wait any more does not need to know.
            drop(waiting.send(Ok(())));
        }
    }
    settle(log, &mut state, header);
    drop(state);
    if has_more {
        log.bundle_acknowledged();
    }
    choice
}

/// If the window has stopped, what is pending fails and the range stops; whoever waits looks again.
fn settle(log: &Log, state: &mut LogState, header: &PartHeader) {
    let Some(window) = window_of(state, header) else { return };
    if let Some(stop) = window.stopped().cloned() {
        let pending: Vec<(u64, bool)> =
            window.pending().map(|(part, may_be_there)| (part.offset, may_be_there)).collect();
        let extent = header.place.extent;
        for (offset, may_be_there) in pending {
            if let Some(waiting) = state.waiting.remove(&(extent, offset)) {
                drop(waiting.send(Err(AppendError { may_be_there, is_full: false, why: stop.to_string() })));
            }
        }
        let holds = log.range.life.holds();
        log.range.stop(match choose_after_stop(&stop, holds) {
            AfterStop::SealAndReload => RangeStop::Reload,
            AfterStop::ReadOwnEntry => RangeStop::SealedOut,
            AfterStop::DropAll => RangeStop::LeaseEnded,
        });
    }
    log.core.changed.notify_waiters();
}
