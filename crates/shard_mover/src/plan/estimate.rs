//! How long writers of a mapping are refused during its move, about.

use super::facts::{MappingSize, PlanSettings};
use shard_backend::{Capabilities, Fence};
use std::time::Duration;

/// What publishing and records take.
const FIXED: Duration = Duration::from_secs(1);

/// Copying, comparing, and waiting until signatures end: those of the source's writers, those of former copies
/// to the target, and before it is opened those of both sides at once.
pub(crate) fn pause(
    size: MappingSize,
    source: &Capabilities,
    target: &Capabilities,
    settings: &PlanSettings,
) -> Duration {
    let (source, target) = (source.fence == Fence::Expires, target.fence == Fence::Expires);
    let waits = u32::from(source) + u32::from(target) + u32::from(source || target);
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
        for (rows, source, target, expected) in [
            (0, held, held, 1),
            (5000, held, held, 11),
            (0, tables, held, 41),
            (0, held, tables, 41),
            (0, tables, tables, 61),
        ] {
            let size = MappingSize { rows, ..MappingSize::default() };
            let found = pause(size, &source, &target, &settings);
            assert_eq!(found, Duration::from_secs(expected), "{rows} {source:?}");
        }
    }
}
