//! A queue: made, deleted, and its messages put, received, updated, deleted.

use super::message::{QueueMessage, read_messages, ticks_of, write_message};
use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::metadata_of;
use base::Ticks;
use http_client::xml::can_hold;
use hyper::{Method, StatusCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A queue of an account. Cheap to clone.
#[derive(Clone)]
pub struct QueueClient {
    pub(crate) client: Arc<Client>,
    pub(crate) name: String,
}

/// How a message is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutMessage {
    /// It can be received from then on; at once without it.
    pub visible_after: Option<Duration>,
    /// How long it is kept; the service's 7 days without it.
    pub lives: Option<MessageLife>,
}

/// How long a message is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageLife {
    /// So long.
    For(Duration),
    /// Until it is deleted.
    Unlimited,
}

/// What is known of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueProperties {
    /// Its messages, about; invisible ones, too.
    pub message_count: u64,
    /// Names in lower case.
    pub metadata: BTreeMap<String, String>,
}

/// A message after an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedMessage {
    /// The receipt for the next update, or for its deletion.
    pub pop_receipt: String,
    /// When it can be received again.
    pub visible_at: Ticks,
}

impl QueueClient {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn operation(&self, name: &'static str, method: Method, below: &str) -> Operation {
        Operation::new(name, Service::Queue, method, format!("/{}{below}", encode(&self.name)))
    }

    /// Makes the queue; whether it is new. One that is there with other metadata is an error.
    pub async fn create(&self, metadata: &BTreeMap<String, String>) -> Result<bool, Error> {
        let operation = self.operation("create queue", Method::PUT, "").metadata(metadata)?;
        Ok(self.client.send(&operation).await?.status == StatusCode::CREATED)
    }

    /// Makes the queue unless it is there; whether it was made.
    pub async fn create_if_absent(&self) -> Result<bool, Error> {
        match self.create(&BTreeMap::new()).await {
            Err(error) if error.code() == "QueueAlreadyExists" => Ok(false),
            other => other,
        }
    }

    /// Deletes the queue with all its messages.
    pub async fn delete(&self) -> Result<(), Error> {
        self.client.send(&self.operation("delete queue", Method::DELETE, "")).await.map(drop)
    }

    /// Its metadata and about how many messages it has.
    pub async fn properties(&self) -> Result<QueueProperties, Error> {
        let operation = self.operation("get queue properties", Method::GET, "").query("comp", "metadata");
        let answer = self.client.send(&operation).await?;
        let count = answer.header("x-ms-approximate-messages-count");
        let message_count =
            count.parse().map_err(|_| Error::unreadable(operation.name, "it has no count"))?;
        Ok(QueueProperties { message_count, metadata: metadata_of(&answer.headers) })
    }

    /// Replaces its metadata.
    pub async fn set_metadata(&self, metadata: &BTreeMap<String, String>) -> Result<(), Error> {
        let operation = self.operation("set queue metadata", Method::PUT, "").query("comp", "metadata");
        self.client.send(&operation.metadata(metadata)?).await.map(drop)
    }

    /// Puts a message; its id, times and receipt. It is not sent twice after a failure that leaves open
    /// whether it was put, unless the retry policy says so.
    pub async fn put(&self, text: &str, how: PutMessage) -> Result<QueueMessage, Error> {
        const NAME: &str = "put message";
        check_text(NAME, text)?;
        let mut operation = self.operation(NAME, Method::POST, "/messages").unrepeatable();
        if let Some(after) = how.visible_after {
            operation = operation.query("visibilitytimeout", after.as_secs().to_string());
        }
        match how.lives {
            None => {}
            Some(MessageLife::Unlimited) => operation = operation.query("messagettl", "-1"),
            Some(MessageLife::For(life)) => {
                operation = operation.query("messagettl", life.as_secs().to_string())
            }
        }
        let operation = operation.fixed("content-type", "application/xml").body(write_message(text));
        let mut messages = self.messages(&operation).await?;
        messages.pop().ok_or_else(|| Error::unreadable(NAME, "it has no message"))
    }

    /// Receives up to `count` messages (the service gives 32 at most), which nobody else can receive for
    /// `invisible_for`. It goes to the primary only, and is not sent twice after a failure that leaves open
    /// whether messages were received, unless the retry policy says so: such messages are invisible until
    /// `invisible_for` is over, and [`Error::may_be_done`] says that there may be some.
    pub async fn get(&self, count: u32, invisible_for: Duration) -> Result<Vec<QueueMessage>, Error> {
        let operation = self
            .operation("get messages", Method::GET, "/messages")
            .unrepeatable()
            .query("numofmessages", count.to_string())
            .query("visibilitytimeout", invisible_for.as_secs().to_string());
        self.messages(&operation).await
    }

    /// Looks at up to `count` visible messages and changes nothing.
    pub async fn peek(&self, count: u32) -> Result<Vec<QueueMessage>, Error> {
        let operation = self
            .operation("peek messages", Method::GET, "/messages")
            .query("peekonly", "true")
            .query("numofmessages", count.to_string());
        self.messages(&operation).await
    }

    /// Makes a received message visible after a while (at once with zero), with a new text if one is given.
    pub async fn update(
        &self,
        message: &QueueMessage,
        visible_after: Duration,
        text: Option<&str>,
    ) -> Result<UpdatedMessage, Error> {
        const NAME: &str = "update message";
        let mut operation = self
            .message_operation(NAME, Method::PUT, message)
            .query("visibilitytimeout", visible_after.as_secs().to_string());
        if let Some(text) = text {
            check_text(NAME, text)?;
            operation = operation.fixed("content-type", "application/xml").body(write_message(text));
        }
        let answer = self.client.send(&operation).await?;
        let visible_at = ticks_of(answer.header("x-ms-time-next-visible"))
            .ok_or_else(|| Error::unreadable(NAME, "it has no time"))?;
        Ok(UpdatedMessage { pop_receipt: answer.header("x-ms-popreceipt").to_owned(), visible_at })
    }

    /// Deletes a received message.
    pub async fn delete_message(&self, message: &QueueMessage) -> Result<(), Error> {
        let operation = self.message_operation("delete message", Method::DELETE, message);
        self.client.send(&operation).await.map(drop)
    }

    /// Deletes all messages.
    pub async fn clear(&self) -> Result<(), Error> {
        self.client.send(&self.operation("clear messages", Method::DELETE, "/messages")).await.map(drop)
    }

    fn message_operation(&self, name: &'static str, method: Method, message: &QueueMessage) -> Operation {
        self.operation(name, method, &format!("/messages/{}", encode(&message.id)))
            .query("popreceipt", &message.pop_receipt)
    }

    async fn messages(&self, operation: &Operation) -> Result<Vec<QueueMessage>, Error> {
        let answer = self.client.send(operation).await?;
        read_messages(&answer.body).map_err(|why| Error::unreadable(operation.name, why))
    }
}

fn check_text(name: &'static str, text: &str) -> Result<(), Error> {
    if can_hold(text) {
        return Ok(());
    }
    Err(Error::invalid(name, "the text has characters that XML can't hold: encode it, such as in Base64"))
}
