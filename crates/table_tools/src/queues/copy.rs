//! `larimar queue copy`: a queue's messages into another one, too.
//!
//! Messages are received, so that the next ones can be reached, and made visible again at the end. A copy
//! that takes longer than they are invisible receives them again, which is what renews their receipts: 32 by
//! one request, where an update would be one for each. What always holds: a message is put once in a run; at
//! its end those that are invisible yet are made visible; a run that may have left messages out is an error.

use super::received::Received;
use super::{Moved, QueuePlace, Taking, peeked, put_like};
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use futures_util::future::LocalBoxFuture;
use std::time::Duration;
use storage_client::{Error, QueueClient, QueueMessage};

/// Messages of a copy, at most: their ids and receipts are kept until the end.
const COPIED_MAX: usize = 100_000;

/// Copies messages to another queue; how many. They are received for that, which raises their counts of
/// deliveries, and made visible again at the end.
///
/// # Errors
/// That of a request; that both are one queue; that there are more than 100,000 messages without a bound
/// given; that they come again faster than the others are reached, because their time is too short.
pub fn copy_messages<'a, 'e: 'a>(
    from: &'a QueuePlace,
    to: &'a QueuePlace,
    taking: Taking,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<u64, ToolError>> {
    Box::pin(async move {
        if from.is_same(to) {
            return Err(ToolError::refused("a queue is not copied onto itself"));
        }
        let (source, target) = (from.client(&environment.surroundings), to.client(&environment.surroundings));
        target.properties().await?;
        if taking.is_dry {
            return Ok(source.peek(peeked(taking)).await?.len() as u64);
        }
        let (mut moved, mut received) = (Moved::new("copying", environment), Received::default());
        let copied = copy_all((&source, &target), taking, &mut moved, &mut received, environment).await;
        let released = release(&source, &received, taking, environment).await;
        copied?;
        released.map_err(|error| moved.keep(error.into(), "are copied"))?;
        Ok(moved.count)
    })
}

async fn copy_all(
    (source, target): (&QueueClient, &QueueClient),
    taking: Taking,
    moved: &mut Moved,
    received: &mut Received,
    environment: &mut ToolEnvironment<'_>,
) -> Result<(), ToolError> {
    loop {
        let messages = moved.next(source, taking, environment).await?;
        if messages.is_empty() {
            return Ok(());
        }
        let at = environment.surroundings.clock.monotonic();
        let new: Vec<QueueMessage> =
            messages.into_iter().filter(|message| received.take(message, at)).collect();
        if let Some(what) = refusal(received, taking.invisible_for) {
            let rest = format!("are in {}; others may be left", target.name());
            return Err(moved.keep(ToolError::Refused(what), &rest));
        }
        for message in new {
            if let Err(error) = target.put(&message.text, put_like(&message, environment)).await {
                let rest = format!("are in {}; one more may be", target.name());
                return Err(moved.keep(error.into(), &rest));
            }
            moved.count += 1;
        }
    }
}

/// Why a copy can't go on, if it can't.
fn refusal(received: &Received, invisible_for: Duration) -> Option<String> {
    if received.len() > COPIED_MAX {
        return Some(format!(
            "the queue has more than the {COPIED_MAX} messages that one copy keeps the receipts of; \
             --count copies some"
        ));
    }
    received.is_circling().then(|| {
        let seconds = invisible_for.as_secs();
        format!("copied messages come again after {seconds} s, before others do; give a longer --invisible")
    })
}

/// Makes messages visible that are not yet. One that someone else has received since is left to them.
async fn release(
    source: &QueueClient,
    received: &Received,
    taking: Taking,
    environment: &ToolEnvironment<'_>,
) -> Result<(), Error> {
    let clock = &environment.surroundings.clock;
    for message in received.invisible(clock.monotonic(), taking.invisible_for) {
        match source.update(&message, Duration::ZERO, None).await {
            Err(error) if !error.is_not_found() && error.code() != "PopReceiptMismatch" => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy ended well at its bound although messages were left.
    #[test]
    fn a_copy_beyond_its_bounds_is_refused() {
        let (mut received, wait) = (Received::default(), Duration::from_secs(3));
        let mut take = |ids: std::ops::Range<usize>| {
            for number in ids {
                let message = QueueMessage { id: number.to_string(), ..QueueMessage::default() };
                received.take(&message, Duration::ZERO);
            }
            refusal(&received, wait)
        };
        assert_eq!(take(0..COPIED_MAX), None);
        let more = take(COPIED_MAX..COPIED_MAX + 1).expect("a refusal");
        assert!(more.starts_with("the queue has more than the 100000 messages"), "{more}");
        let mut received = Received::default();
        for _ in 0..6 {
            received.take(&QueueMessage::default(), Duration::ZERO);
        }
        let circling = refusal(&received, wait).expect("a refusal");
        assert!(circling.starts_with("copied messages come again after 3 s"), "{circling}");
    }
}
