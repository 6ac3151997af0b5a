//! `larimar queue`: messages looked at, copied, moved to a file, moved back from a poison queue.
//!
//! What always holds: a message is deleted only once it is where it is to go: in the file, synced, or in the
//! other queue. A run that is killed in between leaves it in both places: at least once, never less. The
//! queue is worked on until it gives no message any more, or as many as were asked for.

pub(crate) mod copy;
mod received;

use crate::environment::{Progress, Rate, Rest, ToolEnvironment, hold};
use crate::error::ToolError;
use crate::files::folder_of;
use crate::files::output::Output;
use base::date_time::date_time_text;
use base::{Disk, OpenMode};
use futures_util::future::LocalBoxFuture;
use serde_json::json;
use std::time::Duration;
use storage_client::{
    AccountAddress, MessageLife, PutMessage, QueueClient, QueueMessage, Service, Settings, StorageAccount,
    Surroundings,
};

/// Messages of one request, at most.
const MESSAGES_PER_REQUEST: u32 = 32;
/// Progress is shown so often.
const EVERY: Duration = Duration::from_millis(250);

/// A queue of an account, as a command names it.
#[derive(Clone)]
pub struct QueuePlace {
    /// The account.
    pub address: AccountAddress,
    /// How requests are retried, and what servers are trusted by.
    pub settings: Settings,
    /// The queue's name.
    pub queue: String,
}

impl QueuePlace {
    /// Whether it is the same queue under another spelling.
    fn is_same(&self, other: &Self) -> bool {
        self.queue == other.queue && self.address.has_same_endpoint(&other.address, Service::Queue)
    }

    fn client(&self, surroundings: &Surroundings) -> QueueClient {
        StorageAccount::new(self.address.clone(), self.settings.clone(), surroundings.clone())
            .queue(&self.queue)
    }
}

/// How messages are taken from a queue.
#[derive(Clone, Copy, Debug)]
pub struct Taking {
    /// So many at most.
    pub count_max: u64,
    /// For how long nobody else receives a message that is being worked on.
    pub invisible_for: Duration,
    /// Nothing is changed: the messages at the queue's head are only looked at.
    pub is_dry: bool,
}

/// A message as a line of JSON, with its newline.
pub fn message_line(message: &QueueMessage) -> String {
    let QueueMessage { id, text, dequeue_count, inserted_at, expires_at, .. } = message;
    let (inserted, expires) = (date_time_text(*inserted_at), date_time_text(*expires_at));
    let line = json!({
        "id": id, "inserted": inserted, "expires": expires, "dequeue_count": dequeue_count, "text": text,
    });
    line.to_string() + "\n"
}

/// The messages at the queue's head, of which there are 32 at most; nothing is changed.
pub fn peek<'a, 'e: 'a>(
    place: &'a QueuePlace,
    count: u32,
    environment: &'a ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Vec<QueueMessage>, ToolError>> {
    Box::pin(async move {
        let queue = place.client(&environment.surroundings);
        Ok(queue.peek(count.min(MESSAGES_PER_REQUEST)).await?)
    })
}

/// What a drain has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Messages that were moved; with a dry run those that would be first.
    pub count: u64,
    /// About how many are left, which others work on or which are not due: nobody can receive them now.
    pub invisible: u64,
}

/// Moves messages to the end of a file, a line each.
///
/// # Errors
/// That of a request or of the file; that another process drains into the same file.
pub fn drain<'a, 'e: 'a>(
    place: &'a QueuePlace,
    file: &'a str,
    taking: Taking,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Drained, ToolError>> {
    Box::pin(async move {
        let queue = place.client(&environment.surroundings);
        if taking.is_dry {
            let count = queue.peek(peeked(taking)).await?.len() as u64;
            return Ok(Drained { count, invisible: 0 });
        }
        // Before anything is received: that there is such a queue, and such a file, which nobody else writes
        // to: each has an offset of its own.
        queue.properties().await?;
        let _held = hold(&*environment.locks.of_file(file), file, file)?;
        let mut output = open_end(&*environment.disk, file).await?;
        let mut moved = Moved::new("draining", environment);
        loop {
            let messages = moved.next(&queue, taking, environment).await?;
            if messages.is_empty() {
                let is_bounded = moved.count >= taking.count_max;
                // What was to be done is done, whatever this answers.
                let left = if is_bounded { None } else { queue.properties().await.ok() };
                let invisible = left.map_or(0, |left| left.message_count);
                return Ok(Drained { count: moved.count, invisible });
            }
            let lines: String = messages.iter().map(message_line).collect();
            if let Err(error) = output.append(lines.into_bytes()).await {
                // The first error is what is to be known. Half a line gets its end by the next run.
                let _ = output.cut().await;
                return Err(moved.keep(error, &format!("are in {file}; the others are in the queue yet")));
            }
            output.sync().await?;
            for message in &messages {
                moved.delete(&queue, message, file).await?;
            }
        }
    })
}

