//! Fields that several stored rows share: optional texts and numbers, names with values.

use crate::name::Pairs;
use base::codec::{DecodeError, Decoder, Encode};

/// Appends a text that may be missing: varint 0, or length + 1 and the bytes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => out.put_varint(0),
        Some(text) => {
            out.put_varint(text.len() as u64 + 1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Reads what [`put_text`] wrote.
pub(crate) fn take_text(decoder: &mut Decoder<'_>) -> Result<Option<String>, DecodeError> {
    let Some(len) = decoder.varint("text length")?.checked_sub(1) else { return Ok(None) };
    let len = usize::try_from(len).map_err(|_| DecodeError("text length"))?;
    let bytes = decoder.take(len, "text")?;
    std::str::from_utf8(bytes).map(|text| Some(text.to_owned())).map_err(|_| DecodeError("text"))
}

/// Appends a number that may be missing: varint 0, or the number + 1.
pub(crate) fn put_number(out: &mut Vec<u8>, number: Option<u64>) {
    out.put_varint(number.map_or(0, |number| number + 1));
}

/// Reads what [`put_number`] wrote.
pub(crate) fn take_number(decoder: &mut Decoder<'_>) -> Result<Option<u64>, DecodeError> {
    Ok(decoder.varint("number")?.checked_sub(1))
}

/// Appends names with values.
pub(crate) fn put_pairs(out: &mut Vec<u8>, pairs: &Pairs) {
    out.put_varint(pairs.len() as u64);
    for (name, value) in pairs {
        out.put_bytes_field(name.as_bytes());
        out.put_bytes_field(value.as_bytes());
    }
}

/// Reads what [`put_pairs`] wrote.
pub(crate) fn take_pairs(decoder: &mut Decoder<'_>) -> Result<Pairs, DecodeError> {
    let mut pairs = Pairs::new();
    for _ in 0..decoder.varint("pair count")? {
        pairs.push((decoder.text("name")?.to_owned(), decoder.text("value")?.to_owned()));
    }
    Ok(pairs)
}
