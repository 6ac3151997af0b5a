//! XML documents as small trees: read with bounds, written escaped.
//!
//! What always holds: a document type is refused (so no entity can grow),
//! depth and number of elements are bounded, and any bytes are a tree or are refused.

use quick_xml::Reader;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesRef, Event};
use std::borrow::Cow;

/// Elements inside each other at most.
const DEPTH_MAX: usize = 16;

/// Elements in a document at most.
const ELEMENTS_MAX: usize = 1024;

/// The error text of a document that can't be read.
pub(crate) const MALFORMED: &str = "Error parsing Xml content";

/// The bytes are not a document that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedXml {
    /// The byte at which that shows.
    pub(crate) at: usize,
}

/// An element: its name without prefix, its text and its children. Attributes are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct XmlElement {
    /// The local name.
    pub(crate) name: String,
    /// All text directly inside; trimmed unless it was read with its blanks.
    pub(crate) text: String,
    /// The elements directly inside, in order.
    pub(crate) children: Vec<XmlElement>,
    /// The byte of the document at which its name begins.
    pub(crate) at: usize,
    /// The byte behind its end.
    pub(crate) end: usize,
}

impl XmlElement {
    /// The first child of that name.
    pub(crate) fn child(&self, name: &str) -> Option<&XmlElement> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first child of that name.
    pub(crate) fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }
}

/// Reads a document. Blanks at the ends of texts are left out.
pub(crate) fn parse_xml(bytes: &[u8]) -> Result<XmlElement, MalformedXml> {
    parse(bytes, false)
}

/// Reads a document. Texts are as they stand in it.
pub(crate) fn parse_xml_with_blanks(bytes: &[u8]) -> Result<XmlElement, MalformedXml> {
    parse(bytes, true)
}

fn parse(bytes: &[u8], keeps_blanks: bool) -> Result<XmlElement, MalformedXml> {
    let malformed = |at| MalformedXml { at };
    let text = std::str::from_utf8(bytes).map_err(|error| malformed(error.valid_up_to()))?;
    let document = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark_len = text.len() - document.len();
    let mut reader = Reader::from_str(document);
    let mut open: Vec<XmlElement> = Vec::new();
    let mut root = None;
    let mut count = 0;
    loop {
        let at = mark_len + reader.buffer_position() as usize;
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(_) => return Err(malformed(mark_len + reader.error_position() as usize)),
        };
        let end = mark_len + reader.buffer_position() as usize;
        match event {
            Event::Start(start) => {
                count += 1;
                if open.len() == DEPTH_MAX || count > ELEMENTS_MAX || root.is_some() {
                    return Err(malformed(at));
                }
                open.push(named(start.local_name().as_ref(), at));
            }
            Event::Empty(start) => {
                count += 1;
                if count > ELEMENTS_MAX || root.is_some() {
                    return Err(malformed(at));
                }
                close(named(start.local_name().as_ref(), at), end, &mut open, &mut root);
            }
            Event::End(_) => {
                let mut element = open.pop().ok_or(malformed(at))?;
                if !keeps_blanks {
                    element.text.truncate(element.text.trim_end().len());
                    let blanks = element.text.len() - element.text.trim_start().len();
                    element.text.drain(..blanks);
                }
                close(element, end, &mut open, &mut root);
            }
            Event::Text(text) => put_text(&mut open, &text, at)?,
            Event::CData(text) => put_text(&mut open, &text, at)?,
            Event::GeneralRef(reference) => {
                let character = referenced_char(&reference).ok_or(malformed(at))?;
                put_text(&mut open, character.encode_utf8(&mut [0; 4]), at)?;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(_) => return Err(malformed(at)),
            Event::Eof => break,
        }
    }
    match root {
        Some(root) if open.is_empty() => Ok(root),
        _ => Err(malformed(bytes.len())),
    }
}

/// The character that a reference stands for; `None`: there are no other entities than XML's own.
pub(crate) fn referenced_char(reference: &BytesRef<'_>) -> Option<char> {
    match (reference.resolve_char_ref().ok()?, reference.as_ref()) {
        (Some(character), _) => Some(character),
        (None, "amp") => Some('&'),
        (None, "lt") => Some('<'),
        (None, "gt") => Some('>'),
        (None, "quot") => Some('"'),
        (None, "apos") => Some('\''),
        _ => None,
    }
}