/// A file to append whole lines to, which is made unless it is there.
async fn open_end(disk: &dyn Disk, file: &str) -> Result<Output, ToolError> {
    let failed = |error| ToolError::file(file, error);
    let output = match disk.exists(file).await.map_err(failed)? {
        true => {
            let found = disk.open(file, OpenMode::Read).await.map_err(failed)?;
            let size = found.size().await.map_err(failed)?;
            let mut output = Output::resume(disk, file, size).await?;
            // A run that was killed leaves half a line. Its message is in the queue yet; the next one, which
            // is deleted there, has a line of its own.
            if size > 0 && *found.read_at(size - 1, 1).await.map_err(failed)? != *b"\n" {
                output.append(b"\n".to_vec()).await?;
            }
            output
        }
        false => Output::create(disk, file).await?,
    };
    // A message is deleted once its line is durable, and so must the name be of the file that has it; one
    // that is there may be of a run that was killed before this.
    disk.sync_folder(folder_of(file)).await.map_err(failed)?;
    Ok(output)
}

/// Moves messages from one queue, such as that of poison messages, to another; how many. Each is as new
/// there: its count of deliveries begins anew, and it lives as long as it had left.
pub fn requeue<'a, 'e: 'a>(
    from: &'a QueuePlace,
    to: &'a QueuePlace,
    taking: Taking,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<u64, ToolError>> {
    Box::pin(async move {
        let (source, target) = (from.client(&environment.surroundings), to.client(&environment.surroundings));
        target.properties().await?;
        if taking.is_dry {
            return Ok(source.peek(peeked(taking)).await?.len() as u64);
        }
        let mut moved = Moved::new("requeuing", environment);
        loop {
            let messages = moved.next(&source, taking, environment).await?;
            if messages.is_empty() {
                return Ok(moved.count);
            }
            for message in &messages {
                let how = put_like(message, environment);
                if let Err(error) = target.put(&message.text, how).await {
                    let rest = format!("are in {}; one more may be", to.queue);
                    return Err(moved.keep(error.into(), &rest));
                }
                moved.delete(&source, message, &to.queue).await?;
            }
        }
    })
}

fn peeked(taking: Taking) -> u32 {
    u32::try_from(taking.count_max).unwrap_or(u32::MAX).min(MESSAGES_PER_REQUEST)
}

/// A message's life ends when it would have ended.
fn put_like(message: &QueueMessage, environment: &ToolEnvironment<'_>) -> PutMessage {
    // Messages that are kept for ever expire in 9999.
    const FOR_EVER: u64 = 100 * 365 * 86_400;
    let now = environment.surroundings.clock.now().since_unix();
    let left = message.expires_at.since_unix().saturating_sub(now).as_secs().max(1);
    let lives =
        if left > FOR_EVER { MessageLife::Unlimited } else { MessageLife::For(Duration::from_secs(left)) };
    PutMessage { visible_after: None, lives: Some(lives) }
}

/// The course of a command.
struct Moved {
    verb: &'static str,
    count: u64,
    rate: Rate,
    shown_at: Duration,
}

impl Moved {
    fn new(verb: &'static str, environment: &ToolEnvironment<'_>) -> Self {
        let now = environment.surroundings.clock.monotonic();
        Moved { verb, count: 0, rate: Rate::new(now, 0), shown_at: now }
    }

    /// The next messages; none at the end.
    async fn next(
        &mut self,
        queue: &QueueClient,
        taking: Taking,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<Vec<QueueMessage>, ToolError> {
        let now = environment.surroundings.clock.monotonic();
        if now.saturating_sub(self.shown_at) >= EVERY {
            self.shown_at = now;
            let rate = self.rate.look(now, self.count);
            let rest = Rest::About(queue.properties().await.map_or(0, |properties| properties.message_count));
            (environment.watcher)(&Progress { verb: self.verb, done: self.count, rate, rest });
        }
        if environment.stop.is_set() {
            return Err(self.keep(ToolError::Stopped, "are done"));
        }
        let left = taking.count_max.saturating_sub(self.count).min(MESSAGES_PER_REQUEST.into());
        if left == 0 {
            return Ok(Vec::new());
        }
        let messages = queue.get(left as u32, taking.invisible_for).await;
        messages.map_err(|error| self.keep(error.into(), "are done"))
    }

    async fn delete(
        &mut self,
        queue: &QueueClient,
        message: &QueueMessage,
        to: &str,
    ) -> Result<(), ToolError> {
        match queue.delete_message(message).await {
            Ok(()) => {
                self.count += 1;
                Ok(())
            }
            // It was this deletion, whose answer was lost.
            Err(error) if error.may_be_done() && error.code() == "MessageNotFound" => {
                self.count += 1;
                Ok(())
            }
            Err(error) => {
                let rest = format!("are in {to} only; message {} is in both", message.id);
                Err(self.keep(error.into(), &rest))
            }
        }
    }

    fn keep(&self, error: ToolError, rest: &str) -> ToolError {
        error.keeping(format!("{} messages {rest}", self.count))
    }
}

#[cfg(test)]
mod tests;
