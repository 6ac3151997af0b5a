//! Operations on the messages of one queue.

use super::filler::Filler;
use crate::measure::errors::unless_done_before;
use crate::measure::recorder::{Failure, Outcome};
use crate::workload::chance::Chance;
use crate::workload::mix::Sizes;
use crate::workload::operation::OperationKind;
use std::collections::VecDeque;
use std::time::Duration;
use storage_client::{Error, PutMessage, QueueClient, QueueMessage};

/// Received messages that a client holds for deletion, at most; those that were received first are given up,
/// and are visible again later.
const HELD_MAX: usize = 64;

/// A client of a queue.
pub(crate) struct QueueCaller {
    pub(crate) queue: QueueClient,
    pub(crate) sizes: Sizes,
    pub(crate) filler: Filler,
    pub(crate) chance: Chance,
    /// None if the mix deletes nothing.
    pub(crate) held: Option<VecDeque<QueueMessage>>,
}

/// How long messages are invisible if they are deleted then, and if not.
const INVISIBLE_FOR: Duration = Duration::from_secs(30);
const INVISIBLE_SHORTLY_FOR: Duration = Duration::from_secs(1);

impl QueueCaller {
    pub(crate) async fn call(&mut self, kind: OperationKind) -> Outcome {
        match (kind, self.held.as_mut().and_then(VecDeque::pop_front)) {
            (OperationKind::Delete, Some(message)) => {
                let deleted = self.queue.delete_message(&message).await.or_else(unless_done_before);
                outcome(kind, deleted.map(|()| (1, message.text.len())))
            }
            (OperationKind::Put, held) => {
                self.hold(held);
                let size = self.sizes.of_item(self.chance.next_u64());
                let put = self.queue.put(self.filler.text(size), PutMessage::default()).await;
                outcome(kind, put.map(|_| (1, size as usize)))
            }
            (OperationKind::Peek, held) => {
                self.hold(held);
                outcome(kind, self.queue.peek(self.sizes.messages as u32).await.map(|found| sum(&found)))
            }
            // A deletion without a message is a receive.
            (_, held) => {
                self.hold(held);
                outcome(OperationKind::Get, self.receive().await)
            }
        }
    }

    /// Holds a message as the next one.
    fn hold(&mut self, message: Option<QueueMessage>) {
        if let (Some(held), Some(message)) = (&mut self.held, message) {
            held.push_front(message);
        }
    }

    async fn receive(&mut self) -> Result<(u64, usize), Error> {
        let invisible_for = match (self.sizes.invisible_s, &self.held) {
            (0, Some(_)) => INVISIBLE_FOR,
            (0, None) => INVISIBLE_SHORTLY_FOR,
            (seconds, _) => Duration::from_secs(seconds),
        };
        let found = self.queue.get(self.sizes.messages as u32, invisible_for).await?;
        let sum = sum(&found);
        if let Some(held) = &mut self.held {
            held.extend(found);
            let too_many = held.len().saturating_sub(HELD_MAX);
            held.drain(..too_many);
        }
        Ok(sum)
    }
}

fn sum(messages: &[QueueMessage]) -> (u64, usize) {
    (messages.len() as u64, messages.iter().map(|message| message.text.len()).sum())
}

fn outcome(kind: OperationKind, result: Result<(u64, usize), Error>) -> Outcome {
    let (items, bytes) = *result.as_ref().unwrap_or(&(0, 0));
    Outcome { kind, items, bytes: bytes as u64, place: Some(0), failure: result.err().map(Failure::from) }
}
