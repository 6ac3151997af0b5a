//! XML of answers as small trees, and texts escaped for requests.
//!
//! What always holds: a document type is refused, so no entity can grow; depth is bounded; any bytes are a
//! tree or an error. The number of elements is bounded by the size of the answer.

use quick_xml::Reader;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;

/// Elements inside each other, at most.
const DEPTH_MAX: usize = 16;

/// An element: its name without prefix, its text and its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Without a prefix.
    pub name: String,
    /// All text directly inside, as it stands.
    pub text: String,
    /// In the order of the document.
    pub children: Vec<Element>,
    /// It says of itself that its text is percent-encoded.
    pub is_encoded: bool,
}

impl Element {
    /// The first child of that name, in any case.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name.eq_ignore_ascii_case(name))
    }

    /// The text of the first child of that name; empty without one.
    pub fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }
}

/// Reads a document; an error says why it can't be read.
pub fn parse(bytes: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut open: Vec<Element> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let closed = match event {
            Event::Start(start) => {
                if open.len() >= DEPTH_MAX {
                    return Err("its elements are too deep".to_owned());
                }
                open.push(element(&start));
                continue;
            }
            Event::Empty(start) => element(&start),
            Event::End(_) => open.pop().ok_or("an element ends that did not begin")?,
            Event::Text(text) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&text);
                }
                continue;
            }
            Event::CData(text) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&text);
                }
                continue;
            }
            Event::GeneralRef(reference) => {
                if let Some(element) = open.last_mut() {
                    element.text.push(referenced_char(&reference).ok_or("it has an unknown entity")?);
                }
                continue;
            }
            Event::DocType(_) => return Err("it has a document type".to_owned()),
            Event::Eof => return Err("it ends before its root does".to_owned()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => return Ok(closed),
        }
    }
}

/// The character that a reference stands for; there are no entities but XML's own.
fn referenced_char(reference: &BytesRef<'_>) -> Option<char> {
    match (reference.resolve_char_ref().ok()?, reference.as_ref()) {
        (Some(character), _) => Some(character),
        (None, "lt") => Some('<'),
        (None, "gt") => Some('>'),
        (None, "amp") => Some('&'),
        (None, "quot") => Some('"'),
        (None, "apos") => Some('\''),
        _ => None,
    }
}

fn element(start: &BytesStart<'_>) -> Element {
    let name = start.local_name().as_ref().to_owned();
    let encoded = start.try_get_attribute("Encoded").ok().flatten();
    let is_encoded = encoded.is_some_and(|value| value.value.eq_ignore_ascii_case("true"));
    Element { name, is_encoded, ..Element::default() }
}

/// Whether XML 1.0 can hold the text.
pub fn can_hold(text: &str) -> bool {
    text.chars().all(|character| {
        matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    })
}

/// The text between tags. A carriage return would be read as a line feed, so it becomes a reference, too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    partial_escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_document_is_read() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<a:A x=\"1\"><B> t&lt;&#65;&amp; </B><b/><Name Encoded=\"true\">%41</Name><C><![CDATA[<]]></C></a:A>";
        let root = parse(text.as_bytes()).expect("a document");
        assert_eq!((root.name.as_str(), root.children.len()), ("A", 4));
        assert_eq!(root.text_of("B"), " t<A& ");
        assert_eq!(root.text_of("c"), "<");
        assert_eq!(root.text_of("none"), "");
        assert!(root.child("Name").is_some_and(|name| name.is_encoded));
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["", "<a>", "text", "<a></b>", "<!DOCTYPE a><a/>", "<a>&x;</a>", "</a>"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse("<a>".repeat(20).as_bytes()).is_err());
        assert!(parse(&[0xff]).is_err());
    }

    #[test]
    fn characters_that_xml_can_not_hold_are_known() {
        assert!(can_hold("a\t\r\n\u{fffd}\u{10ffff}"));
        for text in ["\u{0}", "\u{b}", "\u{ffff}"] {
            assert!(!can_hold(text));
        }
    }

    proptest! {
        #[test]
        fn text_comes_back(text in any::<String>()) {
            prop_assume!(can_hold(&text));
            let document = format!("<a>{}</a>", escaped(&text));
            prop_assert_eq!(parse(document.as_bytes()).map(|root| root.text), Ok(text));
        }

        #[test]
        fn any_bytes_are_a_tree_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = parse(&bytes);
        }
    }
}
