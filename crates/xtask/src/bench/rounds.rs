//! Rounds of measurements: how long and how wide they are, and what came out over all of them.
//!
//! What always holds: a rate is the median over the rounds, so that one slow minute of the machine does not
//! decide.

use crate::Outcome;
use crate::client::load::{Load, Measurement};
use crate::client::server_process::ServerProcess;
use hdrhistogram::Histogram;
use std::net::SocketAddr;
use std::time::Duration;

/// Arguments of benches that measure in rounds.
#[derive(clap::Args)]
pub(crate) struct RoundArguments {
    /// Rounds; the medians are over them.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Seconds measured per round and kind.
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
}

impl RoundArguments {
    /// So short that it only shows that a bench still works.
    pub(crate) fn smoke() -> Self {
        Self { rounds: 1, seconds: 1, connections: 64 }
    }

    /// A load on one of the addresses of a server.
    pub(crate) fn load(&self, address: SocketAddr, server: &ServerProcess, expected_status: u16) -> Load {
        Load {
            address,
            connection_count: self.connections,
            warm_up_for: Duration::from_millis(500),
            measure_for: Duration::from_secs(self.seconds),
            expected_status,
            server_process_id: Some(server.id()),
        }
    }
}

/// The measurements of one kind over all rounds.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) rates: Vec<f64>,
    latency_ns: Option<Histogram<u64>>,
    /// Microseconds of processor that an operation takes the server, per round.
    pub(crate) server_us: Vec<f64>,
    generator_share: f64,
}

impl Series {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, rates: Vec::new(), latency_ns: None, server_us: Vec::new(), generator_share: 0.0 }
    }

    pub(crate) fn add(&mut self, measurement: Measurement) -> Outcome<()> {
        self.rates.push(measurement.operations_per_second);
        let server_time = measurement.server_time_per_operation;
        self.server_us.extend(server_time.map(|time| time.as_secs_f64() * 1e6));
        self.generator_share = self.generator_share.max(measurement.generator_share);
        match &mut self.latency_ns {
            Some(latency_ns) => latency_ns.add(&measurement.latency_ns)?,
            None => self.latency_ns = Some(measurement.latency_ns),
        }
        Ok(())
    }

    pub(crate) fn last(&self) -> f64 {
        self.rates.last().copied().unwrap_or_default()
    }

    pub(crate) fn print(&self) {
        let at = |quantile| match &self.latency_ns {
            Some(latency_ns) => latency_ns.value_at_quantile(quantile) as f64 / 1e6,
            None => 0.0,
        };
        println!(
            "{:<16}{:>12.0} /s {:>9.2} ms {:>9.2} ms {:>9.1} µs {:>11.0} %",
            self.name,
            median(&self.rates),
            at(0.5),
            at(0.99),
            median(&self.server_us),
            self.generator_share * 100.0
        );
    }
}

/// The middle one, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => (sorted[length / 2 - 1] + sorted[length / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_few() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
    }
}
