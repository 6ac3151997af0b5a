//! What a copy has received: pure bookkeeping, by which no message is put twice.
//!
//! What always holds: a message is new once, however often it is received; its newest receipt is kept; no
//! text is.

use std::collections::BTreeMap;
use std::time::Duration;
use storage_client::QueueMessage;

/// How often all messages come again without a new one before the copy is given up: services order messages
/// as they like, and those of the last batch come again while it is put.
const ROUNDS_MAX: usize = 4;

/// The messages of a copy, by their ids.
#[derive(Default)]
pub(super) struct Received {
    held: BTreeMap<String, Held>,
    /// Messages that came again since the last new one.
    repeated: usize,
}

/// A message that is to be visible again at the end.
struct Held {
    pop_receipt: String,
    /// When its receipt was known here: its time began before.
    at: Duration,
}

impl Received {
    /// Takes a message that was received at `at`; whether it is new.
    pub(super) fn take(&mut self, message: &QueueMessage, at: Duration) -> bool {
        let held = Held { pop_receipt: message.pop_receipt.clone(), at };
        let is_new = self.held.insert(message.id.clone(), held).is_none();
        self.repeated = if is_new { 0 } else { self.repeated + 1 };
        is_new
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether they came again in a row so often that others are not reached: their time is too short.
    pub(super) fn is_circling(&self) -> bool {
        self.repeated > ROUNDS_MAX * self.held.len()
    }

    /// Those which are still invisible at `now`, as far as that is not known better.
    pub(super) fn invisible(
        &self,
        now: Duration,
        invisible_for: Duration,
    ) -> impl Iterator<Item = QueueMessage> {
        let is_left = move |held: &Held| now.saturating_sub(held.at) < invisible_for;
        self.held.iter().filter(move |(_, held)| is_left(held)).map(|(id, held)| QueueMessage {
            id: id.clone(),
            pop_receipt: held.pop_receipt.clone(),
            ..QueueMessage::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, receipt: &str) -> QueueMessage {
        let (id, pop_receipt) = (id.to_owned(), receipt.to_owned());
        QueueMessage { id, pop_receipt, text: "text".to_owned(), ..QueueMessage::default() }
    }

    /// A copy that took longer than `--invisible` put the messages that came again once more.
    #[test]
    fn a_message_is_new_once() {
        let mut received = Received::default();
        let mut take = |id, receipt, at| received.take(&message(id, receipt), Duration::from_secs(at));
        let taken = [("a", "1", 0), ("b", "2", 0), ("a", "3", 5), ("c", "4", 6), ("b", "5", 7)];
        let new: Vec<bool> = taken.into_iter().map(|(id, receipt, at)| take(id, receipt, at)).collect();
        assert_eq!((new, received.len()), (vec![true, true, false, true, false], 3));
        let left = |now| -> Vec<(String, String)> {
            let left = received.invisible(Duration::from_secs(now), Duration::from_secs(5));
            left.map(|message| (message.id, message.pop_receipt)).collect()
        };
        let pair = |id: &str, receipt: &str| (id.to_owned(), receipt.to_owned());
        assert_eq!(left(9), [pair("a", "3"), pair("b", "5"), pair("c", "4")], "the newest receipts");
        assert_eq!(left(11), [pair("b", "5")], "the others are visible without help");
    }

    #[test]
    fn messages_that_only_come_again_are_noticed() {
        let mut received = Received::default();
        let circling = |received: &mut Received, ids: &[&str]| {
            for id in ids {
                received.take(&message(id, "r"), Duration::ZERO);
            }
            received.is_circling()
        };
        assert!(!circling(&mut received, &["a", "b"]));
        for _ in 0..ROUNDS_MAX {
            assert!(!circling(&mut received, &["a", "b"]));
        }
        assert!(!circling(&mut received, &["c", "a", "b", "c"]), "a new one begins anew");
        for _ in 0..ROUNDS_MAX - 1 {
            assert!(!circling(&mut received, &["a", "b", "c"]));
        }
        assert!(circling(&mut received, &["a"]));
    }
}
