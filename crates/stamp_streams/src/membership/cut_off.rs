//! A process that the object store does not answer lets the others know.
//!
//! Its parts are given up once they were tried for some time, and its ranges with them if the store does not
//! answer then. Whoever takes those can have read their logs, if it knows in time; beats, which go to the
//! metadata store, do not show it. The word is a key that goes with the process's lease. What always holds:
//! nothing but haste depends on it; it is taken back when the store answers, not when no part waits any more.

use crate::membership::life::Life;
use crate::membership::parts_answered::Tell;
use stamp::{Compare, Key, Transaction, TransactionAnswer, Value};
use std::sync::Arc;
use std::time::Duration;

/// The word is given once there was no answer for this part of the time after which parts are given up.
const PART_OF_GIVE_UP: u32 = 4;
/// How often in that time it is looked.
const LOOKS: u32 = 4;

/// A part that waits for an answer, until this is dropped.
pub(crate) struct PartWaiting<'a>(&'a Life);

impl<'a> PartWaiting<'a> {
    pub(crate) fn begin(life: &'a Life) -> Self {
        life.parts.answered.lock().sent(life.surroundings.clock.monotonic());
        PartWaiting(life)
    }
}

impl Drop for PartWaiting<'_> {
    fn drop(&mut self) {
        self.0.parts.answered.lock().ended();
    }
}

/// The object store has answered the process.
pub(crate) fn note_answer(life: &Life) {
    life.parts.answered.lock().answered(life.surroundings.clock.monotonic());
}

/// For how long no part may be answered before others should know: a part is given up when one try of it
/// has taken its time, or when it was tried for `give_up_after`, whichever is later.
fn patience(life: &Life) -> Duration {
    let settings = &life.surroundings.settings;
    settings.give_up_after.max(settings.object_try_for) / PART_OF_GIVE_UP
}

/// Gives the word and takes it back, for as long as the life holds.
pub(crate) async fn tell_others(life: Arc<Life>) {
    let (clock, patience) = (life.surroundings.clock.clone(), patience(&life));
    while life.holds() {
        clock.sleep(patience / LOOKS).await;
        let chosen = life.parts.answered.lock().choose_tell(clock.monotonic(), patience);
        if let Some(tell) = chosen
            && send(&life, tell).await
        {
            life.parts.answered.lock().committed(tell);
        }
    }
}

async fn send(life: &Life, tell: Tell) -> bool {
    let (process, key) = (Key::Process(life.incarnation()), Key::CutOff(life.incarnation()));
    let mut transaction = Transaction::new(life.life().generation);
    transaction.compares.push(Compare::Exists(process));
    match tell {
        Tell::CutOff => transaction.puts.push((key, Value::Present)),
        Tell::Answered => transaction.deletes.push(key),
    }
    let answer = life.metadata.commit_with(&transaction, Some(life.store_lease)).await;
    matches!(answer, TransactionAnswer::Committed(_))
}
