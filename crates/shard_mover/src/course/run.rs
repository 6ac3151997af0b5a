//! Drives a move: look, choose, act, record; again until its end.
//!
//! What always holds: a state is put under the number after the one that was acted on. If another mover put
//! one there, that one counts, and what is next is chosen anew. Every loop has a bound.

use super::choose_action::{Action, Wish, choose_action};
use super::mover::Mover;
use super::observe::Watch;
use crate::error::{MoveError, is_for_ever};
use crate::limits::{REASON_CHARS_MAX, STATES_MAX, WAIT_AFTER_FAILURE};
use crate::log::id::MoveId;
use crate::log::state::{Move, MoveState};
use crate::progress::ProgressSink;
use shard_backend::BackendError;
use shard_store::Put;

/// Steps of one call, at most: each state may be chosen anew because another mover is beside.
const STEPS_MAX: usize = 4 * STATES_MAX;

impl Mover {
    pub(super) async fn drive(
        &self,
        id: &MoveId,
        wish: Wish,
        progress: &ProgressSink,
    ) -> Result<Move, MoveError> {
        let (mut watch, mut failures, mut wish) = (None, 0, wish);
        for _ in 0..STEPS_MAX {
            match self.step(id, &mut wish, &mut watch, progress).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => failures = 0,
                Err(error) if error.may_pass() && failures + 1 < self.settings.attempts_max => {
                    failures += 1;
                    self.clock.sleep(WAIT_AFTER_FAILURE * failures).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(MoveError::Restless { id: id.clone(), steps: STEPS_MAX })
    }

    /// One step; the move if it is at its end.
    async fn step(
        &self,
        id: &MoveId,
        wish: &mut Wish,
        watch: &mut Option<Watch>,
        progress: &ProgressSink,
    ) -> Result<Option<Move>, MoveError> {
        let of = self.log.read(id).await?;
        let mut seen = match watch.take() {
            Some(watch) => watch,
            None => Watch::new(&self.home).await?,
        };
        let observed = seen.look(&self.home, &of).await?;
        let action = choose_action(&of, &observed, *wish);
        let next = match action {
            Action::Stop => return Ok(Some(of)),
            Action::Refuse(what) => {
                let (id, state, what) = (id.clone(), of.state().name(), what.to_owned());
                return Err(MoveError::WrongState { id, state, what });
            }
            Action::Record(state) => Some(state),
            action => {
                let is_of_rows = matches!(action, Action::Copy(_) | Action::Verify);
                match self.perform(&of, action, &seen, progress).await {
                    Ok(next) => next,
                    // Rows that no copy can take end the move; all else may pass.
                    Err(MoveError::Backend(error)) if is_of_rows && is_for_ever(&error) => {
                        Some(failed(&error))
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        *watch = Some(seen);
        if let Some(next) = next {
            let is_undoing = matches!(next, MoveState::Undoing { .. });
            let put = self.log.put(id, of.states.len(), next).await?;
            if is_undoing && put == Put::Done {
                // From here on the states say what is next; a switch that was faster is finished.
                *wish = Wish::Finish;
            }
        }
        Ok(None)
    }
}

fn failed(error: &BackendError) -> MoveState {
    MoveState::Failed { reason: error.to_string().chars().take(REASON_CHARS_MAX).collect() }
}
