//! The body of a message on its way in.
//!
//! ```text
//! <QueueMessage><MessageText>…</MessageText></QueueMessage>
//! ```
//!
//! What always holds: the text is kept character by character, blanks at its ends included, and holds nothing
//! that could not be written back; markup inside it is refused.

use crate::error::ApiError;
use crate::xml::{MALFORMED, XmlElement, is_plain, parse_xml_with_blanks};
use bytes::Bytes;
use queue::limits::MESSAGE_SIZE_BYTES_MAX;

/// Bytes of a body at most, as the service writes it: twice the text, and some for what is around it. A text
/// of escapes has to be shorter than others.
pub(crate) const BODY_SIZE_BYTES_MAX: usize = 2 * MESSAGE_SIZE_BYTES_MAX + 512;
const _: () = assert!(BODY_SIZE_BYTES_MAX == 131_584);

/// The text in a body; `None` if it has none.
pub(crate) fn read_message_text(body: &Bytes) -> Result<Option<Bytes>, ApiError> {
    match plain_text(body) {
        Some(text) => Ok(Some(body.slice_ref(text))),
        None => parse_message_text(body),
    }
}

/// The text in a body as clients write it whose text needs no escapes: it lies there as it is. `None`: any
/// other body.
fn plain_text(body: &[u8]) -> Option<&[u8]> {
    let mut document = body;
    if document.starts_with(b"<?xml ") {
        let end = document.windows(2).position(|bytes| bytes == b"?>")?;
        document = Some(&document[end + 2..]).filter(|_| is_plain(&document[1..end]))?.trim_ascii_start();
    }
    let text = document.strip_prefix(b"<QueueMessage><MessageText>")?.trim_ascii_end();
    text.strip_suffix(b"</MessageText></QueueMessage>").filter(|text| is_plain(text))
}

fn parse_message_text(body: &[u8]) -> Result<Option<Bytes>, ApiError> {
    let malformed = |at| ApiError::invalid_document(body, at, MALFORMED);
    let mut root = parse_xml_with_blanks(body).map_err(|error| malformed(error.at))?;
    if root.name != "QueueMessage" {
        return Err(malformed(root.at));
    }
    let at = root.children.iter().position(|child| child.name == "MessageText");
    let Some(XmlElement { text, children, .. }) = at.map(|at| root.children.swap_remove(at)) else {
        return Ok(None);
    };
    match children.first() {
        Some(markup) => Err(malformed(markup.at)),
        None => Ok(Some(text.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::error_code::ErrorCode;
    use crate::xml::put_xml_element;
    use proptest::prelude::*;

    fn read(body: &str) -> Result<Option<String>, ErrorCode> {
        let text = |text: Bytes| String::from_utf8(text.to_vec()).expect("text");
        read_message_text(&Bytes::copy_from_slice(body.as_bytes()))
            .map(|found| found.map(text))
            .map_err(|error| error.code)
    }

    #[test]
    fn texts_are_kept_as_they_are() {
        let some = |text: &str| Ok(Some(text.to_owned()));
        let message =
            |inside: &str| format!("<QueueMessage><MessageText>{inside}</MessageText></QueueMessage>");
        assert_eq!(read(&message(" a &lt;b/&gt;&#x41; \n ")), some(" a <b/>A \n "));
        assert_eq!(read(&message("")), some(""));
        assert_eq!(read(&message("<![CDATA[ <x> ]]>")), some(" <x> "));
        let declared =
            "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage>\n <MessageText/>\n</QueueMessage>\n";
        assert_eq!(read(declared), some(""));
        assert_eq!(read("<QueueMessage/>"), Ok(None));
    }

    #[test]
    fn refused() {
        for body in [
            "",
            "hello",
            "<Other><MessageText>a</MessageText></Other>",
            "<QueueMessage><MessageText>a<b/></MessageText></QueueMessage>",
            "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>a</QueueMessage>",
        ] {
            assert_eq!(read(body), Err(ErrorCode::InvalidXmlDocument), "{body}");
        }
    }

    #[test]
    fn what_clients_write_is_read_where_it_lies() {
        let message = "<QueueMessage><MessageText>SGVsbG8=</MessageText></QueueMessage>";
        for declaration in ["", "<?xml version='1.0' encoding='utf-8'?>\n"] {
            let body = format!("{declaration}{message}\n");
            assert_eq!(plain_text(body.as_bytes()), Some(&b"SGVsbG8="[..]));
        }
        let escaped = message.replace("SGV", "&amp;");
        assert_eq!(plain_text(escaped.as_bytes()), None);
        let broken = [b"<?xml \xff?>", message.as_bytes()].concat();
        assert_eq!(plain_text(&broken), None);
    }

    proptest! {
        /// However a body is read, it says the same.
        #[test]
        fn both_ways_to_read_agree(
            before in "(<\\?xml [a-z=?'<>&\u{e9}]{0,8}\\?>)?[ \n]{0,2}",
            text in "[a-zA-Z0-9+/= &;<>\r\n?\u{e9}\\]]{0,12}",
            after in "[ \n\u{c}x<]{0,2}",
        ) {
            let message = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            let body = format!("{before}{message}{after}");
            if let Some(plain) = plain_text(body.as_bytes()) {
                let parsed = parse_message_text(body.as_bytes()).map_err(|error| error.code);
                prop_assert_eq!(parsed, Ok(Some(Bytes::copy_from_slice(plain))));
            }
        }

        #[test]
        fn texts_come_back(text in "([^\\p{C}]|[\\r\\n\\t ]){0,40}") {
            let mut body = b"<QueueMessage>".to_vec();
            put_xml_element(&mut body, "MessageText", &text);
            body.extend_from_slice(b"</QueueMessage>");
            prop_assert_eq!(read(std::str::from_utf8(&body).expect("text")), Ok(Some(text)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read_message_text(&bytes.into());
        }
    }
}
