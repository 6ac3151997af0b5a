//! How many ranges there are, and how much log that is not yet in checkpoints, by the server's metrics: pure.
//!
//! What always holds: log is counted by what memory tables hold, less their overhead, since that is what a
//! take-over has to read again.

use std::fmt;
use std::time::Duration;

/// Bytes of log for a hundred bytes of memory tables, which count some 150 bytes of overhead for each row:
/// there are 83 to 92 with rows of the trial.
const LOG_PERCENT: u64 = 80;

/// What there must be before a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) ranges: u64,
    pub(super) log_bytes: u64,
    /// How long it may take until both are there.
    pub(super) within: Duration,
}

/// What there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) ranges: u64,
    pub(super) log_bytes: u64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.log_bytes as f64 / f64::from(1 << 20);
        write!(f, "{} ranges, {mib:.1} MiB of log not yet checkpointed", self.ranges)
    }
}

impl Measured {
    /// Of the text of `/metrics`.
    pub(super) fn of(metrics: &str) -> Self {
        Measured {
            ranges: family(metrics, "larimar_ranges"),
            log_bytes: family(metrics, "larimar_memory_table_bytes") * LOG_PERCENT / 100,
        }
    }

    pub(super) fn meets(self, demand: Demand) -> bool {
        self.ranges >= demand.ranges && self.log_bytes >= demand.log_bytes
    }
}

/// The sum of a family's series.
fn family(metrics: &str, name: &str) -> u64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let is_whole_name = rest.starts_with(' ') || rest.starts_with('{');
        let number = rest.rsplit(' ').next().filter(|_| is_whole_name)?;
        number.parse::<f64>().ok().map(|number| number as u64)
    };
    metrics.lines().filter_map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_family_are_added_and_both_demands_count() {
        let metrics = "# HELP larimar_ranges Ranges of an object table.\nlarimar_ranges{table=\"map\"} 1\n\
                       larimar_ranges{table=\"entity\"} 4\nlarimar_ranges_else 9\nlarimar_memory_table_bytes 1000\n";
        let measured = Measured::of(metrics);
        assert_eq!(measured, Measured { ranges: 5, log_bytes: 800 });
        let within = Duration::ZERO;
        assert!(measured.meets(Demand { ranges: 5, log_bytes: 800, within }));
        assert!(!measured.meets(Demand { ranges: 6, log_bytes: 800, within }));
        assert!(!measured.meets(Demand { ranges: 5, log_bytes: 801, within }));
        let two_mib = Measured { ranges: 6, log_bytes: 2 << 20 };
        assert_eq!(two_mib.to_string(), "6 ranges, 2.0 MiB of log not yet checkpointed");
    }
}