/// An element whose tag begins at this byte.
fn named(name: &str, tag_at: usize) -> XmlElement {
    XmlElement { name: name.to_owned(), at: tag_at + 1, ..XmlElement::default() }
}

fn close(mut element: XmlElement, end: usize, open: &mut [XmlElement], root: &mut Option<XmlElement>) {
    element.end = end;
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

/// Adds text that begins at this byte; what XML has no place for inside an element is refused.
fn put_text(open: &mut [XmlElement], text: &str, at: usize) -> Result<(), MalformedXml> {
    match open.last_mut() {
        Some(_) if !can_be_xml(text) => {
            let foreign = text.find(is_foreign).unwrap_or(0);
            return Err(MalformedXml { at: at + foreign });
        }
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(MalformedXml { at }),
    }
    Ok(())
}

/// Line and column of a byte of a document, from 1 on, as the service's reader counts them: in UTF-16 units,
/// and to the name of a tag. An empty document has none, which is 0 and 0.
pub(crate) fn place_of(document: &[u8], at: usize) -> (usize, usize) {
    if document.trim_ascii().is_empty() {
        return (0, 0);
    }
    let rest = document.get(at..).unwrap_or_default();
    let tag_len = match rest {
        [b'<', b'/', ..] => 2,
        [b'<', ..] => 1,
        _ => 0,
    };
    let before = String::from_utf8_lossy(&document[..(at + tag_len).min(document.len())]);
    let before = before.strip_prefix('\u{feff}').unwrap_or(&before);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.encode_utf16().count() + 1)
}

/// Bytes that are looked at together, so that the processor compares many of them at once.
const LOOKED_AT_TOGETHER: usize = 64;

/// Whether each byte is such a one.
fn all_bytes(text: &[u8], such: impl Fn(u8) -> bool) -> bool {
    text.chunks(LOOKED_AT_TOGETHER).all(|bytes| bytes.iter().fold(true, |all, &byte| all & such(byte)))
}

/// Whether these bytes are characters on one line that stand for themselves inside an element.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let such = |byte| (b' '..=b'~').contains(&byte) & (byte != b'&') & (byte != b'<') & (byte != b'>');
    all_bytes(bytes, such)
}

/// Whether XML can hold every character of a text.
pub(crate) fn can_be_xml(text: &str) -> bool {
    // What it has no place for are some control characters and some that begin with this byte.
    all_bytes(text.as_bytes(), |byte| (byte >= b' ') & (byte != 0xef))
        || text.chars().all(|character| !is_foreign(character))
}

