//! A filter explained: ranges in words, the place of a mistake, advice.

mod advice;
mod caret;
mod words;

pub use advice::advice;
pub use caret::caret;
pub use words::{range_text, service_text};
