//! Long texts in several records.
//!
//! Parts are put before the record that names them, so a reader that finds the record finds all parts. Parts
//! that nothing names are what a writer left that did not come to its end; `collect.rs` removes them.

use super::keys::{self, PartsId};
use crate::error::StoreError;
use crate::records::records::{Records, VALUE_BYTES_MAX};

/// Parts that are requested at once.
const PAGE: usize = 50;

/// The text in pieces of at most [`VALUE_BYTES_MAX`] bytes, each whole characters.
pub(crate) fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let piece;
        (piece, text) = text.split_at(text.floor_char_boundary(VALUE_BYTES_MAX));
        pieces.push(piece);
    }
    pieces
}

/// Puts all parts of a text; their number. Parts that a former try put are the same.
pub(crate) async fn put_parts(records: &dyn Records, id: &PartsId, text: &str) -> Result<usize, StoreError> {
    let pieces = pieces(text);
    for (index, piece) in pieces.iter().enumerate() {
        records.put(&keys::part(id, index), piece).await?;
    }
    Ok(pieces.len())
}

/// The text of all parts; none if one is missing.
pub(crate) async fn read_parts(
    records: &dyn Records,
    id: &PartsId,
    count: usize,
) -> Result<Option<String>, StoreError> {
    let (mut from, to) = keys::parts(id);
    let mut text = String::new();
    let mut index = 0;
    loop {
        let page = records.list(&from, &to, PAGE).await?;
        for part in &page {
            if part.key != keys::part(id, index) {
                return Ok(None);
            }
            text.push_str(&part.value);
            index += 1;
        }
        if page.len() < PAGE {
            return Ok((index == count).then_some(text));
        }
        from = keys::part(id, index);
    }
}

/// Removes all parts of a text.
pub(crate) async fn remove_parts(records: &dyn Records, id: &PartsId) -> Result<(), StoreError> {
    let (from, to) = keys::parts(id);
    loop {
        let page = records.list(&from, &to, PAGE).await?;
        for part in &page {
            records.remove(&part.key).await?;
        }
        if page.len() < PAGE {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_characters_and_the_whole_text() {
        let text = "aé😀".repeat(VALUE_BYTES_MAX / 3);
        let pieces = pieces(&text);
        assert_eq!(pieces.concat(), text);
        assert!(
            pieces.len() == 3 && pieces.iter().all(|piece| piece.len() <= VALUE_BYTES_MAX),
            "{}",
            pieces.len()
        );
        assert_eq!(super::pieces(""), [""; 0]);
    }
}
