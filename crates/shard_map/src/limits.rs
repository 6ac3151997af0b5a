//! Bounds of a catalog and its keys. What breaks one is refused, when it is read as when it is changed.

/// Columns of a key, at most.
pub const COLUMNS_MAX: usize = 8;
/// Bytes of an encoded key, at most: what the Table service takes as a key, and far less than an index row of
/// Postgres (2.7 KB).
pub const KEY_BYTES_MAX: usize = 1024;

/// Shards of a catalog, at most.
pub const SHARDS_MAX: usize = 4096;
/// Maps of a catalog, at most.
pub const MAPS_MAX: usize = 256;
/// Pins of a map, at most.
pub const PINS_MAX: usize = 1 << 20;
/// Ranges of a map, at most.
pub const RANGES_MAX: usize = 1 << 20;
/// Bytes of a shard's location, at most.
pub const LOCATION_BYTES_MAX: usize = 2048;
/// Tags of a shard, at most.
pub const TAGS_MAX: usize = 32;
/// Bytes of a tag's value, at most.
pub const TAG_BYTES_MAX: usize = 256;
/// Bytes of the text that names what froze a mapping, at most.
pub const FROZEN_BY_BYTES_MAX: usize = 256;
/// The highest epoch: what a number of JavaScript holds exactly.
pub const EPOCH_MAX: u64 = (1 << 53) - 1;
