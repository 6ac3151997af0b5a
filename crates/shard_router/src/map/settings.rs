//! Bounds of the cached map.

use std::time::Duration;

/// How a cached map is kept. The default is for a home that is a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSettings {
    /// An older map is read again while it is still used.
    pub refresh_after: Duration,
    /// An older map is not used: its home was out of reach for so long.
    pub age_max: Duration,
    /// Reads of the home begin at most once in this time.
    pub read_interval_min: Duration,
    /// The longest read.
    pub read_for_max: Duration,
    /// How long a key without a mapping, and a home that failed, are not looked up again.
    pub negative_for: Duration,
    /// Keys without a mapping that are remembered; a further one evicts the oldest.
    pub negative_count_max: usize,
}

impl Default for MapSettings {
    fn default() -> Self {
        MapSettings {
            refresh_after: Duration::from_secs(30),
            age_max: Duration::from_secs(24 * 3600),
            read_interval_min: Duration::from_millis(100),
            read_for_max: Duration::from_secs(10),
            negative_for: Duration::from_secs(2),
            negative_count_max: 1024,
        }
    }
}
