//! Metrics of the process, as the kernel has them.
//!
//! What always holds: what the kernel does not say is 0, never an error: the other metrics are shown all the
//! same.

use std::fs;

/// What the kernel knows of this process. A metric that is not found is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessMetrics {
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
    pub(super) threads: u64,
    /// On a processor, in microseconds.
    pub(super) cpu_us: u64,
    pub(super) open_files: u64,
    /// Since 1970, in microseconds.
    pub(super) started_at_us: u64,
}

impl ProcessMetrics {
    /// Of now.
    pub(super) fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let statistics = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        let open_files = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        Self { open_files, ..Self::parse(&status, &statistics, &system, ticks_per_second) }
    }

    fn parse(status: &str, statistics: &str, system: &str, ticks_per_second: u64) -> Self {
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        // The name before them may hold anything; user and system time are the 12th and 13th field after it.
        let fields = statistics.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        // The start is the 20th, counted from that of the machine.
        let started_after = fields.split_whitespace().nth(19).and_then(|field| field.parse::<u64>().ok());
        let machine_started_at =
            system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
        let as_us = |ticks: u64| ticks * 1_000_000 / ticks_per_second.max(1);
        ProcessMetrics {
            resident_bytes: of("VmRSS:") * 1024,
            virtual_bytes: of("VmSize:") * 1024,
            threads: of("Threads:"),
            cpu_us: as_us(ticks),
            open_files: 0,
            started_at_us: match (machine_started_at, started_after) {
                (Some(machine), Some(ticks)) => machine * 1_000_000 + as_us(ticks),
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_the_kernel_prints() {
        let status = "Name:\ta\nVmSize:\t  2048 kB\nVmRSS:\t    16 kB\nThreads:\t9\n";
        let statistics = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 4250 7 8\n";
        let system = "cpu 1 2 3\nbtime 1000\nprocesses 5\n";
        let found = ProcessMetrics::parse(status, statistics, system, 100);
        let expected = ProcessMetrics {
            resident_bytes: 16 << 10,
            virtual_bytes: 2 << 20,
            threads: 9,
            cpu_us: 2_000_000,
            open_files: 0,
            started_at_us: 1_042_500_000,
        };
        assert_eq!(found, expected);
        assert_eq!(ProcessMetrics::parse("", "", "", 100), ProcessMetrics::default());
        assert!(ProcessMetrics::read().resident_bytes > 0);
    }
}
