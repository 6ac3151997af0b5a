//! Which characters keys can't hold.

/// Characters that keys can't hold.
pub(crate) fn is_bad(character: char) -> bool {
    matches!(character, '/' | '\\' | '#' | '?' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}
