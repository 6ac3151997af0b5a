//! XML documents as small trees: read with bounds, written escaped.
//!
//! What always holds: a document type is refused (so no entity can grow),
//! depth and number of elements are bounded, and any bytes are a tree or are refused.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// Elements inside each other at most.
const DEPTH_MAX: usize = 16;

/// Elements in a document at most.
const ELEMENTS_MAX: usize = 1024;

/// The bytes are not a document that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedXml;

/// An element: its name without prefix, its text and its children. Attributes are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct XmlElement {
    /// The local name.
    pub(crate) name: String,
    /// All text directly inside; trimmed unless it was read with its blanks.
    pub(crate) text: String,
    /// The elements directly inside, in order.
    pub(crate) children: Vec<XmlElement>,
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
    let text = std::str::from_utf8(bytes).map_err(|_| MalformedXml)?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut open: Vec<XmlElement> = Vec::new();
    let mut root = None;
    let mut count = 0;
    loop {
        let event = reader.read_event().map_err(|_| MalformedXml)?;
        match event {
            Event::Start(start) => {
                count += 1;
                if open.len() == DEPTH_MAX || count > ELEMENTS_MAX || root.is_some() {
                    return Err(MalformedXml);
                }
                open.push(named(start.local_name().as_ref()));
            }
            Event::Empty(start) => {
                count += 1;
                if count > ELEMENTS_MAX || root.is_some() {
                    return Err(MalformedXml);
                }
                close(named(start.local_name().as_ref()), &mut open, &mut root);
            }
            Event::End(_) => {
                let mut element = open.pop().ok_or(MalformedXml)?;
                if !keeps_blanks {
                    element.text.truncate(element.text.trim_end().len());
                    let blanks = element.text.len() - element.text.trim_start().len();
                    element.text.drain(..blanks);
                }
                close(element, &mut open, &mut root);
            }
            Event::Text(text) => put_text(&mut open, &text)?,
            Event::CData(text) => put_text(&mut open, &text)?,
            Event::GeneralRef(reference) => {
                let character = referenced_char(&reference).ok_or(MalformedXml)?;
                put_text(&mut open, character.encode_utf8(&mut [0; 4]))?;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(_) => return Err(MalformedXml),
            Event::Eof => break,
        }
    }
    match root {
        Some(root) if open.is_empty() => Ok(root),
        _ => Err(MalformedXml),
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

fn named(name: &str) -> XmlElement {
    XmlElement { name: name.to_owned(), ..XmlElement::default() }
}

fn close(element: XmlElement, open: &mut [XmlElement], root: &mut Option<XmlElement>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

fn put_text(open: &mut [XmlElement], text: &str) -> Result<(), MalformedXml> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(MalformedXml),
    }
    Ok(())
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
    for character in text.chars() {
        match character {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            foreign if is_foreign(foreign) => {}
            '\r' => out.extend_from_slice(b"&#13;"),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends `<name>text</name>`, or `<name />` without text.
pub(crate) fn put_xml_element(out: &mut Vec<u8>, name: &str, text: &str) {
    put_xml_tag(out, "<", name);
    put_xml_text(out, text);
    put_xml_tag(out, "</", name);
}

/// Appends an opening (`<`) or closing (`</`) tag. An element that holds nothing becomes `<name />`, as Azure writes it:
/// older .NET clients take a text that is empty but there for a value, so that a list without a next page never ended.
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
            assert_eq!(parse_xml(text.as_bytes()), Err(MalformedXml), "{text}");
        }
        assert_eq!(parse_xml("<a>".repeat(100).as_bytes()), Err(MalformedXml));
        assert_eq!(parse_xml(format!("<a>{}</a>", "<b/>".repeat(2000)).as_bytes()), Err(MalformedXml));
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
