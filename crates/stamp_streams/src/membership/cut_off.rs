//! A process that the object store does not answer lets the others know.
//!
//! It gives its ranges up once a part has had no answer for `give_up_after`. Whoever takes them can read
//! their logs by then, if it knows in time; beats, which go to the metadata store, do not show it. The word
//! is a key that goes with the process's lease. What always holds: nothing but haste depends on it. It is
//! taken back when a part is answered, not when no part waits any more: ranges are given up then.

use crate::membership::life::Life;
use stamp::{Compare, Key, Transaction, TransactionAnswer, Value};
use std::sync::Arc;

/// The word is given once there was no answer for this share of the time after which parts are given up.
const SHARE_OF_GIVE_UP: (u32, u32) = (2, 5);
/// How often in that time it is looked.
const LOOKS: u32 = 4;

/// A part that waits for an answer, until this is dropped.
pub(crate) struct PartWaiting<'a>(&'a Life);

impl<'a> PartWaiting<'a> {
    pub(crate) fn begin(life: &'a Life) -> Self {
        life.parts_answered.lock().sent(life.surroundings.clock.monotonic());
        PartWaiting(life)
    }
}

impl Drop for PartWaiting<'_> {
    fn drop(&mut self) {
        self.0.parts_answered.lock().ended();
    }
}

/// The object store has answered a part.
pub(crate) fn note_answer(life: &Life) {
    life.parts_answered.lock().answered(life.surroundings.clock.monotonic());
}

/// Gives the word and takes it back, for as long as the life holds.
pub(crate) async fn tell_others(life: Arc<Life>) {
    let surroundings = &life.surroundings;
    let (share, of) = SHARE_OF_GIVE_UP;
    let patience = surroundings.settings.give_up_after * share / of;
    while life.holds() {
        surroundings.clock.sleep(patience / LOOKS).await;
        let (is_cut_off, is_known) = {
            let answered = life.parts_answered.lock();
            (answered.is_cut_off(surroundings.clock.monotonic(), patience), answered.is_known)
        };
        // Without an answer the word is sent again.
        if is_cut_off != is_known && tell(&life, is_cut_off).await {
            life.parts_answered.lock().is_known = is_cut_off;
        }
    }
}

async fn tell(life: &Life, is_cut_off: bool) -> bool {
    let (process, key) = (Key::Process(life.incarnation()), Key::CutOff(life.incarnation()));
    let mut transaction = Transaction::new(life.life().generation);
    transaction.compares.push(Compare::Exists(process));
    match is_cut_off {
        true => transaction.puts.push((key, Value::Present)),
        false => transaction.deletes.push(key),
    }
    let answer = life.metadata.commit_with(&transaction, Some(life.store_lease)).await;
    matches!(answer, TransactionAnswer::Committed(_))
}
