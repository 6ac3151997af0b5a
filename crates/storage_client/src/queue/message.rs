//! Messages as they come, and their XML.

use base::Ticks;
use http_client::xml::{Element, escaped, parse};
use std::time::{Duration, SystemTime};

/// A message of a queue. What an answer leaves out is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueMessage {
    /// Its id.
    pub id: String,
    /// What allows to update or delete it until it is visible again; empty of a peeked one.
    pub pop_receipt: String,
    /// As it was put, character for character; empty of one that was just put.
    pub text: String,
    /// How often it was received.
    pub dequeue_count: u32,
    /// When it was put.
    pub inserted_at: Ticks,
    /// When it is dropped.
    pub expires_at: Ticks,
    /// When it can be received again; zero of a peeked one.
    pub visible_at: Ticks,
}

/// The body that carries a text.
pub(crate) fn write_message(text: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>{}</MessageText></QueueMessage>",
        escaped(text)
    )
}

/// The messages of an answer.
pub(crate) fn read_messages(body: &[u8]) -> Result<Vec<QueueMessage>, String> {
    let root = parse(body)?;
    if root.name != "QueueMessagesList" {
        return Err(format!("it is a {}, not a QueueMessagesList", root.name));
    }
    root.children.iter().filter(|child| child.name == "QueueMessage").map(message).collect()
}

fn message(element: &Element) -> Result<QueueMessage, String> {
    let at = |name: &str| match element.text_of(name).trim() {
        "" => Ok(Ticks::default()),
        text => ticks_of(text).ok_or_else(|| format!("{name} is no date: {text}")),
    };
    let count = element.text_of("DequeueCount").trim();
    Ok(QueueMessage {
        id: element.text_of("MessageId").to_owned(),
        pop_receipt: element.text_of("PopReceipt").to_owned(),
        text: element.text_of("MessageText").to_owned(),
        dequeue_count: if count.is_empty() {
            0
        } else {
            count.parse().map_err(|_| format!("DequeueCount is {count}"))?
        },
        inserted_at: at("InsertionTime")?,
        expires_at: at("ExpirationTime")?,
        visible_at: at("TimeNextVisible")?,
    })
}

/// An RFC 1123 date.
pub(crate) fn ticks_of(text: &str) -> Option<Ticks> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    Some(Ticks::from_unix(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read() {
        let body = "<?xml version=\"1.0\"?><QueueMessagesList><QueueMessage><MessageId>i</MessageId>\
            <InsertionTime>Sat, 21 Nov 2026 09:00:00 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>\
            <PopReceipt>r</PopReceipt><TimeNextVisible>Sat, 21 Nov 2026 09:00:30 GMT</TimeNextVisible>\
            <DequeueCount>2</DequeueCount><MessageText> a&amp;b\n</MessageText></QueueMessage></QueueMessagesList>";
        let messages = read_messages(body.as_bytes()).expect("messages");
        let message = &messages[0];
        assert_eq!(
            (message.id.as_str(), message.pop_receipt.as_str(), message.text.as_str()),
            ("i", "r", " a&b\n")
        );
        assert_eq!(message.dequeue_count, 2);
        assert_eq!(message.visible_at, message.inserted_at.plus(Duration::from_secs(30)));
        assert!(message.expires_at > message.visible_at);
        assert_eq!(read_messages(b"<QueueMessagesList />"), Ok(Vec::new()));
        for body in [
            "<A/>",
            "<QueueMessagesList><QueueMessage><DequeueCount>x</DequeueCount></QueueMessage></QueueMessagesList>",
        ] {
            assert!(read_messages(body.as_bytes()).is_err(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_written_so_that_it_is_read(text in "[a-z<>&'\" \n\r\u{e9}]{0,20}") {
            let document = write_message(&text);
            let root = parse(document.as_bytes()).expect("a document");
            prop_assert_eq!(root.text_of("MessageText"), text);
        }
    }
}
