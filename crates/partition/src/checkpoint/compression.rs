//! Compression of row blocks and overflows.
//!
//! Why it is not always tried: what was compressed by its writer, such as images, costs time for nothing.
//! What always holds: bytes are kept compressed only if that saves a good part of them.

/// After a block that hardly shrinks so many are not tried: their neighbours are like them.
const NOT_TRIED_COUNT: u32 = 7;

/// The bytes compressed; `None`: they hardly shrink, so they are kept as they are, and reading them costs
/// nothing. `not_tried` counts those that are kept without a try because the last one was in vain.
pub(super) fn compress_if_worth_it(bytes: &[u8], not_tried: &mut u32) -> Option<Vec<u8>> {
    if *not_tried > 0 {
        *not_tried -= 1;
        return None;
    }
    let compressed = lz4_flex::block::compress(bytes);
    if compressed.len() + compressed.len() / 8 < bytes.len() {
        return Some(compressed);
    }
    *not_tried = NOT_TRIED_COUNT;
    None
}
