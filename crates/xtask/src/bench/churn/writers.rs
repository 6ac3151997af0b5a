//! Writers of batches, few and then twice as many, each in a partition of its own: how long a batch takes.
//! More writers than flushes keep up with must be slowed evenly, not let run and stopped.

use super::flow::quantiles;
use super::rows::{Change, GROUP_ROWS, TableClient};
use super::{Stage, Verdict};
use crate::Outcome;
use std::time::{Duration, Instant};

/// Between the runs: compactions of the former one end.
const REST_FOR: Duration = Duration::from_secs(15);
/// So many times as long a batch may take beside twice as many writers.
const P99_FACTOR_MAX: f64 = 2.0;
/// Batches that took longer than that are counted.
const LONG_MS: f64 = 40.0;

/// When each batch of a writer ended, and how many milliseconds it took.
fn write(stage: &Stage<'_>, partition: &str, began_at: Instant) -> Result<Vec<(Duration, f64)>, String> {
    let mut client = TableClient::connect(stage.server.address).map_err(|error| error.to_string())?;
    let (mut took, mut first) = (Vec::new(), 0);
    while began_at.elapsed() < Duration::from_secs(stage.arguments.writers.writers_seconds) {
        let batch_at = Instant::now();
        let put = Change::Put { text_size: stage.arguments.writers.writers_text_size };
        client.change(partition, first..first + GROUP_ROWS, put).map_err(|error| error.to_string())?;
        took.push((began_at.elapsed(), batch_at.elapsed().as_secs_f64() * 1e3));
        first += GROUP_ROWS;
    }
    Ok(took)
}

#[derive(clap::Args)]
pub(crate) struct WritersArguments {
    /// Numbers of writers of batches, one after the other; the last is compared with the first.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 16])]
    pub(super) writers: Vec<u64>,
    /// Seconds that each number of writers writes.
    #[arg(long, default_value_t = 20)]
    pub(super) writers_seconds: u64,
    /// Bytes of text of each of their rows.
    #[arg(long, default_value_t = 1000)]
    pub(super) writers_text_size: usize,
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    TableClient::connect(stage.server.address)?.create_table()?;
    let mut p99s = Vec::new();
    for (at, writer_count) in stage.arguments.writers.writers.iter().copied().enumerate() {
        if at > 0 {
            std::thread::sleep(REST_FOR);
        }
        let began_at = Instant::now();
        let took = std::thread::scope(|scope| -> Result<Vec<(Duration, f64)>, String> {
            let partition = |writer: u64| format!("w{writer_count:02}-{writer:02}");
            let writers: Vec<_> = (0..writer_count)
                .map(|writer| scope.spawn(move || write(stage, &partition(writer), began_at)))
                .collect();
            let mut all = Vec::new();
            for writer in writers {
                all.extend(writer.join().map_err(|_| "a writer panicked".to_owned())??);
            }
            Ok(all)
        })?;
        let seconds = began_at.elapsed().as_secs_f64();
        let (half, p99) = quantiles(took.iter());
        let longest = took.iter().map(|(_, took)| *took).fold(0.0, f64::max);
        let long_count = took.iter().filter(|(_, took)| *took > LONG_MS).count();
        let second = |took: &&(Duration, f64)| took.0.as_secs();
        let mut by_second: Vec<&(Duration, f64)> = took.iter().collect();
        by_second.sort_by_key(second);
        let p99_of_seconds: Vec<String> = by_second
            .chunk_by(|one, other| second(one) == second(other))
            .map(|of_second| format!("{:.0}", quantiles(of_second.iter().copied()).1))
            .collect();
        println!("  p99 of each second, in ms: {}", p99_of_seconds.join(" "));
        let rate = (took.len() as u64 * GROUP_ROWS) as f64 / seconds;
        println!(
            "  {writer_count:2} writers: p50 {half:.1} ms, p99 {p99:.1} ms, longest {longest:.0} ms, {long_count} of \
             {} batches longer than {LONG_MS:.0} ms, {rate:.0} rows/s",
            took.len()
        );
        p99s.push(p99);
    }
    let [few, .., many] = p99s[..] else { return Err("at least two numbers of writers".into()) };
    Ok(vec![Verdict::at_most("p99 of a batch with more writers", many, few * P99_FACTOR_MAX, "ms")])
}
