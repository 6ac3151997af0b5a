//! Bounds of a `$filter`, so that parsing any text ends in bounded time, memory and stack.

/// Longest filter that is read, in bytes. Two keys of full length in a URL are less.
pub const FILTER_BYTES_MAX: usize = 32 << 10;
/// Most comparisons in one filter. The service documents 15 but takes more.
pub const FILTER_COMPARISONS_MAX: usize = 256;
/// Deepest nesting of parentheses. Builders nest once for each comparison that they join.
pub const FILTER_DEPTH_MAX: usize = 300;
