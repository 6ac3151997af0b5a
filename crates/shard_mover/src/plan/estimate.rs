//! How long writers of a mapping are refused during its move, about.

use super::facts::{MappingSize, PlanSettings};
use shard_backend::{Capabilities, Fence};
use std::time::Duration;

/// What publishing and records take.
const FIXED: Duration = Duration::from_secs(1);

/// Copying, comparing, and waiting until signatures end: once on a source that is fenced by them, twice on a
/// target.
pub(crate) fn pause(
    size: MappingSize,
    source: &Capabilities,
    target: &Capabilities,
    settings: &PlanSettings,
) -> Duration {
    let waits = u32::from(source.fence == Fence::Expires) + 2 * u32::from(target.fence == Fence::Expires);
    let rows = Duration::from_secs(2 * size.rows / settings.rows_per_second.max(1));
    FIXED.saturating_add(rows).saturating_add(settings.expiry_wait.saturating_mul(waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_rows_and_waits() {
        let settings = PlanSettings { rows_per_second: 1000, ..PlanSettings::default() };
        let (held, tables) = (Capabilities::POSTGRES, Capabilities::STORAGE_TABLES);
        for (rows, source, target, expected) in
            [(0, held, held, 1), (5000, held, held, 11), (0, tables, held, 21), (0, held, tables, 41)]
        {
            let size = MappingSize { rows, ..MappingSize::default() };
            let found = pause(size, &source, &target, &settings);
            assert_eq!(found, Duration::from_secs(expected), "{rows} {source:?}");
        }
    }
}