/// What XML 1.0 has no place for.
fn is_foreign(character: char) -> bool {
    matches!(character, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Appends `name="value"`.
pub(crate) fn put_xml_attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    put_xml_text(out, &value.replace('"', ""));
    out.push(b'"');
}

/// Appends text, escaped; what XML cannot hold is left out.
pub(crate) fn put_xml_text(out: &mut Vec<u8>, text: &str) {
    // Most texts have nothing to escape.
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let text = match can_be_xml(text) {
        true => Cow::Borrowed(text),
        false => text.chars().filter(|character| !is_foreign(*character)).collect(),
    };
    out.extend_from_slice(partial_escape(text).as_bytes());
}

/// Appends `<name>text</name>`, or `<name />` without text.
pub(crate) fn put_xml_element(out: &mut Vec<u8>, name: &str, text: &str) {
    put_xml_tag(out, "<", name);
    put_xml_text(out, text);
    put_xml_tag(out, "</", name);
}

/// Appends an opening (`<`) or closing (`</`) tag. An element that holds nothing becomes `<name />`, as Azure
/// writes it: older .NET clients take a text that is empty but there for a value, so that a list without a
/// next page never ended.
pub(crate) fn put_xml_tag(out: &mut Vec<u8>, bracket: &str, name: &str) {
    if bracket == "</" && out.ends_with(b">") && out[..out.len() - 1].ends_with(name.as_bytes()) {
        let opening_at = out.len() - name.len() - 1;
        if out[..opening_at].ends_with(b"<") {
            out.pop();
            out.extend_from_slice(b" />");
            return;
        }
    }
    out.extend_from_slice(bracket.as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// What every document starts with.
pub(crate) const XML_DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tree_with_text_and_empty_elements() {
        let root = parse_xml(b"<?xml version='1.0' encoding='utf-8'?>\n<A xmlns='x'>\n<B> a &amp; &#x41;<![CDATA[<]]> </B><n:C/><B/></A>")
            .expect("well formed");
        assert_eq!(root.name, "A");
        assert_eq!(root.child_text("B"), Some("a & A<"));
        assert_eq!(root.child_text("C"), Some(""));
        assert_eq!(root.children.len(), 3);
    }

    #[test]
    fn refused() {
        for text in ["", "text", "<a>", "<a></b>", "<a/><b/>", "<a>&x;</a>", "<!DOCTYPE a []><a/>", "</a>"] {
            assert!(parse_xml(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse_xml("<a>".repeat(100).as_bytes()).is_err());
        assert!(parse_xml(format!("<a>{}</a>", "<b/>".repeat(2000)).as_bytes()).is_err());
    }

    /// The first two are recorded answers of the service.
    #[test]
    fn what_is_wrong_has_a_place() {
        let message = "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>\u{1}</MessageText></QueueMessage>";
        let retention = "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties><MinuteMetrics><Version>1.0\
            </Version><Enabled>True</Enabled><IncludeAPIs>True</IncludeAPIs><RetentionPolicy><Enabled>True</Enabled>\
            <Days>366</Days></RetentionPolicy></MinuteMetrics></StorageServiceProperties>";
        let place = |text: &str| {
            let at = parse_xml(text.as_bytes()).expect_err(text).at;
            place_of(text.as_bytes(), at)
        };
        assert_eq!(place(message), (2, 28));
        let root = parse_xml(retention.as_bytes()).expect("well formed");
        let policy = root.children[0].child("RetentionPolicy").expect("a policy");
        assert_eq!(place_of(retention.as_bytes(), policy.child("Days").expect("days").end), (2, 176));
        for (text, expected) in [
            ("", (0, 0)),
            ("x", (1, 1)),
            ("<a><b></a>", (1, 9)),
            ("<a>\n<b/>\n&x;</a>", (3, 1)),
            ("<a/><b/>", (1, 6)),
            ("\u{feff}<a>\u{1f600}\u{2}</a>", (1, 6)),
            ("<a>", (1, 4)),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn every_character_is_plain_escaped_or_foreign() {
        for character in (0..=0x1_2000).filter_map(char::from_u32) {
            // At the end of a long text, where it is looked at with others.
            let text = format!("{}{character}", "x".repeat(70));
            assert_eq!(can_be_xml(&text), !is_foreign(character), "{character:?}");
            let mut out = Vec::new();
            put_xml_text(&mut out, &text);
            let expected = match character {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '\r' => "&#13;".to_owned(),
                foreign if is_foreign(foreign) => String::new(),
                plain => plain.to_string(),
            };
            assert_eq!(out[70..], *expected.as_bytes(), "{character:?}");
        }
    }

    #[test]
    fn elements_that_hold_nothing_are_one_tag() {
        let mut out = Vec::new();
        put_xml_tag(&mut out, "<", "A");
        put_xml_element(&mut out, "Next", "");
        put_xml_element(&mut out, "Text", "<Text>");
        put_xml_tag(&mut out, "<", "AA");
        put_xml_tag(&mut out, "<", "A");
        put_xml_tag(&mut out, "</", "A");
        put_xml_tag(&mut out, "</", "AA");
        put_xml_tag(&mut out, "</", "A");
        let expected = "<A><Next /><Text>&lt;Text&gt;</Text><AA><A /></AA></A>";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_tree_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = parse_xml(&bytes);
        }

        #[test]
        fn marked_up_text_too(text in "[<>/a&;#x!\\[\\] ?\"'=-]{0,60}") {
            let _ = parse_xml(text.as_bytes());
        }

        #[test]
        fn texts_come_back(text in "[^\\p{C}]{0,30}") {
            let mut out = Vec::new();
            put_xml_element(&mut out, "a", &text);
            prop_assert_eq!(parse_xml(&out).expect("well formed").text, text.trim());
        }
    }
}
