//! Texts inside row keys; `key.rs` draws their bytes and says why they are encoded.
//!
//! Why a file of its own: whole keys, and bounds of ranges that are no whole keys, read the same texts. What
//! always holds: a text that was put is taken as it was, and the encoded bytes of texts have the order of
//! their UTF-16 code units.

use std::borrow::Cow;

/// Ends a text.
pub(super) const TERMINATOR: &[u8] = &[0, 1];

/// Appends `text` in key order, with its terminator.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_text_open(out, text);
    out.extend_from_slice(TERMINATOR);
}

/// Appends `text` in key order without terminator: the common start of all texts that start with it.
pub fn put_text_open(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Nearly every text goes over in one piece.
    while let Some(at) = memchr::memchr3(0, 0xee, 0xef, rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            0 => out.extend_from_slice(&[0, 0xff]),
            0xee => out.push(0xf8),
            _ => out.push(0xf9),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Takes a text and its terminator from the front.
pub(super) fn take_text(rest: &mut &[u8]) -> Option<String> {
    borrow_text(rest).map(Cow::into_owned)
}

/// The same, borrowed if it holds nothing that is encoded.
pub(super) fn borrow_text<'a>(rest: &mut &'a [u8]) -> Option<Cow<'a, str>> {
    let bytes = *rest;
    let mut at = bytes.iter().position(|byte| matches!(byte, 0 | 0xee | 0xef | 0xf8 | 0xf9))?;
    if bytes[at] == 0 && bytes.get(at + 1) == Some(&1) {
        *rest = &bytes[at + 2..];
        return std::str::from_utf8(&bytes[..at]).ok().map(Cow::Borrowed);
    }
    let mut out = bytes[..at].to_vec();
    loop {
        let byte = *rest.get(at)?;
        at += 1;
        match byte {
            0 => match *rest.get(at)? {
                1 => break,
                0xff => {
                    at += 1;
                    out.push(0);
                }
                _ => return None,
            },
            0xf8 => out.push(0xee),
            0xf9 => out.push(0xef),
            0xee | 0xef => return None,
            _ => out.push(byte),
        }
    }
    *rest = &rest[at + 1..];
    String::from_utf8(out).ok().map(Cow::Owned)
}

/// Takes a text from the front without decoding it.
pub(super) fn skip_text(rest: &mut &[u8]) -> Option<()> {
    let mut at = 0;
    loop {
        at += rest.get(at..)?.iter().position(|&byte| byte == 0)?;
        let kind = *rest.get(at + 1)?;
        at += 2;
        if kind == 1 {
            *rest = &rest[at..];
            return Some(());
        }
    }
}
