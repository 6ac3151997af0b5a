//! What of the Queue service a path names.
//!
//! ```text
//! /                        the service (empty too)
//! /QUEUE                   a queue
//! /QUEUE/messages          its messages
//! /QUEUE/messages/ID       one message
//! ```
//!
//! What always holds: any bytes are a resource or are refused; whether a name is one is the service's matter.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueueResource {
    /// The service of the account.
    Service,
    /// A queue.
    Queue(String),
    /// The messages of a queue.
    Messages(String),
    /// One message by its id.
    Message(String, String),
}

impl QueueResource {
    /// Reads the raw path below the account.
    pub(crate) fn parse(path: &str) -> Result<Self, ApiError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut segments = path.split('/');
        let mut next = || segments.next().map(decode).transpose();
        match (next()?, next()?, next()?, next()?) {
            (None, ..) => Ok(QueueResource::Service),
            (Some(queue), None, ..) if queue.is_empty() => Ok(QueueResource::Service),
            (Some(queue), None, ..) => Ok(QueueResource::Queue(queue)),
            (Some(queue), Some(messages), None, _) if is_messages(&messages) => {
                Ok(QueueResource::Messages(queue))
            }
            (Some(queue), Some(messages), Some(id), None) if is_messages(&messages) => match id.is_empty() {
                true => Ok(QueueResource::Messages(queue)),
                false => Ok(QueueResource::Message(queue, id)),
            },
            _ => Err(ErrorCode::InvalidUri.into()),
        }
    }
}

/// The queue in a raw path below the account; empty if there is none.
pub(crate) fn queue_of(path: &str) -> Cow<'_, str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    percent_decode_str(path.split('/').next().unwrap_or_default()).decode_utf8_lossy()
}

fn is_messages(segment: &str) -> bool {
    segment.eq_ignore_ascii_case("messages")
}

fn decode(segment: &str) -> Result<String, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8();
    Ok(decoded.map_err(|_| ApiError::new(ErrorCode::InvalidUri))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn resources() {
        let parse = |path| QueueResource::parse(path).map_err(|error| error.code);
        for path in ["", "/"] {
            assert_eq!(parse(path), Ok(QueueResource::Service), "{path}");
        }
        assert_eq!(parse("/tasks"), Ok(QueueResource::Queue("tasks".into())));
        assert_eq!(parse("/t%61sks/messages"), Ok(QueueResource::Messages("tasks".into())));
        assert_eq!(parse("/tasks/messages/"), Ok(QueueResource::Messages("tasks".into())));
        assert_eq!(parse("/tasks/messages/a%2Fb"), Ok(QueueResource::Message("tasks".into(), "a/b".into())));
        for path in ["/tasks/other", "/tasks/messages/a/b", "/%ff", "/tasks/"] {
            assert_eq!(parse(path), Err(ErrorCode::InvalidUri), "{path}");
        }
        assert_eq!(queue_of("/t%61sks/messages/x"), "tasks");
        assert_eq!(queue_of(""), "");
    }

    proptest! {
        #[test]
        fn any_path_is_a_resource_or_refused(path in "[/a-z%0-9]{0,40}") {
            let _ = QueueResource::parse(&path);
            let _ = queue_of(&path);
        }
    }
}
