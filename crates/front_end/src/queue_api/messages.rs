//! Put, get, peek, update, delete and clear messages.

use super::errors::{from_queue, from_update};
use super::message_text::read_message_text;
use super::parameters::{
    invisible_for, lives_for, message_count, message_id, pop_receipt, required_invisible_for,
};
use crate::error::ApiError;
use crate::pipeline::ApiRequest;
use crate::reply::Reply;
use crate::xml::{MALFORMED, XML_DECLARATION, put_xml_element, put_xml_tag};
use base::Ticks;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderName;
use queue::limits::INVISIBLE_FOR_DEFAULT;
use queue::{Message, QueueService};
use std::time::{Duration, UNIX_EPOCH};

const X_MS_POP_RECEIPT: HeaderName = HeaderName::from_static("x-ms-popreceipt");
const X_MS_TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static("x-ms-time-next-visible");

/// From this `x-ms-version` on, a put is answered with what it put.
const PUTS_ANSWERED_SINCE: &[u8] = b"2016-05-31";

/// Bytes of a message's elements besides its text, roughly.
const MESSAGE_OVERHEAD_BYTES: usize = 512;

/// Puts a message.
pub(crate) async fn put(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
    body: &Bytes,
) -> Result<Reply, ApiError> {
    let (query, headers) = (request.query, request.headers());
    let hidden_for = invisible_for(query, 0)?.unwrap_or(Duration::ZERO);
    let lives_for = lives_for(query, headers)?;
    if lives_for.is_some_and(|lives_for| lives_for <= hidden_for) {
        let sent = query.find("visibilitytimeout").unwrap_or_default();
        return Err(ApiError::invalid_parameter(
            "visibilitytimeout",
            sent,
            "messagettl must be greater than visibilitytimeout",
        ));
    }
    let none = || ApiError::invalid_document(body, body.len(), MALFORMED);
    let text = read_message_text(body)?.ok_or_else(none)?;
    let message = service.put_message(request.account, queue, text, hidden_for, lives_for).await;
    let message = message.map_err(from_queue)?;
    if headers.get("x-ms-version").is_some_and(|version| version.as_bytes() < PUTS_ANSWERED_SINCE) {
        return Ok(Reply::new(StatusCode::CREATED));
    }
    Ok(Reply::xml(StatusCode::CREATED, write(&[message], Shown::Put)))
}

/// Gets messages.
pub(crate) async fn get(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    let count = message_count(request.query)?;
    let hidden_for = invisible_for(request.query, 1)?.unwrap_or(INVISIBLE_FOR_DEFAULT);
    let messages = service.take_messages(request.account, queue, count, hidden_for).await;
    let messages = messages.map_err(from_queue)?;
    if let Some(simulated) = request.environment.simulated {
        simulated.charge_messages(messages.len());
    }
    Ok(Reply::xml(StatusCode::OK, write(&messages, Shown::Got)))
}

/// Peeks at messages.
pub(crate) async fn peek(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    let count = message_count(request.query)?;
    let messages = service.peek_messages(request.account, queue, count).await.map_err(from_queue)?;
    if let Some(simulated) = request.environment.simulated {
        simulated.charge_messages(messages.len());
    }
    Ok(Reply::xml(StatusCode::OK, write(&messages, Shown::Peeked)))
}

/// Updates a message.
pub(crate) async fn update(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
    id: &str,
    body: &Bytes,
) -> Result<Reply, ApiError> {
    // Before all that the request says of the message, as in Azure.
    service.find_queue(request.account, queue).await.map_err(from_queue)?;
    let receipt = pop_receipt(request.query)?;
    let id = message_id(id)?;
    let hidden_for = required_invisible_for(request.query)?;
    let text = if body.trim_ascii().is_empty() { None } else { read_message_text(body)? };
    let updated = service.update_message(request.account, queue, id, receipt, hidden_for, text).await;
    let updated = updated
        .map_err(|error| from_update(error, request.query.find("visibilitytimeout").unwrap_or_default()))?;
    let mut reply = Reply::new(StatusCode::NO_CONTENT);
    reply.header_bytes(X_MS_POP_RECEIPT, updated.receipt.text().into_bytes());
    reply.header_bytes(X_MS_TIME_NEXT_VISIBLE, date(updated.visible_at).into_bytes());
    Ok(reply)
}

/// Deletes a message.
pub(crate) async fn delete(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
    id: &str,
) -> Result<Reply, ApiError> {
    // The queue before the message, and the receipt's form before the id, as in Azure.
    service.find_queue(request.account, queue).await.map_err(from_queue)?;
    let receipt = pop_receipt(request.query)?;
    let id = message_id(id)?;
    service.delete_message(request.account, queue, id, receipt).await.map_err(from_queue)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

/// Deletes all messages.
pub(crate) async fn clear(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    service.clear_messages(request.account, queue).await.map_err(from_queue)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

/// Which elements of a message an answer shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Who put it knows the text.
    Put,
    /// Everything.
    Got,
    /// Nothing that gives a right to it.
    Peeked,
}

fn write(messages: &[Message], shown: Shown) -> Vec<u8> {
    let size: usize = messages.iter().map(|message| message.text.len() + MESSAGE_OVERHEAD_BYTES).sum();
    let mut out = Vec::with_capacity(128 + size);
    out.extend_from_slice(XML_DECLARATION);
    if messages.is_empty() {
        out.extend_from_slice(b"<QueueMessagesList />");
        return out;
    }
    put_xml_tag(&mut out, "<", "QueueMessagesList");
    for message in messages {
        put_xml_tag(&mut out, "<", "QueueMessage");
        put_xml_element(&mut out, "MessageId", &message.id.text());
        let inserted_at = date(message.inserted_at);
        put_xml_element(&mut out, "InsertionTime", &inserted_at);
        put_xml_element(&mut out, "ExpirationTime", &date(message.expires_at));
        if shown != Shown::Peeked {
            put_xml_element(&mut out, "PopReceipt", &message.receipt.text());
            let is_born_visible = message.visible_at == message.inserted_at;
            let visible_at = if is_born_visible { inserted_at } else { date(message.visible_at) };
            put_xml_element(&mut out, "TimeNextVisible", &visible_at);
        }
        if shown != Shown::Put {
            put_xml_element(&mut out, "DequeueCount", itoa::Buffer::new().format(message.dequeue_count));
            put_xml_element(&mut out, "MessageText", &String::from_utf8_lossy(&message.text));
        }
        put_xml_tag(&mut out, "</", "QueueMessage");
    }
    put_xml_tag(&mut out, "</", "QueueMessagesList");
    out
}

/// An instant as the protocol's XML and headers have it.
fn date(at: Ticks) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + at.min(service::TICKS_MAX).since_unix())
}
